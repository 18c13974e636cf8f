"""What kernels do not change under, against each pair of rows on its own."""

import math

import numpy as np
import pytest

from tagkin.kernels import KERNELS, RBF, ArcCosine, Kernel, Linear, as_kernel
from tagkin.paper import ExpChi2

ROTATED = [
    Linear(),
    RBF(0.3),
    *(ArcCosine(n, normalized=k) for n in (0, 1, 2) for k in (False, True)),
]
ALL = [*ROTATED, ExpChi2(0.7)]


def pairs(kernel, seed=0, d=6):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((12, d)), rng.standard_normal((9, d))
    return (abs(X), abs(Y)) if kernel.non_negative else (X, Y)


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_an_entry_depends_on_its_two_rows_alone(kernel):
    X, Y = pairs(kernel)
    K = kernel(X, Y)
    alone = [[kernel(x[None], y[None])[0, 0] for y in Y] for x in X]
    np.testing.assert_allclose(K, alone, atol=1e-12 * abs(K).max())
    np.testing.assert_allclose(kernel(Y, X), K.T, atol=1e-12 * abs(K).max())
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_allclose(kernel(X[order], Y), K[order], atol=1e-12 * abs(K).max())


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_no_pair_is_more_alike_than_its_rows_are_to_themselves(kernel):
    X, Y = pairs(kernel, 1)
    most = np.sqrt(np.outer(kernel.diagonal(X), kernel.diagonal(Y)))
    assert (abs(kernel(X, Y)) <= most * (1 + 1e-12)).all()


@pytest.mark.parametrize("kernel", ROTATED, ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_rotation_changes_nothing(kernel, seed):
    X, Y = pairs(kernel, seed)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))
    K = kernel(X, Y)
    np.testing.assert_allclose(kernel(X @ Q, Y @ Q), K, atol=1e-10 * abs(K).max())


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_arc_cosine_kernel_grows_with_a_power_of_the_lengths(order):
    kernel = ArcCosine(order, normalized=False)
    X, Y = pairs(kernel)
    np.testing.assert_allclose(kernel(3 * X, 5 * Y), 15.0**order * kernel(X, Y), rtol=1e-10)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_arc_cosine_kernel_at_right_and_straight_angles(order):
    x, y = np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]])
    kernel = ArcCosine(order)
    right = (math.pi / 2, 1.0, math.pi / 2)[order] / (math.pi, math.pi, 3 * math.pi)[order]
    assert kernel(x, 5 * x)[0, 0] == pytest.approx(1)
    assert kernel(x, y)[0, 0] == pytest.approx(right)
    assert kernel(x, -x)[0, 0] == pytest.approx(0, abs=1e-12)


def test_the_gaussian_kernel_is_a_product_over_features():
    X, Y = pairs(RBF())
    each = [RBF(0.3)(X[:, [j]], Y[:, [j]]) for j in range(X.shape[1])]
    np.testing.assert_allclose(RBF(0.3)(X, Y), np.prod(each, axis=0), atol=1e-12)
    np.testing.assert_allclose(RBF(1.2)(X / 2, Y / 2), RBF(0.3)(X, Y), atol=1e-12)
    np.testing.assert_allclose(RBF(0.3)(X + 7, Y + 7), RBF(0.3)(X, Y), atol=1e-12)


def test_the_rank_is_at_most_what_a_kernel_says():
    X = np.random.default_rng(0).standard_normal((30, 4))
    for kernel in ROTATED:
        rank = np.linalg.matrix_rank(kernel(X), tol=1e-8)
        assert rank <= kernel.max_rank(4)
        assert kernel.max_rank(4) in (4, math.inf)


@pytest.mark.parametrize("kernel", [RBF(), ExpChi2()], ids=repr)
def test_a_constant_from_the_data_is_that_of_the_block(kernel):
    X, Y = pairs(kernel)
    resolved = kernel.resolve(X)
    assert resolved != kernel
    assert resolved.resolve(Y) == resolved
    np.testing.assert_allclose(resolved(X), kernel(X), atol=1e-12)


def test_a_kernel_with_a_name_can_be_used_by_it():
    class Constant(Kernel):
        name = "constant"

        def __call__(self, X, Y=None):
            return np.ones((len(X), len(X if Y is None else Y)))

    try:
        assert isinstance(as_kernel("constant"), Constant)
    finally:
        del KERNELS["constant"]
    assert sorted(KERNELS) == ["arc-cosine", "linear", "rbf"]
