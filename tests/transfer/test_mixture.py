"""The mixture of two logits against a general optimiser."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from tagkin.transfer.mixture import fit_mixture


def collection(n=800, d=6, seed=0):
    rng = np.random.default_rng(seed)
    u, v = rng.normal(-3, 2, (2, n, d))
    a, b = rng.uniform(0.2, 0.8, (2, d))
    Y = rng.random((n, d)) < 1 / (1 + np.exp(-(0.3 + a * u + b * v)))
    return u, v, Y.astype(float)


@pytest.mark.parametrize("scale", [1, 4])
def test_it_is_the_minimum_of_the_stated_loss(scale):
    """Weights and offsets to 1e-3, also where they are far from where it begins."""
    u, v, Y = collection()
    u, v = u / scale, v / scale + (scale - 1)
    d, s, h, typical = Y.shape[1], 30.0, 4, np.array([0.1, 1.5])
    n_present = Y.sum(axis=0)
    level = np.log((n_present + 0.5) / (len(Y) - n_present + 0.5))

    def loss(theta):
        common, own = theta[:2], theta[2:].reshape(d, 3)
        f = own[:, 2] + own[:, 0] * u + own[:, 1] * v
        apart = own[:, :2] - common
        drawn = s / 2 * (apart**2).sum() + ((own[:, 2] - level) ** 2).sum() / 2
        drawn += s / 2 * h * ((common - typical) ** 2).sum()
        wrong = 1 / (1 + np.exp(-f)) - Y
        by_own = np.column_stack([(wrong * u).sum(0), (wrong * v).sum(0), wrong.sum(0)])
        by_own += np.column_stack([s * apart, own[:, 2] - level])
        by_common = h * s * (common - typical) - s * apart.sum(axis=0)
        gradient = np.concatenate([by_common, by_own.ravel()])
        return (np.logaddexp(0, f) - Y * f).sum() + drawn, gradient

    start = np.concatenate([[0.5, 0.5], np.tile([0.5, 0.5, 0], d)])
    # with derivatives: differences would not be precise enough on every processor
    assert scipy.optimize.check_grad(lambda t: loss(t)[0], lambda t: loss(t)[1], start) < 1e-2
    options = {"maxiter": 10**4, "ftol": 1e-15, "gtol": 1e-8}
    best = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    expected = best.x[2:].reshape(d, 3)
    found = np.column_stack(fit_mixture(u, v, scipy.sparse.csr_array(Y)).parts)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_label_on_few_images_is_drawn_to_what_the_others_have_in_common():
    u, v, Y = collection(2000)

    def deviation(n_images):
        Y[:, 0] = 0
        Y[np.argsort(-u[:, 0])[:n_images], 0] = 1  # it goes with u alone
        mixture = fit_mixture(u, v, scipy.sparse.csr_array(Y))
        return np.hypot(
            mixture.first[0] - mixture.first[1:].mean(),
            mixture.second[0] - mixture.second[1:].mean(),
        )

    assert 3 * deviation(3) < deviation(300)


def test_labels_on_no_image_get_the_common_weights():
    u, v, Y = collection(500)
    Y[:, 2] = 0
    found = fit_mixture(u, v, scipy.sparse.csr_array(Y))
    others = np.arange(6) != 2
    common = (found.first[others].sum() + 4 * 0.1) / 9
    np.testing.assert_allclose(found.first[2], common, atol=1e-3)
    np.testing.assert_allclose(found.offset[2], np.log(0.5 / 500.5), rtol=1e-6)


def test_labels_that_are_not_judged_get_the_common_weights_and_teach_nothing():
    u, v, Y = collection(500)
    judged = np.arange(6) != 2
    some = fit_mixture(u, v, scipy.sparse.csr_array(Y), judged=judged)
    alone = fit_mixture(u[:, judged], v[:, judged], scipy.sparse.csr_array(Y[:, judged]))
    for part, expected in zip(some.parts, alone.parts, strict=True):
        np.testing.assert_allclose(part[judged], expected, atol=1e-6)
    common = (alone.second.sum() + 4 * 1.5) / 9
    np.testing.assert_allclose(some.second[2], common, atol=1e-3)


def test_a_score_that_says_nothing_gets_no_weight():
    u, v, Y = collection(4000)
    found = fit_mixture(
        u, np.random.default_rng(1).normal(0, 1, v.shape), scipy.sparse.csr_array(Y)
    )
    assert (found.second < 0.15).all()
    assert (found.first > 0.15).all()


def test_few_images_keep_typical_weights():
    u, v, Y = collection(5)
    mixture = fit_mixture(u, v, scipy.sparse.csr_array(Y))
    np.testing.assert_allclose(mixture.first.mean(), 0.1, atol=0.15)
    np.testing.assert_allclose(mixture.second.mean(), 1.5, atol=0.15)


def test_a_mixture_whose_origin_moves_gives_the_same_scores():
    u, v, Y = collection(200)
    mixture, level = fit_mixture(u, v, scipy.sparse.csr_array(Y)), np.arange(6.0)
    moved = mixture.move_origin(level)
    np.testing.assert_allclose(moved(u + level, v + level), mixture(u, v), atol=1e-9)
