"""The logistic read-out against scikit-learn's logistic regression on the same features."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import tagkin
from tagkin.errors import InvalidInput
from tagkin.kernels import ArcCosine
from tagkin.transfer import LogisticReadout, logistic
from tests.conftest import assert_same, make_collection, needs_torch


def explicit_features(model, X):
    """Φ with Φ Φᵀ the kernel, from its definition."""

    def with_length(Z):
        return np.column_stack([Z / model.readout_.length, np.ones(len(Z))])

    landmarks = with_length(np.asarray(model.readout_.landmarks))
    gram = ArcCosine(order=2)(landmarks)
    factor = np.linalg.cholesky(gram + 1e-6 * np.eye(len(gram)))
    return np.linalg.solve(factor, ArcCosine(order=2)(with_length(X), landmarks).T).T


@pytest.mark.parametrize("regularization", [0.05, 0.25, 2.0])
def test_scores_are_those_of_logistic_regression(regularization):
    """Up to the tolerance of the solver: 2 % of the scores' spread."""
    X, Y, X_new = make_collection(400)
    model = LogisticReadout(regularization, n_landmarks=120, tol=1e-3).fit(X, Y)
    scores = model.decision_function(X_new)
    features, new = explicit_features(model, X), explicit_features(model, X_new)
    for t in range(Y.shape[1]):
        exact = LogisticRegression(C=1 / regularization, tol=1e-8, solver="newton-cholesky")
        expected = exact.fit(features, Y[:, t] > 0).decision_function(new)
        assert np.abs(scores[:, t] - expected).max() < 0.02 * np.ptp(expected)


def test_the_gradient_vanishes_at_the_solution():
    """Σᵢ (σ(fᵢ) − yᵢ) = 0, since the intercept is not regularised; to 1 % of the labels."""
    X, Y, _ = make_collection(300)
    p = LogisticReadout(tol=1e-3).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=0), (Y > 0).sum(axis=0), rtol=0.01)


def test_a_label_that_is_plain_to_see_takes_few_steps():
    """One feature says which 30 of 6,000 images carry it; minimum to 2e-3.

    A step that goes too far ends where the loss is flat but for λ, and Newton's next one back at
    the beginning.
    """
    n, regularization = 6000, 0.25
    y = np.arange(n) < 30
    x = np.where(y, 0.55, 0.0)[:, None]

    class OneColumn:
        n_images, dtype = n, np.dtype(np.float64)

        def blocks(self):
            yield slice(0, n), x

    basis = logistic.Basis(np.eye(1), np.zeros(1), (x**2).sum(axis=0))
    labels = scipy.sparse.csr_array(y[:, None].astype(np.float64))
    fitted = logistic.fit_logistic(
        OneColumn(), basis, logistic.Targets(labels), regularization, tolerance=1e-4
    )
    assert fitted.n_steps <= 10

    def loss(parameters):
        margins = x[:, 0] * parameters[0] + parameters[1]
        wrong = np.logaddexp(0, np.where(y, -margins, margins)).sum()
        return wrong + regularization / 2 * parameters[0] ** 2

    exact = minimize(loss, [10.0, -6.0], method="Nelder-Mead", options={"xatol": 1e-6}).x
    np.testing.assert_allclose([fitted.coef[0, 0], fitted.intercept[0]], exact, atol=2e-3)


def test_labels_do_not_depend_on_each_other():
    """One at a time gives the same as all together."""
    X, Y, X_new = make_collection(200)
    whole = LogisticReadout().fit(X, Y).decision_function(X_new)
    one_by_one = np.column_stack(
        [LogisticReadout().fit(X, Y[:, [t]]).decision_function(X_new) for t in range(Y.shape[1])]
    )
    np.testing.assert_allclose(one_by_one, whole, atol=1e-9)


