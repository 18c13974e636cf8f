"""A catalogue whose values somebody edited by hand is damaged, which is no internal error."""

import sqlite3

import pytest

COMMANDS = (
    ("status", "--json"),
    ("history",),
    ("history", "--json"),
    ("tags", "list"),
    ("undo", "--dry-run"),
)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("UPDATE collection SET root = x'ff00'", "collection"),
        ("UPDATE runs SET what = x'ff00'", "runs"),
        ("UPDATE runs SET ended_at = x'ff00'", "runs"),
        ("UPDATE runs SET started_at = 'once'", "runs"),
        ("UPDATE runs SET model = x'ff00'", "runs"),
        ("UPDATE tags SET n_accepted = 'many'", "tags"),
        ("UPDATE photographs SET content = -5", "photographs"),
        ("UPDATE decisions SET verdict = -5", "decisions"),
    ],
)
def test_values_that_no_command_writes(run, world, catalogue, change, place):
    photo = next(iter(sorted(world.photos.glob("*.jpg"))))
    assert run("accept", photo, "--tag", "beach", "--catalogue", catalogue).exit_code == 0
    connection = sqlite3.connect(catalogue)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    with connection:
        connection.execute(change)
    connection.close()
    results = [run(*command, "--catalogue", catalogue) for command in COMMANDS]
    results.append(run("explain", photo, "--catalogue", catalogue))
    errors = [result.stderr for result in results if result.exit_code]
    assert errors
    for error in errors:
        assert "internal error" not in error
    assert any("damaged" in error and place in error for error in errors)
