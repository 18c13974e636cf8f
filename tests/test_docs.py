"""The documents say what is so: code runs, links hold, the maps are complete."""

import importlib
import re
from pathlib import Path

import pytest

import tagkin

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md", "docs/how-to.md"])
def test_the_code_runs(name, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), name, "exec"), {})


def test_the_readme_has_its_ten_lines():
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip()]) == 10


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda p: p.name
)
def test_links_hold(path):
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target


def find(dotted: str):
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            value = getattr(value, part)
        return value
    raise LookupError(dotted)


def test_the_paper_map_names_functions_and_tests_that_exist():
    text = (DOCS / "paper-map.md").read_text()
    rows = re.findall(r"`(tagkin[\w.]+)` \| `(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(rows) == text.count("::"), "every row with a test has a function"
    for dotted, file, test in rows:
        assert find(dotted)
        assert f"def {test}(" in (ROOT / file).read_text()


def test_the_paper_map_has_every_equation():
    text = (DOCS / "paper-map.md").read_text()
    listed = set()
    for cell in re.findall(r"^\| (\([^|]+) \|", text, flags=re.MULTILINE):
        numbers = [int(n) for n in re.findall(r"\((\d+)\)", cell)]
        listed |= set(range(numbers[0], numbers[-1] + 1))
    assert listed == set(range(1, 19))


def test_the_reference_has_every_public_name():
    text = (DOCS / "reference.md").read_text()
    for name in tagkin.__all__:
        home = getattr(tagkin, name).__module__
        assert f"::: {home}.{name}" in text or f"::: {home}\n" in text, name


def test_every_make_target_is_explained():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    explained = set(re.findall(r"^([a-z]+):.*## ", makefile, flags=re.MULTILINE))
    assert {"setup", "demo", "test", "lint", "bench", "docs"} <= targets == explained
