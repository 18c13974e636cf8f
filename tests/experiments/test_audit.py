"""Errors that are injected for the experiment on audits, and how findings are counted."""

import numpy as np
import pytest

from experiments.audit import Judged, injected


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
    found = (wrong & ~truth).sum(axis=0)
    np.testing.assert_allclose(found / n, expected / expected.sum(), atol=0.1)


def test_errors_that_no_finding_names_count_as_never_found():
    found = Judged(np.array([0.9, 0.8, 0.3]), np.array([True, False, True]), 4)
    # precision 1 at the first and 2/3 at the second, of four
    assert found.precision() == pytest.approx(100 * (1 + 2 / 3) / 4)
    n, said, held = found.at(0.8)
    assert (n, held) == (2, 0.5)
    assert said == pytest.approx(0.85)
    assert np.isnan(Judged(np.array([]), np.array([], bool), 0).precision())
