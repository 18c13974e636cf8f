"""The page of benchmarks follows from the stored measurements and says where they come from."""

from benchmarks import report
from benchmarks.process import environment
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
    sections = set(results) - {"measured", "limit", "growth", "peers"} | {"space"}
    assert set(results["measured"]) == sections


def test_a_measurement_records_processor_and_versions():
    found = environment()
    assert "cores (" in found["machine"]
    assert all(name in found["software"] for name in ("tagkin ", "NumPy ", "Python "))


def test_paragraphs_are_wrapped_and_tables_are_not():
    wide = table(["a" * 80, "b" * 80], [["c", "d"]])
    page = wrapped(f"# Title\n\n{'word ' * 50}\n\n{wide}\n")
    assert wide in page
    assert max(len(line) for line in page.splitlines() if "word" in line) <= 100
    assert page.count("word") == 50
