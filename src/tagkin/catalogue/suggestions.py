"""Suggestions of a run, put into the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.evidence import pack_evidence
from tagkin.catalogue.found import TagNumbers

__all__ = ["Suggested", "put_suggestions"]


class Suggested(NamedTuple):
    """A tag that is suggested for a content."""

    tag: str
    confidence: float
    kin: Sequence[tuple[int, float]]
    """Contents that support it, with their shares of the support."""
    name_share: float | None = None
    readout_share: float | None = None
    """See `tagkin.catalogue.evidence.Evidence`."""


def put_suggestions(
    catalogue: Catalogue, run: int, each: Sequence[tuple[int, Sequence[Suggested]]]
) -> int:
    """Put what a run suggests for some contents in the place of what was suggested before.

    What a person has decided on is never suggested again, nor what a photograph carries, nor a
    tag that is forgotten.

    Parameters
    ----------
    catalogue : Catalogue
    run : int
    each : sequence of (content, suggestions)

    Returns
    -------
    n : int
        Suggestions that were put there.
    """
    with catalogue.transaction() as connection:
        numbers = TagNumbers(connection)
        hidden = {t for (t,) in connection.execute("SELECT id FROM tags WHERE forgotten")}
        n = 0
        for content, suggested in each:
            connection.execute("DELETE FROM suggestions WHERE content = ?", (content,))
            wanted = {numbers[one.tag]: one for one in reversed(suggested)}
            taken = hidden | {
                tag
                for (tag,) in connection.execute(
                    "SELECT tag FROM decisions WHERE content = ?1 AND holds "
                    "UNION SELECT other.id FROM photographs p JOIN found f ON f.photograph = p.id "
                    "JOIN tags t ON t.id = f.tag JOIN tags other ON other.key = t.key "
                    "WHERE p.content = ?1",
                    (content,),
                )
            }
            rows = [
                (content, tag, run, float(one.confidence), _evidence(one))
                for tag, one in wanted.items()
                if tag not in taken
            ]
            connection.executemany("INSERT INTO suggestions VALUES (?, ?, ?, ?, ?)", rows)
            n += len(rows)
    return n


def _evidence(one: Suggested) -> bytes:
    return pack_evidence(one.kin, one.name_share, one.readout_share)
