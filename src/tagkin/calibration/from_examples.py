"""Confidences from a few examples, where no image is known to lack a label."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.arrays import expit
from tagkin.calibration.calibration import Calibration, fit_cuts, tally_pairs
from tagkin.calibration.fitting import Calibrated, HeldOutScores
from tagkin.calibration.mixture import Mixture
from tagkin.calibration.unannotated import fit_unannotated_labels

__all__ = ["calibrate_from_examples"]


class Weights(NamedTuple):
    """How much each score counts."""

    readout: float
    """In units of its standard deviation over the images that are no examples."""
    occasion: float
    """Each of time, place and folder."""
    name: float
    """The log-odds that a label's name gives."""
    intercept: float


UNNAMED = Weights(readout=0.55, occasion=0.4, name=0.0, intercept=-2.8)
NAMED = Weights(readout=0.35, occasion=0.3, name=0.7, intercept=0.4)
"""Chosen on 18 draws each of five collections (4 words with 8 examples, of 500 photographs), a bit
below the logistic regressions of all others. From 50 % on, words with a name said .73 and .72 were
right (photos), .65 and .59 (Flickr8k), .64 and .78 (traveller), .58 and .57 (diver); without,
.55 and .86, .53 and .56, .69 and .74, .67 and .44."""


def calibrate_from_examples(
    scores: HeldOutScores,
    Y: scipy.sparse.csr_array,
    answers: tuple[scipy.sparse.csr_array, scipy.sparse.csr_array],
    name_bias: float | None = None,
) -> Calibrated:
    """Return the calibration to start with, if images without a label may have it.

    A few examples of a label say how it looks, and not how many images have it. But a person's
    words are absent from most images of most collections, so the read-out's logit r counts in units
    of its spread over all others,

        z = b + a (r − median r)/sd r + Σⱼ c oⱼ + w n,

    with scores o of occasions and the log-odds n of the label's name. The weights were learned on
    other collections (`UNNAMED`, `NAMED`); votes do not count. Answers move z by δₜ; see
    `fit_unannotated_labels`.

    Parameters
    ----------
    scores : HeldOutScores
        Logits of votes and read-out, of models for which images without a label lack it.
    Y : CSR array of shape (n, D)
        Examples.
    answers : pair of CSR arrays of shape (n, D)
        Labels that are right, and labels that are wrong, in answer to suggestions.
    name_bias : float, optional
        What makes the score of a name log-odds; None if nothing does, and names do not count.
    """
    n, n_labels = Y.shape
    zeros, is_named = np.zeros(n_labels), np.zeros(n_labels, bool)
    if scores.name is not None and name_bias is not None:
        is_named = np.ptp(scores.name, axis=0) > 0  # that of a name without a meaning is constant
    chosen = (np.where(is_named, *pair) for pair in zip(NAMED, UNNAMED, strict=True))
    readout, occasion, name, intercepts = chosen
    center, scale = _spread_of_others(scores.learned[1], scipy.sparse.csc_array(Y))
    weights = [zeros, readout / scale, *[occasion] * len(scores.occasions)]
    centers = [zeros, center, *[zeros] * len(scores.occasions)]
    if scores.name is not None:
        weights.append(name)
        centers.append(np.full(n_labels, -(name_bias or 0.0)))
    own = np.stack(weights, axis=1)
    common = np.median(own, axis=0), float(np.median(intercepts))
    mixture = Mixture(own, np.stack(centers, axis=1), intercepts, *common)
    log_odds = mixture(scores.all)
    if any(part.nnz for part in answers):
        moved = fit_unannotated_labels(expit(log_odds), *answers).offsets
        mixture = replace(mixture, intercepts=intercepts + moved)
        log_odds += moved.astype(np.float32)
    tally = tally_pairs(log_odds, Y, np.ones(n_labels), np.ones(n))
    tally = replace(tally, positives=tally.count * expit(tally.log_odds))
    return Calibrated(Calibration(0, mixture, 0.0, fit_cuts(tally, 0.0)), log_odds, zeros)


def _spread_of_others(
    logits: np.ndarray, examples: scipy.sparse.csc_array
) -> tuple[np.ndarray, np.ndarray]:
    """Return median and standard deviation (D,) of logits (n×D) of images that are no examples."""
    center, scale = np.empty((2, logits.shape[1]))
    for t in range(logits.shape[1]):
        own = examples.indices[examples.indptr[t] : examples.indptr[t + 1]]
        others = np.delete(logits[:, t], own).astype(np.float64)
        center[t], scale[t] = np.median(others), max(others.std(), 1e-3)
    return center, scale
