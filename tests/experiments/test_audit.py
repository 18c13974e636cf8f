"""Errors that are injected for the experiment on audits, and how findings are counted."""

import numpy as np
import pytest
from scipy.stats import binomtest

from experiments.audit import Judged, data, injected, named
from experiments.audit_small import wilson
from experiments.problem import is_available


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_as_many_errors_are_injected_as_is_said(share):
    rng = np.random.default_rng(0)
    truth = rng.random((2000, 6)) < [0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
    n = round(share * truth.sum())
    wrong, missing = (injected(truth, kind, share) for kind in ("wrong", "missing"))
    assert (wrong & ~truth).sum() == (truth & ~missing).sum() == n
    assert not (truth & ~wrong).any()
    assert not (missing & ~truth).any()
    # wrong ones fall on labels as often as these are there and leave room
    expected = truth.sum(axis=0) * (~truth).sum(axis=0)
    n_wrong = (wrong & ~truth).sum(axis=0)
    np.testing.assert_allclose(n_wrong / n, expected / expected.sum(), atol=0.1)


def test_errors_that_no_finding_names_count_as_never_found():
    holds = np.array([True, False, True])
    judged = Judged(np.array([0.9, 0.8, 0.3]), holds, np.ones(3, bool), np.arange(3), 4)
    # precision 1 at the first and 2/3 at the second, of four
    assert judged.precision() == pytest.approx(100 * (1 + 2 / 3) / 4)
    n, expected, held, others, named = judged.at(0.8)
    assert (n, held, others, named) == (2, 0.5, 1, 1.0)
    assert expected == pytest.approx(0.85)
    empty = np.array([], bool)
    nothing = Judged(np.array([]), empty, empty, np.array([], int), 0)
    assert np.isnan(nothing.precision())
    assert nothing.at(0.8).n == nothing.at(0.8).n_others == 0


def test_draws_of_errors_count_together():
    holds = np.array([True, False])
    first = Judged(np.array([0.9, 0.82]), holds, np.array([True, True]), np.array([5, 7]), 3)
    other = Judged(
        np.array([0.85, 0.4]), ~holds[:1].repeat(2), ~holds[:1].repeat(2), np.array([7, 8]), 2
    )
    n, expected, held, others, named = Judged.together([first, other]).at(0.8)
    assert (n, held, others, named) == (3, 1 / 3, 1, 2 / 3)
    assert expected == pytest.approx(np.mean([0.9, 0.82, 0.85]))
    assert Judged.together([first, other]).n_errors == 5


@pytest.mark.skipif(not is_available("flickr8k"), reason="Flickr8k is not in the data folder")
def test_labels_were_named_by_somebody():
    _, labels = data("flickr8k")
    by_somebody = named("flickr8k")
    assert not (labels & ~by_somebody).any()
    assert (by_somebody & ~labels).sum() > labels.sum() / 2  # what one of five saw


@pytest.mark.parametrize(("held", "n"), [(0, 3), (8, 10), (50, 50)])
def test_intervals_are_wilsons(held, n):
    expected = binomtest(held, n).proportion_ci(method="wilson")
    assert wilson(held / n, n) == pytest.approx(tuple(expected), abs=1e-4)


def test_where_nothing_is_found_a_share_can_be_anything():
    assert wilson(float("nan"), 0) == (0, 1)
