"""Catalogues of former versions are brought up to date, and nothing in them is lost."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import tarfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tagkin.catalogue import (
    ACCEPTED,
    Filters,
    database,
    migrations,
    open_catalogue,
    open_for_scan,
)
from tagkin.catalogue.database import Database
from tagkin.catalogue.migrations import MIGRATIONS, SCHEMA_DIGEST, digest_schema, former_copy
from tagkin.collection.sidecars import tags_of
from tagkin.errors import StorageError
from tagkin.server import Review
from tests.forking import in_child, needs_fork
from tests.privileges import made_folder, without_privileges
from tests.server.browser import Browser, Running

from .former.__main__ import TAGS
from .photographs import check_invariants, files, sidecar_text
from .suggested import decisions, open_suggestions
from .test_kills import by_step, every_ten_steps

FORMER = Path(__file__).parent / "former"
HISTORY = ["finish", "tags forget", "undo", "accept", "accept", "reject"]
HISTORY += ["tags rename", "write", "accept", "suggest", "scan"]


class Former(NamedTuple):
    """Photographs and their catalogue, as a former version left them."""

    root: Path
    path: Path


def unpack(folder: Path, name: str = "version-6") -> Former:
    with tarfile.open(FORMER / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return Former(folder / "photos", folder / "catalogue.sqlite")


@pytest.fixture(params=sorted(path.name.removesuffix(".tar.gz") for path in FORMER.glob("*.gz")))
def former(request: pytest.FixtureRequest, tmp_path: Path) -> Former:
    return unpack(tmp_path, request.param)


def content_of(path: Path) -> dict[str, list[Any]]:
    """Every row of every table, as SQLite alone reads it."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = sorted(name for (name,) in names)
        return {t: connection.execute(f"SELECT * FROM {t}").fetchall() for t in tables}


def without_beside(photograph: tuple[Any, ...]) -> tuple[Any, ...]:
    """The columns of version 6, but for the one that says whether to read the file again."""
    return photograph[:6] + photograph[7:15]


def is_migrated(path: Path) -> bool:
    return "migrations" in content_of(path)


# --- the newest program and older catalogues -----------------------------------------------------


def test_an_older_catalogue_opens_reviews_writes_and_undoes(former: Former, tmp_path: Path) -> None:
    before = content_of(former.path)
    with open_for_scan(former.root, former.path, command="review") as catalogue:
        assert [run.what for run in catalogue.runs.history()] == HISTORY
        check_invariants(catalogue)
        scanned = catalogue.scan()
        assert (scanned.n_photographs, scanned.added, scanned.gone) == (4, [], [])
        decided = {("2024/d.jpg", "beach"): 1, ("a.jpg", "vacation"): 1, ("b.jpg", "sea"): 1}
        decided |= {("a.jpg", "sea"): -1, ("2024/c.jpg", "harbour"): 1, ("2024/c.jpg", "beach"): -1}
        assert decisions(catalogue) == decided
        assert catalogue.doubts.list_open()[0].path == "2024/d.jpg"
        offered = open_suggestions(catalogue)
        assert offered["2024/d.jpg"] == {"dog": 0.2, "sea": 0.6}

        review = Review(catalogue, tmp_path / "cache", fits=False)
        running = Running(review)
        browser = Browser(running.port)
        browser.open(running.access.key)
        for page in ("/tags", "/photographs/4", "/doubtful", "/search", "/write", "/overview"):
            assert browser.get(page).status == 200, page
        running.stop()
        review.close()

    with open_catalogue(former.path, write=True) as catalogue:
        made = catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.6))
        assert len(made.each) == 2
        written = catalogue.write(remove=True)
        assert written.failures == []
        assert set(tags_of((former.root / "2024/d.jpg.xmp").read_bytes())) == {"beach", "sea"}
        catalogue.undo(written.run)
        undone = catalogue.undo(4)  # the write of the former version
        assert undone.failures == []
        assert catalogue.scan().failures == []
        check_invariants(catalogue)
    assert {
        name: data.decode() for name, data in files(former.root).items() if name.endswith(".xmp")
    } == {f"{name}.xmp": sidecar_text(tags) for name, tags in TAGS.items() if tags}
    assert content_of(former_copy(former.path)) == before


