"""Find the common English tag that means the same as a tag in any language.

A sentence encoder places a tag near its translations. But random letters are near something, too,
so a common tag must be nearer to the tag than to nearly all of a thousand words that do not exist.
First names are near each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tagkin.lexicons import SentenceEncoder
from tagkin.tag_meanings.vocabularies import common_tags, first_names, made_up_words

__all__ = ["CommonWord", "CommonWords"]

# Chosen on the training photographs of the folder in docs/results, with tags in six languages: the
# values that accept fewest words that do not exist, with 85 % of the English MAP in each language.
_NEARER = 0.15  # cosine above that of words that do not exist
_SAME = 0.75  # cosine of two words that mean the same
_NO_WORD = 0.98  # quantile of the cosines of words that do not exist
_NAME = 0.4  # minimum cosine of a name to first names
_RATHER_NAME = 0.03  # cosine to first names above that to common tags
_NAMES = 3  # nearest first names, whose mean cosine counts

_BLOCK = 4096  # tags that are encoded together


class CommonWord(NamedTuple):
    """The common tag nearest to a tag."""

    vector: np.ndarray
    """The tag's own vector, of its spelling that is nearest to a common tag."""
    is_known: bool
    """Whether the tag is near a common tag."""
    is_name: bool
    """Whether the tag is rather the name of a person."""
    translation: str | None
    """The common tag, if it means the same."""


class CommonWords:
    """Finds the nearest common tag of tags in any language that the encoder knows.

    Parameters
    ----------
    encoder : SentenceEncoder
    """

    def __init__(self, encoder: SentenceEncoder):
        self.encoder = encoder
        self._words = common_tags()
        self._vectors = encoder(self._words)
        cosines = encoder(made_up_words()) @ self._vectors.T
        self._floors = np.quantile(cosines, _NO_WORD, axis=0) + _NEARER
        self._names = encoder(first_names())

    def __call__(self, tags: Sequence[str]) -> Iterator[CommonWord]:
        """Yield the nearest common tag of each tag."""
        for start in range(0, len(tags), _BLOCK):
            forms = [_spellings(tag) for tag in tags[start : start + _BLOCK]]
            vectors = self.encoder([form for spellings in forms for form in spellings])
            cosines = vectors @ self._vectors.T
            starts = np.cumsum([0, *map(len, forms)])
            for spellings, first in zip(forms, starts, strict=False):
                rows = slice(first, first + len(spellings))
                near = np.where(cosines[rows] >= self._floors, cosines[rows], 0)
                form, word = np.unravel_index(near.argmax(), near.shape)
                cosine = near[form, word]
                yield CommonWord(
                    vectors[rows][form],
                    bool(cosine) and any(map(str.isalpha, spellings[0])),
                    self._is_name(vectors[first], cosines[first]),
                    self._words[word] if cosine >= _SAME else None,
                )

    def _is_name(self, vector: np.ndarray, cosines: np.ndarray) -> bool:
        nearest = np.sort(self._names @ vector)[-_NAMES:]
        return bool(nearest.mean() >= max(_NAME, cosines.max() + _RATHER_NAME))


def _spellings(tag: str) -> list[str]:
    """Return the tag, also in lower case and capitalised, because the encoder minds case."""
    text = tag.replace("_", " ").strip()
    return list(dict.fromkeys((text, text.lower(), text.capitalize())))
