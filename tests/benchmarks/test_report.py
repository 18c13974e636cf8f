"""The page of benchmarks follows from the stored measurements and says where they come from."""

import json
from pathlib import Path

import pytest

from benchmarks import report, report_kinds, report_waiting
from benchmarks.__main__ import main
from benchmarks.process import ROOT, environment
from benchmarks.report_features import features_section
from benchmarks.tables import table, wrapped


def test_the_page_is_that_of_the_stored_measurements():
    assert report.page(report.stored()) == (report.DOCS / "benchmarks.md").read_text()


def test_every_section_names_its_machine():
    results = report.stored()
    results["measured"]["search"] = {"machine": "8 cores (riscv64)"} | dict.fromkeys(
        ("software", "date"), "?"
    )
    page = report.page(results)
    assert "| search | 8 cores (riscv64) | ? | ? |" in page
    sections = set(results) - {"measured", "limit", "growth", "peers", "kinds"} | {"space"}
    assert set(results["measured"]) == sections


def test_a_measurement_records_processor_and_versions():
    recorded = environment()
    assert "cores (" in recorded["machine"]
    assert all(name in recorded["software"] for name in ("tagkin ", "NumPy ", "Python "))


def test_paragraphs_are_wrapped_and_tables_are_not():
    wide = table(["a" * 80, "b" * 80], [["c", "d"]])
    page = wrapped(f"# Title\n\n{'word ' * 50}\n\n{wide}\n")
    assert wide in page
    assert max(len(line) for line in page.splitlines() if "word" in line) <= 100
    assert page.count("word") == 50


def test_results_of_another_machine_keep_its_name(tmp_path, monkeypatch):
    """A file of results replaces its section, and the page names the machine of the file."""
    monkeypatch.setattr(report, "DOCS", tmp_path)
    stored = json.loads((ROOT / "docs" / "benchmarks.json").read_text())
    (tmp_path / "benchmarks.json").write_text(json.dumps(stored))
    where = {"date": "2020-02-02", "machine": "4 cores (riscv64)", "software": "tagkin 9"}
    results = {"environment": where, "serve": stored["scale"]["serve"] | {"images": 123_456}}
    (tmp_path / "scale.json").write_text(json.dumps(results))
    main([f"scale={tmp_path / 'scale.json'}"])
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| scale | 4 cores (riscv64) | tagkin 9 | 2020-02-02 |" in page
    assert "123,456 tagged images" in page
    again = report.stored()
    assert again["measured"]["scale"] == where
    assert again["scale"]["stream"] == stored["scale"]["stream"]


