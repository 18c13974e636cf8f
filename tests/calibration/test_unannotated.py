"""How often unsaid labels are right: against an optimiser, and where the answer is known."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit

from tagkin.calibration import fit_unannotated_labels
from tagkin.errors import InvalidInput


def decisions(n=600, seed=0):
    """Probabilities, and what was accepted and rejected with log-odds moved by −2, 0 and 1.5."""
    rng = np.random.default_rng(seed)
    P = rng.uniform(0.05, 0.9, (n, 3))
    right = rng.random(P.shape) < expit(logit(P) + np.array([-2, 0, 1.5]))
    seen = rng.random(P.shape) < 0.5
    return P, right & seen, ~right & seen


def test_offsets_are_the_most_likely_ones():
    """Against a general optimiser of the same sum, to 1e-4."""
    P, yes, no = decisions(60)
    estimate = fit_unannotated_labels(P, yes, no)
    z = logit(P)

    def loss(theta):
        m = z + theta[0] + theta[1:]
        likely = np.logaddexp(0, -m)[yes].sum() + np.logaddexp(0, m)[no].sum()
        return likely + theta @ theta / 2

    best = minimize(loss, np.zeros(4), tol=1e-12).x
    assert estimate.offset == pytest.approx(best[0], abs=1e-4)
    np.testing.assert_allclose(estimate.offsets, best[0] + best[1:], atol=1e-4)
    design = np.concatenate([np.c_[np.ones(60), np.eye(3)[[t] * 60]] for t in range(3)])
    p = expit((z + estimate.offsets).T.ravel()) * (yes | no).T.ravel()
    variance = (p * (1 - expit((z + estimate.offsets).T.ravel())))[:, None] * design
    covariance = np.linalg.inv(design.T @ variance + np.eye(4))
    assert estimate.error == pytest.approx(covariance[0, 0] ** 0.5, rel=1e-4)


def test_a_rejection_of_what_seems_certain_has_a_finite_loss():
    """Here all labels but the last are accepted, so only one offset moves far."""
    P = np.zeros((1001, 1))
    P[-1] = 1
    accepted = 1.0 - P
    with np.errstate(all="raise"):
        offset = fit_unannotated_labels(P, accepted, P).offset
    z = -np.log(1 / np.finfo(np.float32).eps - 1)  # the log-odds that a float32 of 0 stands for

    def loss(total: float) -> float:  # μ and d are half of it each
        return 1000 * np.logaddexp(0, -z - total) + np.logaddexp(0, total - z) + total**2 / 4

    assert offset == pytest.approx(minimize_scalar(loss).x / 2, abs=1e-3)


def test_what_was_decided_comes_back_as_probability():
    """With many decisions offsets are those that the decisions were drawn with, within .3."""
    P, yes, no = decisions(8000)
    estimate = fit_unannotated_labels(P, scipy.sparse.csr_array(yes * 1.0), no)
    np.testing.assert_allclose(estimate.offsets, [-2, 0, 1.5], atol=0.3)
    annotated = np.array([True, False])
    p = np.full((2, 3), 0.4)
    r = expit(logit(0.4) + estimate.offsets)
    expected = np.stack([r, 1 - (1 - 0.4) * (1 - r)])
    np.testing.assert_allclose(estimate.predict_proba(p, annotated), expected, atol=1e-12)


def test_a_label_without_decisions_keeps_to_the_others():
    P, yes, no = decisions()
    yes[:, 2] = no[:, 2] = False
    estimate = fit_unannotated_labels(P, yes, no)
    assert estimate.offsets[2] == pytest.approx(estimate.offset, abs=1e-9)
    others = fit_unannotated_labels(P[:, :2], yes[:, :2], no[:, :2])
    np.testing.assert_allclose(estimate.offsets[:2], others.offsets, atol=1e-7)
    assert (estimate.n_accepted, estimate.n_rejected) == (yes.sum(), no.sum())


def test_taking_all_that_is_sure_says_hardly_anything_new():
    """30 accepted at 95 % move a label's log-odds less than half as far as 30 at 20 %."""
    moved = []
    for p in (0.95, 0.2):
        P, yes = np.full((30, 1), p), np.ones((30, 1))
        moved.append(fit_unannotated_labels(P, yes, np.zeros((30, 1))).offsets[0])
    assert 0 < moved[0] < moved[1] / 2


