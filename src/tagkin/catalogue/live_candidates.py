"""What a live review starts from: open suggestions, and all decisions that a model has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse

from tagkin.annotator.photographs import take_photographs
from tagkin.catalogue.catalogue import Catalogue

if TYPE_CHECKING:
    from tagkin.annotator import Annotator
    from tagkin.features import Extraction

__all__ = ["Candidates", "live_candidates"]

_RELEARNED = 20_000  # decisions that were made on what earlier models suggested: the last of them
_BLOCK = 1000  # photographs whose confidences are computed at once

_ENTRY = np.dtype([("content", np.int64), ("tag", np.int64), ("confidence", np.float64)])

Entry = tuple[int, int, float]
Decision = tuple[int, int, int]
"""A content, a tag, and 1 (accepted) or -1 (rejected)."""


class Candidates(NamedTuple):
    """Tags that photographs may get, or that were decided on."""

    contents: Sequence[int]
    """Ascending, N."""
    tags: Sequence[int]
    """Ascending, D."""
    features: np.ndarray
    """Of the contents (N×d)."""
    confidences: scipy.sparse.csc_array
    """Of a model that knew nothing of the decision (N×D)."""
    decisions: Sequence[tuple[int, int, bool]]
    """Content, tag, and whether it was accepted."""
    run: int | None
    """The last run that suggested tags."""


def live_candidates(catalogue: Catalogue, annotator: Annotator) -> Candidates:
    """The open suggestions of a catalogue, and what was decided.

    Features come from the cache; photographs that cannot be read are left out. Decisions on what
    the last run suggested have its confidence. Others have one of today's model: of models that
    had not seen the photograph, where it was learned from.
    """
    run = catalogue.value("SELECT max(run) FROM suggestions")
    suggested = _table(
        catalogue.rows(
            "SELECT s.content, s.tag, s.confidence FROM suggestions s JOIN tags t ON t.id = s.tag "
            "WHERE NOT t.forgotten"
        )
    )
    query = (
        "SELECT d.content, d.tag, d.verdict, d.confidence FROM decisions d "
        "JOIN tags t ON t.id = d.tag WHERE d.holds AND NOT t.forgotten AND {} "
        "? ORDER BY d.id DESC LIMIT ?"
    )
    lately = catalogue.rows(
        query.format("d.confidence IS NOT NULL AND d.suggested_by ="), (run, _RELEARNED)
    )
    before = catalogue.rows(query.format("d.suggested_by IS NOT"), (run, _RELEARNED))
    files = {
        content: catalogue.absolute(path)
        for content, path in catalogue.rows(
            "SELECT content, min(path) FROM photographs "
            "WHERE gone IS NULL AND content IS NOT NULL GROUP BY content"
        )
    }
    decided = {row[0] for some in (lately, before) for row in some}
    wanted = sorted(decided.union(np.unique(suggested["content"]).tolist()) & set(files))
    seen = annotator.read_features([files[content] for content in wanted])
    content_of = {files[content]: content for content in wanted}
    found = np.array([content_of[file] for file in seen.files], dtype=np.int64)
    order = np.argsort(found, kind="stable")
    contents, ordered = found[order].tolist(), take_photographs(seen, order)
    entries = np.concatenate([suggested, _table([(c, t, p) for c, t, _, p in lately])])
    row = {content: i for i, content in enumerate(contents)}
    theirs = entries[np.isin(entries["content"], [c for c, _, _, _ in before])]
    known = set(zip(theirs["content"].tolist(), theirs["tag"].tolist(), strict=True))
    old = [(c, t, v) for c, t, v, _ in before if c in row and (c, t) not in known]
    now = list(_relearned(catalogue, annotator, old, row, ordered))
    entries = np.concatenate([entries, _table(now)])
    is_known = {(c, t) for c, t, _ in now}
    decisions = [(c, t, v > 0) for c, t, v, _ in lately]
    decisions += [(c, t, v > 0) for c, t, v in old if (c, t) in is_known]
    tags = np.unique(entries["tag"])
    there = entries[np.isin(entries["content"], contents)]
    at = np.searchsorted(contents, there["content"]), np.searchsorted(tags, there["tag"])
    shape = len(contents), len(tags)
    confidences = scipy.sparse.csc_array((there["confidence"], at), shape)
    features = np.asarray(ordered.features)
    return Candidates(contents, tags.tolist(), features, confidences, decisions, run)


def _table(rows: Sequence[Entry]) -> np.ndarray:
    """Entries as an array: there may be millions of them."""
    return np.fromiter(rows, dtype=_ENTRY, count=len(rows))


def _relearned(
    catalogue: Catalogue,
    annotator: Annotator,
    decided: Sequence[Decision],
    row: dict[int, int],
    seen: Extraction,
) -> Iterator[Entry]:
    """Confidences of today's model for what was decided before it; of tags that it knows."""
    columns = {name: i for i, name in enumerate(annotator.vocabulary_.names_)}
    names = dict(catalogue.rows("SELECT id, name FROM tags"))
    numbers = dict(catalogue.rows("SELECT id, digest FROM contents"))
    learned = {str(digest): i for i, digest in enumerate(annotator.digests_)}
    held_out = annotator.held_out_
    by_content: dict[int, list[tuple[int, int]]] = {}
    for content, tag, _ in decided:
        column = columns.get(names[tag])
        if column is not None:
            by_content.setdefault(content, []).append((tag, column))
    some = sorted(by_content)
    for start in range(0, len(some), _BLOCK):
        block = some[start : start + _BLOCK]
        P = annotator.predict_proba(take_photographs(seen, [row[content] for content in block]))
        for p, content in zip(P, block, strict=True):
            own = learned.get(numbers[content].hex(), -1)
            for tag, column in by_content[content]:
                held = held_out[own, column] if 0 <= own < held_out.shape[0] else 0.0
                yield content, tag, float(held or p[column])
