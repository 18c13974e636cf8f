"""The public face of the catalogue: few names, and every SQL statement of the project behind it."""

import ast
import re
from pathlib import Path

import tagkin
from tagkin import catalogue

PACKAGE = Path(tagkin.__file__).parent
# The feature cache and the thumbnails have databases of their own.
OTHER_DATABASES = {
    "collection/program_catalogues.py",
    "collection/program_databases.py",  # those of other programs
    "features/cache.py",
    "features/cache_database.py",
    "server/thumbnail_cache.py",
}
SQL = re.compile(r"\b(SELECT .+ FROM|INSERT .*INTO|DELETE FROM|UPDATE \w+ SET|PRAGMA \w+)\b")


def test_there_are_at_most_thirty_public_names():
    assert len(catalogue.__all__) <= 30
    assert sorted(catalogue.__all__) == sorted(set(catalogue.__all__))
    for name in catalogue.__all__:
        assert hasattr(catalogue, name)


DOORS = (
    *("completeness", "events", "files_read", "known_catalogues", "moment_index", "open_index"),
    *("selection", "sources", "word_search"),
)


def test_other_rooms_use_public_names_only():
    """Besides these there are doors for the review page, `connect`, and texts that both show."""
    doors = {f"tagkin.catalogue.{name}" for name in DOORS}
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        if "catalogue" in path.relative_to(PACKAGE).parts[:-1]:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "tagkin.catalogue":
                names = {alias.name for alias in node.names}
                wrong += [(path.name, name) for name in names - set(catalogue.__all__)]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "tagkin.catalogue."
            ):
                assert node.module in doors, path
    assert not wrong


def test_the_file_map_names_every_module_once():
    modules = {path.stem for path in (PACKAGE / "catalogue").glob("*.py")} - {"__init__"}
    assert sorted(re.findall(r"^\| `(\w+)` \|", catalogue.__doc__, re.MULTILINE)) == sorted(modules)


def test_sql_is_in_the_catalogue_alone():
    wrong = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "catalogue" not in path.relative_to(PACKAGE).parts and SQL.search(path.read_text())
    }
    assert wrong == OTHER_DATABASES


def test_other_rooms_do_not_query_the_database_of_a_catalogue():
    """They hand it on to the doors."""
    wrong = [
        (path.name, line)
        for room in ("server", "cli")
        for path in (PACKAGE / room).rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r"\b(catalogue|opened|reader)\.database\.", line)
    ]
    assert not wrong


def test_databases_are_opened_in_one_place():
    opening = [
        path.name for path in PACKAGE.rglob("*.py") if "sqlite3.connect(" in path.read_text()
    ]
    assert opening == ["sqlite.py"]
