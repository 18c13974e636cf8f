"""Databases are opened by one function, which rejects journals that name other files."""

import os
import sqlite3
from contextlib import closing

import pytest

from tagkin.errors import StorageError
from tagkin.sqlite import LOG_SUFFIXES, connect, has_hot_journal

from .journals import interrupt_transaction, plant_journal

PLANTED = "-journal names another file, which every program that opens the database would delete"


@pytest.fixture
def database(tmp_path):
    """A database in which every row is old."""
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (value)")
        rows = [("old" + "x" * 500,)] * 1000
        connection.executemany("INSERT INTO t VALUES (?)", rows)
        connection.commit()
    return path


def test_the_journal_of_these_tests_deletes_a_file(database, tmp_path):
    """Without tagkin: if SQLite changes, the other tests would prove nothing."""
    victim = plant_journal(database, tmp_path)
    with closing(sqlite3.connect(database)) as connection, pytest.raises(sqlite3.DatabaseError):
        connection.execute("SELECT count(*) FROM t")
    assert not victim.exists()


@pytest.mark.parametrize("mode", ["rw", "rwc", "ro", "ro&immutable=1"])
@pytest.mark.parametrize("by", ["name", "link", "linked folder"])
def test_a_journal_that_names_another_file_is_rejected(database, tmp_path, mode, by):
    path = {"name": database, "link": tmp_path / "link", "linked folder": tmp_path / "f/a.sqlite"}
    (tmp_path / "link").symlink_to(database)
    (tmp_path / "f").symlink_to(tmp_path)
    victim = plant_journal(database, tmp_path)
    with pytest.raises(StorageError, match=PLANTED):
        connect(path[by], mode)
    assert victim.read_text() == "precious"


def test_a_journal_beside_a_database_that_does_not_exist(tmp_path):
    victim = plant_journal(tmp_path / "new.sqlite", tmp_path)
    with pytest.raises(StorageError, match=PLANTED):
        connect(tmp_path / "new.sqlite", "rwc")
    assert victim.exists()
    assert not (tmp_path / "new.sqlite").exists()


def test_a_database_with_a_log_is_no_other_door(database, tmp_path):
    with closing(sqlite3.connect(database)) as program:
        program.execute("PRAGMA journal_mode = WAL")
        program.execute("INSERT INTO t VALUES ('new')")
        program.commit()
        victim = plant_journal(database, tmp_path)
        with pytest.raises(StorageError, match=PLANTED):
            connect(database)
    assert victim.exists()


def test_a_journal_that_appears_beside_an_open_database_with_a_log(database, tmp_path):
    with closing(connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("SELECT count(*) FROM t").fetchall()  # opens the log
        victim = plant_journal(database, tmp_path)
        connection.execute("DELETE FROM t")
        connection.execute("VACUUM")
    assert victim.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_journal_that_is_not_a_file_is_rejected(database, kind):
    """A pipe would block SQLite for ever."""
    (os.mkfifo if kind == "pipe" else os.mkdir)(f"{database}-journal")
    with pytest.raises(StorageError, match=r"a\.sqlite-journal is not a file"):
        connect(database)


@pytest.mark.parametrize("suffix", LOG_SUFFIXES)
def test_nothing_is_written_through_a_link_beside_a_database(database, tmp_path, suffix):
    """SQLite itself does not follow these links."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.symlink(victim, f"{database}{suffix}")
    with closing(connect(database)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("DELETE FROM t")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("mode", ["rw", "ro"])
@pytest.mark.parametrize("suffix", LOG_SUFFIXES)
def test_a_log_that_is_another_file_as_well_is_rejected(database, tmp_path, suffix, mode):
    """SQLite writes through a hard link, into the index of a log even when it only reads."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.link(victim, f"{database}{suffix}")
    with pytest.raises(StorageError, match=f"{suffix} is the same file as another one"):
        connect(database, mode)
    assert victim.read_text() == "precious"


def test_the_journal_of_a_killed_program_is_rolled_back(database):
    interrupt_transaction(database, "UPDATE t SET value = 'new' || substr(value, 4)")
    assert has_hot_journal(database)
    assert database.read_bytes().count(b"newxxx") > 500
    with closing(connect(database)) as connection:
        starts = connection.execute("SELECT DISTINCT substr(value, 1, 3) FROM t").fetchall()
    assert starts == [("old",)]
    assert not has_hot_journal(database)


@pytest.mark.parametrize("mode", ["TRUNCATE", "PERSIST", "DELETE"])
def test_a_journal_of_a_finished_transaction_is_not_hot(database, mode):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("PRAGMA cache_size = 1")  # so the journal is written at once
        connection.execute("UPDATE t SET value = value || 'new'")
        assert has_hot_journal(database)
        connection.commit()
        assert not has_hot_journal(database)
