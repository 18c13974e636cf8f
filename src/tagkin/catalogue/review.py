"""What a page of review asks of a catalogue: each answer is one range of one index.

Lists come in parts: pass the last of one part to get the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tagkin.catalogue.batches import TOGETHER, accepted_together
from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.database import sql_text
from tagkin.catalogue.evidence import unpack_evidence
from tagkin.catalogue.filters import in_folder

__all__ = [
    "Doubt",
    "Kin",
    "OnPhotograph",
    "Open",
    "Progress",
    "doubtful",
    "kin_of_each",
    "open_for_tag",
    "progress",
    "search",
    "suggestions_for",
    "to_review",
]

_PATH = "(SELECT min(path) FROM photographs p WHERE p.content = {}.content AND p.gone IS NULL)"


class Open(NamedTuple):
    """A suggestion of one tag that nobody has decided on."""

    content: int
    path: str
    confidence: float
    run: int | None = None
    """The run that suggested it."""


class Kin(NamedTuple):
    """A photograph that supports a suggestion."""

    content: int
    path: str | None
    """None where it is not there any more."""
    share: float


class OnPhotograph(NamedTuple):
    """A suggestion for one photograph, with its evidence."""

    tag: str
    confidence: float
    run: int
    kin: Sequence[Kin]
    name_share: float | None
    readout_share: float | None
    """See `tagkin.catalogue.evidence.Evidence`."""


class Doubt(NamedTuple):
    """A tag that seems wrong on a photograph, or missing from it."""

    content: int
    path: str
    tag: str
    kind: str
    confidence: float
    kin: Sequence[Kin]
    was_accepted: bool = False
    """Whether it was accepted, with the rest of a page."""


@dataclass(frozen=True)
class Progress:
    """How far a review is."""

    n_photographs: int
    n_suggestions: int
    """That nobody has decided on."""
    n_to_review: int
    """Photographs that have such suggestions."""
    expected: float
    """How many of the suggestions are likely to be right: what the rest is worth."""
    n_accepted: int
    n_rejected: int


def open_for_tag(
    catalogue: Catalogue, tag: int, n: int = 60, after: Open | None = None
) -> list[Open]:
    """Suggestions of a tag, the surest first."""
    confidence, content = (2.0, -1) if after is None else (after.confidence, after.content)
    rows = catalogue.rows(
        f"SELECT s.content, {_PATH.format('s')}, s.confidence, s.run FROM suggestions s "
        "WHERE s.tag = ?1 AND s.confidence <= ?2 AND (s.confidence < ?2 OR s.content > ?3) "
        "ORDER BY s.confidence DESC, s.content LIMIT ?4",
        (tag, confidence, content, n),
    )
    return [Open(*row) for row in rows]


def suggestions_for(catalogue: Catalogue, content: int) -> list[OnPhotograph]:
    """Suggestions for a photograph, the surest first, with the kin behind each."""
    rows = catalogue.rows(
        "SELECT t.name, s.confidence, s.run, s.evidence FROM suggestions s "
        "JOIN tags t ON t.id = s.tag WHERE s.content = ? ORDER BY s.confidence DESC, t.name",
        (content,),
    )
    evidence = [unpack_evidence(row[3]) for row in rows]
    each = kin_of_each(catalogue, [one.kin for one in evidence])
    return [
        OnPhotograph(tag, confidence, run, kin, one.name_share, one.readout_share)
        for (tag, confidence, run, _), kin, one in zip(rows, each, evidence, strict=True)
    ]


def kin_of_each(
    catalogue: Catalogue, pairs: Sequence[Sequence[tuple[int, float]]]
) -> list[list[Kin]]:
    """The kin of suggestions, of which many have the same, and where they are now."""
    paths = dict(
        catalogue.rows(
            "SELECT content, min(path) FROM photographs WHERE gone IS NULL "
            "AND content IN (SELECT value FROM json_each(?)) GROUP BY content",
            (json.dumps(list({content for some in pairs for content, _ in some})),),
        )
    )
    return [[Kin(content, paths.get(content), share) for content, share in some] for some in pairs]


def to_review(catalogue: Catalogue, n: int = 1, after: int = 0) -> list[tuple[int, str]]:
    """The next photographs with suggestions that nobody has decided on: content and path."""
    rows = catalogue.rows(
        "SELECT c.id, (SELECT min(path) FROM photographs p WHERE p.content = c.id "
        "AND p.gone IS NULL) FROM contents c WHERE c.n_suggested > 0 AND c.id > ? "
        "ORDER BY c.id LIMIT ?",
        (after, n),
    )
    return [(content, path) for content, path in rows]


def doubtful(
    catalogue: Catalogue, kind: str | None = None, n: int = 60, start: int = 0
) -> list[Doubt]:
    """Tags that seem wrong or missing, the surest first; what was decided on is left out.

    What was accepted with the rest of a page, before the doubt, was not decided on by itself.
    """
    kinds, values = ("d.kind = ? AND", [kind]) if kind else ("", [])
    rows = catalogue.rows(
        f"SELECT d.content, {_PATH.format('d')}, t.name, d.kind, d.confidence, d.evidence, "
        "EXISTS (SELECT 1 FROM decisions a WHERE a.content = d.content AND a.tag = d.tag "
        "AND a.holds) "
        f"FROM doubts d JOIN tags t ON t.id = d.tag WHERE {kinds} NOT EXISTS "
        "(SELECT 1 FROM decisions o WHERE o.content = d.content AND o.tag = d.tag AND o.holds "
        f"AND NOT (o.run < d.run AND {TOGETHER.format('o')})) "
        "ORDER BY d.confidence DESC, d.content LIMIT ? OFFSET ?",
        [*values, n, start],
    )
    return _doubts(catalogue, rows)


def doubted_acceptances(
    catalogue: Catalogue, each: Sequence[tuple[int, int, float]], n: int = 60, start: int = 0
) -> list[Doubt]:
    """Tags that were accepted with the rest of a page and may be wrong, in the order given.

    Parameters
    ----------
    catalogue : Catalogue
    each : sequence of (content, tag, confidence)
        The confidence is that the tag is right; the least sure first. Those that were decided on
        since, or by themselves, are left out.
    n, start : int
    """
    whole = accepted_together(catalogue, [(content, tag) for content, tag, _ in each])
    some = [one for one in each if one[:2] in whole][start : start + n]
    query = (
        f"SELECT d.content, {_PATH.format('d')}, t.name, 'accepted', 0, d.evidence, 1 "
        "FROM decisions d JOIN tags t ON t.id = d.tag WHERE d.content = ? AND d.tag = ? AND d.holds"
    )
    found = [(catalogue.row(query, (content, tag)), p) for content, tag, p in some]
    rows = [(*row[:4], p, *row[5:]) for row, p in found if row is not None and row[1]]
    return _doubts(catalogue, rows)


def _doubts(catalogue: Catalogue, rows: Sequence[tuple[Any, ...]]) -> list[Doubt]:
    """With the kin of each."""
    kin = [unpack_evidence(row[5]).kin if row[5] else () for row in rows]
    each = kin_of_each(catalogue, kin)
    return [
        Doubt(content, path, tag, kind, confidence, some, bool(accepted))
        for (content, path, tag, kind, confidence, _, accepted), some in zip(
            rows, each, strict=True
        )
    ]


def search(
    catalogue: Catalogue,
    tags: Sequence[int] = (),
    *,
    untagged: bool = False,
    folder: str | None = None,
    name: str | None = None,
    n: int = 60,
    after: int = 0,
) -> list[tuple[int, str]]:
    """Photographs that carry all these tags (found or accepted), or none: number and path.

    Parameters
    ----------
    catalogue : Catalogue
    tags : sequence of int
        Numbers of tags.
    untagged : bool, default False
        Only photographs without any tag.
    folder : str, optional
        Only photographs in this folder and those in it, from the root.
    name : str, optional
        Only photographs in whose path from the root it stands.
    n : int, default 60
    after : int, default 0
        The number of the last photograph of the part before.
    """
    values: dict[str, Any] = {"after": after, "n": n}
    conditions = ["p.gone IS NULL", "p.id > :after", in_folder("p.path", folder)]
    conditions += [_carries(other) for other in tags[1:]]
    if untagged:
        conditions.append("p.content IN (SELECT id FROM contents WHERE n_tags = 0)")
    if name:
        conditions.append("p.path LIKE CAST(:name AS TEXT) ESCAPE '!'")  # which knows no case
        values["name"] = sql_text("%" + re.sub("[!%_]", r"!\g<0>", name) + "%")
    rest = " AND ".join(conditions)
    query = f"SELECT p.id FROM photographs p WHERE {rest}"
    if tags:
        # two lists in one order, of which no more is read than is asked for
        query = (
            "SELECT o.photograph AS id FROM found o JOIN photographs p ON p.id = o.photograph "
            f"WHERE o.tag = :tag AND o.photograph > :after AND {rest} UNION "
            "SELECT p.id FROM decisions o JOIN photographs p ON p.content = o.content "
            f"WHERE o.tag = :tag AND o.holds AND o.verdict = 1 AND {rest}"
        )
        values["tag"] = tags[0]
    rows = catalogue.rows(
        "SELECT id, (SELECT path FROM photographs WHERE id = one.id) "
        f"FROM ({query} ORDER BY 1 LIMIT :n) one",
        values,
    )
    return [(number, path) for number, path in rows]


def _carries(tag: int) -> str:
    return (
        f"(EXISTS (SELECT 1 FROM found f WHERE f.photograph = p.id AND f.tag = {int(tag)}) "
        "OR EXISTS (SELECT 1 FROM decisions d WHERE d.content = p.content "
        f"AND d.tag = {int(tag)} AND d.holds AND d.verdict = 1))"
    )


def progress(catalogue: Catalogue) -> Progress:
    """How many suggestions are left, and what they are likely worth."""
    n_suggestions, expected, n_accepted, n_rejected = catalogue.rows(
        "SELECT total(n_suggested), total(expected), total(n_accepted), total(n_rejected) FROM tags"
    )[0]
    return Progress(
        catalogue.value(
            "SELECT (SELECT count(*) FROM photographs) - "
            "(SELECT count(*) FROM photographs WHERE gone IS NOT NULL)"
        ),
        int(n_suggestions),
        catalogue.value("SELECT count(*) FROM contents WHERE n_suggested > 0"),
        max(0.0, expected),
        int(n_accepted),
        int(n_rejected),
    )
