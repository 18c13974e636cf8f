"""The documents say what is so: code runs, links hold, the maps are complete."""

import ast
import csv
import doctest
import importlib
import inspect
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import tagkin
from tagkin.installing import install_command

from . import killing
from .conftest import package_modules
from .documents import (
    DOCS,
    PAGES,
    ROOMS,
    ROOT,
    WITH_CODE,
    anchors,
    blocks,
    links,
    name_of,
    prose,
    run_code,
)
from .rules import obey


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_runs_and_prints_what_the_page_says(page):
    """The same words and nearly the same decimals; ranks may differ between processors."""
    ran = list(run_code(page))
    assert ran, f"{name_of(page)} has no Python block: write one, or take it off WITH_CODE"
    for block, printed in ran:
        shown = block["output"] or ""
        words, decimals = split_numbers(printed)
        shown_words, shown_decimals = split_numbers(shown)
        assert words == shown_words, "write what it prints: `python -m tests.documents`"
        assert shown_decimals == pytest.approx(decimals, rel=0.1, abs=0.1)


def split_numbers(text: str) -> tuple[list[str], list[float]]:
    """The words of a text, without numbers, and its numbers that are no whole ones."""
    decimals = re.findall(r"\d+\.\d+", text)
    return re.findall(r"[^\W\d]+", text), [float(number) for number in decimals]


def test_the_examples_of_docstrings_hold():
    modules = list(package_modules())
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    failed = []
    for test in (test for module in [*modules, killing] for test in finder.find(module)):
        if test.examples:  # to run one without takes a debugger and a look at every source file
            output: list[str] = []
            if runner.run(test, out=output.append).failed:
                failed.append(f"{test.filename}, {test.name}:\n{''.join(output)}")
    obey("the examples of docstrings hold", failed, "edit the docstring in that file, or the code")
    assert runner.tries > 100


# Rooms of the application, and helpers: a short docstring is enough there.
INTERNAL = {"arrays", "catalogue", "cli", "immich", "pages", "records", "server"}


