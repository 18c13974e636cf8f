"""Vectors of names, centred on the names of a collection."""

import numpy as np

from tagkin.tag_meanings import Meanings


def vectors(n, m=6, seed=0):
    V = np.random.default_rng(seed).normal(size=(n, m)).astype(np.float32) + 2
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def test_names_are_centred_on_their_mean():
    """As if eight names of mean zero were among them, so few names move little."""
    V = vectors(20)
    table = Meanings(V, np.zeros(20, dtype=bool)).table()
    center = V.sum(axis=0) / 28
    moved = V - center
    expected = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    np.testing.assert_allclose(table.rows, expected, rtol=1e-5)
    single = Meanings(V[:1], np.zeros(1, dtype=bool)).table()
    np.testing.assert_allclose(single.rows, V[:1], rtol=1e-5)  # a single name keeps its direction


def test_names_without_a_meaning_score_nothing_and_move_no_mean():
    V = vectors(10)
    is_unknown = np.arange(10) >= 8
    table = Meanings(V, is_unknown).table()
    assert not table.rows[8:].any()
    np.testing.assert_allclose(table.center, V[:8].sum(axis=0) / 16, rtol=1e-6)


def test_later_names_take_the_first_center():
    V, off = vectors(12), np.zeros(12, dtype=bool)
    whole = Meanings(V[:9], off[:9]).table()
    later = Meanings(V[9:], off[9:]).table(whole.center)
    both = Meanings(V, off).table(whole.center)
    np.testing.assert_allclose(both.rows, np.concatenate([whole.rows, later.rows]))
    np.testing.assert_allclose(both.some(np.array([10])).rows, later.rows[1:2])


def test_names_of_a_joint_encoder_stay_as_they_are():
    V = vectors(5)
    table = Meanings(V, np.zeros(5, dtype=bool), is_centered=False).table()
    np.testing.assert_allclose(table.rows, V, rtol=1e-5)
