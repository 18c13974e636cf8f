"""Decisions in the database: made, replaced, undone, and applied again.

A decision is about a content and a tag. It is never deleted; a later decision replaces it. So the
history is complete, and every step can be undone.

A decision without a tag rejects all other tags of the content: the photograph is finished. Then it
has no open suggestions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from tagkin.catalogue.database import utc_now
from tagkin.catalogue.tag_records import IN_FILES

__all__ = [
    "ACCEPTED",
    "ACCEPTED_TOGETHER",
    "FINISHED",
    "IN_BULK",
    "IS_ANSWER",
    "REJECTED",
    "decide_suggestions",
    "hold_again",
    "reopen_unwritten",
    "revert",
    "store_decision",
]

ACCEPTED, REJECTED = 1, -1

ACCEPTED_TOGETHER = (
    "({0}.verdict = 1 AND EXISTS (SELECT 1 FROM runs u WHERE u.id = {0}.run "
    "AND json_extract(u.parameters, '$.together')))"
)
"""SQL: a decision accepted the rest of a page."""
IN_BULK = (
    "EXISTS (SELECT 1 FROM runs r WHERE r.id = d.run AND r.what = 'accept' "
    "AND json_extract(r.parameters, '$.photographs') IS NULL)"
)
"""Condition on a decision `d`: one of many suggestions that were accepted by filters."""
IS_ANSWER = (
    "(d.suggested_by IS NOT NULL OR d.tag IS NULL OR NOT EXISTS "
    "(SELECT 1 FROM runs r WHERE r.id = d.run AND r.what = 'finish'))"
)
"""Condition on a decision `d`: not one of the many rejections by which a tag is finished."""
FINISHED = "EXISTS (SELECT 1 FROM decisions m WHERE m.content = {} AND m.tag IS NULL AND m.holds)"
"""SQL: the photograph of a content is finished."""

Pair = tuple[int, int | None]
"""A content and a tag, or None for all other tags."""


def store_decision(
    connection: sqlite3.Connection,
    run: int,
    pair: Pair,
    verdict: int,
    origin: tuple[Any, Any, Any] = (None, None, None),
) -> None:
    """Decide on a content and a tag, in place of an earlier decision and a suggestion.

    `pair` without a tag finishes the content. `origin` is the suggestion that the decision answers:
    its run, confidence and evidence.
    """
    _end_decision(connection, pair)
    connection.execute(
        "INSERT INTO decisions "
        "(run, content, tag, verdict, made_at, suggested_by, confidence, evidence) "
        "VALUES (?, ?, ?, ?, ?, (SELECT id FROM runs WHERE id = ?), ?, ?)",
        (run, *pair, verdict, utc_now(), *origin),
    )
    connection.execute("DELETE FROM suggestions WHERE content = ? AND tag = ?", pair)


def decide_suggestions(
    connection: sqlite3.Connection,
    condition: str,
    values: Sequence[Any],
    decision: tuple[int, int, str | None],
) -> None:
    """Turn the suggestions `s` that match into decisions; `decision` is run, verdict and note."""
    run, verdict, note = decision
    connection.execute("DROP TABLE IF EXISTS temp.chosen")
    connection.execute(
        f"CREATE TEMP TABLE chosen AS SELECT * FROM suggestions s WHERE {condition}", values
    )
    connection.execute(
        "INSERT INTO decisions "
        "(run, content, tag, verdict, made_at, suggested_by, confidence, evidence, note) "
        "SELECT ?, content, tag, ?, ?, run, confidence, evidence, ? FROM temp.chosen",
        (run, verdict, utc_now(), note),
    )
    connection.execute(
        "DELETE FROM suggestions WHERE (content, tag) IN (SELECT content, tag FROM temp.chosen)"
    )
    connection.execute("DROP TABLE temp.chosen")


def _end_decision(connection: sqlite3.Connection, pair: Pair) -> None:
    connection.execute(
        "UPDATE decisions SET holds = 0 WHERE content = ? AND tag IS ? AND holds", pair
    )


def revert(connection: sqlite3.Connection, decision: int, pair: Pair) -> None:
    """Let the decision that this one replaced apply again, or reopen the suggestion."""
    _end_decision(connection, pair)
    (earlier,) = connection.execute(
        "SELECT max(id) FROM decisions WHERE content = ? AND tag IS ? AND taken_back_by IS NULL",
        pair,
    ).fetchone()
    if earlier is not None:
        connection.execute("UPDATE decisions SET holds = 1 WHERE id = ?", (earlier,))
    elif pair[1] is not None:
        _reopen(connection, decision)
    else:
        _reopen_unfinished(connection, decision)


def hold_again(connection: sqlite3.Connection, decision: int, pair: Pair) -> None:
    """Let an undone decision apply again."""
    _end_decision(connection, pair)
    content, tag = pair
    connection.execute(
        "DELETE FROM suggestions WHERE content = ?1 AND (tag = ?2 OR ?2 IS NULL)", (content, tag)
    )
    connection.execute("UPDATE decisions SET holds = 1 WHERE id = ?", (decision,))


def _reopen_unfinished(connection: sqlite3.Connection, decision: int) -> None:
    """Reopen suggestions whose decisions were undone while a photograph was finished."""
    rows = connection.execute(
        "SELECT max(d.id) FROM decisions d JOIN decisions m ON m.content = d.content "
        "WHERE m.id = ? AND d.tag IS NOT NULL GROUP BY d.tag "
        "HAVING NOT max(d.holds) AND max(d.taken_back_by) > min(m.run)",
        (decision,),
    ).fetchall()
    for (last,) in rows:
        _reopen(connection, last)


def reopen_unwritten(connection: sqlite3.Connection, photograph: int, tags: Iterable[int]) -> None:
    """Reopen suggestions whose decisions were undone while a file still had the tag."""
    for tag in tags:
        rows = connection.execute(
            "SELECT d.id, d.holds, d.taken_back_by FROM decisions d JOIN photographs p "
            "ON p.content = d.content WHERE p.id = ? AND d.tag = ? ORDER BY d.id",
            (photograph, tag),
        ).fetchall()
        if rows and rows[-1][2] is not None and not any(holds for _, holds, _ in rows):
            _reopen(connection, rows[-1][0])


def _reopen(connection: sqlite3.Connection, decision: int) -> None:
    """Reopen the suggestion of a decision.

    Not if a file has the tag, the tag is forgotten or hidden, or the photograph is finished.
    """
    connection.execute(
        "INSERT OR IGNORE INTO suggestions (content, tag, run, confidence, evidence) "
        "SELECT content, tag, suggested_by, confidence, evidence FROM decisions d WHERE id = ? "
        f"AND suggested_by IS NOT NULL AND NOT {IN_FILES.format('d.content', 'd.tag')} "
        f"AND NOT {FINISHED.format('d.content')} "
        "AND NOT EXISTS (SELECT 1 FROM tags t WHERE t.id = d.tag AND (t.forgotten OR t.hidden)) "
        "AND EXISTS (SELECT 1 FROM photographs WHERE content = d.content AND gone IS NULL)",
        (decision,),
    )
