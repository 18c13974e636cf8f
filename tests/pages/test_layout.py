"""Layouts of photographs in the plane."""

import numpy as np
import pytest

from tagkin.errors import InvalidInput
from tagkin.pages import lay_out
from tagkin.pages.layout import leading_directions, place_others


def clusters(n_each=25, d=20, seed=0):
    rng = np.random.default_rng(seed)
    middles = 6 * rng.standard_normal((3, d))
    which = np.repeat(np.arange(3), n_each)
    return middles[which] + 0.3 * rng.standard_normal((3 * n_each, d)), which


def share_of_like_neighbours(positions, which):
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    return (which[distance.argmin(axis=1)] == which).mean()


def test_neighbours_stay_neighbours():
    X, which = clusters()
    positions = lay_out(X, random_state=0)
    assert positions.shape == (75, 2)
    assert share_of_like_neighbours(positions, which) == 1


def test_the_same_input_gives_the_same_places():
    X, _ = clusters()
    np.testing.assert_array_equal(lay_out(X, random_state=1), lay_out(X, random_state=1))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("d", [1, 2, 60])
def test_few_photographs_are_placed_too(n, d):
    positions = lay_out(np.random.default_rng(0).standard_normal((n, d)))
    assert positions.shape == (n, 2)
    assert np.isfinite(positions).all()


def test_photographs_that_are_all_the_same():
    for X in (np.ones((30, 4)), np.zeros((30, 4))):
        np.testing.assert_array_equal(lay_out(X), np.zeros((30, 2)))


def test_of_many_some_are_laid_out_and_the_rest_put_among_them():
    X, which = clusters(n_each=60)
    positions = lay_out(X, n_laid_out=60)
    assert positions.shape == (180, 2)
    assert share_of_like_neighbours(positions, which) == 1


def test_positions_among_others_against_a_loop():
    rng = np.random.default_rng(0)
    leading, few = rng.standard_normal((40, 5)), np.arange(0, 40, 3)
    laid = rng.standard_normal((len(few), 2))
    positions = place_others(leading, few, laid)
    for k, row in enumerate(leading):
        nearest = np.argsort([np.linalg.norm(row - leading[f]) for f in few])[:3]
        expected = laid[list(few).index(k)] if k in few else laid[nearest].mean(axis=0)
        np.testing.assert_allclose(positions[k], expected)


def test_only_directions_count():
    X, _ = clusters()
    longer = X * np.random.default_rng(1).integers(1, 5, (75, 1))
    np.testing.assert_allclose(
        leading_directions(longer, np.arange(75), 0),
        leading_directions(X, np.arange(75), 0),
        atol=1e-12,
    )


def test_distances_go_with_cosines():
    X, _ = clusters(d=8)
    leading = leading_directions(X, np.arange(75), 0)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    squares = ((leading[:, None] - leading[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares, 2 - 2 * unit @ unit.T, atol=1e-12)


def test_numbers_that_are_none_are_refused():
    with pytest.raises(InvalidInput, match="NaN or infinity"):
        lay_out([[0.0, np.nan]] * 6)
    with pytest.raises(InvalidInput, match="shape"):
        lay_out(np.zeros(6))
