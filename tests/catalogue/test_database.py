"""The file itself: its schema, its settings, and one writer at a time."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

from tagkin.catalogue import open_for_scan
from tagkin.catalogue.database import Database
from tagkin.catalogue.known_catalogues import known_catalogues
from tagkin.catalogue.writer_lock import WriterLock
from tagkin.errors import StorageError
from tests.forking import in_child, needs_fork
from tests.journals import interrupt_transaction, plant_journal
from tests.privileges import made_folder, without_privileges


def fresh(path, **settings):
    return Database(path, write=True, create=True, **settings)


@pytest.mark.parametrize(
    ("version", "advice"), [(0, "scan and import"), (5, "scan and import"), (8, "newer tagkin")]
)
def test_a_catalogue_of_another_version_is_refused(tmp_path, version, advice):
    path = tmp_path / "other.sqlite"
    with fresh(path) as database:
        database.row(f"PRAGMA user_version = {version}")
    for write in (True, False):
        with pytest.raises(StorageError, match=advice):
            Database(path, write=write)


def test_a_new_folder_is_scanned_next_to_an_older_catalogue_of_a_vanished_one(folder, tmp_path):
    former = tmp_path / "former"
    former.mkdir()
    (former / "a.jpg").write_bytes(b"a")
    with open_for_scan(former) as catalogue:
        catalogue.scan()
        catalogue.database.row("PRAGMA user_version = 5")
    shutil.rmtree(former)
    with open_for_scan(folder.root) as catalogue:
        assert catalogue.scan().n_photographs == 4


@pytest.mark.parametrize(
    "how", [{"write": True}, {"write": False}, {"write": True, "dry_run": True}]
)
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_planted_journal_deletes_nothing(tmp_path, how, mode):
    path = tmp_path / "a.sqlite"
    with fresh(path) as database:
        database.row(f"PRAGMA journal_mode = {mode}")
    victim = plant_journal(path, tmp_path)
    with pytest.raises(StorageError, match="-journal names another file"):
        Database(path, **how)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("write", [True, False])
def test_the_journal_of_a_killed_run_is_rolled_back(tmp_path, write):
    """Of a catalogue where the file system has no logs."""
    path = tmp_path / "a.sqlite"
    with fresh(path) as database:
        values = [("scan", "2026-01-01", "x" * 3000) for _ in range(200)]
        insert = "INSERT INTO runs (what, started_at, parameters) VALUES (?, ?, ?)"
        database.execute_many(insert, values)
    interrupt_transaction(path, "UPDATE runs SET what = 'nonsense'")
    assert path.read_bytes().count(b"nonsense") > 100
    with Database(path, write=write) as database:
        assert database.rows("SELECT what, count(*) FROM runs GROUP BY what") == [("scan", 200)]
        assert database.rows("PRAGMA integrity_check") == [("ok",)]


def test_an_empty_file_gets_its_tables_from_the_next_writer(tmp_path):
    path = tmp_path / "new.sqlite"
    path.touch()  # as if killed before the tables were made
    with pytest.raises(StorageError, match=r"empty\. `tagkin scan` fills it"):
        Database(path, write=False)
    with Database(path, write=True) as database:
        assert database.value("SELECT count(*) FROM runs") == 0


def test_other_files_are_refused(tmp_path):
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(StorageError, match="another program"):
        fresh(other)
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match="damaged"):
        fresh(damaged)
    with pytest.raises(StorageError, match="no catalogue"):
        Database(tmp_path / "none.sqlite", write=False)


def test_settings_of_the_connection(tmp_path):
    with fresh(tmp_path / "c.sqlite") as database:
        assert database.value("PRAGMA journal_mode") == "wal"
        assert database.value("PRAGMA synchronous") == 2  # FULL
        assert database.value("PRAGMA foreign_keys") == 1


def test_a_second_writer_gets_a_sentence_and_readers_are_welcome(tmp_path, monkeypatch):
    path = tmp_path / "c.sqlite"
    code = (
        "import sys; from pathlib import Path; from tagkin.catalogue.database import Database\n"
        "opened = Database(Path(sys.argv[1]), write=True, create=True, command='suggest')\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "open\n"
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        with pytest.raises(StorageError, match=rf"`tagkin suggest` \(process {other.pid}, since"):
            fresh(path)
        with Database(path, write=False) as reader:
            assert reader.value("SELECT count(*) FROM runs") == 0
            with pytest.raises(StorageError, match="reading only"), reader.transaction():
                pass
        other.kill()
        other.wait()
    fresh(path).close()  # a lock ends with its process


def test_a_short_command_is_waited_for(tmp_path, monkeypatch):
    """What the second one sleeps through, the first one uses to finish."""
    first = fresh(tmp_path / "c.sqlite")
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        first.close()

    monkeypatch.setattr("time.sleep", sleep)
    fresh(tmp_path / "c.sqlite").close()
    assert len(slept) == 1


def test_a_review_is_not_waited_for(tmp_path, monkeypatch):
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    lock = WriterLock(tmp_path / "c.sqlite", "review")
    with pytest.raises(StorageError, match="`tagkin review`"):
        WriterLock(tmp_path / "c.sqlite", "scan")
    assert len(slept) == 1  # for one that is just about to end
    lock.release()
    WriterLock(tmp_path / "c.sqlite", "scan").release()


def test_a_review_that_has_just_ended_is_not_taken_for_the_writer(tmp_path, monkeypatch):
    """What it said of itself stays behind it, till the next writer says something."""
    path = tmp_path / "c.sqlite"
    WriterLock(path, "review").release()
    note = path.with_name("c.sqlite-writer").read_bytes()
    first = WriterLock(path, "scan")
    path.with_name("c.sqlite-writer").write_bytes(note)  # as if it had come no further yet
    monkeypatch.setattr("time.sleep", lambda seconds: first.release())
    WriterLock(path, "scan").release()


def test_a_lock_of_another_program_is_a_sentence(tmp_path):
    path = tmp_path / "c.sqlite"
    with fresh(path) as database:
        database.row("PRAGMA busy_timeout = 10")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="Another program is writing"):
            database.transaction().__enter__()
        other.close()


def test_a_transaction_is_all_or_nothing(tmp_path):
    with fresh(tmp_path / "c.sqlite") as database:

        def add_twice():
            add = "INSERT INTO tags (name, key) VALUES ('x', 'x')"
            with database.transaction():
                database.execute(add)
                with database.transaction():
                    database.execute(add)

        with pytest.raises(StorageError, match="UNIQUE"):
            add_twice()
        assert database.value("SELECT count(*) FROM tags") == 0


def test_a_full_disk_changes_nothing(catalogue):
    database = catalogue.database
    size = database.value("PRAGMA page_count")
    database.row(f"PRAGMA max_page_count = {size}")
    names = [(f"{number:0500}",) for number in range(1000)]
    n_tags = database.value("SELECT count(*) FROM tags")

    def fill():
        with database.run("fill"):
            database.execute_many("INSERT INTO tags (name, key) VALUES (?1, ?1)", names)

    with pytest.raises(StorageError, match="disk is full"), database.transaction():
        fill()
    database.row("PRAGMA max_page_count = 1000000")
    assert database.value("SELECT count(*) FROM tags") == n_tags
    assert [run.what for run in catalogue.runs.history()] == ["scan"]
    with database.transaction():
        fill()
    assert [run.what for run in catalogue.runs.history()] == ["fill", "scan"]


@needs_fork
@pytest.mark.parametrize("n_bytes", [20_000, 200_000])
def test_a_disk_that_takes_no_more_is_called_full(catalogue, n_bytes):
    """Also if SQLite only says "disk I/O error", and for the writer's own note."""
    import resource

    catalogue.close()

    def add():
        with Database(catalogue.path, write=True) as database:
            names = [(f"{number:0500}",) for number in range(1000)]
            database.execute_many("INSERT INTO tags (name, key) VALUES (?1, ?1)", names)

    def decide():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
        with pytest.raises(StorageError, match="disk is full"):
            add()

    assert os.waitpid(in_child(decide), 0)[1] == 0
    with Database(catalogue.path, write=True) as database:
        assert database.value("SELECT count(*) FROM tags") == 3


