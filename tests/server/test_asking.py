"""Which question comes next, against plain counts."""

import numpy as np
import pytest

from tagkin.errors import InvalidInput
from tagkin.server.asking import PAGE, best_page, expect_right, expected_actions


def test_a_sure_page_takes_one_key():
    np.testing.assert_allclose(expected_actions(np.ones(60)), 1)
    np.testing.assert_allclose(expected_actions(np.zeros(60)), 1)


def test_wrong_marks_are_clicked():
    assert expected_actions(np.full(20, 0.9))[-1] == pytest.approx(1 + 2)
    assert expected_actions(np.full(20, 0.1))[-1] == pytest.approx(1 + 2)
    assert expected_actions(np.r_[np.full(20, 0.9), np.full(20, 0.1)])[-1] == pytest.approx(1 + 4)


def test_actions_are_those_of_many_pages():
    rng = np.random.default_rng(0)
    p = -np.sort(-rng.random(30))
    wrong = (rng.random((20_000, 30)) < p) != (p >= 0.5)
    np.testing.assert_allclose(expected_actions(p)[-1], 1 + wrong.sum(axis=1).mean(), rtol=0.02)


def test_a_page_is_cut_where_it_stops_paying():
    p = np.r_[np.full(20, 0.99), np.full(100, 0.3)]
    page = best_page(p)
    np.testing.assert_array_equal(page.shown, np.arange(20))
    assert page.expected_right == pytest.approx(20 * 0.99)
    assert page.expected_actions == pytest.approx(1 + 0.2)


def test_a_page_fits_a_screen():
    assert len(best_page(np.full(1000, 0.95)).shown) == PAGE


def test_surer_labels_come_first():
    assert best_page(np.full(60, 0.9)).value > best_page(np.full(60, 0.6)).value
    assert best_page(np.full(60, 0.9)).value > best_page(np.full(20, 0.9)).value


def test_to_learn_the_unsure_are_asked():
    p = np.r_[np.full(50, 0.99), np.full(20, 0.5), np.full(50, 0.01)]
    page = best_page(p, "learn-most")
    np.testing.assert_array_equal(page.shown, np.arange(50, 70))
    assert page.value > best_page(p, "learn-most", n_decided=100).value
    assert page.value > best_page(np.full(100, 0.99), "learn-most").value


def test_nothing_to_ask():
    assert best_page(np.zeros(0)) is None
    with pytest.raises(InvalidInput, match="most-right, learn-most; found 'best'"):
        best_page(np.ones(3), "best")


def test_the_next_answers_are_those_of_the_best_pages():
    p = [np.full(30, 0.9), np.full(100, 0.2)]
    assert expect_right(p, 30) == pytest.approx(27)
    assert expect_right(p, 10) == pytest.approx(9)
    assert expect_right(p, 50) == pytest.approx(27 + 4)
    assert expect_right(p, 10**6) == pytest.approx(27 + 20)
    assert expect_right([], 5) == 0
