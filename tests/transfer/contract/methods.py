"""The methods of label transfer that keep the contract, each fitted once to the same collection."""

import functools

import pytest
from sklearn.base import BaseEstimator, clone

from tagkin.paper import LinearSVM, NeighborVoting, RidgeTransfer, TagProp, TagRelevance, TwoPassKNN
from tagkin.transfer import KinReadout, LogisticReadout
from tests.conftest import make_collection

NEIGHBOR_METHODS = {
    "voting": NeighborVoting(7),
    "voting of all": NeighborVoting(1000, metric="euclidean"),
    "relevance": TagRelevance(7),
    "tagprop": TagProp(7),
    "tagprop, any slope": TagProp(7, monotone=False),
    "tagprop, by distance": TagProp(7, weights="distance"),
    "tagprop, no sigmoids": TagProp(7, sigmoids=False),
    "kin and read-out": KinReadout(7),
    "2pknn": TwoPassKNN(),
    "2pknn of the authors": TwoPassKNN(3, 5.0, form="authors", metric="euclidean"),
}
METHODS = NEIGHBOR_METHODS | {
    "logistic read-out": LogisticReadout(),
    "ridge": RidgeTransfer(),
    "svm": LinearSVM(),
}
# methods that search for the nearest images
SEARCHED = ["voting", "relevance", "tagprop", "tagprop, by distance", "kin and read-out"]


def methods(*names: str) -> list[BaseEstimator]:
    """Return unfitted methods by name."""
    return [METHODS[name] for name in names]


each_method = pytest.mark.parametrize("method", list(METHODS.values()), ids=list(METHODS))
each_neighbor_method = pytest.mark.parametrize(
    "method", list(NEIGHBOR_METHODS.values()), ids=list(NEIGHBOR_METHODS)
)
each_searched_method = pytest.mark.parametrize("method", methods(*SEARCHED), ids=SEARCHED)


@functools.cache
def learned(method):
    """The method, fitted to the collection: to be looked at only."""
    X, Y, _ = make_collection()
    return clone(method).fit(X, Y)


@functools.cache
def learned_scores(method):
    """Of the new images of the collection, by the method that was fitted to it."""
    scores = learned(method).decision_function(make_collection().X_new)
    scores.flags.writeable = False
    return scores
