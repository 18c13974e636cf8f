"""Teach an annotator the tags that changed since its fit, without a new fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tagkin.annotator.photograph_input import take_photographs
from tagkin.labels import Vocabulary

if TYPE_CHECKING:
    from tagkin.annotator.annotator import Annotator
    from tagkin.features import Extraction

__all__ = ["CurrentTags", "update_tags"]


class CurrentTags(NamedTuple):
    """A photograph and its tags."""

    file: str
    digest: str
    """Digest of its content."""
    tags: Sequence[str]
    rejected: Sequence[str] = ()
    """The tags that a person rejected for it."""
    is_complete: bool = True
    """Whether it has all of its tags."""


def update_tags(annotator: Annotator, photographs: Sequence[CurrentTags]) -> int:
    """Update an annotator with tags that changed since its fit.

    Photographs with tags become kin with these tags; photographs that lost their tags become kin
    without tags. New tags need new photographs. Unreadable photographs are skipped.

    Returns
    -------
    n : int
        Photographs whose tags changed.
    """
    learned = dict(zip(annotator.paths_.digests, annotator.tags_, strict=True))
    changed = _find_changed(photographs, learned)
    extraction = annotator.read_features([photo.file for photo in changed if photo.tags])
    readable = set(extraction.files)
    changed = [photo for photo in changed if not photo.tags or photo.file in readable]
    if all(photo.digest in learned for photo in changed):
        changed = _find_changed(_drop_new_tags(changed, annotator.vocabulary_), learned)
    _add_tagged(annotator, extraction, [photo for photo in changed if photo.tags])
    if untagged := [photo.digest for photo in changed if not photo.tags]:
        from tagkin.annotator.extending import remove_labels

        known = annotator.paths_.find_numbers(untagged)
        annotator.model_ = remove_labels(annotator.model_, known)
    return len(changed)


def _find_changed(
    photographs: Sequence[CurrentTags], learned: Mapping[str, Sequence[str]]
) -> list[CurrentTags]:
    """Return the photographs whose tags differ from the learned tags of their digest."""
    return [p for p in photographs if set(p.tags) != set(learned.get(p.digest, ()))]


def _drop_new_tags(photographs: Sequence[CurrentTags], vocabulary: Vocabulary) -> list[CurrentTags]:
    """Return the photographs without the tags that a vocabulary does not know."""
    names = sorted({tag for photo in photographs for tag in photo.tags})
    counts = vocabulary.transform([[name] for name in names]).sum(axis=1)
    known = {name for name, n in zip(names, counts, strict=True) if n}
    return [p._replace(tags=[tag for tag in p.tags if tag in known]) for p in photographs]


def _add_tagged(
    annotator: Annotator, extraction: Extraction, photographs: Sequence[CurrentTags]
) -> None:
    """Add photographs with tags; `extraction` has their features, and perhaps those of others."""
    by_file = {photo.file: photo for photo in photographs}
    rows = [i for i, file in enumerate(extraction.files) if file in by_file]
    if not rows:
        return
    added = [by_file[extraction.files[i]] for i in rows]
    annotator.partial_fit(
        take_photographs(extraction, rows),
        [photo.tags for photo in added],
        rejected=[photo.rejected for photo in added],
        complete=[photo.is_complete for photo in added],
    )
