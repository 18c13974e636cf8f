"""Vocabularies that ask for time or memory: nothing is as large as labels by labels."""

import numpy as np
import pytest
import scipy.sparse

from tagkin import FeatureAnnotator
from tagkin.annotator import part, problem
from tagkin.errors import InvalidInput
from tagkin.paper import NeighborVoting
from tests.hardening.limits import within


def on_two_images_each(n: int, n_labels: int) -> scipy.sparse.csr_array:
    first = np.arange(n_labels) % n
    second = (first + 1 + np.arange(n_labels) // n % (n - 1)) % n
    rows, columns = np.concatenate([first, second]), np.tile(np.arange(n_labels), 2)
    ones = np.ones(len(rows), dtype=np.float32)
    return scipy.sparse.csr_array((ones, (rows, columns)), shape=(n, n_labels))


def features(n: int) -> np.ndarray:
    return np.random.default_rng(0).random((n, 16), dtype=np.float32)


def test_a_hundred_thousand_labels_in_a_gigabyte(monkeypatch):
    """Labels by labels would be 74.5 GiB, twice as many bytes as numbers."""
    few = problem.Sizes(most_scored=512)  # with more it is the same, and takes longer
    monkeypatch.setattr(part, "SIZES", few)
    X, Y = features(12), on_two_images_each(12, 100_000)

    def work() -> None:
        annotator = FeatureAnnotator(method=NeighborVoting(5)).fit(X, Y)
        assert annotator.predict_proba(X[:3]).shape == (3, 100_000)

    within(10**9, work, cpu_seconds=60)


def test_two_images_that_share_five_thousand_labels(monkeypatch):
    """No array of the labels that are on one image by each other, either."""
    monkeypatch.setattr(part, "SIZES", problem.Sizes(most_scored=512))
    X, Y = features(20), np.zeros((20, 5000), dtype=np.float32)
    Y[[3, 7]] = Y[::2, 0] = Y[1::3, 1] = 1

    def work() -> None:
        learned = FeatureAnnotator(method=NeighborVoting(5)).fit(X, Y)
        assert learned.predict_proba(X).shape == Y.shape

    within(4 * 10**8, work, cpu_seconds=60)


def test_what_needs_scores_of_all_labels_says_so_before_the_work():
    Y = on_two_images_each(100_000, 100_000)
    with pytest.raises(InvalidInput, match="min_count"):
        part.check_memory(Y, memory=4 * 10**9)
