"""Whether rejected suggestions make the next ones better.

    python -m experiments.rejections            # 6 CPU minutes

Photographs of COCO with noisy tags (nouns of one caption; many are missing) are learned from. A
person who knows the expert labels reviews the surest suggestions for these photographs, in the
order of their confidence, until 500 of them were rejected; those that are right are accepted. The
next fit learns from the accepted tags alone, or from the rejected ones as well. Both are measured
on photographs that nobody has seen, by the expert labels of the 56 tags that are also labels. The
interval (95 %) is a paired bootstrap over these photographs.

How much a rejection counts (twice as much as an unsaid tag) was lowered after five times had come
out worse on the same photographs, so that this is no independent test of it.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import scipy.sparse

from experiments.bootstrap import compare, resample_weights, weighted_map
from experiments.standins import load_coco
from tagkin import FeatureAnnotator
from tagkin.evaluation import mean_average_precision

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("TAGKIN_DATA", ROOT.parent / "shared" / "data"))
N_KNOWN, N_NEW, N_REJECTED, RESAMPLES = 6000, 10_000, 500, 500


def main() -> None:
    """Measure, print, and write docs/results/rejections.csv."""
    data = load_coco(DATA)
    assert data.tagged is not None
    rng = np.random.default_rng(0)
    known = rng.choice(np.intersect1d(data.tagged, data.train), N_KNOWN, replace=False)
    new = rng.choice(data.test, N_NEW, replace=False)
    both = [name for name in data.tag_names if name in data.label_names]
    columns = np.array([data.tag_names.index(name) for name in both])
    experts = scipy.sparse.csr_array(data.labels)[:, [data.label_names.index(n) for n in both]]
    X, truth = data.features, experts[known].toarray() > 0
    Y = scipy.sparse.csr_array(data.tags)[known][:, columns].toarray() > 0
    P = _fitted(X[known], Y).predict_proba(X[known])
    P[Y] = -1
    accepted, rejected = Y.copy(), np.zeros_like(Y)
    n_reviewed = 0
    for i, t in zip(*np.unravel_index(np.argsort(-P, axis=None), P.shape), strict=True):
        (accepted if truth[i, t] else rejected)[i, t] = True
        n_reviewed += 1
        if rejected.sum() == N_REJECTED:
            break
    lines = [["learned from", "MAP", "gain", "low", "high"]]
    weights, values, resampled = resample_weights(N_NEW, RESAMPLES, 0), [], []
    for name, labels, refused in (
        ("the tags that were there", Y, None),
        ("and those accepted", accepted, None),
        ("and those rejected", accepted, rejected),
    ):
        scores = _fitted(X[known], labels, refused).predict_proba(X[new])
        values.append(mean_average_precision(experts[new], scores))
        resampled.append(weighted_map(experts[new], scores, weights))
        cells = [""] * 3
        if len(values) > 1:
            gain = compare(resampled[-1], resampled[-2], values[-1], values[-2])
            cells = [f"{100 * part:+.2f}" for part in (gain.value, gain.low, gain.high)]
        lines.append([name, f"{100 * values[-1]:.2f}", *cells])
        print(*lines[-1], flush=True)
    print(f"{n_reviewed} suggestions were reviewed, {N_REJECTED} of them rejected.")
    with (ROOT / "docs" / "results" / "rejections.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def _fitted(X: np.ndarray, Y: np.ndarray, rejected: np.ndarray | None = None) -> FeatureAnnotator:
    annotator = FeatureAnnotator(denoise=False)
    labels = scipy.sparse.csr_array(Y.astype(np.float32))
    refused = None if rejected is None else scipy.sparse.csr_array(rejected.astype(np.float32))
    return annotator.fit(X, labels, groups=np.arange(len(X)), rejected=refused)


if __name__ == "__main__":
    main()
