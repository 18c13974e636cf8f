"""Which meaning photographs bear out, against Bayes' rule in plain loops."""

import numpy as np
import pytest
import scipy.sparse

from tagkin import memory_budget
from tagkin.tag_meanings import Meanings
from tagkin.tag_meanings.meanings import OWN, UNKNOWN


def scores(X, rows):
    return np.log(X @ rows.toarray().T)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.dirichlet([0.3] * 4, size=30) * 0.99 + 0.0025
    rows = scipy.sparse.csr_array(np.eye(4)[[0, 1, 2, 3, 0]])
    meanings = Meanings(
        rows,
        np.array([0, 0, 1, 2, 2]),
        np.array([0.8, 0.2, 1.0, 0.5, 0.5]),
        np.array([1.0, 2.0, 1.0, 3.0, 4.0]),
        np.array([OWN, OWN, OWN, UNKNOWN], dtype=np.int8),
    )
    Y = np.zeros((30, 4))
    Y[np.argsort(-X[:, 1])[:4], 0] = 1  # what the first tag's second meaning shows
    Y[:5, 1] = 1
    return X, meanings, scipy.sparse.csr_array(Y)


def test_meanings_are_weighed_by_the_photographs_that_carry_the_tag(problem):
    X, meanings, Y = problem
    expected = []
    for tag, row, weight in zip(
        meanings.tags, meanings.rows.toarray(), meanings.weights, strict=True
    ):
        lift = X @ row / (X @ row).mean()
        for i in np.flatnonzero(Y[:, [tag]].toarray()):
            weight *= 0.8 * lift[i] + 0.2
        expected.append(weight)
    for pair in ([0, 1], [2], [3, 4]):
        total = sum(expected[k] for k in pair)
        for k in pair:
            expected[k] /= total
    found = meanings.learned(scores, X, Y)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found[1] > 0.9
    with memory_budget(1000):
        np.testing.assert_allclose(meanings.learned(scores, X, Y), expected, rtol=1e-6)


def test_many_photographs_count_as_five(problem):
    X, meanings, Y = problem
    more = scipy.sparse.vstack([Y] * 10, format="csr")  # the same photographs again and again
    found = meanings.learned(scores, np.tile(X, (10, 1)), more)
    lifts = [X @ row / (X @ row).mean() for row in meanings.rows.toarray()[:2]]
    there = np.flatnonzero(Y[:, [0]].toarray())
    logs = [5 * np.log(0.8 * lift[there] + 0.2).mean() for lift in lifts]
    odds = np.exp(logs[1] - logs[0]) * 0.2 / 0.8
    assert found[1] == pytest.approx(odds / (1 + odds))


def test_a_table_is_the_weighted_mean_of_the_meanings(problem):
    _, meanings, _ = problem
    table = meanings.table()
    expected = [[0.8, 0.2, 0, 0], [0, 0, 1, 0], [0.5, 0, 0, 0.5], [0, 0, 0, 0]]
    np.testing.assert_allclose(table.rows.toarray(), expected)
    np.testing.assert_allclose(table.breadths, [0.8 + 0.4, 1, 3.5, 1])
