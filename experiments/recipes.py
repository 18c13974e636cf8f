"""The annotator's recipe beside the paper's five methods and well-known baselines.

    python -m experiments recipes flickr8k         # 5 CPU minutes
    python -m experiments recipes coco             # 12 CPU minutes, 4,096 landmarks
    python -m experiments recipes coco-8192        # 20 CPU minutes, 8,192 landmarks
    python -m experiments recipes tags             # 15 CPU minutes, COCO's noisy tags
    python -m experiments recipes flickr8k-again coco-again      # other test images

What a fit chooses, it chooses on held-out training images: the annotator's
mixture by its own folds, the penalties of the logistic regressions on one part in five, penalty
and epochs of the MLP on one in ten. The paper's methods share a space with κ = 0.5, with usual
settings. MAP and MiAP are of the test images, in percent; intervals (95 %) and differences come
from one set of bootstrap resamples of these. CPU times but that of Flickr8k are estimates.

Scores are kept in build/results; what is there is not computed again. Tables are written to
docs/results/recipes-NAME.csv.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.neural_network import MLPClassifier

import tagkin
from experiments import made
from experiments.baselines import LogisticProbe
from experiments.bootstrap import interval, resample_weights, weighted_map
from experiments.datasets import load_coco, load_flickr8k
from experiments.problem import data_folder
from tagkin import FeatureAnnotator, LogisticReadout, SemanticSpace
from tagkin.annotator.recipe import usual_recipe
from tagkin.arrays import to_numpy
from tagkin.evaluation import evaluate, mean_average_precision
from tagkin.paper import LinearSVM, NeighborVoting, RidgeTransfer, TagProp, TagRelevance, TwoPassKNN

ROOT = Path(__file__).parent.parent
SCORES = ROOT / "build" / "results" / made.minor(tagkin.__version__) / "recipes"
BEST, RESAMPLES, EPOCHS = "annotator (kin and read-out)", 200, 12


class Problem(NamedTuple):
    """Images with labels to learn from, and others to be scored on."""

    X: np.ndarray
    Y: scipy.sparse.csr_array
    X_new: np.ndarray
    Y_new: scipy.sparse.csr_array
    scored: np.ndarray
    """Columns of Y that Y_new has."""
    n_landmarks: int


def problem(name: str) -> Problem:
    """The training and test images of a stand-in."""
    folder = data_folder()
    data = load_flickr8k(folder) if name.startswith("flickr8k") else load_coco(folder)
    Y, train, test = scipy.sparse.csr_array(data.labels), data.train, data.test
    if name.endswith("-again"):
        train, test = _exchanged(train, test)
    if name != "tags":
        many = name.startswith("flickr8k") or name.endswith("8192")
        return Problem(data.features[train], Y[train], data.features[test], Y[test],
                       np.arange(Y.shape[1]), 8192 if many else 4096)  # fmt: skip
    assert data.tagged is not None
    tagged, test = np.intersect1d(data.tagged, data.train), test[:10_000]
    both = [n for n in data.tag_names if n in data.label_names]
    columns = np.array([data.tag_names.index(n) for n in both])
    truth = Y[test][:, [data.label_names.index(n) for n in both]]
    tags = scipy.sparse.csr_array(data.tags)[tagged]
    return Problem(data.features[tagged], tags, data.features[test], truth, columns, 4096)


def _exchanged(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As many test images as before, drawn from the training images; the others to learn from."""
    drawn = np.random.default_rng(1).permutation(train)[: len(test)]
    return np.concatenate([np.setdiff1d(train, drawn), test]), np.sort(drawn)


