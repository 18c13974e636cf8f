"""Score photographs for words that somebody searches for."""

from __future__ import annotations

import numpy as np

from tagkin.errors import InvalidInput
from tagkin.tag_meanings.prior import TextPrior

__all__ = ["measure_fit", "score_words"]

_BACKGROUND = 2.0  # robust standard deviations above the median, where chance ends
# The same for the best photograph, if the words fit any. In collections of 53, 100 and 600
# photographs, words that fit none, as "philosophy", reached 3.7, and words that fit at least 3.8.
_STANDS_OUT = 3.75


def score_words(prior: TextPrior, E: np.ndarray, words: str) -> np.ndarray:
    """Return cosines (n,) of words with photographs, embedded as E (n×m) by `embed_images`.

    Parameters
    ----------
    prior : TextPrior
        What knows words.
    E : array of shape (n, m)
        Photographs, embedded by `embed_images`.
    words : str
        Any words.
    """
    words = " ".join(words.split())
    if not words:
        raise InvalidInput("Search for at least one word.")
    return np.asarray(E, dtype=np.float32) @ prior.encoder([words])[0]


def measure_fit(scores: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return how well words fit n photographs relative to the best, and whether any stands out.

    Most photographs do not show what somebody searches for. Their scores are the background: the
    median and what is near it. The fit is 1 for the best photograph and 0 in the background.
    """
    if not len(scores):
        return np.zeros(0), False
    median, best = np.median(scores), scores.max()
    spread = 1.4826 * np.median(np.abs(scores - median))
    background = min(median + _BACKGROUND * spread, best)
    fit = np.clip((scores - background) / max(best - background, 1e-12), 0, 1)
    return fit, bool(best > median + _STANDS_OUT * spread)
