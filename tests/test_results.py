"""Tables of pages are those of their files, and the files are of this version."""

import json
import re

import pandas as pd
import pytest

import tagkin
from benchmarks.tables import TABLES
from experiments import made
from tagkin.cli.commands.train import SPREADS

MADE = json.loads((made.RESULTS / "made.json").read_text())
MEASURED_BEFORE = {"benchmarks/scale.csv", "benchmarks/scale-serving.csv"}  # on 16 cores
"""Results of an earlier version, to be measured again; a name goes when that is done."""


def minor(version):
    return version.split(".")[:2]


def results():
    yield from ("loop.md", "trust.md")  # pages that a command writes whole
    for pattern in ("*.csv", "*.svg", "*/*.csv", "*/*.svg"):
        yield from (
            path.relative_to(made.RESULTS).as_posix() for path in made.RESULTS.glob(pattern)
        )


def test_pages_have_the_tables_of_their_results():
    for path in made.DOCS.rglob("*.md"):
        page = path.read_text(encoding="utf-8")
        if "<!-- table " in page:
            assert made.render(page) == page, f"{path}: write it by `python -m experiments pages`"
        assert page.count("<!-- table ") == page.count("<!-- end -->"), path


def test_every_result_says_how_it_was_made():
    assert set(results()) == set(MADE)
    for name, how in MADE.items():
        assert set(how) == {"version", "date", "machine", "seed", "command"}, name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", how["date"]), name
        assert how["command"].startswith(("python -m experiments ", "python -m benchmarks ")), name


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_result_is_of_this_version(name, request):
    if name in MEASURED_BEFORE:
        reason = "to be measured again"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    assert minor(MADE[name]["version"]) == minor(tagkin.__version__), MADE[name]["command"]


def test_every_result_is_on_a_page():
    pages = [path.read_text(encoding="utf-8") for path in made.DOCS.rglob("*.md")]
    for name in MADE:
        file = name.rpartition("/")[2]
        summary = file.replace("-draws", "")  # whose page has its means
        assert any(file in page or summary in page for page in pages), f"no page names {name}"


def test_every_benchmark_has_a_module_and_a_table():
    modules = {path.stem for path in (made.DOCS.parent / "benchmarks").glob("*.py")}
    assert set(TABLES) - {"space"} <= modules
    assert {name for name in MADE if name.startswith("benchmarks/")} >= {
        f"benchmarks/{name}.csv" for name in TABLES
    }


def test_train_quotes_the_ranges_of_single_draws():
    ranges = made.VIEWS["spreads"](made.read("trust-draws.csv")).astype(int).set_index("tagged")
    quoted = zip(SPREADS, ([8], [20], [50], [100, 200]), strict=True)
    for (_, low, high), sizes in quoted:
        of_sizes = ranges.loc[sizes]
        assert (low, high) == (of_sizes["lowest"].min(), of_sizes["highest"].max()), sizes


# --- how files are written and shown ---


def test_a_result_is_written_with_how_it_was_made(tmp_path):
    file = tmp_path / "speed.csv"
    made.write(file, [{"name": "a", "MAP": 62.47264}, {"name": "b", "MAP": float("nan")}], seed=7)
    assert file.read_text() == "name,MAP\na,62.47\nb,\n"
    how = json.loads((tmp_path / "made.json").read_text())["speed.csv"]
    assert how["version"] == tagkin.__version__
    assert how["seed"] == "7"
    assert "cores (" in how["machine"]
    made.write(tmp_path / "other.csv", [{"x": 1}])
    assert set(json.loads((tmp_path / "made.json").read_text())) == {"speed.csv", "other.csv"}


def test_a_command_is_noted_without_paths(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["", "gpu", "--draws", "3", "--output", str(tmp_path / "x")])
    assert made.command().endswith(" gpu --draws 3")


def test_results_of_another_version_are_not_added_to(tmp_path):
    file = tmp_path / "draws.csv"
    assert not made.is_current(file)
    made.write(file, [{"draw": 1}])
    assert made.is_current(file)
    noted = tmp_path / "made.json"
    noted.write_text(noted.read_text().replace(tagkin.__version__, "0.0.1"))
    assert not made.is_current(file)


def test_tables_of_another_machine_keep_its_name(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    made.write(there / "gpu.csv", [{"x": 1}])
    how = json.loads((there / "made.json").read_text())
    how["gpu.csv"]["machine"] = "64 cores (riscv64)"
    (there / "made.json").write_text(json.dumps(how))
    assert made.take(there, here) == ["gpu.csv"]
    assert (here / "gpu.csv").read_text() == "x\n1\n"
    assert json.loads((here / "made.json").read_text()) == how
    assert made.take(there, here) == []


def test_numbers_have_three_digits_and_text_stays():
    frame = pd.DataFrame(
        {"n": ["12500", "-3", ""], "x": ["62.4726", "-0.0146", "8.5"], "what": ["a|b", "0.1.0", ""]}
    )
    assert made.markdown(frame) == (
        "| n | x | what |\n| ---: | ---: | --- |\n"
        "| 12,500 | 62.5 | a\\|b |\n| −3 | −.015 | 0.1.0 |\n|  | 8.5 |  |"
    )


def test_headings_are_those_of_the_file():
    frame = pd.DataFrame([["1"] * 5], columns=["Unnamed: 0", "said", "said.1", "asked 0.5", "x"])
    assert made.markdown(frame).splitlines()[0] == "|  | said | said | asked 0.5 | x |"


def test_a_table_without_an_end_is_left_alone():
    assert made.render("<!-- table speed.csv -->\n") == "<!-- table speed.csv -->\n"