# --- private files -----------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_what_a_catalogue_keeps_is_for_its_user_alone(folder, data_folder, monkeypatch):
    """Also where the user's own files are for everybody."""
    data_folder.parent.joinpath("kept").mkdir()
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(data_folder.parent / "kept" / "deep" / "data"))
    before = os.umask(0o000)
    try:
        with open_for_scan(folder.root) as catalogue:
            catalogue.scan()
            stored_files = list((data_folder.parent / "kept").rglob("*"))
            modes = {path.name: path.stat().st_mode & 0o777 for path in stored_files}
    finally:
        os.umask(before)
    name = catalogue.path.name
    files = {name, f"{name}-wal", f"{name}-shm", f"{name}-writer", "collections.json"}
    folders = {"deep", "data", "catalogues"}
    assert modes == dict.fromkeys(files, 0o600) | dict.fromkeys(folders, 0o700)


@pytest.mark.parametrize("text", ["[" * 100_000, "null", '{"/": 5}'])
def test_where_catalogues_are_may_be_damaged(folder, data_folder, text):
    data_folder.mkdir(exist_ok=True)
    (data_folder / "collections.json").write_text(text)
    assert known_catalogues() == {}
    with open_for_scan(folder.root) as catalogue:
        assert known_catalogues() == {folder.root: catalogue.path}


def test_a_lock_that_is_a_link_is_not_followed(folder, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (tmp_path / "shared.sqlite-writer").symlink_to(victim)
    with pytest.raises(StorageError, match="cannot be written"):
        open_for_scan(folder.root, tmp_path / "shared.sqlite")
    assert victim.read_text() == "theirs"


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_catalogue_on_a_read_only_medium_is_read(dry_run):
    with made_folder() as home:
        path = home / "disc" / "catalogue.sqlite"
        with without_privileges():
            with fresh(path) as database:
                database.root = home
            os.chmod(path.parent, 0o555)
            with Database(path, write=dry_run, dry_run=dry_run) as database:
                assert database.root == home
            assert [file.name for file in path.parent.iterdir() if "wal" in file.name] == []
            with pytest.raises(StorageError, match="cannot be"):
                Database(path, write=True)
