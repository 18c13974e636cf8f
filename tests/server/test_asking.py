"""Which question comes next, against plain counts."""

import numpy as np
import pytest

from tagkin.errors import InvalidInput
from tagkin.server.asking import PAGE, best_page, expected_actions


def test_a_sure_page_takes_one_key():
    np.testing.assert_allclose(expected_actions(np.ones(60)), 1)
    np.testing.assert_allclose(expected_actions(np.zeros(60)), 1)


def test_the_fewer_exceptions_are_clicked():
    assert expected_actions(np.full(20, 0.9))[-1] == pytest.approx(1 + 2)
    assert expected_actions(np.full(20, 0.1))[-1] == pytest.approx(1 + 2)


def test_a_run_of_wrong_ones_is_marked_by_two_actions():
    p = np.r_[np.ones(20), np.zeros(15)]
    assert expected_actions(p)[-1] == pytest.approx(1 + 2)


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
