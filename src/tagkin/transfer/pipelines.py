"""`suggest` and `explain` for pipelines, which only forward scikit-learn's own methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tagkin.arrays import Array
from tagkin.arrays.checks import is_pipeline
from tagkin.errors import InvalidInput
from tagkin.transfer.evidence import Evidence, LabelLists, Suggestion

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from tagkin.transfer.label_transfer import LabelTransfer
    from tagkin.transfer.neighbor_transfer import NeighborTransfer

    Estimator: TypeAlias = LabelTransfer | Pipeline

__all__ = ["explain", "suggest"]


def suggest(
    estimator: Estimator,
    X: Array,
    n_best: int | None = None,
    *,
    threshold: float | Array | None = None,
    min_score: float | Array | None = None,
) -> list[list[Suggestion]]:
    """Suggest the best labels of each image with a fitted method or a pipeline.

    Parameters
    ----------
    estimator : a method of `tagkin.transfer`, or a scikit-learn `Pipeline` that ends in a method
    X : array of shape (n, d)
        Inputs of the estimator; features for a pipeline.
    n_best, threshold, min_score
        See `LabelTransfer.suggest`.

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
    return method.suggest(embeddings, n_best, threshold=threshold, min_score=min_score)


def explain(estimator: Estimator, X: Array, labels: LabelLists) -> list[list[Evidence]]:
    """Return the neighbours that support each label in a fitted method or a pipeline.

    Parameters
    ----------
    estimator, X
        As in `suggest`. The method must use neighbours.
    labels
        As in `NeighborTransfer.explain`, such as the result of `suggest`.

    Examples
    --------
    >>> import numpy as np
    >>> import tagkin
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.random((200, 3)) < 0.3
    >>> X = Y @ rng.normal(size=(3, 8)) + 0.1 * rng.normal(size=(200, 8))
    >>> pipeline = make_pipeline(tagkin.SemanticSpace(), tagkin.NeighborVoting(10)).fit(X, Y)
    >>> (evidence,) = tagkin.explain(pipeline, X[:1], [0])[0]
    >>> evidence.label, bool(Y[evidence.indices, 0].all())
    (0, True)
    """
    method, embeddings = _split(estimator, X, "explain")
    return method.explain(embeddings, labels)


def _split(estimator: Estimator, X: Array, use: str) -> tuple[NeighborTransfer, Array]:
    """Return the method in an estimator, and X transformed for it."""
    in_pipeline = is_pipeline(estimator)
    method = estimator[-1] if in_pipeline else estimator
    if not hasattr(method, use):
        raise InvalidInput(
            f"{type(method).__name__} has no {use}. Pass a method of tagkin.transfer"
            f"{' with neighbours' if use == 'explain' else ''}, or a pipeline that "
            "ends in a method."
        )
    if in_pipeline and len(estimator) > 1:
        X = estimator[:-1].transform(X)
    return method, X
