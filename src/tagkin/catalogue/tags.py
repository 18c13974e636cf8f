"""The tags of a collection: how often they are there, how good, and which of them are one.

Files are never changed by any of this: a tag that was renamed is written under its new name from
now on, and one that was forgotten is neither learned nor suggested.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, dataclass
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.filters import tag_numbers
from tagkin.catalogue.found import TagNumbers, checked_tag
from tagkin.catalogue.texts import from_text
from tagkin.errors import InvalidInput
from tagkin.labels import normalize_tag

__all__ = ["TagCounts", "TagsChanged", "change_tags", "list_tags", "merge_tag", "restore_tag"]


@dataclass(frozen=True)
class TagCounts:
    """A tag, and how often it is where."""

    id: int
    name: str
    n_found: int
    """Photographs in whose files it stands."""
    n_accepted: int
    n_rejected: int
    n_suggested: int
    """Suggestions that nobody has decided on."""
    expected: float
    """How many of these are likely to be right."""
    quality: float | None
    """Average precision on photographs that the last training held out; None if not learned."""
    is_forgotten: bool

    @property
    def accepted_share(self) -> float | None:
        """The accepted ones among those that a person decided on."""
        n = self.n_accepted + self.n_rejected
        return self.n_accepted / n if n else None

    def to_dict(self) -> dict[str, Any]:
        """The same as a plain dict, ready for JSON."""
        return asdict(self) | {
            "is_forgotten": bool(self.is_forgotten),
            "accepted_share": self.accepted_share,
        }


def list_tags(
    catalogue: Catalogue, *, text: str | None = None, forgotten: bool = False
) -> list[TagCounts]:
    """The tags that are used, those on most photographs first.

    Parameters
    ----------
    catalogue : Catalogue
    text : str, optional
        Only tags in whose name it stands, in whatever spelling.
    forgotten : bool, default False
        Only those that are forgotten.
    """
    condition, values = "1", list[Any]()
    if text:
        condition, values = "instr(key, ?)", [normalize_tag(text)]
    rows = catalogue.rows(
        "SELECT id, name, n_found, n_accepted, n_rejected, n_suggested, expected, quality, "
        "forgotten FROM tags WHERE same_as IS NULL "
        f"AND (forgotten OR n_found OR n_accepted OR n_rejected OR n_suggested) AND {condition} "
        "ORDER BY n_found + n_accepted DESC, key, name",
        values,
    )
    found = [TagCounts(*row) for row in rows]
    return [one for one in found if bool(one.is_forgotten) == forgotten]


@dataclass(frozen=True)
class TagsChanged:
    """What a change of tags does."""

    tags: list[str]
    """The tags that are changed."""
    into: str | None
    """The tag that they are from now on; None where they are forgotten."""
    n_found: int
    """Photographs in whose files they stand, where they stay."""
    n_decisions: int
    n_suggestions: int
    run: int | None = None


def change_tags(
    catalogue: Catalogue,
    what: str,
    names: list[str],
    into: str | None = None,
    *,
    dry_run: bool = False,
) -> TagsChanged:
    """Rename a tag, merge tags into another one, or forget tags.

    Parameters
    ----------
    catalogue : Catalogue
    what : "rename", "merge" or "forget"
    names : list of str
        The tags; for "rename" one.
    into : str, optional
        The tag that they become. "rename" takes a name that no tag has, "merge" any.
    dry_run : bool, default False
        Change nothing; tell what would be changed.
    """
    numbers = list(dict.fromkeys(tag_numbers(catalogue, names)))
    if into is not None:
        into = checked_tag(into)
        numbers = _checked(catalogue, what, numbers, into)
    plan = _plan(catalogue, numbers, into)
    if dry_run:
        return plan
    with (
        catalogue.transaction() as connection,
        catalogue.run(f"tags {what}", {"tags": plan.tags, "into": into}) as run,
    ):
        for number in numbers:
            if into is None:
                _forget(connection, number)
            else:
                merge_tag(connection, number, _named(connection, into))
        run.outcome |= {"found": plan.n_found, "decisions": plan.n_decisions}
    return TagsChanged(**(vars(plan) | {"run": run.id}))


def _checked(catalogue: Catalogue, what: str, numbers: list[int], into: str) -> list[int]:
    """The tags to change: not the one that they become; a new name must be new."""
    row = catalogue.row("SELECT id, same_as FROM tags WHERE name = ?", (into,))
    is_used = row is not None and row[1] is None
    if what == "rename" and is_used and row is not None and row[0] not in numbers:
        raise InvalidInput(f"{into!r} is a tag already. `tagkin tags merge` makes the two one.")
    numbers = [number for number in numbers if not (is_used and row and number == row[0])]
    if not numbers:
        raise InvalidInput(f"{into!r} is what the tag is called. There is nothing to change.")
    return numbers


def _plan(catalogue: Catalogue, numbers: list[int], into: str | None) -> TagsChanged:
    rows = catalogue.rows(
        "SELECT name, n_found, n_accepted + n_rejected, n_suggested FROM tags "
        "WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(numbers),),
    )
    names, found, decisions, suggestions = zip(*rows, strict=True)
    return TagsChanged(list(names), into, sum(found), sum(decisions), sum(suggestions))


def _named(connection: sqlite3.Connection, name: str) -> int:
    """The number of a tag under its own name, also where that was given up for another one."""
    connection.execute("UPDATE tags SET same_as = NULL, forgotten = 0 WHERE name = ?", (name,))
    return TagNumbers(connection)[name]


def _forget(connection: sqlite3.Connection, tag: int) -> None:
    connection.execute("UPDATE tags SET forgotten = 1 WHERE id = ?", (tag,))
    for table in ("suggestions", "doubts"):
        connection.execute(f"DELETE FROM {table} WHERE tag = ?", (tag,))


def merge_tag(connection: sqlite3.Connection, tag: int, into: int) -> None:
    """Let all that is known of a tag be known of another one."""
    pair = {"tag": tag, "into": into}
    rows = connection.execute("SELECT photograph, places FROM found WHERE tag = ?", (tag,))
    for photograph, places in rows.fetchall():
        _move_places(connection, photograph, tag, into, places)
    connection.execute(
        "INSERT INTO suggestions SELECT content, :into, run, confidence, evidence "
        "FROM suggestions s WHERE tag = :tag AND NOT EXISTS (SELECT 1 FROM suggestions o "
        "WHERE o.content = s.content AND o.tag = :into) "
        "AND NOT EXISTS (SELECT 1 FROM decisions d "
        "WHERE d.content = s.content AND d.tag = :into AND d.holds) "
        "AND NOT EXISTS (SELECT 1 FROM found f JOIN photographs p ON p.id = f.photograph "
        "WHERE p.content = s.content AND f.tag = :into)",
        pair,
    )
    connection.execute("DELETE FROM suggestions WHERE tag = :tag", pair)
    connection.execute("DELETE FROM doubts WHERE tag = :tag", pair)
    _move_decisions(connection, tag, into)
    connection.execute(
        "DELETE FROM suggestions WHERE tag = :into AND EXISTS (SELECT 1 FROM decisions d "
        "WHERE d.content = suggestions.content AND d.tag = :into AND d.holds)",
        pair,
    )
    connection.execute(
        "UPDATE tags SET quality = coalesce(quality, (SELECT quality FROM tags WHERE id = :tag)) "
        "WHERE id = :into",
        pair,
    )
    connection.execute("UPDATE tags SET same_as = :into WHERE id = :tag OR same_as = :tag", pair)


def _move_decisions(connection: sqlite3.Connection, tag: int, into: int) -> None:
    """Let decisions on a tag be on another one; they stay those of their runs, and can be undone.

    Where the other tag has a decision of its own, that holds.
    """
    held = connection.execute(
        "SELECT d.id FROM decisions d WHERE d.tag = ?1 AND d.holds AND NOT EXISTS (SELECT 1 "
        "FROM decisions o WHERE o.content = d.content AND o.tag = ?2 AND o.holds)",
        (tag, into),
    ).fetchall()
    connection.execute("UPDATE decisions SET holds = 0 WHERE tag = ? AND holds", (tag,))
    connection.execute("UPDATE decisions SET tag = ? WHERE tag = ?", (into, tag))
    connection.executemany("UPDATE decisions SET holds = 1 WHERE id = ?", held)


def _move_places(
    connection: sqlite3.Connection, photograph: int, tag: int, into: int, places: str
) -> None:
    """Note that what stands in files under one tag is another one."""
    there = connection.execute(
        "SELECT places FROM found WHERE photograph = ? AND tag = ?", (photograph, into)
    ).fetchone()
    before = from_text(there[0], list) if there else []
    both = before + [one for one in from_text(places, list) if one not in before]
    text = json.dumps(both, ensure_ascii=False).encode("utf-8", "surrogateescape")
    connection.execute("DELETE FROM found WHERE photograph = ? AND tag = ?", (photograph, tag))
    if there:
        connection.execute(
            "UPDATE found SET places = CAST(? AS TEXT) WHERE photograph = ? AND tag = ?",
            (text, photograph, into),
        )
    else:
        connection.execute(
            "INSERT INTO found VALUES (?, ?, CAST(? AS TEXT))", (photograph, into, text)
        )


def restore_tag(catalogue: Catalogue, name: str, *, dry_run: bool = False) -> TagsChanged:
    """Take back that a tag was forgotten, or renamed or merged into another one.

    Of a merged one, what stands in files is told apart again; decisions stay with the tag that
    it was merged into.
    """
    row = catalogue.row(
        "SELECT id, same_as, forgotten, n_found, n_accepted + n_rejected FROM tags WHERE name = ?",
        (name,),
    )
    if row is None or not (row[1] or row[2]):
        tag_numbers(catalogue, [name])
        raise InvalidInput(f"{name!r} was neither forgotten nor merged. There is nothing to do.")
    number, same_as, _, n_found, n_decisions = row
    if dry_run:
        return TagsChanged([name], name, n_found, n_decisions, 0)
    with (
        catalogue.transaction() as connection,
        catalogue.run("tags restore", {"tags": [name]}) as run,
    ):
        connection.execute("UPDATE tags SET same_as = NULL, forgotten = 0 WHERE id = ?", (number,))
        if same_as is not None:
            _read_again(connection, same_as)
    return TagsChanged([name], name, n_found, n_decisions, 0, run.id)


def _read_again(connection: sqlite3.Connection, tag: int) -> None:
    """Let the next scan read the files of photographs with a tag once more."""
    connection.execute(
        "UPDATE photographs SET mtime = -1 WHERE id IN "
        "(SELECT photograph FROM found WHERE tag = ?)",
        (tag,),
    )
    connection.execute("UPDATE collection SET settings = json_set(settings, '$.tag_state', '[]')")
