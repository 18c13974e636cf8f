"""Bursts: are figures and confidences those that photographs of new events get?

Without groups, the shots of one event are in several folds, and answer for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.problem import Problem
from tagkin import FeatureAnnotator, SemanticSpace
from tagkin.evaluation import mean_average_precision
from tagkin.transfer import TagProp

__all__ = ["burst_rows", "event_rows", "with_frames", "with_mates"]

WANTED = (0.8, 0.9)
JITTER = 0.05  # 1 − cosine between frames: a photograph saved again, or cropped by 5 %

Row = dict[str, Any]


def event_rows(
    seed: int = 0, n_events: int = 200, n_shots: int = 6, space: SemanticSpace | None = None
) -> list[Row]:
    """Events of near-identical shots whose tags have nothing to do with what they look like.

    With a `space` of one's own, no κ is searched for.
    """

    def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        event = np.repeat(np.arange(n_events), n_shots)
        looks = np.maximum(rng.normal(size=(n_events, 128)), 0)
        tags = rng.random((n_events, 20)) < 0.2
        return _jittered(looks[event], JITTER, rng), tags[event]

    rng = np.random.default_rng(seed)
    (X, Y), (new, truth) = drawn(rng), drawn(rng)
    rows = []
    for groups in (np.arange(len(X)), None):
        annotator = FeatureAnnotator(space)
        told = annotator.cross_validate(X, Y, groups=groups)
        annotator.fit(X, Y, groups=groups)
        found = _reached(annotator, new, truth)
        rows.append(
            {
                "collection": f"{n_events} events of {n_shots} shots",
                "groups": "found" if groups is None else "none",
                "cross-validated MAP": told.semantic["MAP"],
                "MAP of new events": mean_average_precision(
                    truth, annotator.decision_function(new)
                ),
                **found,
            }
        )
    return rows


def burst_rows(
    problem: Problem, seed: int = 0, n_known: int = 4000, space: SemanticSpace | None = None
) -> list[Row]:
    """Photographs with near-duplicates added, by TagProp and by the default method.

    With a `space` of one's own, no κ is searched for.
    """
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(problem.known))[:n_known]
    X, Y = problem.known[some], problem.Y[some].toarray()
    collections = {
        "as they are": (X, Y),
        "30 % with one mate": with_mates(X, Y, 0.3, rng),
        "three frames each": with_frames(X[: n_known // 3], Y[: n_known // 3], 3, rng),
    }
    rows = []
    tagprop = TagProp(n_neighbors=100, weights="distance", sigmoids=False)
    for method in (tagprop, None):  # its weights are learned from neighbours
        for name, (features, labels) in collections.items():
            for groups in (np.arange(len(features)), None):
                annotator = FeatureAnnotator(space, method)
                annotator.fit(features, labels, groups=groups)
                scores = annotator.decision_function(problem.new)
                rows.append(
                    {
                        "collection": name,
                        "method": "KinReadout" if method is None else type(method).__name__,
                        "groups": "found" if groups is None else "none",
                        "MAP": mean_average_precision(problem.truth, scores),
                        "λ": getattr(annotator.method_, "decay", None),
                        **_reached(annotator, problem.new, problem.truth.toarray() > 0),
                    }
                )
    return rows


def with_mates(
    X: np.ndarray, Y: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Images (N×d) and labels, with a near-duplicate of a share of them at the end."""
    mates = rng.permutation(len(X))[: round(share * len(X))]
    return np.concatenate([X, _jittered(X[mates], JITTER, rng)]), np.concatenate([Y, Y[mates]])


def with_frames(
    X: np.ndarray, Y: np.ndarray, n_frames: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """So many frames of each image."""
    frames = np.repeat(np.arange(len(X)), n_frames)
    return _jittered(X[frames], JITTER, rng), Y[frames]


def _jittered(X: np.ndarray, distance: float, rng: np.random.Generator) -> np.ndarray:
    """Images moved by noise so that two of one image are about this far apart, by cosine."""
    length = np.linalg.norm(X, axis=1, keepdims=True)
    noise = rng.normal(size=X.shape) * length * np.sqrt(distance / (1 - distance) / X.shape[1])
    return (X + noise).astype(np.float32)


def _reached(annotator: FeatureAnnotator, new: np.ndarray, truth: np.ndarray) -> Row:
    """Share of right suggestions where a precision was asked for, and their number."""
    scores = annotator.decision_function(new)
    row: Row = {}
    for wanted in WANTED:
        given = scores >= annotator.calibrator_.min_scores(wanted)
        row[f"asked {wanted}"] = float(truth[given].mean()) if given.any() else float("nan")
        row[f"suggestions at {wanted}"] = int(given.sum())
    return row