def test_every_change_of_the_tables_has_a_migration(former: Former, tmp_path: Path) -> None:
    """Rule: schema.py and migrations.py change together."""
    with Database(tmp_path / "new.sqlite", write=True, create=True) as database:
        new = database.rows("SELECT name FROM migrations")
    with Database(former.path, write=True) as database:
        assert database.rows("SELECT name FROM migrations") == new
    digests = []
    for path in (tmp_path / "new.sqlite", former.path):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            digests.append(digest_schema(connection))
    assert digests[1] == digests[0], (
        "A catalogue of a former version gets other tables by the migrations than a new catalogue "
        "has by src/tagkin/catalogue/schema.py. Append to MIGRATIONS in "
        "src/tagkin/catalogue/migrations.py what makes them equal, columns in the same order."
    )
    assert digests[0] == SCHEMA_DIGEST, (
        "The tables in src/tagkin/catalogue/schema.py are not those after the last migration. "
        "Append a migration to MIGRATIONS in src/tagkin/catalogue/migrations.py, then set "
        f'SCHEMA_DIGEST there to "{digests[0]}".'
    )


@pytest.mark.parametrize(
    "script",
    [
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER more AFTER INSERT ON runs BEGIN SELECT 1; END",
        "ALTER TABLE runs RENAME TO old; CREATE VIEW runs AS WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n WHERE i < 0",
        "DROP INDEX writes_of_run",
    ],
)
def test_tables_that_are_not_tagkins_are_refused(tmp_path: Path, script: str) -> None:
    """A view or a trigger of a few bytes can stand for endless work."""
    path = tmp_path / "new.sqlite"
    Database(path, write=True, create=True).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA legacy_alter_table = ON")
        connection.executescript(script)
    for write in (True, False):
        with pytest.raises(StorageError, match="has other tables than tagkin makes"):
            Database(path, write=write)


def test_a_trigger_of_a_former_version_that_is_not_tagkins_is_not_run(former: Former) -> None:
    with contextlib.closing(sqlite3.connect(former.path)) as connection:
        connection.execute('CREATE TRIGGER "runs, x" AFTER INSERT ON runs BEGIN SELECT 1; END')
    before = content_of(former.path)
    with pytest.raises(StorageError, match="a trigger that tagkin did not make: 'runs, x'"):
        Database(former.path, write=True)
    assert content_of(former.path) == before


def test_counts_of_a_former_version_are_of_spellings(former: Former) -> None:
    """There, a rejection of DOG left the dog of a file counted."""
    with contextlib.closing(sqlite3.connect(former.path)) as connection, connection:
        connection.execute("INSERT INTO tags (name, key) VALUES ('DOG', 'dog')")
        connection.execute(
            "INSERT INTO decisions (run, content, tag, verdict, made_at) SELECT 1, f.content, "
            "t.id, -1, '' FROM tags t JOIN (SELECT DISTINCT p.content FROM found f "
            "JOIN photographs p ON p.id = f.photograph JOIN tags t ON t.id = f.tag "
            "WHERE t.name = 'dog') f WHERE t.name = 'DOG'"
        )
        query = "SELECT count(*) FROM decisions JOIN tags t ON t.id = tag WHERE name = 'DOG'"
        assert connection.execute(query).fetchone() != (0,)
    with open_catalogue(former.path) as catalogue:
        check_invariants(catalogue)


def test_the_digest_is_of_what_tables_are_not_of_how_they_are_written() -> None:
    def digest(*statements: str) -> str:
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            for statement in statements:
                connection.execute(statement)
            return digest_schema(connection)

    table = "CREATE TABLE a (x TEXT, -- a text\n y INTEGER)"
    assert digest(table) == digest('CREATE TABLE "a"(x TEXT,y   INTEGER)')
    assert digest(table) == digest(
        "CREATE TABLE a (x TEXT -- a text\n)", "ALTER TABLE a ADD COLUMN y INTEGER"
    )
    others = {
        digest(table, "CREATE INDEX b ON a (x)"),
        digest("CREATE TABLE a (x TEXT, y INTEGER NOT NULL)"),
        digest("CREATE TABLE a (x TEXT, y INTEGER CHECK (y > 0))"),
        digest("CREATE TABLE a (y INTEGER, x TEXT)"),
    }
    assert len(others | {digest(table)}) == 5


def test_a_reader_and_a_dry_run_bring_it_up_to_date_too(former: Former, tmp_path: Path) -> None:
    before = former.path.read_bytes()
    with open_catalogue(former.path, write=True, dry_run=True) as catalogue:
        assert catalogue.runs.history()
    assert former.path.read_bytes() == before
    assert not former_copy(former.path).exists()
    with open_catalogue(former.path) as catalogue:
        assert catalogue.runs.history()
    assert is_migrated(former.path)


def test_on_a_read_only_medium_in_memory() -> None:
    with made_folder() as home:
        with without_privileges():
            path = unpack(home).path
            os.chmod(path, 0o444)
            os.chmod(home, 0o555)
            with open_catalogue(path) as catalogue:
                assert [run.what for run in catalogue.runs.history()] == HISTORY
            os.chmod(home, 0o755)
        assert not is_migrated(path)


