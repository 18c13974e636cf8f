"""How much to denoise: the blend of `TagDenoiser` that ranks held-out tags best."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from tagkin import SemanticSpace
from tagkin.evaluation import mean_average_precision
from tagkin.paper import NeighborVoting, TagDenoiser

__all__ = ["BLENDS", "choose_blend"]

BLENDS = (0.0, 0.05, 0.15, 0.3, 0.5, 1.0)
N_IMAGES = 8000  # to choose with, at most


def choose_blend(X: np.ndarray, tags: Any, seed: int = 0, n_neighbors: int = 100) -> float:
    """Return the blend for images (N×d) and their noisy tags (N×D).

    A quarter of the tagged images is held out. For each blend, a space learns from the denoised
    tags of the others, which then vote with these tags. The truth is the raw tags held out.
    """
    tags, rng = scipy.sparse.csr_array(tags), np.random.default_rng(seed)
    rows = rng.permutation(X.shape[0])[:N_IMAGES]
    tagged = rows[np.diff(tags[rows].indptr) > 0]
    held_out = tagged[: len(tagged) // 4]
    known = np.setdiff1d(rows, held_out)
    scores = {}
    for blend in BLENDS:
        denoised = TagDenoiser(blend=blend).fit_transform(X[known], tags[known])
        space = SemanticSpace(n_landmarks=1024, random_state=seed).fit(X[known], denoised)
        votes = NeighborVoting(min(n_neighbors, len(known)), weighted=True)
        votes.fit(space.transform(X[known]), denoised)
        ranked = votes.decision_function(space.transform(X[held_out]))
        scores[blend] = mean_average_precision(tags[held_out], ranked)
    return max(scores, key=lambda blend: scores[blend])
