"""Score photographs for words that somebody searches for."""

from __future__ import annotations

import numpy as np

from tagkin.arrays import row_blocks
from tagkin.errors import InvalidInput
from tagkin.tag_meanings.meanings import OWN, UNKNOWN, NameTable
from tagkin.tag_meanings.prior import NamePrior, TextPrior

__all__ = ["ANY_WORDS", "score_words"]

_TIE = 1e-6
_SMALL = {"a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"}
ANY_WORDS = (
    "An encoder of photographs and texts, such as SigLIP 2, understands any words: get one of "
    "`tagkin models list`, and train with it as the --backbone."
)


def score_words(prior: NamePrior, X: np.ndarray, words: str) -> np.ndarray:
    """Return scores (n,) of photographs with features X (n×d), higher if the words fit better.

    A `TextPrior` takes the words unchanged. A `ClassPrior` takes all words as one name if that
    names a class. Otherwise it takes the words that name a class, or else classes near all words.
    """
    table = _look_up(prior, words)
    scores = np.empty(len(X))
    for rows in row_blocks(len(X), 16 * (len(table) + table.rows.shape[1])):
        block = np.asarray(X[rows], dtype=np.float32)
        # odds from a name alone have a ceiling, where scores decide
        odds = prior.log_odds(block, table) + _TIE * prior.scores(block, table.rows)
        scores[rows] = odds.mean(axis=1)
    return scores


def _look_up(prior: NamePrior, words: str) -> NameTable:
    words = " ".join(words.split())
    if not words:
        raise InvalidInput("Search for at least one word.")
    if isinstance(prior, TextPrior):
        return prior.meanings([words]).table()
    parts = [word for word in words.split() if word.lower() not in _SMALL] or [words]
    table = prior.meanings([words, *parts]).table()
    # a lexicon takes "dog on a sofa" for a kind of sofa, as it takes "stop sign" for a sign
    is_name = table.kinds[0] == OWN and table.breadths[0] != table.breadths[-1]
    own = 1 + np.flatnonzero(table.kinds[1:] == OWN)
    if len(own) and not is_name:
        return table.some(own)
    if table.kinds[0] == UNKNOWN:
        raise InvalidInput(f"The classes of the backbone say nothing about “{words}”. {ANY_WORDS}")
    return table.some(np.array([0]))