def test_a_rejected_label_counts_for_more_than_one_that_nobody_mentioned():
    X, Y, _ = make_collection(300)
    plain = LogisticReadout(forgotten=0.3).fit(X, Y)
    unsaid = np.flatnonzero(Y[:, 0] == 0)
    surest = unsaid[np.argsort(-plain.decision_function(X)[unsaid, 0])[:10]]
    rejected = scipy.sparse.lil_array(Y.shape)
    rejected[surest, 0] = 1
    informed = LogisticReadout(forgotten=0.3).fit(X, Y, rejected=rejected.tocsr())
    assert (informed.decision_function(X)[surest, 0] < plain.decision_function(X)[surest, 0]).all()
    assert_same(informed.decision_function(X)[:, 1:], plain.decision_function(X)[:, 1:], 1e-6)


@pytest.mark.parametrize("forgotten", [0.1, 0.5])
def test_forgotten_labels_have_the_loss_that_is_stated(forgotten):
    """Against a general optimiser of the loss as it is written; 2 % of the scores' spread."""
    X, Y, X_new = make_collection(120)
    y = Y[:, :1] > 0
    rejected = np.zeros_like(y)
    rejected[np.flatnonzero(~y[:, 0])[:20]] = True
    model = LogisticReadout(n_landmarks=40, tol=1e-4, forgotten=forgotten)
    model.fit(X, y, rejected=rejected)
    features, new = explicit_features(model, X), explicit_features(model, X_new)
    y, no = y[:, 0], rejected[:, 0]

    def loss(theta):
        p = expit(features @ theta[1:] + theta[0])
        each = np.where(y, p, np.where(no, 1 - p, 1 - (1 - forgotten) * p))
        return -np.log(each).sum() + 0.25 / 2 * theta[1:] @ theta[1:]

    best = minimize(loss, np.zeros(features.shape[1] + 1), tol=1e-10)
    expected = new @ best.x[1:] + best.x[0]
    scores = model.decision_function(X_new)[:, 0]
    assert np.abs(scores - expected).max() < 0.02 * np.ptp(expected)


@pytest.mark.parametrize("forgotten", [0.0, 0.2])
def test_unknown_labels_have_the_loss_that_is_stated(forgotten):
    """Against a general optimiser; an expected label counts 0.3, one nobody expects not at all."""
    X, Y, X_new = make_collection(120)
    y = Y[:, :1] > 0
    complete = np.arange(120) % 2 == 0
    rejected = np.zeros_like(y)
    rejected[np.flatnonzero(~y[:, 0])[:20]] = True
    unknown = ~complete & ~y[:, 0] & ~rejected[:, 0]
    expected = np.where(unknown, np.linspace(0.05, 0.9, 120), 0)[:, None]
    expected[::3] = 0
    model = LogisticReadout(n_landmarks=40, tol=1e-4, forgotten=forgotten)
    model.fit(X, y, rejected=rejected, complete=complete, expected=expected)
    features, new = explicit_features(model, X), explicit_features(model, X_new)
    y, no, z = y[:, 0], rejected[:, 0], expected[:, 0]

    def loss(theta):
        p = expit(features @ theta[1:] + theta[0])
        known = -np.log(np.where(y, p, np.where(no, 1 - p, 1 - (1 - forgotten) * p)))
        guessed = -(z * np.log(p) + (1 - z) * np.log(1 - p))
        each = np.where(unknown, np.where(z > 0, 0.3, 0) * guessed, known)
        return each.sum() + 0.25 / 2 * theta[1:] @ theta[1:]

    best = minimize(loss, np.zeros(features.shape[1] + 1), tol=1e-10)
    scores = model.decision_function(X_new)[:, 0]
    by_loss = new @ best.x[1:] + best.x[0]
    assert np.abs(scores - by_loss).max() < 0.02 * np.ptp(by_loss)


def test_complete_images_are_what_they_were():
    X, Y, X_new = make_collection(100)
    plain = LogisticReadout().fit(X, Y).decision_function(X_new)
    informed = LogisticReadout().fit(X, Y, complete=np.ones(100, bool)).decision_function(X_new)
    np.testing.assert_allclose(informed, plain, atol=1e-4)  # sums are rounded by where arrays lie
    for wrong, message in (
        ({"expected": np.full(Y.shape, 2.0)}, "probabilities from 0 to 1"),
        ({"expected": Y[:, :1]}, "expected has shape"),
    ):
        with pytest.raises(InvalidInput, match=message):
            LogisticReadout().fit(X, Y, complete=np.arange(100) > 0, **wrong)


