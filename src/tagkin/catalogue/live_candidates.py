"""The start of a live review: open suggestions, and decisions that the model has not learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from tagkin.annotator.live import LiveImages, sample_step
from tagkin.catalogue.database import Database
from tagkin.catalogue.decision_records import IN_BULK, IS_ANSWER

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

__all__ = ["Candidates", "read_candidates"]

_RELEARNED = 20_000  # latest decisions on suggestions of earlier models
_BLOCK = 1000  # photographs whose confidences are computed at once
_READ = 8192  # photographs whose features are in memory at once

_ENTRY = np.dtype([("content", np.int64), ("tag", np.int64), ("confidence", np.float64)])

Entry = tuple[int, int, float]
Decision = tuple[int, int, int]
"""A content, a tag, and 1 (accepted) or -1 (rejected)."""


class Candidates(NamedTuple):
    """Suggested and decided tags of photographs."""

    contents: Sequence[int]
    """Ascending, N."""
    tags: Sequence[int]
    """Ascending, D."""
    images: LiveImages
    """Embeddings and components of the N photographs."""
    confidences: scipy.sparse.csc_array
    """Confidences of a model that did not know the decision (N×D)."""
    decisions: Sequence[tuple[int, int, bool]]
    """Content, tag, and whether it was accepted."""
    run: int | None
    """The last run that suggested tags."""


def read_candidates(database: Database, annotator: Annotator) -> Candidates:
    """Return the open suggestions of a catalogue, and its decisions.

    Features come from the cache; unreadable photographs are left out. Decisions on suggestions of
    the last run have their confidence. Other decisions get a confidence of the current model, held
    out if it learned from the photograph. Suggestions that were accepted in bulk are left out, and
    so is a finished tag on photographs for which it was not suggested: nobody answered about them.
    """
    run = database.value("SELECT max(run) FROM suggestions")
    suggested = _as_table(
        database.iterate(
            "SELECT s.content, s.tag, s.confidence FROM suggestions s JOIN tags t ON t.id = s.tag "
            "WHERE NOT t.forgotten"
        )
    )
    query = (
        "SELECT d.content, d.tag, d.verdict, d.confidence FROM decisions d "
        f"JOIN tags t ON t.id = d.tag WHERE d.holds AND NOT t.forgotten AND NOT {IN_BULK} "
        f"AND {IS_ANSWER} AND {{}} ? ORDER BY d.id DESC LIMIT ?"
    )
    recent = database.rows(
        query.format("d.confidence IS NOT NULL AND d.suggested_by ="), (run, _RELEARNED)
    )
    older = database.rows(query.format("d.suggested_by IS NOT"), (run, _RELEARNED))
    files = {
        content: database.absolute(path)
        for content, path in database.rows(
            "SELECT content, min(path) FROM photographs "
            "WHERE gone IS NULL AND content IS NOT NULL GROUP BY content"
        )
    }
    decided = {row[0] for row in (*recent, *older)}
    wanted = sorted(decided.union(np.unique(suggested["content"]).tolist()) & set(files))
    contents, images = _read_images(annotator, {content: files[content] for content in wanted})
    entries = np.concatenate([suggested, _as_table([(c, t, p) for c, t, _, p in recent])])
    candidates = entries[np.isin(entries["content"], [c for c, _, _, _ in older])]
    known = set(zip(candidates["content"].tolist(), candidates["tag"].tolist(), strict=True))
    readable = set(contents)
    unscored = [(c, t, v) for c, t, v, _ in older if c in readable and (c, t) not in known]
    scored = list(_score(database, annotator, unscored, files))
    entries = np.concatenate([entries, _as_table(scored)])
    has_score = {(c, t) for c, t, _ in scored}
    decisions = [(c, t, v > 0) for c, t, v, _ in recent]
    decisions += [(c, t, v > 0) for c, t, v in unscored if (c, t) in has_score]
    tags = np.unique(entries["tag"])
    entries = entries[np.isin(entries["content"], contents)]
    at = np.searchsorted(contents, entries["content"]), np.searchsorted(tags, entries["tag"])
    shape = len(contents), len(tags)
    confidences = scipy.sparse.csc_array((entries["confidence"], at), shape)
    return Candidates(contents, tags.tolist(), images, confidences, decisions, run)


def _read_images(annotator: Annotator, files: dict[int, str]) -> tuple[list[int], LiveImages]:
    """Read the features of contents in blocks; return the readable contents and their images."""
    wanted = list(files)
    sample = wanted[:: sample_step(len(wanted))]
    seen = annotator.read_features([files[content] for content in sample])
    images = LiveImages(annotator.model_, np.asarray(seen.features), len(wanted))
    contents = []
    for start in range(0, len(wanted), _READ):
        of_file = {files[content]: content for content in wanted[start : start + _READ]}
        seen = annotator.read_features(list(of_file))
        contents += [of_file[file] for file in seen.files]  # in the same order
        images.add(np.asarray(seen.features))
    return contents, images


def _as_table(rows: Iterable[tuple[Any, ...]]) -> np.ndarray:
    """Return entries as an array, because there may be millions."""
    return np.fromiter(rows, dtype=_ENTRY)


def _score(
    database: Database,
    annotator: Annotator,
    decisions: Sequence[Decision],
    files: dict[int, str],
) -> Iterator[Entry]:
    """Yield confidences of the current model for earlier decisions on tags that it knows."""
    columns = {name: i for i, name in enumerate(annotator.vocabulary_.names_)}
    names = dict(database.rows("SELECT id, name FROM tags"))
    digests = dict(database.rows("SELECT id, digest FROM contents"))
    learned = {str(digest): i for i, digest in enumerate(annotator.digests_)}
    held_out = annotator.model_.held_out.get()
    tags_of: dict[int, list[tuple[int, int]]] = {}
    for content, tag, _ in decisions:
        column = columns.get(names[tag])
        if column is not None:
            tags_of.setdefault(content, []).append((tag, column))
    contents = sorted(tags_of)
    for start in range(0, len(contents), _BLOCK):
        block = contents[start : start + _BLOCK]
        of_file = {files[content]: content for content in block}
        seen = annotator.read_features(list(of_file))
        for p, file in zip(annotator.predict_proba(seen), seen.files, strict=True):
            content = of_file[file]
            row = learned.get(digests[content].hex(), -1)
            for tag, column in tags_of[content]:
                held = held_out[row, column] if 0 <= row < held_out.shape[0] else 0.0
                yield content, tag, float(held or p[column])
