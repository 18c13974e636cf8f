"""Learning the map to words, against independent forms."""

import numpy as np
import scipy.linalg

from experiments.word_measures import measure_retrieval, names_map
from experiments.words import (
    Captioned,
    Settings,
    contrastive_gradient,
    learn,
    learn_cca,
    learn_ridge,
    split_words,
)

SMALL = Settings(n_dimensions=3, epochs=2, batch=50, rate=0.003)


def captioned(n=400, seed=0):
    """Photographs and captions that share three hidden numbers, with noise."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 3))
    mixing = np.random.default_rng(9)
    X = hidden @ mixing.normal(size=(3, 12)) + 0.3 * rng.normal(size=(n, 12))
    T = hidden @ mixing.normal(size=(3, 8)) + 0.3 * rng.normal(size=(n, 8))
    V = mixing.normal(size=(5, 8))
    words = rng.integers(-1, 5, size=(n, 2))
    parts = (part.astype(np.float32) for part in (X, T, V))
    X, T, V = parts
    return Captioned(X, T, np.arange(n), V, np.sort(words, axis=1)[:, ::-1])


def test_the_gradient_is_that_of_differences():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(2, 7, 4))
    P, Q = rng.normal(size=(2, 4, 4))
    scale = np.array(0.7)
    _, gradients = contrastive_gradient(X, T, P, Q, scale)
    for k, value in enumerate((P, Q, scale)):
        for position in np.ndindex(value.shape):
            around = []
            for step in (1e-6, -1e-6):
                moved = [part.copy() for part in (P, Q, scale)]
                moved[k][position] += step
                around.append(contrastive_gradient(X, T, *moved)[0])
            slope = (around[0] - around[1]) / 2e-6
            np.testing.assert_allclose(gradients[k][position], slope, rtol=1e-4, atol=1e-7)


def test_correlations_solve_the_generalised_eigenproblem():
    """Without words, against C Sₜ⁻¹ Cᵀ a = ρ² Sₓ a with the same ridges."""
    data = captioned()
    learned, correlations = learn_cca(data, Settings(n_dimensions=3, words=0.0))
    X, T = data.X - data.X.mean(axis=0), data.T - data.T.mean(axis=0)
    n = len(X)
    Sx, St, C = X.T @ X / n, T.T @ T / n, X.T @ T / n
    for S in (Sx, St):
        S[np.diag_indices(len(S))] += 0.3 * np.trace(S) / len(S)
    values = scipy.linalg.eigh(C @ np.linalg.solve(St, C.T), Sx, eigvals_only=True)[::-1]
    np.testing.assert_allclose(correlations**2, values[:3], rtol=1e-3)
    A = learned.image_map.astype(np.float64)
    np.testing.assert_allclose(A.T @ Sx @ A, np.eye(3), atol=1e-3)


def test_captions_find_their_photographs_and_the_loss_helps():
    known, new = captioned(600), captioned(200, seed=1)
    chance = 10 / 200
    first_ten = {}
    for name, learned in {
        "ridge": learn_ridge(known),
        "cca": learn(known, Settings(n_dimensions=3, epochs=0, words=0.0)),
        "both": learn(known, SMALL),
    }.items():
        ranks = measure_retrieval(learned, new)
        first_ten[name] = int(ranks["first ten"].removesuffix(" %")) / 100
        assert first_ten[name] > 8 * chance
    assert first_ten["both"] >= first_ten["cca"] - 0.05


def test_names_are_ranked_by_the_map():
    known, new = captioned(600), captioned(200, seed=1)
    learned = learn(known, SMALL)
    Y = np.zeros((200, 2), dtype=bool)
    scores = learned.embed_words(new.T)
    for k in range(2):
        Y[np.argsort(-scores[:, k])[:20], k] = True
    assert float(names_map(learned, new.X, Y, new.T[:2])) > 0


def test_words_of_captions_are_numbered_once():
    words = split_words(["A dog, a DOG and the cat", "nothing", ""], ["cat", "dog"])
    assert words[:, :3].tolist() == [[1, 0, -1], [-1, -1, -1], [-1, -1, -1]]


def test_some_photographs_keep_their_captions():
    data = captioned(6)
    twice = Captioned(data.X[:3], data.T, np.array([0, 0, 1, 1, 2, 2]), data.V, data.words)
    part = twice.some(np.array([2, 0]))
    np.testing.assert_array_equal(part.X, data.X[[2, 0]])
    np.testing.assert_array_equal(part.owners, [1, 1, 0, 0])
    np.testing.assert_array_equal(part.T, data.T[[0, 1, 4, 5]])
