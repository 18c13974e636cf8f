import math

import numpy as np
import pytest
from scipy import integrate
from sklearn.metrics import pairwise

from tagkin.arrays.threads import blas_threads
from tagkin.errors import InvalidInput
from tagkin.kernels import RBF, ArcCosine, Linear, arc_cosine, as_kernel
from tests.conftest import assert_same


def rows(n=30, d=7, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_is_the_integral_it_stands_for(order):
    """Cho and Saul: K(x,y) = 2 ∫ N(w) Θ(wx) Θ(wy) (wx)ⁿ (wy)ⁿ dw, here in polar coordinates."""
    for angle in (0.3, 1.2, 2.5):
        x, y = np.array([2.0, 0.0]), 3 * np.array([math.cos(angle), math.sin(angle)])

        def integrand(phi, radius, x=x, y=y):
            w = radius * np.array([math.cos(phi), math.sin(phi)])
            both = max(0.0, w @ x) ** order * max(0.0, w @ y) ** order
            active = (w @ x > 0) * (w @ y > 0)
            return both * active * radius * math.exp(-(radius**2) / 2) / (2 * math.pi)

        # both factors are active between the two half-planes' borders
        expected = 2 * integrate.dblquad(integrand, 0, 12, angle - math.pi / 2, math.pi / 2)[0]
        K = ArcCosine(order=order, normalized=False)(x[None], y[None])
        assert K[0, 0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_normalized_arc_cosine_divides_by_the_diagonal(order):
    X, Y = rows(), rows(20, seed=1)
    full = ArcCosine(order, normalized=False)(X, Y)
    scale_x = ArcCosine(order=order, normalized=False)(X).diagonal()
    scale_y = ArcCosine(order=order, normalized=False)(Y).diagonal()
    expected = full / np.sqrt(np.outer(scale_x, scale_y))
    np.testing.assert_allclose(ArcCosine(order)(X, Y), expected, atol=1e-12)


def test_fast_order_2_is_the_closed_form_on_the_whole_range():
    rho = np.concatenate([np.linspace(-1, 1, 200_001), [-1, 0, 1]]).astype(np.float32)
    angle = np.arccos(rho.astype(np.float64))
    closed = 3 * np.sin(angle) * np.cos(angle) + (np.pi - angle) * (1 + 2 * np.cos(angle) ** 2)
    fast = arc_cosine.angular_order2_float32(rho * np.float32(arc_cosine.ROOT_THIRD))
    assert np.abs(fast - closed / (3 * np.pi)).max() < 5e-7


def test_linear_and_rbf_are_scikit_learns():
    X, Y = rows(), rows(20, seed=1)
    np.testing.assert_allclose(Linear()(X, Y), pairwise.linear_kernel(X, Y), atol=1e-12)
    np.testing.assert_allclose(RBF(0.2)(X, Y), pairwise.rbf_kernel(X, Y, 0.2), atol=1e-12)
    far = 1e3 + X  # far from the origin the squares are large and their difference small
    np.testing.assert_allclose(RBF(0.2)(far, far[:5]), RBF(0.2)(X, X[:5]), atol=1e-9)


def test_rbf_default_gamma_is_one_over_the_mean_squared_distance():
    X = rows()
    mean = pairwise.euclidean_distances(X, squared=True).mean()
    np.testing.assert_allclose(RBF()(X), pairwise.rbf_kernel(X, gamma=1 / mean), atol=1e-12)
    assert RBF().resolve(X).gamma == pytest.approx(1 / mean)


@pytest.mark.parametrize("order", [0, 1, 2])
# scaled before or afterwards, in one piece or in two
@pytest.mark.parametrize(("n", "d"), [(1, 6), (50, 200), (2500, 6), (2500, 200)])
def test_columns_in_float32_are_those_of_float64(order, n, d):
    X, Y, shift = rows(n, d), rows(33, d, seed=1), np.linspace(0, 1, 33)
    kernel = ArcCosine(order=order)
    shifted = kernel.less(X.astype(np.float32), Y.astype(np.float32), shift)
    np.testing.assert_allclose(shifted, kernel(X, Y) - shift, atol=2e-6)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8])
def test_unit_diagonal_is_exact_and_zero_rows_are_zero(order, dtype, as_array):
    X = (rows(40) * 20).astype(dtype)
    X[5] = 0
    K = np.asarray(ArcCosine(order=order)(as_array(X)))
    assert (np.delete(K.diagonal(), 5) == 1).all()
    assert (K[5] == 0).all()
    assert (K[:, 5] == 0).all()
    given = as_array(X)
    # order 0 has an infinite slope at equal rows: rounding of the cosine shows as its root
    tolerance = 1e-3 if K.dtype == np.float32 else 1e-7
    assert_same(ArcCosine(order=order)(given, given), K, tolerance)


@pytest.mark.parametrize("length", [1e-30, 1e-3, 1e30])
def test_the_normalized_kernel_ignores_lengths(length):
    X = rows().astype(np.float32)
    np.testing.assert_allclose(ArcCosine()(X * np.float32(length)), ArcCosine()(X), atol=1e-6)


def test_clear_errors():
    X = rows()
    with pytest.raises(InvalidInput, match="order 0, 1 or 2; found 3"):
        ArcCosine(order=3)(X)
    with pytest.raises(InvalidInput, match="X has 7 features and Y has 5"):
        Linear()(X, X[:, :5])
    X[4, 2] = np.nan
    with pytest.raises(InvalidInput, match=r"Input X contains NaN or infinity in row 4\."):
        RBF()(X)
    with pytest.raises(InvalidInput, match=r"Unknown kernel 'cosine'\. Use one of arc-cosine"):
        as_kernel("cosine")
    assert as_kernel("rbf") == RBF()
    assert as_kernel(ArcCosine(1)) == ArcCosine(1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_against_themselves_on_several_threads(dtype):
    """As many as threads share: the same as on one thread, and as against other rows."""
    X = np.random.default_rng(0).random((1100, 8)).astype(dtype)
    together = ArcCosine()(X)
    with blas_threads(1):
        alone = ArcCosine()(X)
    np.testing.assert_allclose(together, alone, rtol=20 * np.finfo(dtype).eps)
    np.testing.assert_allclose(together[5:9], ArcCosine()(X[5:9], X), rtol=0, atol=4e-6)


def test_products_of_rows_with_themselves_are_symmetric(as_array):
    A = np.random.default_rng(0).standard_normal((300, 20))
    for rows in (as_array(A), as_array(A)[:, ::2]):
        products = np.asarray(Linear()(rows))
        np.testing.assert_allclose(products, np.asarray(rows @ rows.T), atol=1e-12)
        assert (products == products.T).all()  # one triangle is a copy of the other


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, True, "wide"])
def test_a_width_is_a_positive_number(value):
    with pytest.raises(InvalidInput, match="gamma of the RBF kernel must be a number above 0"):
        RBF(value)
