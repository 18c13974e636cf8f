"""The page on reliability says what the batteries found."""

import json

from tests.hardening import report


def test_what_a_long_fuzz_left_is_taken_with_its_seed(tmp_path):
    reports = [{"name": "models", "n_tried": 1200, "n_clean": 1199, "failures": ["a"]}]
    file = tmp_path / "fuzz.json"
    file.write_text(json.dumps({"seconds": 3600, "seed": 42, "reports": reports}))
    rows, seed = report.from_file("fuzz", file)
    assert seed == 42
    assert rows == [report.Row("changed models, loaded (`models`)", 1200, 1199)]


def test_what_a_long_soak_left_is_taken(tmp_path, capsys):
    result = {
        "seconds": 7200,
        "seed": 3,
        "counts": {"scan": 10, "train": 5, "train, refused": 4},
        "wrong": ["memory grew by 40 %"],
        "uses": {"memory": [400_000, 560_000], "files": [9, 9]},
    }
    file = tmp_path / "soak.json"
    file.write_text(json.dumps(result))
    rows, seed = report.from_file("soak", file)
    assert seed == 3
    assert [(row.n_tried, row.n_clean) for row in rows] == [(16, 15), (4, 4), (4, 0), (4, 4)]
    assert "memory grew by 40 %" in capsys.readouterr().err


def test_the_page_has_a_table_for_each_section_that_ran():
    record = {"rows": [["scan", 2000, 1999]], "seed": 7, "machine": "a machine", "date": "today"}
    page = report.page({"kills": record})
    assert "| scan | 2,000 | 1,999 | 1 |" in page
    assert "today, a machine, seed 7." in page
    assert report.TITLES["kills"] in page
    assert report.TITLES["soak"] not in page


def test_the_published_page_is_that_of_the_published_figures():
    assert report.PAGE.read_text("utf-8") == report.page(report.stored())