def test_where_nothing_is_forgotten_a_rejection_says_nothing_new():
    X, Y, X_new = make_collection(100)
    unsaid = np.where(Y > 0, 0, 1)
    plain, informed = (LogisticReadout().fit(X, Y, rejected=no) for no in (None, unsaid))
    np.testing.assert_array_equal(informed.decision_function(X_new), plain.decision_function(X_new))
    with pytest.raises(InvalidInput, match="forgotten must be a number from 0 to below 1"):
        LogisticReadout(forgotten=1.0).fit(X, Y)


def test_what_cannot_be_rejected():
    X, Y, _ = make_collection(50)
    with pytest.raises(InvalidInput, match="has a label that is also rejected for it"):
        LogisticReadout().fit(X, Y, rejected=Y)
    with pytest.raises(InvalidInput, match=r"rejected has shape \(50, 2\)"):
        LogisticReadout().fit(X, Y, rejected=Y[:, :2])


def test_labels_on_all_images_or_none_keep_their_share():
    X, Y, X_new = make_collection(100)
    Y = Y.copy()
    Y[:, 0], Y[:, 1] = 0, 1
    model = LogisticReadout().fit(X, Y)
    assert model.readout_.learned.tolist() == [2, 3, 4, 5]
    p = model.predict_proba(X_new)
    np.testing.assert_allclose(p[:, 0], 0.5 / 101)
    np.testing.assert_allclose(p[:, 1], 100.5 / 101)


@pytest.mark.parametrize("scale", [2.0**70, 2.0**-90])
def test_the_unit_of_embeddings_does_not_matter(scale):
    """Not even one in which float32 has no room for squares: lengths are of the mean length."""
    X, Y, X_new = (np.float32(part) for part in make_collection(100))
    scores = LogisticReadout().fit(X, Y).decision_function(X_new)
    scaled = LogisticReadout().fit(X * np.float32(scale), Y)
    np.testing.assert_allclose(
        scaled.decision_function(X_new * np.float32(scale)), scores, atol=1e-3
    )


def test_it_is_kept_in_a_folder(tmp_path):
    X, Y, X_new = make_collection(100)
    model = LogisticReadout().fit(X, Y)
    again = tagkin.load(tagkin.save(model, tmp_path / "model"))
    assert_same(again.decision_function(X_new), model.decision_function(X_new))


@needs_torch
def test_torch_and_numpy_agree_in_single_precision():
    import torch

    X, Y, X_new = make_collection(300)
    expected = LogisticReadout().fit(X, Y).decision_function(X_new)
    single = torch.from_numpy(X.astype(np.float32))
    scores = LogisticReadout().fit(single, Y).decision_function(torch.from_numpy(X_new).float())
    np.testing.assert_allclose(scores.numpy(), expected, atol=0.02 * np.ptp(expected))


@pytest.mark.parametrize("with_rejections", [False, True])
def test_labels_are_independent_problems(with_rejections):
    """Labels that are done are put aside, and the others go on as if they were alone."""
    rng = np.random.default_rng(0)
    Y = (rng.random((300, 12)) < np.linspace(0.02, 0.5, 12)).astype(float)
    X = Y @ rng.standard_normal((12, 8)) + rng.standard_normal((300, 8))
    rejected = (rng.random(Y.shape) < 0.05) * (1 - Y) if with_rejections else None
    readout = LogisticReadout(tol=1e-4, random_state=0)
    together = readout.fit(X, Y, rejected=rejected).decision_function(X)
    for t in range(12):
        own = None if rejected is None else rejected[:, [t]]
        alone = readout.fit(X, Y[:, [t]], rejected=own).decision_function(X)
        np.testing.assert_allclose(together[:, [t]], alone, atol=1e-6)