def methods(p: Problem) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """Names, and functions that give scores of the test images for all labels."""
    spaces: dict[str, Any] = {}

    def space() -> Any:
        if not spaces:
            fitted = SemanticSpace(n_landmarks=p.n_landmarks).fit(p.X, p.Y)
            spaces.update(space=fitted, known=fitted.transform(p.X), new=fitted.transform(p.X_new))
        return spaces

    def in_space(method: Any) -> np.ndarray:
        there = space()
        return to_numpy(method.fit(there["known"], p.Y).decision_function(there["new"]))

    yield (
        "visual neighbours, NNvot",
        lambda: to_numpy(NeighborVoting(100).fit(p.X, p.Y).decision_function(p.X_new)),
    )
    paper: dict[str, Any] = {
        "NNvot": NeighborVoting(100),
        "TagRel": TagRelevance(100),
        "TagProp": TagProp(100, weights="distance", sigmoids=False),
        "2PKNN": TwoPassKNN(2),
        "SVM": LinearSVM(),
    }
    for name, method in paper.items():
        yield f"{name} in the space", partial(in_space, method)
    yield (
        "kernel ridge",
        lambda: to_numpy(
            RidgeTransfer.of_space(space()["space"]).decision_function(space()["new"])
        ),
    )
    logistic: list[Any] = [LogisticProbe(penalty) for penalty in (1e-4, 1e-3, 1e-2)]
    yield "logistic", partial(_chosen, p, logistic)
    kernel: list[Any] = [LogisticReadout(value, p.n_landmarks // 2) for value in (0.1, 0.5, 2.0)]
    yield "kernel logistic", partial(_chosen, p, kernel)
    yield "MLP (mean of 3)", partial(_perceptrons, p)
    yield BEST, partial(_annotated, p)


def _annotated(p: Problem) -> np.ndarray:
    space = usual_recipe(None, None, 0).space
    assert space is not None
    annotator = FeatureAnnotator(space.set_params(n_landmarks=p.n_landmarks))
    began = time.process_time()
    annotator.fit(p.X, p.Y, groups=np.arange(len(p.X)))
    print(f"  fitted in {time.process_time() - began:.0f} CPU-seconds", *annotator.describe()[-4:])
    return annotator.predict_proba(p.X_new)


def _chosen(p: Problem, candidates: list[Any]) -> np.ndarray:
    """Scores by the candidate that ranks a held-out fifth of at most 20,000 images best."""
    order = np.random.default_rng(0).permutation(len(p.X))[:20_000]
    held_out, known = np.split(order, [len(order) // 5])

    def ranked(candidate: Any) -> float:
        scores = candidate.fit(p.X[known], p.Y[known]).decision_function(p.X[held_out])
        return mean_average_precision(p.Y[held_out], scores)

    best = max(candidates, key=ranked).fit(p.X, p.Y)
    return to_numpy(best.decision_function(p.X_new))


def _perceptrons(p: Problem) -> np.ndarray:
    """Mean logit of three perceptrons with one hidden layer.

    Their penalty and the number of epochs rank a held-out tenth best.
    """
    X, X_new = p.X / p.X.std(), p.X_new / p.X.std()
    labels, order = p.Y.toarray().astype(int), np.random.default_rng(0).permutation(len(X))
    held_out, known = np.split(order, [len(order) // 10])
    tried = []
    for alpha in (1e-4, 1e-2, 1e-1):
        model = _perceptron(alpha, 0)
        for epoch in range(1, EPOCHS + 1):
            model.partial_fit(X[known], labels[known], classes=np.arange(labels.shape[1]))
            scores = _logits(model, X[held_out])
            tried.append((mean_average_precision(p.Y[held_out], scores), alpha, epoch))
    _, alpha, epochs = max(tried)
    total = np.zeros((len(X_new), labels.shape[1]))
    for seed in range(3):
        model = _perceptron(alpha, seed)
        for _ in range(epochs):
            model.partial_fit(X, labels, classes=np.arange(labels.shape[1]))
        total += _logits(model, X_new)
    return total


def _perceptron(alpha: float, seed: int) -> MLPClassifier:
    return MLPClassifier((1024,), alpha=alpha, batch_size=256, random_state=seed)


def _logits(model: MLPClassifier, X: np.ndarray) -> np.ndarray:
    P = np.clip(model.predict_proba(X), 1e-7, 1 - 1e-7)
    return np.asarray(np.log(P / (1 - P)))


def main(names: list[str]) -> None:
    """Measure, print and write the table of each problem."""
    for name in names:
        p, found = problem(name), {}
        rows: list[tuple[str, float, float]] = []
        weights = resample_weights(p.Y_new.shape[0], RESAMPLES, 0)
        for method, scores_of in methods(p):
            path = SCORES / name / f"{method.replace(' ', '-').replace(',', '')}.npy"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                began = time.process_time()
                np.save(path, np.asarray(scores_of(), dtype=np.float32)[:, p.scored])
                print(
                    f"{name}, {method}: {time.process_time() - began:.0f} CPU-seconds", flush=True
                )
            scores = np.load(path)
            measured = evaluate(p.Y_new, scores)
            found[method] = weighted_map(p.Y_new, scores, weights), measured["MAP"]
            rows.append((method, measured["MAP"], measured["MiAP"]))
        best, best_map = found[BEST]
        lines = [["method", "MAP", "low", "high", "MiAP", "annotator's gain", "low", "high"]]
        for method, value, miap in rows:
            low, high = interval(found[method][0], value)
            gain = best_map - value
            gains = interval(best - found[method][0], gain)
            numbers = [value, low, high, miap, gain, *gains]
            lines.append([method, *(f"{100 * number:.1f}" for number in numbers)])
        made.write_table(made.RESULTS / f"recipes-{name}.csv", lines[0], lines[1:])
        for line in lines:
            print(f"{line[0]:32}" + "".join(f"{cell:>18}" for cell in line[1:]))