def public_functions():
    """Functions and methods for people who write programs, by their dotted names."""
    for room in sorted(ROOMS - INTERNAL):
        module = importlib.import_module(f"tagkin.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield f"tagkin.{room}.{name}", inspect.unwrap(value)
            elif inspect.isclass(value):
                for own, method in vars(value).items():
                    if inspect.isfunction(method) and not own.startswith("_"):
                        yield f"tagkin.{room}.{name}.{own}", inspect.unwrap(method)


def test_public_names_have_an_example():
    texts = {name: inspect.getdoc(getattr(tagkin, name)) or "" for name in tagkin.__all__}
    obey(
        "every public name has an example",
        [f"tagkin.{name}" for name, text in texts.items() if ">>>" not in text],
        "write Examples into its docstring",
    )


def test_functions_describe_their_parameters():
    lacking = []
    for name, function in public_functions():
        given = [p for p in inspect.signature(function).parameters if p not in ("self", "cls")]
        text = inspect.getdoc(function)
        if text and text != "Do nothing." and len(given) > 1 and "Parameters\n-" not in text:
            lacking.append(name)
    obey(
        "a public function with two or more parameters describes them",
        lacking,
        "write Parameters into its docstring",
    )


def test_the_readme_has_its_ten_lines():
    (block,) = blocks(ROOT / "README.md", "python")
    n_lines = len([line for line in block.splitlines() if line.strip()])
    assert n_lines == 10, (
        f"README.md promises ten lines of Python and has {n_lines}: edit README.md"
    )


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
    obey("links of documents lead somewhere", wrong, "edit the link on that page, or the heading")


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
    obey("names of tagkin in the documents exist", wrong, "write the name of today on that page")


def exists(dotted: str) -> bool:
    try:
        find(dotted)
    except (LookupError, AttributeError):
        return False
    return True


def test_the_paper_map_names_functions_and_tests_that_exist():
    text = (DOCS / "paper-map.md").read_text()
    rows = re.findall(r"`(tagkin[\w.]+)` \| `(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(rows) == text.count("::"), "docs/paper-map.md: give every row a function and a test"
    missing = [dotted for dotted, _, _ in rows if not exists(dotted)]
    for _, file, test in rows:
        if not (ROOT / file).is_file() or f"def {test}(" not in (ROOT / file).read_text():
            missing.append(f"{file}::{test}")
    obey("the paper map names what exists", missing, "edit docs/paper-map.md")


def test_tests_in_the_documents_exist():
    """`tests/module.py::test`, as SECURITY.md names them."""
    missing = []
    for page in PAGES:
        for file, test in re.findall(r"(tests/[\w/]+\.py)::(\w+)", prose(page)):
            source = ROOT / file
            if not source.is_file() or f"def {test}(" not in source.read_text("utf-8"):
                missing.append(f"{name_of(page)}: {file}::{test}")
    obey("tests in the documents exist", missing, "write the name of today on that page")


def test_the_paper_map_has_every_equation():
    text = (DOCS / "paper-map.md").read_text()
    listed = set()
    for cell in re.findall(r"^\| (\([^|]+) \|", text, flags=re.MULTILINE):
        numbers = [int(n) for n in re.findall(r"\((\d+)\)", cell)]
        listed |= set(range(numbers[0], numbers[-1] + 1))
    missing = listed ^ set(range(1, 19))
    obey("the paper map has equations 1 to 18", missing, "edit docs/paper-map.md")


def test_the_way_of_a_photograph_names_functions_that_exist():
    _, _, section = prose(DOCS / "architecture.md").partition("## From file to suggestion\n")
    rows = [row for row in section.partition("\n## ")[0].splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 5
    for row in rows:
        named = re.findall(r"`(tagkin\.[\w.]+)`", row)
        assert named, f"docs/architecture.md, {row}: name a function of tagkin"
        missing = [dotted for dotted in named if not exists(dotted)]
        obey("each step names functions that exist", missing, "edit docs/architecture.md")


def test_the_architecture_shows_every_room():
    page = prose(DOCS / "architecture.md")
    listed = re.findall(r"^\| \[`(\w+)`\]", page, flags=re.MULTILINE)
    drawing = (DOCS / "images" / "architecture.svg").read_text()
    drawn = re.findall(r'class="t">(\w+)<', drawing)
    obey(
        "the architecture lists every room",
        {*listed} ^ (ROOMS | {"errors"}),
        "edit the table of docs/architecture.md",
    )
    obey(
        "the drawing shows every room",
        ({*drawn} - {"photographs", "tags", "suggestions"}) ^ ROOMS,
        "edit docs/images/architecture.svg",
    )


def test_the_reference_lists_every_public_name():
    page = prose(DOCS / "reference" / "index.md")
    differing = set(re.findall(r"`tagkin\.(\w+)`", page)) ^ set(tagkin.__all__)
    obey("the reference lists every public name", differing, "edit docs/reference/index.md")


def test_the_reference_selects_names_that_exist():
    wrong = []
    for page in (DOCS / "reference").glob("*.md"):
        for module, members in re.findall(r"^::: (\S+)\n((?: +.*\n)+)", page.read_text(), re.M):
            names = re.findall(r"^ +- (\w+)$", members, re.M)
            wrong += [f"{module}.{name}" for name in names if not exists(f"{module}.{name}")]
    obey("members in the reference exist", wrong, "edit the page in docs/reference")


def test_photographs_may_be_published():
    """Under a licence for pictures, with author and source; the table has no other files."""
    folder = DOCS / "images" / "photographs"
    with (folder / "photographs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    files = {path.name for path in folder.iterdir()} - {"photographs.csv"}
    remedy = "edit docs/images/photographs/photographs.csv, or take the photograph out"
    obey("every photograph has one row", files ^ {row["file"] for row in rows}, remedy)
    assert len(rows) == len(files)
    unclear = [
        row["file"]
        for row in rows
        if row["licence"] not in {"CC0-1.0", "CC-BY-4.0"}
        or not row["author"]
        or not row["address"].startswith("https://")
    ]
    obey("a photograph has an author, a licence for pictures and a source", unclear, remedy)


def test_photographs_are_in_one_folder():
    tracked = subprocess.run(
        ["git", "ls-files", "*.jpg", "*.jpeg", "*.png", "*.heic", "*.tif", "*.gif"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    if tracked.returncode:
        pytest.skip("not a checkout")
    elsewhere = [
        name for name in tracked.stdout.split() if not name.startswith("docs/images/photographs/")
    ]
    obey(
        "photographs are where the table has their licences",
        elsewhere,
        "move them to docs/images/photographs, with a row in photographs.csv",
    )


def test_pictures_are_small():
    large = [p.name for p in (DOCS / "images").glob("*.png") if p.stat().st_size > 200_000]
    obey("pictures have at most 200,000 bytes", large, "make them smaller in docs/images")


def test_install_commands_name_the_packages_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for extra, requirements in extras.items():
        if extra != "dev":
            wanted = [re.sub(r">=.*", "", requirement) for requirement in requirements]
            named = install_command(extra).replace("'", "").split()[2:]
            obey(
                f"the install command of {extra} names the packages of pyproject.toml",
                set(named) ^ set(wanted),
                "edit src/tagkin/installing.py",
            )


def test_no_text_names_an_install_command_that_needs_an_index():
    sources = [*(ROOT / "src").rglob("*.py"), *PAGES]
    obey(
        "install commands name packages, because tagkin is on no index",
        [name_of(path) for path in sources if "install 'tagkin" in path.read_text("utf-8")],
        "write the packages, as tagkin.installing does",
    )


def test_contributors_are_sent_to_files_that_exist():
    text = prose(ROOT / "CONTRIBUTING.md")
    named = re.findall(r"`([\w./]+/(?:[\w.]+\.\w+)?)`", text)
    paths = [path for path in named if "NAME" not in path]
    assert len(paths) > 5
    package = ROOT / "src" / "tagkin"
    homes = (ROOT, package, package.parent)
    missing = [path for path in paths if not any((home / path).exists() for home in homes)]
    obey("contributors are sent to files that exist", missing, "edit CONTRIBUTING.md")


def test_every_make_target_is_explained():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    explained = set(re.findall(r"^([a-z]+):.*## ", makefile, flags=re.MULTILINE))
    assert {"setup", "demo", "test", "lint", "bench", "docs"} <= targets
    obey("make help explains every target", targets - explained, "add ## and a text in Makefile")


def test_the_citation_has_the_version_of_the_package():
    text = Path(ROOT / "CITATION.cff").read_text()
    version = re.search(r"^version: (.+)$", text, flags=re.MULTILINE)[1]
    assert version == tagkin.__version__, "write the version of src/tagkin/version.py there"
