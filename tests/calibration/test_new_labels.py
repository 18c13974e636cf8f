"""Labels that come after a calibrator was fitted."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import isotonic_regression
from scipy.special import expit

from tagkin import load, save
from tagkin.calibration import (
    LabelCalibrator,
    expected_calibration_error,
    extend_calibration,
    fit_calibration,
)
from tagkin.calibration.cuts import PRECISIONS, joint_precision, new_label_precision
from tagkin.calibration.fitting import fit_new_labels
from tagkin.calibration.pooling import fit_link, summarize
from tagkin.errors import InvalidInput, StorageError
from tests.conftest import assert_same
from tests.hardening.crafting import rewrite


def test_labels_that_come_later_are_judged_as_the_others():
    rng = np.random.default_rng(0)
    S = rng.random((2000, 5))
    Y = rng.random((2000, 5)) < S**2
    first = fit_calibration(S, Y)
    before, bars = first.predict_proba(S), first.min_scores(0.6)
    calibrator = first.extend(7)
    assert (first.n_labels, calibrator.n_labels) == (5, 7)
    new = rng.random((4000, 7))
    P = calibrator.predict_proba(new)
    # exponentials of arrays of another width may round another way
    np.testing.assert_allclose(
        calibrator.predict_proba(np.pad(S, ((0, 0), (0, 2))))[:, :5], before, rtol=1e-12
    )
    # the late labels follow the same law, so the others' slopes serve them
    np.testing.assert_allclose(P[:, 5:], new[:, 5:] ** 2, atol=0.08)
    assert (np.diff(P[np.argsort(new[:, 6]), 6]) >= 0).all()
    cuts = calibrator.min_scores(0.6)
    np.testing.assert_array_equal(cuts[:5], bars)
    above = new[:, 6] >= cuts[6]
    assert (rng.random(above.sum()) < new[above, 6] ** 2).mean() > 0.6
    with pytest.raises(InvalidInput, match="7 were fitted"):
        calibrator.extend(3)


def test_new_labels_are_calibrated_by_held_out_scores_of_their_own():
    """Scores of new labels are half of what they would be: only the later images carry them."""
    rng = np.random.default_rng(0)
    S = rng.random((3000, 12)) ** 2
    Y = rng.random(S.shape) < S
    calibrator = fit_calibration(S[:, :8], Y[:, :8])
    halved = S[:, 8:] / 2
    blind = calibrator.extend(12)
    told = extend_calibration(calibrator, 12, halved[:1500], Y[:1500, 8:])
    later = np.hstack([S[1500:, :8], halved[1500:]])
    truth = Y[1500:]
    errors = [
        expected_calibration_error(truth[:, 8:], one.predict_proba(later)[:, 8:])
        for one in (blind, told)
    ]
    assert errors[0] > 0.1
    assert errors[1] < 0.03
    np.testing.assert_allclose(
        told.predict_proba(later)[:, :8], blind.predict_proba(later)[:, :8], rtol=1e-12
    )
    given = later >= told.min_scores(0.7)
    assert given[:, 8:].sum() > 200
    assert truth[:, 8:][given[:, 8:]].mean() == pytest.approx(0.7, abs=0.06)
    # by few images, new labels keep to what holds for the others
    few = extend_calibration(calibrator, 12, halved[:2], Y[:2, 8:])
    assert np.isfinite(few.predict_proba(later)).all()
    assert few.cut_scores.shape == few.cut_precision.shape
    with pytest.raises(InvalidInput, match="scores of 3 labels, but 4 are new"):
        extend_calibration(calibrator, 12, halved[:, :3], Y[:, 8:11])


def test_labels_that_come_later_have_a_link_of_their_own():
    """Log-odds of theirs: h(a g(s) + b), h by isotonic regression of what a g + b leaves."""
    rng = np.random.default_rng(0)
    S = rng.random((3000, 9))
    Y = rng.random(S.shape) < np.hstack([S[:, :4], S[:, 4:] ** 3])
    first, later = (fit_calibration(S[:, part], Y[:, part]) for part in (slice(4), slice(4, 7)))
    both = extend_calibration(first, 7, S[:, 4:7], Y[:, 4:7])
    np.testing.assert_allclose(
        both.predict_proba(S[:, :7])[:, :4], first.predict_proba(S[:, :4]), rtol=1e-12
    )
    np.testing.assert_array_equal(both.min_scores(0.6)[:4], first.min_scores(0.6))
    table = summarize(S[:, 4:7], scipy.sparse.csr_array(Y[:, 4:7]))
    link = later.link.scores, later.link.log_odds
    z = later.slopes[:, None] * np.interp(table.mean, *link)
    level = fit_link(replace(table, mean=z + later.intercepts[:, None]))
    P = later.predict_proba(S[:, 4:7])
    expected = expit(np.interp(np.log(P / (1 - P)), *level))
    np.testing.assert_allclose(both.predict_proba(S[:, :7])[:, 4:], expected, rtol=1e-9)
    inside = (expected > expected.min()) & (expected < expected.max())
    log_odds = both.log_odds(S[:, :7])[:, 4:]
    np.testing.assert_allclose(expit(log_odds[inside]), expected[inside], rtol=1e-5)
    # those that come after them are judged as they are, s³, and not as the first, s
    for last in (extend_calibration(both, 9, S[:, 7:], Y[:, 7:]), both.extend(9)):
        assert np.abs(last.predict_proba(S)[:, 7:] - S[:, 7:] ** 3).mean() < 0.03


def test_cuts_of_later_labels_are_judged_on_other_images():
    """Counted image by image: five parts by group, each suggested to by cuts of the others."""
    rng = np.random.default_rng(2)
    S = np.repeat(rng.random((150, 4)), 2, axis=0)  # two images of each group
    Y = np.repeat(rng.random((150, 4)) < 0.4 * S[::2], 2, axis=0)
    groups = np.repeat(np.arange(150), 2) + 7
    first = fit_calibration(S, Y)
    found = extend_calibration(first, 8, S, Y, groups)
    parts = np.random.default_rng(0).permutation(150)[groups - 7] % 5
    promised = joint_precision(found.cut_precision[4:], summarize(S, scipy.sparse.csr_array(Y)))
    counted = np.zeros((201, 2))
    for part in range(5):
        rest = parts != part
        table = summarize(S[rest], scipy.sparse.csr_array(Y[rest]))
        precision = fit_new_labels(table).precision
        for level in range(201):
            for label in range(4):
                reached = np.flatnonzero(precision[label] >= level / 200)
                if len(reached):
                    given = S[~rest, label] >= table.lowest[label, reached[-1]]
                    counted[level] += given.sum(), (given & Y[~rest, label]).sum()
    rough = (counted[:, 1] + 30 * promised) / (counted[:, 0] + 30)
    expected = isotonic_regression(rough, weights=counted[:, 0] + 30).x
    np.testing.assert_allclose(found.new_labels.joint_precision, expected, rtol=1e-9)


@pytest.mark.parametrize("wanted", [0.5, 0.8])
def test_later_labels_whose_cuts_promise_too_much_are_asked_for_more(wanted):
    joint = np.clip(PRECISIONS - 0.0425, 0, 1)  # what is asked for is missed by so much
    assert new_label_precision(wanted, joint) == pytest.approx(wanted + 0.05)
    assert new_label_precision(wanted, np.clip(PRECISIONS + 0.5, 0, 1)) == pytest.approx(
        wanted - 0.3
    )
    assert new_label_precision(wanted, np.zeros(201)) == pytest.approx(wanted + 0.1)
    assert new_label_precision(0.95, np.zeros(201)) == 1.0


def test_few_later_images_do_not_make_a_link():
    rng = np.random.default_rng(0)
    S = rng.random((2000, 5))
    Y = rng.random(S.shape) < S**2
    calibrator = fit_calibration(S[:, :4], Y[:, :4])
    few = np.zeros((2000, 1))
    few[np.argsort(-S[:, 4])[:9]] = 1
    assert extend_calibration(calibrator, 5, S[:, 4:], few).new_labels is None
    few[np.argsort(-S[:, 4])[9]] = 1
    assert extend_calibration(calibrator, 5, S[:, 4:], few).new_labels is not None


def test_a_stored_link_of_later_labels_is_whole(tmp_path):
    rng = np.random.default_rng(0)
    S = rng.random((500, 5))
    calibrator = LabelCalibrator().fit(S[:, :3], S[:, :3] > rng.random((500, 3)))
    calibration = extend_calibration(
        calibrator.calibration_, 5, S[:, 3:], S[:, 3:] > rng.random((500, 2))
    )
    calibrator.calibration_ = calibration
    folder = save(calibrator, tmp_path / "whole")
    assert_same(load(folder).predict_proba(S), calibration.predict_proba(S))

    def new_labels(document):
        return document["content"]["state"]["calibration_"]["state"]["new_labels"]["state"]

    rewrite(folder, lambda document: new_labels(document).update(n_before=6))
    with pytest.raises(StorageError, match="6 of 5 labels"):
        load(folder)
    rewrite(folder, lambda document: new_labels(document).pop("level"))
    with pytest.raises(StorageError, match="NewLabels cannot have the attributes"):
        load(folder)
    too_many = replace(calibration.new_labels, n_before=6)
    calibrator.calibration_ = replace(calibration, new_labels=too_many)
    with pytest.raises(InvalidInput, match=r"cannot be saved.*6 of 5 labels"):
        save(calibrator, tmp_path / "beyond")
