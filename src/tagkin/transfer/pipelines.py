"""`suggest` and `explain` for a pipeline, of which scikit-learn passes only its own methods on."""

from __future__ import annotations

from typing import Any

from tagkin.arrays import Array
from tagkin.arrays.pipelines import is_pipeline
from tagkin.errors import InvalidInput
from tagkin.transfer.base import Suggestion
from tagkin.transfer.evidence import Evidence

__all__ = ["explain", "suggest"]


def suggest(
    estimator: Any, X: Array, n_best: int | None = None, **wanted: Any
) -> list[list[Suggestion]]:
    """The best labels of each image, by a fitted method or a pipeline that ends in one.

    Parameters
    ----------
    estimator : a method of `tagkin.transfer`, or a scikit-learn `Pipeline` of transformers and one
    X : array of shape (n, d)
        What the estimator was fitted on: of a pipeline, features.
    n_best, threshold, min_score
        As `LabelTransfer.suggest` takes them.

    Examples
    --------
    >>> import numpy as np
    >>> import tagkin
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.random((60, 3)) < 0.4
    >>> X = Y @ rng.random((3, 8))
    >>> pipeline = make_pipeline(tagkin.SemanticSpace(), tagkin.NeighborVoting(5)).fit(X, Y)
    >>> suggestions = tagkin.suggest(pipeline, X[:2], n_best=1)
    >>> evidence = tagkin.explain(pipeline, X[:2], suggestions)
    """
    method, embeddings = _split(estimator, X, "suggest")
    found: list[list[Suggestion]] = method.suggest(embeddings, n_best, **wanted)
    return found


def explain(estimator: Any, X: Array, labels: Any) -> list[list[Evidence]]:
    """Which neighbours support each label, by a fitted method or a pipeline that ends in one.

    Parameters
    ----------
    estimator, X
        As `suggest` takes them. The method is one with neighbours.
    labels
        As `NeighborTransfer.explain` takes them, such as what `suggest` returned.
    """
    method, embeddings = _split(estimator, X, "explain")
    found: list[list[Evidence]] = method.explain(embeddings, labels)
    return found


def _split(estimator: Any, X: Array, use: str) -> tuple[Any, Array]:
    """The method that an estimator is or ends in, and X as it takes it."""
    several = is_pipeline(estimator)
    method = estimator[-1] if several else estimator
    if not hasattr(method, use):
        raise InvalidInput(
            f"{type(method).__name__} has no {use}. Pass a method of tagkin.transfer"
            f"{' with neighbours' if use == 'explain' else ''}, or a pipeline that ends in one."
        )
    if several and len(estimator) > 1:
        X = estimator[:-1].transform(X)
    return method, X
