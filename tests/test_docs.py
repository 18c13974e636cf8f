"""The documents say what is so: code runs, links hold, the maps are complete."""

import ast
import doctest
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import tagkin
from tagkin import errors

from . import killing
from .conftest import package_modules
from .documents import DOCS, PAGES, ROOMS, ROOT, anchors, blocks, links, name_of, prose


@pytest.mark.parametrize(
    "name", ["README.md", "docs/tutorial.md", "docs/how-to.md", "docs/sidecars.md"]
)
def test_the_code_runs(name, capsys):
    found = blocks(ROOT / name, "python")
    assert found
    exec(compile("\n".join(found), name, "exec"), {})


def test_the_examples_of_docstrings_hold():
    modules = list(package_modules())
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    for test in (test for module in [*modules, killing] for test in finder.find(module)):
        if test.examples:  # to run one without takes a debugger and a look at every source file
            runner.run(test)
    assert runner.failures == 0
    assert runner.tries > 100


def test_the_readme_has_its_ten_lines():
    (block,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in block.splitlines() if line.strip()]) == 10


def test_links_and_anchors_hold():
    wrong = []
    for page in [*PAGES, ROOT / "CHANGELOG.md"]:
        for link in links(page):
            if link.startswith("https://"):
                continue
            path, _, anchor = link.partition("#")
            target = page if not path else (page.parent / path).resolve()
            missing = not target.exists()
            if missing or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                wrong.append(f"{name_of(page)}: {link}")
    assert not wrong


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


def test_names_of_the_package_in_the_documents_exist():
    """Dotted names in the text, imports in code that is not run above, and `name` from `module`."""
    wrong = []
    for page in PAGES:
        text = prose(page)
        named = re.findall(r"`(tagkin(?:\.\w+)+)[`(]", text)
        for names, module in re.findall(
            r"((?:`\w+`(?:,? and |, )?)+) from\s+`(tagkin[\w.]*)`", text
        ):
            named += [f"{module}.{name}" for name in re.findall(r"`(\w+)`", names)]
        for block in blocks(page, "python"):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("tagkin."):
                    named += [f"{node.module}.{name.name}" for name in node.names]
        wrong += [f"{name_of(page)}: {dotted}" for dotted in named if not exists(dotted)]
    assert not wrong


def exists(dotted: str) -> bool:
    try:
        find(dotted)
    except (LookupError, AttributeError):
        return False
    return True


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


def test_the_way_of_a_photograph_names_functions_that_exist():
    text = prose(DOCS / "a-photograph.md")
    for step in text.split("\n## ")[1:]:
        named = re.findall(r"`(tagkin\.[\w.]+)`", step)
        assert named, step.splitlines()[0]
        assert all(find(dotted) for dotted in named)


def test_the_architecture_shows_every_room():
    page = prose(DOCS / "architecture.md")
    listed = re.findall(r"^\| \[`(\w+)`\]", page, flags=re.MULTILINE)
    drawing = (DOCS / "images" / "architecture.svg").read_text()
    drawn = re.findall(r'class="t">(\w+)<', drawing)
    assert {*listed} == ROOMS | {"errors"}
    assert {*drawn} - {"photographs", "tags", "suggestions"} == ROOMS


def test_the_reference_lists_every_public_name():
    page = prose(DOCS / "reference" / "index.md")
    assert set(re.findall(r"`tagkin\.(\w+)`", page)) == set(tagkin.__all__)


def test_pictures_are_small():
    large = [p.name for p in (DOCS / "images").glob("*.png") if p.stat().st_size > 200_000]
    assert not large


def test_install_commands_name_the_packages_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for extra, requirements in extras.items():
        if extra != "dev":
            wanted = [re.sub(r">=.*", "", one) for one in requirements]
            assert errors.pip_install(extra).replace("'", "").split()[2:] == wanted, extra


def test_no_text_names_an_install_command_that_needs_an_index():
    sources = [*(ROOT / "src").rglob("*.py"), *PAGES]
    assert not [path.name for path in sources if "install 'tagkin" in path.read_text("utf-8")]


def test_contributors_are_sent_to_files_that_exist():
    text = prose(ROOT / "CONTRIBUTING.md")
    named = re.findall(r"`([\w./]+/(?:[\w.]+\.\w+)?)`", text)
    paths = [path for path in named if "NAME" not in path]
    assert len(paths) > 5
    package = ROOT / "src" / "tagkin"
    homes = (ROOT, package, package.parent)
    assert not [path for path in paths if not any((home / path).exists() for home in homes)]


def test_every_make_target_is_explained():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    explained = set(re.findall(r"^([a-z]+):.*## ", makefile, flags=re.MULTILINE))
    assert {"setup", "demo", "test", "lint", "bench", "docs"} <= targets == explained


def test_the_citation_has_the_version_of_the_package():
    text = Path(ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", text, flags=re.MULTILINE)[1] == tagkin.__version__
