"""Bursts, which the page shows as one stack."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tagkin.catalogue.database import LISTED, CataloguePart, Database, as_list
from tagkin.collection import Capture
from tagkin.collection.times import leave_out_unset, to_seconds
from tagkin.progress import Progress

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

__all__ = ["Bursts", "store_bursts"]

_BLOCK = 4000  # shots whose features are compared at once


class Bursts(CataloguePart):
    """The bursts of a catalogue: ``catalogue.bursts``.

    A burst is named by the smallest number among its contents.
    """

    def of(self, contents: Iterable[int]) -> dict[int, int]:
        """Return the burst of each content that is in a burst."""
        rows = self._db.rows(
            f"SELECT id, burst FROM contents WHERE burst IS NOT NULL AND id {LISTED}",
            (as_list(contents),),
        )
        return dict(rows)

    def members(self, bursts: Iterable[int]) -> dict[int, list[int]]:
        """Return the existing contents of each burst, in the order in which they were taken."""
        return self._db.groups(
            "SELECT c.burst, c.id FROM contents c JOIN photographs p ON p.content = c.id "
            f"AND p.gone IS NULL WHERE c.burst {LISTED} "
            "GROUP BY c.id ORDER BY min(p.taken), min(p.path)",
            (as_list(bursts),),
        )


def store_bursts(database: Database, annotator: Annotator, step: Progress) -> int:
    """Find the bursts among all photographs and store them; return how many there are.

    Features come from the annotator's cache, or are extracted.
    """
    step("Finding bursts", 0, 1)
    blocks = _blocks(_read_shots(database))
    groups = [group for block in blocks for group in _find_groups(annotator, block)]
    with database.transaction():
        database.execute("UPDATE contents SET burst = NULL WHERE burst IS NOT NULL")
        database.execute_many(
            "UPDATE contents SET burst = ? WHERE id = ?",
            [(min(group), content) for group in groups for content in group],
        )
    step("Finding bursts", 1, 1)
    return len(groups)


_Shot = tuple[int, str, Capture]
"""A content, its file, and when it was taken by which camera."""


def _read_shots(database: Database) -> list[_Shot]:
    """Return the contents with a time of capture, by camera and time."""
    rows = database.rows(
        "SELECT content, min(path), taken, coalesce(camera, '') || ' ' || coalesce(serial, '') "
        "FROM photographs WHERE gone IS NULL AND content IS NOT NULL AND taken IS NOT NULL "
        "GROUP BY content ORDER BY camera, serial, taken, content"
    )
    seconds = leave_out_unset(to_seconds([row[2] for row in rows]), [row[3] for row in rows])
    return [
        (content, database.absolute(path), Capture(datetime.fromisoformat(taken), camera))
        for (content, path, taken, camera), time in zip(rows, seconds.tolist(), strict=True)
        if not math.isnan(time)
    ]


def _blocks(shots: Sequence[_Shot]) -> Iterable[list[_Shot]]:
    """Yield shots that may belong to a burst, in blocks that end between two bursts."""
    from tagkin.annotator.series import is_burst

    block: list[_Shot] = []
    for before, after in pairwise(shots):
        if is_burst(before[2], after[2]):
            block += [shot for shot in (before, after) if not block or block[-1] != shot]
        elif len(block) >= _BLOCK:
            yield block
            block = []
    if block:
        yield block


def _find_groups(annotator: Annotator, shots: Sequence[_Shot]) -> list[list[int]]:
    from tagkin.annotator.series import find_bursts

    content_of = {file: (content, capture) for content, file, capture in shots}
    seen = annotator.read_features(list(content_of))
    captures = [content_of[file][1] for file in seen.files]
    numbers = find_bursts(captures, np.asarray(seen.features)) if len(seen.files) else np.zeros(0)
    groups: dict[int, list[int]] = {}
    for file, number in zip(seen.files, numbers.tolist(), strict=True):
        groups.setdefault(number, []).append(content_of[file][0])
    return [group for group in groups.values() if len(group) > 1]
