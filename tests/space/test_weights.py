"""Weights of images: as repeated images, and as the equations have them."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from sklearn.pipeline import make_pipeline

from tagkin import KinReadout, SemanticSpace, load, save
from tagkin.errors import InvalidInput

KAPPA = 0.7


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    Y = (rng.random((150, 6)) < 0.25).astype(float)
    X = Y @ rng.normal(size=(6, 12)) + rng.normal(size=(150, 12))
    return X, Y, rng.integers(0, 4, 150)


def repeat(X, Y, counts):
    rows = np.repeat(np.arange(len(X)), counts)
    return X[rows], Y[rows]


def assert_same(space, other, X, rtol=1e-7):
    psi, expected = space.transform(X), other.transform(X)
    assert np.allclose(psi, expected, rtol=0, atol=rtol * np.abs(expected).max())
    assert np.allclose(space.text_mean_, other.text_mean_)


@pytest.mark.parametrize("scaling", ["correlation", "unit", "none"])
@pytest.mark.parametrize("as_labels", [np.asarray, scipy.sparse.csr_array])
def test_whole_weights_count_as_repeated_images(data, scaling, as_labels):
    X, Y, counts = data
    options = {"selection": X[:40], "scaling": scaling}
    weighted = SemanticSpace(KAPPA, **options).fit(X, as_labels(Y), sample_weight=counts)
    repeated = SemanticSpace(KAPPA, **options).fit(*repeat(X, as_labels(Y), counts))
    assert_same(weighted, repeated, X)
    assert np.allclose(weighted.correlations_, repeated.correlations_)
    assert weighted.n_images_ == 150


def test_exact_fits_count_weights_as_repeated_images(data):
    X, Y, counts = data
    weighted = SemanticSpace(KAPPA).fit(X, Y, sample_weight=counts)
    assert_same(weighted, SemanticSpace(KAPPA).fit(*repeat(X, Y, counts)), X, 1e-5)
    assert_same(
        SemanticSpace(KAPPA).fit(X, Y, sample_weight=np.ones(150)),
        SemanticSpace(KAPPA).fit(X, Y),
        X,
        1e-5,
    )


def test_correlations_are_those_of_the_weighted_equation(data):
    """Against the singular values of (Z+κI)^-½ C (G+κI)^-½, with sums written out."""
    X, Y, _ = data
    weights = np.random.default_rng(1).gamma(1.0, size=150)
    space = SemanticSpace(KAPPA, "rbf", selection=X[:30]).fit(X, Y, sample_weight=weights)
    kernel, S = space.landmarks_.kernel, X[:30]
    phi = scipy.linalg.solve_triangular(
        np.linalg.cholesky(kernel(S, S)), kernel(X, S).T, lower=True
    ).T
    mean_phi, mean_text = (np.average(part, axis=0, weights=weights) for part in (phi, Y))
    Z, C, G = np.zeros((30, 30)), np.zeros((30, 6)), np.zeros((6, 6))
    for i, weight in enumerate(weights):
        a, b = phi[i] - mean_phi, Y[i] - mean_text
        Z, C, G = (
            Z + weight * np.outer(a, a),
            C + weight * np.outer(a, b),
            G + weight * np.outer(b, b),
        )
    left, right = (np.linalg.cholesky(A + KAPPA * np.eye(len(A))) for A in (Z, G))
    B = scipy.linalg.solve_triangular(left, C, lower=True)
    B = scipy.linalg.solve_triangular(right, B.T, lower=True).T
    assert np.allclose(space.correlations_, np.linalg.svd(B, compute_uv=False), atol=1e-9)
    assert np.allclose(space.text_mean_, mean_text)
    psi = space.transform(X)
    assert np.allclose(np.average(psi, axis=0, weights=weights), 0, atol=1e-9)


def test_weighted_images_are_added_and_forgotten(data):
    X, Y, counts = data
    whole = SemanticSpace(KAPPA, selection=X[:40]).fit(X, Y, sample_weight=counts)
    space = SemanticSpace(KAPPA, selection=X[:40])
    for rows in (slice(0, 60), slice(60, 150)):
        space.partial_fit(X[rows], Y[rows], sample_weight=counts[rows])
    assert_same(space, whole, X)
    rest = SemanticSpace(KAPPA, selection=X[:40]).fit(X[60:], Y[60:], sample_weight=counts[60:])
    space.forget(X[:60], Y[:60], sample_weight=counts[:60])
    assert_same(space, rest, X)
    assert space.n_images_ == 90


def test_float32_and_torch_agree_with_float64(data):
    torch = pytest.importorskip("torch")
    X, Y, counts = data
    options = {"selection": X[:40], "scaling": "correlation"}
    expected = SemanticSpace(KAPPA, **options).fit(X, Y, sample_weight=counts)
    tensors = torch.as_tensor(X), torch.as_tensor(Y), torch.as_tensor(counts)
    options["selection"] = tensors[0][:40]
    psi = SemanticSpace(KAPPA, **options).fit(*tensors).transform(tensors[0])
    assert np.allclose(psi.numpy(), expected.transform(X), atol=1e-6)
    single = X.astype(np.float32)
    options["selection"] = single[:40]
    psi = SemanticSpace(KAPPA, **options).fit(single, Y, sample_weight=counts).transform(single)
    assert np.allclose(psi, expected.transform(X), atol=1e-2)


def test_a_weighted_space_is_stored_and_fits_in_a_pipeline(data, tmp_path):
    X, Y, counts = data
    space = SemanticSpace(KAPPA, selection=X[:40]).fit(X, Y, sample_weight=counts / 3)
    again = load(save(space, tmp_path / "space"))
    for part in (space, again):
        part.partial_fit(X[:10], Y[:10])
    assert_same(again, space, X)
    pipeline = make_pipeline(SemanticSpace(KAPPA, selection=X[:40]), KinReadout())
    pipeline.fit(X, Y, semanticspace__sample_weight=counts)
    assert_same(pipeline[0], SemanticSpace(KAPPA, selection=X[:40]).fit(X, Y, counts), X)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(149), r"one number for each of the 150 images; found float64 of shape \(149,\)"),
        (["a"] * 150, "one number for each"),
        (np.full(150, -1.0), "finite and not negative; found -1.0 in row 0"),
        (np.full(150, np.nan), "finite and not negative; found nan in row 0"),
        (np.zeros(150), "zero for every image"),
    ],
)
def test_weights_that_make_no_sense_are_refused(data, weights, sentence):
    X, Y, _ = data
    with pytest.raises(InvalidInput, match=sentence):
        SemanticSpace().fit(X, Y, sample_weight=weights)
