"""Edited photographs: a decision belongs to a content, and is kept if both show the same.

A scan cannot tell an edited photograph from another one that was saved under its name. So the
decisions on the former content wait until features say that both show the same picture, or until a
person decides on the new content.
"""

from __future__ import annotations

import sqlite3

from tagkin.catalogue.database import Database

__all__ = ["carry_decisions", "let_decisions_wait", "to_confirm"]

_EDITED = "kept: the photograph was edited"
_DECIDED = "EXISTS (SELECT 1 FROM decisions d WHERE d.content = {} AND d.holds AND {})"


def carry_decisions(connection: sqlite3.Connection, old: int, new: int) -> None:
    """Copy the decisions on a content to another one of the same photograph; the later ones win."""
    pair = {"old": old, "new": new, "note": _EDITED}
    connection.execute(
        "UPDATE decisions SET holds = 0 WHERE content = :new AND holds AND EXISTS (SELECT 1 FROM "
        "decisions o WHERE o.content = :old AND o.tag IS decisions.tag AND o.holds "
        "AND o.id > decisions.id)",
        pair,
    )
    connection.execute(
        "INSERT INTO decisions (run, content, tag, verdict, made_at, suggested_by, confidence, "
        "evidence, note) SELECT run, :new, tag, verdict, made_at, suggested_by, confidence, "
        "evidence, coalesce(note, :note) FROM decisions o WHERE content = :old AND holds "
        "AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.content = :new AND d.tag IS o.tag "
        "AND d.holds)",
        pair,
    )
    connection.execute("UPDATE contents SET was = NULL WHERE id = ?", (new,))


def let_decisions_wait(connection: sqlite3.Connection, old: int, new: int) -> None:
    """Let the decisions on a file's former content wait until it is known what the file shows."""
    connection.execute(
        "UPDATE contents SET was = (SELECT coalesce(was, id) FROM contents WHERE id = ?) "
        "WHERE id = ?",
        (old, new),
    )


def to_confirm(database: Database) -> list[tuple[str, int, int]]:
    """Return photographs whose accepted tags wait: path, former and new content."""
    return [
        (path, old, new)
        for path, old, new in database.rows(
            "SELECT min(p.path), c.was, c.id FROM contents c JOIN photographs p "
            "ON p.content = c.id AND p.gone IS NULL WHERE c.was IS NOT NULL "
            f"AND {_DECIDED.format('c.was', 'd.verdict = 1')} "
            f"AND NOT {_DECIDED.format('c.id', '1')} GROUP BY c.id ORDER BY 1"
        )
    ]
