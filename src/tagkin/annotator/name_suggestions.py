"""Suggest tags that no photograph has yet, from their names alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tagkin.annotator.naming import confidences_by_name
from tagkin.annotator.photograph_input import KnownTags, Photographs, TagLists
from tagkin.annotator.photograph_reader import PhotographReader
from tagkin.annotator.suggesting import LabelChoice
from tagkin.annotator.suggestions import PhotoSuggestions, TagSuggestion
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary, normalize_tag
from tagkin.progress import Progress
from tagkin.tag_meanings import NamePrior

__all__ = ["add_words", "check_words", "find_unknown_words", "new_words", "suggest_words"]

_LEAST_CONFIDENCE = 0.2  # confidence of a word by its name alone; of the less likely, few are right


def check_words(vocabulary: Sequence[str] | None) -> list[str]:
    """Return the words to suggest, each once and without surrounding blanks; None means none."""
    if vocabulary is None:
        return []
    if isinstance(vocabulary, str):
        raise InvalidInput(f"vocabulary must be a list of tags; found the text {vocabulary!r}.")
    words = dict.fromkeys(word.strip() for word in vocabulary)
    words.pop("", None)
    if not words:
        raise InvalidInput("The vocabulary is empty. Pass at least one tag.")
    return list(words)


def new_words(words: Sequence[str], learned: Vocabulary) -> list[str]:
    """Return the words that are not learned tags."""
    if not words:
        return []
    counts = learned.transform([[word] for word in words]).sum(axis=1)
    return [word for word, n in zip(words, counts, strict=True) if not n]


def find_unknown_words(words: Sequence[str], prior: NamePrior) -> list[str]:
    """Return the words without a known meaning."""
    words = check_words(words)
    is_unknown = prior.meanings(words).is_unknown
    return [word for word, unknown in zip(words, is_unknown, strict=True) if unknown]


def suggest_words(
    reader: PhotographReader,
    photographs: Photographs,
    words: Sequence[str],
    rule: LabelChoice,
    progress: Progress | None,
    present: TagLists | None = None,
) -> list[PhotoSuggestions]:
    """Suggest words for photographs from their names alone."""
    prior, known = reader.require_prior(), KnownTags.of(photographs, present)
    extraction, known = reader.read_known(photographs, known, progress)
    tags = known.present or [[] for _ in extraction.files]
    pairs = zip(extraction.files, tags, strict=True)
    photos = [PhotoSuggestions(file, (), tuple(row)) for file, row in pairs]
    return add_words(photos, extraction.features, words, rule, prior)


def add_words(
    suggested: Sequence[PhotoSuggestions],
    features: np.ndarray,
    words: Sequence[str],
    rule: LabelChoice,
    prior: NamePrior,
) -> list[PhotoSuggestions]:
    """Add suggested words to the suggestions for n photographs with these features (n×d).

    Added suggestions have no kin and a `name_share` of 1. Unless the rule has a threshold, words
    that are less likely than .2 are left out.
    """
    least = rule.threshold or _LEAST_CONFIDENCE
    P = confidences_by_name(prior, features, words)
    keys = list(map(normalize_tag, words))
    result = []
    for photo, row in zip(suggested, P, strict=True):
        own = {normalize_tag(tag) for tag in photo.tags}
        allowed = np.array([key not in own for key in keys]) & (row >= least)
        (columns,) = rule.select_labels(row[None], allowed[None])
        added = [TagSuggestion(words[t], float(row[t]), (), 1.0, 0.0) for t in columns]
        both = sorted([*photo.suggestions, *added], key=lambda s: -s.confidence)
        result.append(PhotoSuggestions(photo.file, tuple(both[: rule.n]), photo.tags))
    return result
