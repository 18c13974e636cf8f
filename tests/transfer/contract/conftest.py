"""What the contract is tested on: each method, fitted to the collection, and its scores."""

import copy

import pytest

from tests.transfer.contract.methods import learned, learned_scores


@pytest.fixture
def fitted(method):
    """The method, fitted to the collection: a copy of its own."""
    return copy.deepcopy(learned(method))


@pytest.fixture
def scores(method):
    """Of the new images of the collection, by the method that was fitted to it."""
    return learned_scores(method)
