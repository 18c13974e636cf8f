"""Decisions in the database: made, replaced, undone, and applied again.

A decision is about a content and a tag. It is never deleted; a later decision replaces it. So the
history is complete, and every step can be undone.

A decision without a tag rejects all other tags of the content: the photograph is finished. Then it
has no open suggestions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tagkin.catalogue.database import HAS_FILE, LISTED, Database, SqlValue, as_list, utc_now
from tagkin.catalogue.tag_records import IN_FILES, SAME_TAG, SPELLINGS

__all__ = [
    "ACCEPTED",
    "ACCEPTED_TOGETHER",
    "BY_FILTER",
    "FINISHED",
    "IMPLIES",
    "IN_BULK",
    "IS_ANSWER",
    "REJECTED",
    "REMOVED",
    "TAG_FINISHED",
    "WITH_PAGE",
    "Origin",
    "accept_parents",
    "decide_suggestions",
    "end_former_removals",
    "end_removal",
    "hold_again",
    "reopen_unwritten",
    "revert",
    "store_decision",
    "store_removal",
]

ACCEPTED, REJECTED = 1, -1

BY_FILTER = "with all suggestions that a filter chose"
WITH_PAGE = "with the rest of a page"
TAG_FINISHED = "the tag is finished"
REMOVED = "removed in "  # and where
"""Notes on how decisions were made; conditions, learning and exports rely on them."""

ACCEPTED_TOGETHER = f"({{0}}.verdict = 1 AND {{0}}.note IS '{WITH_PAGE}')"
"""SQL: a decision accepted the rest of a page."""
IN_BULK = f"(d.verdict = 1 AND d.note IS '{BY_FILTER}')"
"""Condition on a decision `d`: one of many suggestions that were accepted by filters."""
IS_ANSWER = f"(d.confidence IS NOT NULL OR d.note IS NOT '{TAG_FINISHED}')"
"""Condition on a decision `d`: not one of the many rejections by which a tag is finished."""
FINISHED = "EXISTS (SELECT 1 FROM decisions m WHERE m.content = {} AND m.tag IS NULL AND m.holds)"
"""SQL: the photograph of a content is finished."""

# Whether files have a tag, as far as scans and writes know; a scan follows to a write into a
# photograph.
_HAS_TAG = (
    f"({IN_FILES.format('?2', '?3')} "
    "OR EXISTS (SELECT 1 FROM photographs p JOIN writes w ON w.photograph = p.id, "
    "json_each(w.tags) written JOIN tags t ON t.name = written.value "
    f"WHERE p.content = ?2 AND w.state = 'done' AND t.id IN {SPELLINGS.format('?3')}))"
)

IMPLIES = (
    "(substr({0}.name, 1, length({1}.name) + 1) = {1}.name || '|' "
    "OR substr({0}.name, -length({1}.name) - 1) = '|' || {1}.name)"
)
"""SQL: a tag with levels is below another tag, or ends in it."""

Pair = tuple[int, int | None]
"""A content and a tag, or None for all other tags."""


class Origin(NamedTuple):
    """The suggestion that a decision answers."""

    run: int | None = None
    confidence: float | None = None
    evidence: bytes | None = None


def store_decision(
    database: Database,
    run: int,
    pair: Pair,
    verdict: int,
    note: str | None = None,
    shown: Origin | None = None,
) -> None:
    """Decide on a content and a tag, in place of an earlier decision and a suggestion.

    `pair` without a tag finishes the content. The decision answers the open suggestion, else the
    one that was `shown`, else that of the earlier decision. It replaces an earlier decision on
    another spelling of the tag, and keeps that spelling.
    """
    origin = _find_origin(database, pair, shown)
    database.execute("DELETE FROM suggestions WHERE content = ? AND tag = ?", pair)
    spelled = (
        "SELECT tag FROM decisions WHERE content = ?1 AND holds "
        f"AND tag IN {SPELLINGS.format('?2')} ORDER BY tag = ?2 DESC, id DESC LIMIT 1"
    )
    pair = pair[0], database.value(f"SELECT coalesce(({spelled}), ?2)", pair)
    database.execute(
        "UPDATE decisions SET holds = 0 WHERE content = ? AND tag IS ? AND holds", pair
    )
    database.execute(
        "INSERT INTO decisions (run, content, tag, verdict, made_at, suggested_by, confidence, "
        "evidence, note, was_in_files) "
        f"VALUES (?1, ?2, ?3, ?4, ?5, (SELECT id FROM runs WHERE id = ?6), ?7, ?8, ?9, {_HAS_TAG})",
        (run, *pair, verdict, utc_now(), *origin, note),
    )
    database.execute("DELETE FROM suggestions WHERE content = ? AND tag = ?", pair)


def _find_origin(database: Database, pair: Pair, shown: Origin | None) -> Origin:
    suggestion = database.row(
        "SELECT run, confidence, evidence FROM suggestions WHERE content = ? AND tag = ?", pair
    )
    if suggestion is not None:
        return Origin(*suggestion)
    if shown is not None:
        return shown
    earlier = database.row(
        "SELECT suggested_by, confidence, evidence FROM decisions "
        "WHERE content = ? AND tag IS ? AND holds",
        pair,
    )
    return Origin(*(earlier or ()))


def store_removal(database: Database, run: int, pair: tuple[int, int], origin: str) -> None:
    """Reject a tag that a person removed in another program; `origin` says where.

    Not if a file of the content still has the tag in some spelling, or a person has rejected it.
    """
    is_there_or_rejected = database.row(
        "SELECT 1 FROM decisions WHERE content = ?1 AND holds AND verdict = -1 "
        f"AND tag IN {SPELLINGS.format('?2')} UNION ALL SELECT 1 WHERE "
        + IN_FILES.format("?1", "?2"),
        pair,
    )
    if is_there_or_rejected is None:
        store_decision(database, run, pair, REJECTED, f"{REMOVED}{origin}")


def end_removal(database: Database, run: int, pair: tuple[int, int]) -> None:
    """End a rejection by `store_removal`, because a person added the tag again."""
    database.execute(
        "UPDATE decisions SET holds = 0, taken_back_by = ?1 "
        f"WHERE content = ?2 AND tag IN {SPELLINGS.format('?3')} AND holds AND verdict = -1 "
        "AND note LIKE ?4",
        (run, *pair, f"{REMOVED}%"),
    )


def end_former_removals(database: Database, run: int, old: int, new: int) -> None:
    """End the removals of a content that a photograph had before and has again.

    `old` is its content in between, on which they do not hold any more.
    """
    database.execute(
        "UPDATE decisions SET holds = 0, taken_back_by = ?1 WHERE content = ?3 AND holds "
        "AND note LIKE ?4 AND NOT EXISTS (SELECT 1 FROM decisions o WHERE o.content = ?2 "
        f"AND {SAME_TAG.format('o.tag', 'decisions.tag')} AND o.holds)",
        (run, old, new, f"{REMOVED}%"),
    )


def decide_suggestions(
    database: Database,
    condition: str,
    values: Sequence[SqlValue],
    run: int,
    verdict: int,
    note: str | None,
) -> None:
    """Turn the suggestions `s` that match into decisions."""
    database.execute("DROP TABLE IF EXISTS temp.chosen")
    database.execute(
        f"CREATE TEMP TABLE chosen AS SELECT * FROM suggestions s WHERE {condition}", values
    )
    database.execute(
        "INSERT INTO decisions "
        "(run, content, tag, verdict, made_at, suggested_by, confidence, evidence, note) "
        "SELECT ?, content, tag, ?, ?, run, confidence, evidence, ? FROM temp.chosen",
        (run, verdict, utc_now(), note),
    )
    database.execute(
        "DELETE FROM suggestions WHERE (content, tag) IN (SELECT content, tag FROM temp.chosen)"
    )
    database.execute("DROP TABLE temp.chosen")


def accept_parents(database: Database, run: int) -> None:
    """Accept open suggestions that tags with levels imply, if the run accepted these.

    With ``Verkehr|Auto``, both ``Verkehr`` and ``Auto`` hold.
    """
    accepted = (
        "FROM decisions d JOIN tags t ON t.id = d.tag "
        "WHERE d.run = ?1 AND d.verdict = 1 AND instr(t.name, '|')"
    )
    if database.row(f"SELECT 1 {accepted}", (run,)) is None:
        return
    decide_suggestions(
        database,
        f"s.content IN (SELECT d.content {accepted}) AND EXISTS (SELECT 1 {accepted} AND "
        "d.content = s.content AND EXISTS (SELECT 1 FROM tags above WHERE above.id = s.tag "
        f"AND {IMPLIES.format('t', 'above')}))",
        (run,),
        run,
        ACCEPTED,
        None,
    )


def revert(database: Database, decisions: Sequence[int]) -> None:
    """Let the decisions that these replaced apply again, or reopen their suggestions.

    `decisions` are marked as undone.
    """
    numbers = (as_list(decisions),)
    database.execute(f"UPDATE decisions SET holds = 0 WHERE holds AND id {LISTED}", numbers)
    database.execute(
        "UPDATE decisions SET holds = 1 WHERE id IN (SELECT (SELECT max(e.id) FROM decisions e "
        "WHERE e.content = d.content AND e.tag IS d.tag AND e.taken_back_by IS NULL) "
        f"FROM decisions d WHERE d.id {LISTED})",
        numbers,
    )
    _reopen(database, f"d.id {LISTED}", numbers)
    # suggestions whose decisions were undone while their photograph was finished
    _reopen(
        database,
        "d.id IN (SELECT max(o.id) FROM decisions o JOIN decisions m ON m.content = o.content "
        f"WHERE m.id {LISTED} AND m.tag IS NULL AND o.tag IS NOT NULL "
        "GROUP BY o.content, o.tag HAVING max(o.taken_back_by) > min(m.run))",
        numbers,
    )


def hold_again(database: Database, decisions: Sequence[int]) -> None:
    """Let undone decisions apply again, at most one for each content and tag."""
    numbers = (as_list(decisions),)
    database.execute(
        "UPDATE decisions SET holds = 0 WHERE id IN (SELECT h.id FROM decisions d JOIN decisions h "
        f"ON h.content = d.content AND {SAME_TAG.format('h.tag', 'd.tag')} AND h.holds "
        f"WHERE d.id {LISTED})",
        numbers,
    )
    for condition in (
        "(content, tag) IN (SELECT content, tag FROM decisions WHERE id {})",
        "content IN (SELECT content FROM decisions WHERE tag IS NULL AND id {})",
    ):
        database.execute(f"DELETE FROM suggestions WHERE {condition.format(LISTED)}", numbers)
    database.execute(f"UPDATE decisions SET holds = 1 WHERE id {LISTED}", numbers)


def reopen_unwritten(database: Database, photograph: int, tags: Iterable[int]) -> None:
    """Reopen suggestions whose decisions were undone while a file still had the tag."""
    _reopen(
        database,
        "d.id IN (SELECT max(o.id) FROM decisions o JOIN photographs p ON p.content = o.content "
        f"WHERE p.id = ? AND o.tag {LISTED} GROUP BY o.tag) AND d.taken_back_by IS NOT NULL",
        (photograph, as_list(tags)),
    )


def _reopen(database: Database, condition: str, values: Sequence[SqlValue]) -> None:
    """Reopen the suggestions of decisions `d`.

    Not if a decision on the tag applies, a file has the tag, the tag is forgotten, or the
    photograph is finished.
    """
    database.execute(
        "INSERT OR IGNORE INTO suggestions (content, tag, run, confidence, evidence) "
        "SELECT content, tag, suggested_by, confidence, evidence FROM decisions d "
        f"WHERE {condition} "
        f"AND suggested_by IS NOT NULL AND NOT {IN_FILES.format('d.content', 'd.tag')} "
        "AND NOT EXISTS (SELECT 1 FROM decisions h "
        f"WHERE h.content = d.content AND {SAME_TAG.format('h.tag', 'd.tag')} AND h.holds) "
        f"AND NOT {FINISHED.format('d.content')} "
        "AND NOT EXISTS (SELECT 1 FROM tags t WHERE t.id = d.tag AND t.forgotten) "
        f"AND {HAS_FILE.format('d.content')}",
        values,
    )
