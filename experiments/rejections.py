"""Whether rejected suggestions make the next ones better.

    python -m experiments.rejections                # 8 CPU minutes
    python -m experiments.rejections --draw 1       # other photographs
    python -m experiments.rejections --development  # where choices were made

Photographs of COCO with noisy tags (nouns of one caption; three of four labels are missing) are
learned from. A person who knows the expert labels goes through the suggestions for these
photographs, the surest first, until 500 of them were rejected; those that are right are accepted.
The next fit learns from the accepted tags alone, or is told of the rejected ones as well.

Both are measured by the expert labels of the 56 tags that are also labels: on photographs that
nobody has seen, and on the next suggestions, which are the tags of the same photographs that are
still undecided. The interval (95 %) is a paired bootstrap over the photographs.

Choices (how much is taken to be forgotten, what a rejection counts for among the votes, the prior
of the offsets) were made with ``--development``: other photographs with tags, and new ones of the
training part.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from experiments.bootstrap import compare, resample_weights, weighted_map
from experiments.datasets import load_coco
from tagkin import FeatureAnnotator
from tagkin.annotator.suggesting import drop_itself
from tagkin.evaluation import average_precision

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("TAGKIN_DATA", ROOT.parent / "shared" / "data"))
N_KNOWN, N_NEW, N_REJECTED, N_NEXT, RESAMPLES = 6000, 10_000, 500, 1000, 500
N_DEVELOPMENT = 3
MEASURES = (
    ("new photographs", "MAP over tags"),
    ("new photographs", "MAP over photographs"),
    ("next suggestions", "MAP over tags"),
    ("next suggestions", "average precision of the list"),
    ("next suggestions", f"right among the next {N_NEXT:,}"),
)
ARMS = ("the tags that were there", "and those accepted", "and those rejected")


class Photographs(NamedTuple):
    """Features, noisy tags and expert labels (bool, n×56)."""

    features: np.ndarray
    tags: np.ndarray
    truth: np.ndarray


class Review(NamedTuple):
    """What a person decided on the surest suggestions (bool, n×56)."""

    accepted: np.ndarray
    rejected: np.ndarray


def main() -> None:
    """Measure, print, and write docs/results/rejections.csv."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", type=int, default=0, help="which photographs are drawn")
    parser.add_argument("--development", action="store_true", help="training photographs only")
    given = parser.parse_args()
    known, new = drawn(given.draw, given.development)
    first = scores_of(known, new, known.tags)
    review = reviewed(first[0], known)
    arms = [first]
    for rejected in (None, review.rejected):
        labels = known.tags | review.accepted
        arms.append(scores_of(known, new, labels, review.accepted, rejected))
    print(f"{review.accepted.sum()} accepted and {review.rejected.sum()} rejected.")
    lines = [["photographs", "measure", *ARMS, "gain", "low", "high"]]
    lines += table(arms, known, new, review)
    for line in lines:
        print(*line, sep=" | ", flush=True)
    if given.draw == 0 and not given.development:
        with (ROOT / "docs" / "results" / "rejections.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)


def drawn(draw: int, development: bool) -> tuple[Photographs, Photographs]:
    """Photographs to learn from, and new ones; those of development are in no other draw."""
    data = load_coco(DATA)
    assert data.tagged is not None
    rng = np.random.default_rng(0)
    tagged = np.intersect1d(data.tagged, data.train)
    known = rng.choice(tagged, N_KNOWN, replace=False)
    new = rng.choice(data.test, N_NEW, replace=False)
    others = np.setdiff1d(tagged, known)
    developed = [_development(i, others) for i in range(N_DEVELOPMENT)]
    if development:
        known = developed[draw]
        unseen = np.setdiff1d(data.train, data.tagged)
        new = np.random.default_rng(draw).choice(unseen, N_NEW, replace=False)
    elif draw:
        rng = np.random.default_rng(draw)
        known = rng.choice(np.setdiff1d(others, developed), N_KNOWN, replace=False)
        new = rng.choice(np.setdiff1d(data.test, new), N_NEW, replace=False)
    both = [name for name in data.tag_names if name in data.label_names]
    tags = scipy.sparse.csr_array(data.tags)[:, [data.tag_names.index(n) for n in both]]
    experts = scipy.sparse.csr_array(data.labels)[:, [data.label_names.index(n) for n in both]]

    def described(images: np.ndarray) -> Photographs:
        said, shown = (one[images].toarray() > 0 for one in (tags, experts))
        return Photographs(data.features[images], said, shown)

    return described(known), described(new)


def _development(number: int, photographs: np.ndarray) -> np.ndarray:
    return np.random.default_rng(101 + number).choice(photographs, N_KNOWN, replace=False)


def scores_of(
    known: Photographs,
    new: Photographs,
    labels: np.ndarray,
    accepted: np.ndarray | None = None,
    rejected: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Confidences for the photographs learned from, themselves no kin of theirs, and new ones."""
    annotator = FeatureAnnotator().fit(
        known.features,
        _sparse(labels),
        groups=np.arange(len(labels)),
        accepted=None if accepted is None else _sparse(accepted),
        rejected=None if rejected is None else _sparse(rejected),
    )
    itself = np.arange(len(labels))
    embeddings = annotator.space_.transform(known.features)
    model = annotator.model_
    others = drop_itself(model.method.kneighbors(embeddings), itself)
    components = model.components(known.features, None, embeddings, others)
    scores = model.calibrator.mix(components)
    own = model.probabilities(scores, np.ones(len(labels), dtype=bool))
    return own, annotator.predict_proba(new.features)


def reviewed(P: np.ndarray, known: Photographs) -> Review:
    """Decide on the surest suggestions (n×56), until enough of them were rejected."""
    open_ = np.where(known.tags, -1, P)
    accepted, rejected = np.zeros_like(known.tags), np.zeros_like(known.tags)
    for i, t in zip(*np.unravel_index(np.argsort(-open_, axis=None), P.shape), strict=True):
        (accepted if known.truth[i, t] else rejected)[i, t] = True
        if rejected.sum() == N_REJECTED:
            break
    return Review(accepted, rejected)


def table(
    arms: list[tuple[np.ndarray, np.ndarray]], known: Photographs, new: Photographs, review: Review
) -> list[list[str]]:
    """Every measure of every arm, and what the last gains over the one before."""
    decided = known.tags | review.accepted | review.rejected
    still_right = known.truth & ~decided
    found = []  # of each arm and each measure: the value, and the value in each resample
    for own, others in arms:
        left = np.where(decided, -1.0, own)
        found.append(
            [
                _map(new.truth, others),
                _image_map(new.truth, others),
                _map(still_right, left),
                _list_precision(still_right, left, decided),
                _share_right(still_right, left),
            ]
        )
    lines = []
    for number, names in enumerate(MEASURES):
        values = [arm[number][0] for arm in found]
        gain = compare(found[-1][number][1], found[-2][number][1], values[-1], values[-2])
        cells = [f"{100 * value:.2f}" for value in values]
        cells += [f"{100 * part:+.2f}" for part in (gain.value, gain.low, gain.high)]
        lines.append([*names, *cells])
    return lines


def _map(truth: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
    weights = resample_weights(len(truth), RESAMPLES, 0)
    value = float(np.nanmean(average_precision(_sparse(truth), scores)))
    return value, weighted_map(_sparse(truth), scores, weights)


def _image_map(truth: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean over the photographs of the average precision of their tags."""
    each = average_precision(_sparse(truth.T), np.ascontiguousarray(scores.T))
    some = ~np.isnan(each)
    weights = resample_weights(len(truth), RESAMPLES, 0)[:, some].astype(float)
    return float(each[some].mean()), weights @ each[some] / weights.sum(axis=1)


def _list_precision(
    truth: np.ndarray, scores: np.ndarray, decided: np.ndarray
) -> tuple[float, np.ndarray]:
    """Average precision of all undecided tags of all photographs, the surest first."""
    rows, columns = np.nonzero(~decided)
    right, listed = truth[rows, columns][:, None], scores[rows, columns][:, None]
    weights = resample_weights(len(truth), RESAMPLES, 0)
    value = float(average_precision(_sparse(right), listed)[0])
    return value, weighted_map(_sparse(right), listed, weights[:, rows])


def _share_right(truth: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Of the surest undecided tags the share that is right."""
    weights = resample_weights(len(truth), RESAMPLES, 0)
    order = np.argsort(-scores, axis=None, kind="stable")[: 4 * N_NEXT]
    rows, right = order // scores.shape[1], truth.ravel()[order]
    times = weights[:, rows].astype(float)  # drawn twice, a photograph has its tags twice
    taken = np.diff(np.minimum(np.cumsum(times, axis=1), N_NEXT), axis=1, prepend=0)
    return float(right[:N_NEXT].mean()), taken @ right / N_NEXT


def _sparse(values: np.ndarray) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(values.astype(np.float32))


if __name__ == "__main__":
    main()
