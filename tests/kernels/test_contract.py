"""All kernels keep the same contract; a new kernel needs nothing here."""

import numpy as np
import pytest

from tagkin import memory_budget
from tagkin.kernels import KERNELS, ArcCosine, as_kernel
from tagkin.paper import ExpChi2


def rows(kernel, n=30, d=7, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return abs(X) if kernel.non_negative else X


# of every kernel the default, and all forms of the arc-cosine kernel
VARIANTS = [ArcCosine(order, normalized) for order in (0, 1, 2) for normalized in (False, True)]
ALL = [kernel().resolve(rows(kernel)) for kernel in KERNELS.values() if kernel is not ArcCosine]
ALL += [*VARIANTS, ExpChi2().resolve(abs(np.random.default_rng(0).standard_normal((30, 7))))]


@pytest.mark.parametrize("name", KERNELS)
def test_a_name_makes_a_kernel(name):
    kernel = as_kernel(name)
    assert kernel == KERNELS[name]()
    assert kernel.name == name
    assert kernel.resolve(rows(kernel)) in ALL
    assert np.isfinite(kernel(-rows(kernel))).all()


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_block_properties(kernel, as_array):
    X = rows(kernel, 64)
    X[[3, 9]] = 0
    K = np.asarray(kernel(as_array(X)))
    assert np.isfinite(K).all()
    assert (K == K.T).all(), "exactly symmetric"
    np.testing.assert_allclose(K.diagonal(), np.asarray(kernel.diagonal(as_array(X))), rtol=1e-12)
    with memory_budget(1000):
        blocks = np.concatenate(
            [np.asarray(kernel(as_array(X[i : i + 7]), as_array(X))) for i in range(0, 64, 7)]
        )
    np.testing.assert_allclose(blocks, K, atol=2e-13 * np.abs(K).max())


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_columns_less_a_shift(kernel, as_array):
    X, Y = rows(kernel, 40), rows(kernel, 9, seed=1)
    K = np.asarray(kernel(as_array(X), as_array(Y)))
    shift = K.mean(axis=0)
    shifted = kernel.less(as_array(X), as_array(Y), as_array(shift))
    np.testing.assert_allclose(np.asarray(shifted), K - shift, atol=1e-13 * np.abs(K).max())


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_positive_semi_definite(kernel):
    X = rows(kernel, 50, 4)
    values = np.linalg.eigvalsh(kernel(X))
    assert values.min() > -1e-12 * values.max()


@pytest.mark.parametrize("kernel", ALL, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_input_is_computed_in_float32(kernel, dtype):
    X = rows(kernel).astype(dtype)
    K = kernel(X, X[:9])
    assert K.dtype == np.float32
    exact = kernel(X.astype(np.float64), X[:9].astype(np.float64))
    # order 0 has an infinite slope at equal rows: rounding of the cosine shows as its root
    tolerance = 3e-4 if getattr(kernel, "order", 2) == 0 else 2e-6
    assert np.abs(K - exact).max() < tolerance * np.abs(exact).max()
