"""Judge labels with cleanlab, given held-out probabilities or those of a logistic regression.

``python run_cleanlab.py INPUT.npz OUTPUT.npz`` in an environment with
``cleanlab-requirements.txt``. INPUT holds ``Y`` (N×D, boolean), and ``P`` (N×D probabilities) or
``X`` (N×d features). OUTPUT gets the quality (N×D, lower is more doubtful) of every label, there or
not, by each of cleanlab's scores, and ``P``.
"""

import sys
from typing import Any

import numpy as np
from cleanlab.internal.multilabel_scorer import ClassLabelScorer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold

SCORERS = {
    "self_confidence": {},
    "normalized_margin": {},
    "self_confidence_adjusted": {"adjust_pred_probs": True},
}
PENALTIES = (0.003, 0.01, 0.03, 0.1)  # C; the best by held-out log-loss of some labels is taken


def logistic(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Probabilities (N×D) of images by regressions that had not seen them."""
    X = X / X.std()
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    known, new = folds[0]
    some = np.argsort(-Y.sum(axis=0))[:: max(1, Y.shape[1] // 10)]
    losses = [
        sum(log_loss(Y[new, t], fitted(X, Y, known, new, t, C), labels=[0, 1]) for t in some)
        for C in PENALTIES
    ]
    best = PENALTIES[int(np.argmin(losses))]
    P = np.empty(Y.shape)
    for known, new in folds:
        for t in range(Y.shape[1]):
            P[new, t] = fitted(X, Y, known, new, t, best)
    return P


def fitted(
    X: np.ndarray, Y: np.ndarray, known: np.ndarray, new: np.ndarray, t: int, C: float
) -> np.ndarray:
    """Probabilities of label t for the new images."""
    if not Y[known, t].any():
        return np.full(len(new), 0.5 / len(known))
    model = LogisticRegression(C=C, max_iter=200, tol=1e-3).fit(X[known], Y[known, t])
    return np.asarray(model.predict_proba(X[new])[:, 1])


def main(source: str, target: str) -> None:
    """Judge the labels of the first file and write the answer to the second."""
    with np.load(source) as data:
        Y = data["Y"]
        P = data["P"].astype(np.float64) if "P" in data else logistic(data["X"], Y)
    quality = {name: np.empty(Y.shape) for name in SCORERS}
    for t in range(Y.shape[1]):
        both = np.column_stack([1 - P[:, t], P[:, t]])
        for name, options in SCORERS.items():
            scorer = ClassLabelScorer.from_str(name.removesuffix("_adjusted"))
            quality[name][:, t] = scorer(Y[:, t].astype(int), both, **options)
    answer: dict[str, Any] = {"P": P, **quality}
    np.savez(target, **answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