def test_labels_without_decisions():
    P, yes, no = decisions()
    fitted = fit_unannotated_labels(P, yes, no)
    estimate = fitted.spread(np.array([0, 2, 3]), 5)
    assert estimate.offsets[[1, 4]].tolist() == [estimate.offset] * 2
    assert estimate.offsets[[0, 2, 3]].tolist() == fitted.offsets.tolist()
    assert "accepted and" in estimate.describe()[0]


def test_shapes_must_agree():
    P, yes, no = decisions()
    with pytest.raises(InvalidInput, match="All three must have the same shape"):
        fit_unannotated_labels(P, yes[:, :2], no)
    with pytest.raises(InvalidInput, match="Found 2 labels, but 3 were fitted"):
        fit_unannotated_labels(P, yes, no).predict_proba(P[:, :2], np.ones(len(P), dtype=bool))


def test_where_nobody_had_said_anything_offsets_are_the_most_likely_ones():
    """Against a general optimiser of Σ log q and Σ log (1 − q), to 1e-4."""
    P, yes, no = decisions(60)
    annotated = np.random.default_rng(1).random(60) < 0.5
    estimate = fit_unannotated_labels(P, yes, no, annotated=annotated)

    def loss(theta):
        r = expit(logit(P) + theta[0] + theta[1:])
        right = np.where(annotated[:, None], r, P + (1 - P) * r)
        return -np.log(right)[yes].sum() - np.log1p(-right)[no].sum() + theta @ theta / 2

    best = minimize(loss, np.zeros(4), tol=1e-12).x
    assert estimate.offset == pytest.approx(best[0], abs=1e-4)
    np.testing.assert_allclose(estimate.offsets, best[0] + best[1:], atol=1e-4)
    everywhere = fit_unannotated_labels(P, yes, no, annotated=np.ones(60, dtype=bool))
    assert everywhere.offsets.tolist() == fit_unannotated_labels(P, yes, no).offsets.tolist()


def test_of_a_person_who_forgets_nothing_confidences_stay_as_they_are():
    """Suggestions for images that nobody had labelled are right as often as p says."""
    rng = np.random.default_rng(0)
    P = rng.uniform(0.05, 0.95, (4000, 2))
    right = rng.random(P.shape) < P
    nobody = np.zeros(len(P), dtype=bool)
    estimate = fit_unannotated_labels(P, right, ~right, annotated=nobody)
    assert estimate.predict_proba(P, nobody).mean() == pytest.approx(right.mean(), abs=0.02)
    # as if somebody had looked before, half of the rest would seem to be forgotten
    other = fit_unannotated_labels(P, right, ~right)
    assert other.predict_proba(P, nobody).mean() > right.mean() + 0.1


@pytest.mark.parametrize("share_wrong", [0.0, 0.03])
def test_a_few_wrong_answers_do_not_look_like_forgotten_labels(share_wrong):
    """If images without annotation have exactly what p says, confidences stay p."""
    rng = np.random.default_rng(3)
    P = rng.uniform(0.05, 0.9, (4000, 3))
    right = rng.random(P.shape) < P
    accepted = right | (rng.random(P.shape) < share_wrong)
    none_said = np.zeros(len(P), dtype=bool)
    unannotated = fit_unannotated_labels(P, accepted, ~accepted, annotated=none_said)
    np.testing.assert_array_equal(unannotated.predict_proba(P, none_said), P)


def test_answers_about_one_label_do_not_look_like_forgotten_labels():
    """A page of likely suggestions that are right a little more often than said shows nothing."""
    rng = np.random.default_rng(0)
    P = np.full((240, 20), 0.05)
    P[:, 0] = rng.uniform(0.85, 0.99, 240)
    yes, no = np.zeros((2, *P.shape), dtype=bool)
    yes[:, 0] = rng.random(240) < P[:, 0] + 0.03
    no[:, 0] = ~yes[:, 0]
    nobody = np.zeros(len(P), dtype=bool)
    fitted = fit_unannotated_labels(P, yes, no, annotated=nobody)
    assert fitted.offset > -1.5
    np.testing.assert_array_equal(fitted.predict_proba(P, nobody), P)