def test_a_catalogue_of_a_newer_program_is_refused(former: Former) -> None:
    with Database(former.path, write=True) as database:
        database.execute("INSERT INTO migrations VALUES ('of_tomorrow', '2999-01-01')")
    state = former.path.read_bytes()
    for write in (True, False):
        with pytest.raises(StorageError, match=r"newer tagkin \(of_tomorrow\)\. Install that") as e:
            Database(former.path, write=write)
        assert str(former_copy(former.path)) in str(e.value)
    assert former.path.read_bytes() == state


# --- migrations that do not get through ----------------------------------------------------------


def add_and_fail(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE tags ADD COLUMN colour TEXT")
    connection.execute("INSERT INTO tags (name, key) VALUES ('dog', 'dog')")  # there is one


def lead_to_nothing(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE found SET tag = 1000")


@pytest.mark.parametrize("migration", [add_and_fail, lead_to_nothing])
def test_all_migrations_or_none(
    former: Former, migration: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content_of(former.path)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, migration))
    with pytest.raises(StorageError, match=r"UNIQUE|leads to nothing"):
        Database(former.path, write=True)
    assert content_of(former.path) == before == content_of(former_copy(former.path))


def test_migrations_run_in_order_and_once(former: Former, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def first(connection: sqlite3.Connection) -> None:
        done.append("first")

    def second(connection: sqlite3.Connection) -> None:
        done.append("second")

    with Database(former.path, write=True):
        pass
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, first))
    with Database(former.path, write=True):
        pass
    assert content_of(former_copy(former.path))["migrations"]  # the copy is of right before
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, first, second))
    for _ in range(2):
        with Database(former.path, write=True):
            pass
    assert done == ["first", "second"]


def fill(path: Path, n: int) -> None:
    """Give a catalogue some megabytes, so there is time to kill."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        rows = [(f"{number}", "x" * 200) for number in range(n)]
        connection.executemany(
            "INSERT INTO runs (what, started_at, parameters) "
            "VALUES (?, '2026-01-01', json_quote(?))",
            rows,
        )


def rewrite(connection: sqlite3.Connection) -> None:
    """A migration that takes a while."""
    connection.execute("ALTER TABLE runs ADD COLUMN colour TEXT")
    connection.execute("UPDATE runs SET colour = parameters")


@needs_fork
def test_killed_at_any_moment_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, rewrite))
    monkeypatch.setattr(database, "check_schema", lambda *_: None)
    home = tmp_path / "home"
    home.mkdir()
    whole = unpack(home).path
    fill(whole, 3_000)
    before = content_of(whole)
    work = tmp_path / "work"

    def open_it() -> None:
        with Database(work / whole.name, write=True):
            pass

    def open_to_step(n: int) -> None:
        with every_ten_steps() as do:
            do.append(by_step(n))
            open_it()

    rng = random.Random(0)
    n_killed = 0
    for attempt in range(20):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(home, work)
        if attempt % 2:
            child = in_child(partial(open_to_step, int(10 ** rng.uniform(1, 3.7))))
        else:
            child = in_child(open_it)
            time.sleep(rng.uniform(0, 0.03))  # less than it takes
            os.kill(child, signal.SIGKILL)
        n_killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        path = work / whole.name
        former = former_copy(path)
        assert not former.exists() or content_of(former) == before
        assert is_migrated(path) or content_of(path) == before
        open_it()
        after = content_of(path)
        assert content_of(former) == before
        assert [row[:-1] for row in after["runs"]] == before["runs"]
        assert list(map(without_beside, after["photographs"])) == list(
            map(without_beside, before["photographs"])
        )
        others = before.keys() - {"runs", "photographs"}
        assert {name: after[name] for name in others} == {name: before[name] for name in others}
        beside = {file.name.removeprefix(path.name) for file in work.iterdir()}
        assert beside == {"photos", "", "-former", "-writer"}
    assert n_killed > 10


@needs_fork
@pytest.mark.parametrize("n_bytes", [20_000, 3_000_000, 6_500_000, 9_000_000])
def test_a_full_disk_leaves_the_catalogue(
    tmp_path: Path, n_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file may grow larger than that: the log's index, the copy, the log."""
    import resource

    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, rewrite))
    monkeypatch.setattr(database, "check_schema", lambda *_: None)
    path = unpack(tmp_path).path
    fill(path, 20_000)
    before = content_of(path)

    def open_it() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
        with pytest.raises(StorageError, match=r"catalogue .* is unchanged\. Free some space"):
            Database(path, write=True)

    assert os.waitpid(in_child(open_it), 0)[1] == 0
    assert content_of(path) == before
    with Database(path, write=True):
        pass
    assert is_migrated(path)
    assert content_of(former_copy(path)) == before
