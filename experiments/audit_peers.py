"""Audits beside cleanlab's, which judges the same labels in an environment of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score
from sklearn.model_selection import KFold, cross_val_predict

from benchmarks.process import environment_for, run_python
from experiments.bootstrap import Ranking, compare, resample_weights
from tagkin import FeatureAnnotator

__all__ = ["KINDS_OF_PROBABILITIES", "Peer", "beside_cleanlab", "precisions"]

KINDS_OF_PROBABILITIES = {
    "predicted": "cleanlab with tagkin's",
    "logistic": "cleanlab with logistic",
    "audited": "cleanlab with the audit's",
}
N_RESAMPLES = 200
N_ENTRIES = 2**24  # weights of pairs at a time
SEED = 0


class Peer(NamedTuple):
    """Average precision of a peer, in percent, and by how much ours is above it (95 %)."""

    precision: float
    low: float
    high: float


def beside_cleanlab(
    X: np.ndarray, Y: np.ndarray, asked: np.ndarray, errors: np.ndarray, ours: Path, folder: Path
) -> dict[str, Peer]:
    """What cleanlab finds by the best of its scores, with each kind of probabilities.

    "predicted" are what `FeatureAnnotator.predict_proba` says of images that it has not seen, and
    "logistic" those of a logistic regression. "audited" are the audit's own, in which the other
    labels of the image count. Intervals are of a paired bootstrap over images.

    Parameters
    ----------
    X : array of shape (N, d)
        Features.
    Y : bool array of shape (N, D)
        Labels with errors.
    asked, errors : bool arrays of shape (N, D)
        Pairs of an image and a label that may be errors, and those that are.
    ours : path
        Stored findings of the annotator.
    folder : path
        Where answers are kept.
    """
    with np.load(ours) as found:
        audited = found["held_out"]
        doubt = np.full(Y.size, -np.inf)
        doubt[found["pair"]] = found["confidence"]
    images = np.nonzero(asked)[0]
    weights = resample_weights(len(Y), N_RESAMPLES, SEED)
    our = precisions(doubt.reshape(Y.shape)[asked], errors[asked], images, weights)
    peers = {}
    for which in KINDS_OF_PROBABILITIES:
        path = folder / f"{ours.stem}-{which}.npz"
        if not path.exists():
            given = {"X": X} if which == "logistic" else {"P": audited}
            if which == "predicted":
                given = {"P": predicted(X, Y)}
            _judge(path, Y, given)
        with np.load(path) as answers:
            scores = [-answers[score][asked] for score in answers.files if score != "P"]
        named = max(scores, key=lambda one: float(average_precision_score(errors[asked], one)))
        best = precisions(named, errors[asked], images, weights)
        gain = compare(our[1:], best[1:], our[0], best[0])
        peers[which] = Peer(*(100 * float(x) for x in (best[0], gain.low, gain.high)))
    return peers


def predicted(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Probabilities (N×D) of labels, each image's by an annotator that has not seen it."""
    annotator = FeatureAnnotator(random_state=SEED)
    folds = KFold(3, shuffle=True, random_state=SEED)
    P: np.ndarray = cross_val_predict(annotator, X, Y, cv=folds, method="predict_proba")
    return P


def _judge(path: Path, Y: np.ndarray, given: dict[str, np.ndarray]) -> None:
    """Have cleanlab judge the labels, by probabilities P or features X, and keep its answer."""
    given = {k: np.clip(v, 1e-7, 1 - 1e-7) if k == "P" else v for k, v in given.items()}
    source, target = path.with_suffix(".in.npz"), path.with_suffix(".out.npz")
    stored: dict[str, Any] = {"Y": Y, **given}
    np.savez(source, **stored)
    script = Path("benchmarks") / "peers" / "run_cleanlab.py"
    python = environment_for("cleanlab")
    run_python(script, source.resolve(), target.resolve(), python=python, threads=1)
    source.unlink()
    target.rename(path)


def precisions(
    doubt: np.ndarray, errors: np.ndarray, images: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Average precision of m pairs by how doubtful they are, and in every resample of images.

    Parameters
    ----------
    doubt, errors : arrays of shape (m,)
    images : int array of shape (m,)
        The image of each pair.
    weights : array of shape (r, N)
        How often each image is in each resample.

    Returns
    -------
    precisions : float64 array of shape (1 + r,)
    """
    ranking = Ranking.of(doubt, errors)
    all_once = np.ones((1, weights.shape[1]), weights.dtype)
    most = int((weights @ np.bincount(images, minlength=weights.shape[1])).max())
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, max(most, len(images)) + 1))])
    rows = max(1, N_ENTRIES // len(images))
    drawn = [weights[k : k + rows] for k in range(0, len(weights), rows)]
    return np.concatenate(
        [ranking.average_precision(part[:, images], harmonic) for part in (all_once, *drawn)]
    )
