"""Commands killed at some of their system calls that change files; `make reliability` at all."""

import sqlite3

import pytest

from tests.hardening.kills import BATTERIES, kill
from tests.tracing import needs_tracing, traced

pytestmark = needs_tracing


def test_calls_of_python_and_of_libraries_are_counted(tmp_path):
    def work():
        (tmp_path / "new").write_bytes(b"text")
        (tmp_path / "new").rename(tmp_path / "file")

    assert [step.removesuffix("at") for step in traced(work).steps] == ["write", "rename"]

    def fill():
        connection = sqlite3.connect(tmp_path / "database")
        connection.execute("CREATE TABLE numbers (n)")
        connection.execute("INSERT INTO numbers VALUES (1)")
        connection.commit()
        connection.close()

    steps = traced(fill).steps
    assert "pwrite64" in steps
    assert "fdatasync" in steps or "fsync" in steps


def test_a_call_that_is_killed_is_not_made(tmp_path):
    """And those before it are."""
    names = ["a", "b", "c"]

    def work():
        for name in names:
            (tmp_path / name).mkdir()

    for n in range(4):
        calls = traced(work, n)
        assert calls.killed == (n < 3)
        assert sorted(path.name for path in tmp_path.iterdir()) == names[:n]
        for path in tmp_path.iterdir():
            path.rmdir()


def test_work_that_fails_is_told(tmp_path):
    with pytest.raises(AssertionError, match="the work failed"):
        traced(lambda: (tmp_path / "missing").rename(tmp_path / "new"))


@pytest.mark.parametrize("name", ["train", "add"])
def test_killed_at_some_steps_nothing_is_lost(name, tmp_path):
    outcome = kill(name, tmp_path, some=2)
    assert outcome.n_killed >= 1, "one more or less of another process's calls is none of ours"
    assert not outcome.failures, "\n".join(outcome.failures)


def test_every_command_that_writes_is_there():
    assert set(BATTERIES) >= {"scan", "train", "suggest", "accept", "write", "undo", "add"}
