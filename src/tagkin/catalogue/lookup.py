"""Photographs and tags by number: what a page needs to show them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tagkin.catalogue.catalogue import Catalogue
from tagkin.labels import normalize_tag

__all__ = [
    "Pictured",
    "complete_tag",
    "pictured",
    "pictured_photographs",
    "resolve_tag",
    "tag_name",
    "tags_of",
]


class Pictured(NamedTuple):
    """A content, where one photograph of it is, and what it is known by."""

    content: int
    path: str
    """From the root."""
    digest: str


def pictured(catalogue: Catalogue, contents: Iterable[int]) -> dict[int, Pictured]:
    """Those of the contents that are there, by number."""
    rows = catalogue.rows(
        "SELECT c.id, min(p.path), c.digest FROM contents c JOIN photographs p "
        "ON p.content = c.id AND p.gone IS NULL "
        "WHERE c.id IN (SELECT value FROM json_each(?)) GROUP BY c.id",
        (json.dumps(list(contents)),),
    )
    return {content: Pictured(content, path, digest.hex()) for content, path, digest in rows}


def pictured_photographs(
    catalogue: Catalogue, photographs: Sequence[int]
) -> list[tuple[int, str, Pictured | None]]:
    """Photographs by their numbers, in their order: number, path, and content where it is known."""
    rows = catalogue.rows(
        "SELECT p.id, p.path, c.id, c.digest FROM photographs p LEFT JOIN contents c "
        "ON c.id = p.content WHERE p.id IN (SELECT value FROM json_each(?)) ORDER BY p.id",
        (json.dumps(list(photographs)),),
    )
    return [
        (number, path, None if content is None else Pictured(content, path, digest.hex()))
        for number, path, content, digest in rows
    ]


def resolve_tag(catalogue: Catalogue, tag: int) -> int:
    """Return the number that a tag has now: that of the tag it was renamed to or merged into."""
    found: int | None = catalogue.value("SELECT same_as FROM tags WHERE id = ?", (tag,))
    return tag if found is None else found


def tag_name(catalogue: Catalogue, tag: int) -> str | None:
    """The name of a tag; None where there is no such tag."""
    found: str | None = catalogue.value("SELECT name FROM tags WHERE id = ?", (tag,))
    return found


def tags_of(catalogue: Catalogue, names: Sequence[str]) -> dict[str, int]:
    """Numbers of tags by name; unknown ones are left out."""
    rows = catalogue.rows(
        "SELECT name, coalesce(same_as, id) FROM tags "
        "WHERE name IN (SELECT value FROM json_each(?))",
        (json.dumps(list(names)),),
    )
    return dict(rows)


def complete_tag(catalogue: Catalogue, text: str, n: int = 12) -> list[tuple[int, str]]:
    """Return tags for the text typed so far.

    The tag itself comes first, then tags that begin so, then tags that contain the text; in each
    group, tags of many photographs. Upper and lower case and spelling do not matter.
    """
    rows = catalogue.rows(
        "SELECT id, name FROM tags WHERE same_as IS NULL AND NOT forgotten AND instr(key, :text) "
        "AND n_found + n_accepted + n_suggested > 0 "
        "ORDER BY key <> :text, instr(key, :text) > 1, n_found + n_accepted DESC, key, name "
        "LIMIT :n",
        {"text": normalize_tag(text), "n": n},
    )
    return [(number, name) for number, name in rows]