def test_an_unknown_section_is_named():
    with pytest.raises(SystemExit, match="Unknown section speed"):
        main(["speed"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("gpu=missing.json", "missing.json holds no results: .*No such file"),
        ("gpu=broken.json", "broken.json holds no results: Expecting value"),
        ("gpu=list.json", "list.json holds no results of `benchmarks.gpu`"),
        ("live=list.json", "live cannot be taken from a file. What can: gpu, "),
    ],
)
def test_a_file_without_results_is_named_before_anything_is_measured(
    given, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("broken.json").write_text("results")
    Path("list.json").write_text("[1]")
    with pytest.raises(SystemExit, match=message):
        main(["learning", given])


def test_what_bounds_large_photographs_is_told_by_its_steps():
    large = {
        "photographs": 2,
        "mean_bytes": 2048.0,
        "seconds": {"extract": [1.0], "onnxruntime, one thread per batch": [0.25]},
        "cpu_seconds": {"extract": [1.0], "onnxruntime, one thread per batch": [0.25]},
        "of_upper_bound": 0.25,
        "of_network_and_decoding": 0.8,
        "by_scale": {"1": 80.0, "2": 50.0, "4": 45.0, "8": 40.0},
        "by_step": {"read": 1.0, "hash": 2.0, "decode": 30.0, "resize": 5.0, "network": 10.0},
    }
    small = {**large, "second_run_seconds": 0.01}
    kinds = {}
    report_kinds.note_part({"kinds": kinds}, "riscv64", "features", {"features": {"large": large}})
    measured = {"backbone": "b", "cores": 2, "small": small, "large": large}
    page = features_section(measured, kinds | {"other": {}})
    assert "| for one JPEG of 12 megapixels, on one thread | CPU, riscv64 |" in page
    assert "| decoding it at a smaller size | 30.0 ms |" in page
    assert "| **limit** | **31 %** |" in page
    assert "one thread | CPU" not in features_section(measured, {"other": {}})
    section = report_kinds.kinds_section(kinds)
    assert "| ≥ 0.70 | 0.25 |" in section
    assert "| limit of `extract`, if only network and decoding took time |  | 0.31 |" in section


def test_one_kind_of_processor_does_not_wipe_the_others():
    results = report.stored()
    before = json.loads(json.dumps(results["kinds"]))
    results_here = {"limit": [{**results["limit"][0], "ratio": 1.25}], "growth": [], "peers": []}
    report_kinds.note(results, "riscv64", "space", results_here)
    report_kinds.note(results, "riscv64", "threads", {})  # of which no column is kept
    assert {kind: results["kinds"][kind] for kind in before} == before
    assert set(results["kinds"]["riscv64"]) == {"space"}
    page = report_kinds.kinds_section(results["kinds"])
    header, _, first = [line for line in page.splitlines() if line.startswith("|")][:3]
    cells = dict(zip(header.split(" | "), first.split(" | "), strict=True))
    assert cells["riscv64"] == "1.25"
    assert cells["target"] == "≤ 2.0"
    for kind in before:
        assert kind in header


def test_a_part_of_a_section_changes_its_column_and_no_table():
    results = report.stored()
    before = json.loads(json.dumps(results))
    row = {**results["limit"][0], "ratio": 1.25}
    report_kinds.note_part(results, "aarch64", "space", {"limit": [row]})
    assert (
        results["kinds"]["aarch64"]["space"]["peers"]
        == before["kinds"]["aarch64"]["space"]["peers"]
    )
    assert "| 1.25 |" in report_kinds.kinds_section(results["kinds"])
    assert {name: results[name] for name in before if name != "kinds"} == {
        name: before[name] for name in before if name != "kinds"
    }


def test_what_a_person_waits_for_is_shown_with_its_targets():
    times = {"seconds": 0.5, "cpu_seconds": 0.4}
    measured = {
        "photographs": 300,
        "large": 100_000,
        "saved": {"bytes": 74e6},
        "cold": dict.fromkeys(report_waiting.COMMANDS, times),
        "resident": dict.fromkeys(
            ("small", "large"), times | {"load_seconds": 0.3, "load_cpu_seconds": 0.2}
        ),
    }
    page = report_waiting.commands_section(measured)
    assert "100,000 photographs takes 74 MB" in page
    row = "| `tagkin find --like` for one photograph, trained on 300 | 0.50 s | ≤ 1.2 s |"
    assert row in page
    fit = {"photographs": 10_000, "tags": 500, "peak_extra_bytes": 2**30}
    fit |= {"wall_seconds": 18.2, "cpu_seconds": 33.3}
    fit |= {"stolen_share": 0.081, "operations_per_second": 2.431e11}
    row = {"tags": 5000, "fit_seconds": 3.0, "product_seconds": 2.0}
    learned = {"features": 1280, "landmarks": 2048, "fit": {"synthetic": fit}, "many_tags": [row]}
    page = report_waiting.learning_section(learned)
    assert (
        "| synthetic | 10,000 | 500 | 18.2 s | ≤ 20 s | 33.3 s | 8% | 243 GFLOP/s | 1,024 MiB |"
        in page
    )
    assert "| 5,000 | 3.00 s | 2.00 s | **1.50** |" in page
