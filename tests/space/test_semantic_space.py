import gc
import itertools
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from tagkin import SemanticSpace, memory_budget
from tagkin.errors import InvalidInput
from tagkin.kernels import RBF, ArcCosine, Linear, arc_cosine_kernel
from tagkin.space import regularization_of_public_code
from tagkin.space.views import IndicatorView
from tests.conftest import assert_same, make_collection, relative_error
from tests.dense import dense_space


def gram(Z: Any) -> np.ndarray:
    Z = np.asarray(Z, dtype=np.float64)
    return Z @ Z.T


def cosines(Z: Any) -> np.ndarray:
    Z = np.asarray(Z, dtype=np.float64)
    return gram(Z / np.linalg.norm(Z, axis=1, keepdims=True))


# --- the answer is the paper's ---


@pytest.mark.parametrize("kappa", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("kernel", [ArcCosine(), ArcCosine(1), RBF(gamma=0.05), Linear()], ids=repr)
def test_the_space_is_the_dense_equation(kernel, kappa, collection, as_array):
    X, Y, X_new = collection
    dense = dense_space(kernel(X), kernel(X_new, X), Y @ Y.T, kappa, 6)
    exact = SemanticSpace(kappa, kernel)  # every image a landmark, solved in the dual
    streamed = SemanticSpace(kappa, kernel, selection=X)  # the same landmarks, solved from sums
    for space in (exact, streamed):
        if space is streamed:
            space.set_params(selection=as_array(X))
        space.fit(as_array(X), as_array(Y))
        assert np.abs(np.asarray(space.correlations_) - dense.correlations).max() < 1e-8
        for data, psi in ((X, dense.psi), (X_new, dense.psi_new)):
            assert np.abs(gram(space.transform(as_array(data))) - gram(psi)).max() < 1e-8


@pytest.mark.parametrize("n_landmarks", [None, 1000])
@pytest.mark.parametrize(
    ("kernel", "scale", "kappa"),
    [
        (Linear(), 1, 1e-3),
        (Linear(), 30, 0.5),
        (Linear(), 1000, 0.5),
        (ArcCosine(normalized=False), 1, 0.5),
        (ArcCosine(), 1, 1e-3),
    ],
    ids=repr,
)
def test_large_kernels_keep_their_digits(kernel, scale, kappa, n_landmarks, collection):
    """Where ‖K‖/κ is large the printed equation loses digits; a ridge regression does not.

    ψψᵀ = P G⁻¹ Pᵀ with P the ridge prediction of T from the eigenvectors of K, and
    G = TᵀT + κI.
    """
    X, Y, X_new = (scale * collection.X, collection.Y, scale * collection.X_new)
    T = Y - Y.mean(axis=0)
    K = kernel(X)
    values, vectors = np.linalg.eigh(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean())
    values, vectors = (a[..., values > 1e-12 * values[-1]] for a in (values, vectors))
    new = (kernel(X_new, X) - K.mean(axis=0)) @ vectors
    predicted = new @ ((vectors.T @ T) / (values + kappa)[:, None])
    expected = predicted @ np.linalg.solve(T.T @ T + kappa * np.eye(6), predicted.T)
    selection = "rpcholesky" if n_landmarks else X
    space = SemanticSpace(kappa, kernel, selection=selection).fit(X, Y)
    assert relative_error(gram(space.transform(X_new)), expected) < 1e-6


def test_float32_keeps_its_digits_whatever_the_regularization():
    """An exact fit changes to float64 by itself where float32 would not do."""
    X, Y, X_new = make_collection(n=1000, d=40)
    for kernel, scale, kappa in (
        (ArcCosine(), 1, 1e-3),
        (ArcCosine(), 1, 0.5),
        (Linear(), 30, 0.5),
        (ArcCosine(normalized=False), 1, 0.5),
    ):
        wide = SemanticSpace(kappa, kernel).fit(scale * X.astype(np.float32).astype(float), Y)
        narrow = SemanticSpace(kappa, kernel).fit((scale * X).astype(np.float32), Y)
        found = cosines(narrow.transform((scale * X_new).astype(np.float32).astype(float)))
        assert np.abs(found - cosines(wide.transform(scale * X_new))).max() < 1e-4


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        (Linear(), np.float32),
        (Linear(), np.uint8),
        (ArcCosine(normalized=False), np.float32),
        (ArcCosine(1, normalized=False), np.uint8),
    ],
)
@pytest.mark.parametrize("n_landmarks", [100, 1000])
def test_narrow_features_under_kernels_that_amplify_rounding(kernel, n_landmarks, dtype):
    """Linear and un-normalised kernels take float64 blocks by themselves."""
    rng = np.random.default_rng(0)
    Y = (rng.random((600, 10)) < 0.2).astype(float)
    X = Y @ rng.random((10, 32)) + 0.5 * rng.random((600, 32))
    X = (40 * X if dtype == np.uint8 else X).astype(dtype)
    narrow = SemanticSpace(kernel=kernel, n_landmarks=n_landmarks, random_state=0).fit(X, Y)
    chosen = X[narrow.landmark_indices_].astype(np.float64)
    wide = SemanticSpace(kernel=kernel, selection=chosen).fit(X.astype(np.float64), Y)
    for _ in range(2):
        psi = narrow.transform(X)
        assert psi.dtype == np.float32
        assert np.abs(cosines(psi) - cosines(wide.transform(X.astype(np.float64)))).max() < 1e-3
        narrow.partial_fit(X[:5], Y[:5])
        wide.partial_fit(X[:5].astype(np.float64), Y[:5])


def test_ontology_like_views_are_the_dense_equation(collection):
    """A text kernel Y S Yᵀ, through a view with features Y S^½."""
    X, Y, X_new = collection
    A = np.random.default_rng(1).standard_normal((6, 6))
    S = A @ A.T
    root = np.linalg.cholesky(S)

    class Ontology(IndicatorView):
        def transform(self, Y):
            return Y @ root

    dense = dense_space(arc_cosine_kernel(X), arc_cosine_kernel(X_new, X), Y @ S @ Y.T, 0.5, 6)
    space = SemanticSpace(text_view=Ontology()).fit(X, Y)
    np.testing.assert_allclose(gram(space.transform(X_new)), gram(dense.psi_new), atol=1e-8)


def test_the_public_codes_regularisation_is_a_change_of_kappa(collection):
    """(1−κ')K² + κ'K in both views: the same directions, correlations times 1/(1−κ')."""
    X, Y, _ = collection
    prime = 0.3
    n = len(X)
    centre = np.eye(n) - 1 / n
    visual, text = centre @ arc_cosine_kernel(X) @ centre, centre @ Y @ Y.T @ centre
    ridge = prime * np.eye(n)
    M = np.linalg.solve(
        (1 - prime) * visual + ridge, text @ np.linalg.solve((1 - prime) * text + ridge, visual)
    )
    public = np.sqrt(np.sort(np.linalg.eigvals(M).real)[::-1][:6])
    space = SemanticSpace(regularization_of_public_code(prime)).fit(X, Y)
    np.testing.assert_allclose(space.correlations_ / (1 - prime), public, atol=1e-10)
    assert regularization_of_public_code(0.5) == 1.0
    with pytest.raises(InvalidInput, match="between 0 and 1; found 1"):
        regularization_of_public_code(1)


@pytest.mark.parametrize("n_landmarks", [60, 1000])
def test_scalings_differ_by_the_length_of_each_dimension(n_landmarks, collection):
    X, Y, X_new = collection

    def psi(scaling, data):
        space = SemanticSpace(n_landmarks=n_landmarks, scaling=scaling, random_state=0).fit(X, Y)
        return space.transform(data), space.correlations_

    (paper, correlations), (plain, _), (unit, empirical) = (
        psi(scaling, X) for scaling in ("correlation", "none", "unit")
    )
    np.testing.assert_allclose(paper, plain * correlations, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=0), empirical, atol=1e-9)
    np.testing.assert_allclose(unit, plain / np.linalg.norm(plain, axis=0) * empirical, atol=1e-9)
    assert (empirical > correlations).all()
    assert (empirical <= 1).all()
    np.testing.assert_allclose(psi("correlation", X_new)[0], psi("none", X_new)[0] * correlations)


def test_components_are_the_best_correlated(collection):
    X, Y, X_new = collection
    space = SemanticSpace().fit(X, Y)
    three = SemanticSpace(n_components=3).fit(X, Y)
    assert three.n_components_ == 3
    assert (np.diff(space.correlations_) < 0).all()
    np.testing.assert_allclose(three.transform(X_new), space.transform(X_new)[:, :3], atol=1e-12)
    assert SemanticSpace(n_components=99).fit(X, Y).n_components_ == 6
    assert three.get_feature_names_out().tolist() == [f"semanticspace{i}" for i in range(3)]


def test_kin_share_labels_more_often_in_the_space():
    """What it is for: neighbours by cosine carry more of an image's labels."""
    X, Y, _ = make_collection(n=600, d=30)
    train, test = slice(0, 400), slice(400, 600)
    space = SemanticSpace().fit(X[train], Y[train])

    def shared(Z):
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        kin = np.argsort(-Z[test] @ Z[train].T, axis=1)[:, :10]
        return np.mean([(Y[train][k] == Y[test][i]).all(axis=1).mean() for i, k in enumerate(kin)])

    assert shared(space.transform(X)) > 1.5 * shared(X)


@pytest.mark.parametrize("selection", ["rpcholesky", "pgso", "uniform"])
def test_more_landmarks_come_closer_to_the_exact_space(selection):
    X, Y, X_new = make_collection(n=400)
    exact = cosines(SemanticSpace().fit(X, Y).transform(X_new))
    errors = [
        np.abs(
            cosines(
                SemanticSpace(n_landmarks=r, selection=selection, random_state=0)
                .fit(X, Y)
                .transform(X_new)
            )
            - exact
        ).mean()
        for r in (10, 60, 399)
    ]
    assert errors[0] > 1.5 * errors[1] > 3 * errors[2]


# --- streaming ---


def test_partial_fit_in_any_order_is_one_fit(collection, as_array):
    X, Y, X_new = collection
    blocks = [(X[:50], Y[:50]), (X[50:51], Y[50:51]), (X[51:110], Y[51:110]), (X[110:], Y[110:])]
    landmarks = X[::3]
    whole = SemanticSpace(selection=as_array(landmarks)).fit(as_array(X), as_array(Y))
    for order in itertools.permutations(blocks):
        if len(order[0][0]) == 1:
            continue
        space = SemanticSpace(selection=as_array(landmarks))
        for block in order:
            space.partial_fit(*map(as_array, block))
        assert space.n_images_ == 150
        found = np.asarray(space.transform(as_array(X_new)))
        np.testing.assert_allclose(found, whole.transform(as_array(X_new)), atol=1e-10)


def test_partial_fit_chooses_landmarks_from_its_first_block(collection):
    X, Y, X_new = collection
    space = SemanticSpace().partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert space.landmark_indices_.max() < 100
    expected = SemanticSpace(selection=X[:100]).fit(X, Y)
    np.testing.assert_allclose(space.transform(X_new), expected.transform(X_new), atol=1e-9)


@pytest.mark.parametrize("n_landmarks", [40, 1000])
def test_forgetting_undoes_learning(n_landmarks, collection):
    X, Y, X_new = collection
    space = SemanticSpace(n_landmarks=n_landmarks, random_state=0).fit(X, Y)
    before = space.transform(X_new)
    other = make_collection(seed=5)
    space.partial_fit(other.X, other.Y)
    assert relative_error(space.transform(X_new), before) > 1e-2
    space.forget(other.X, other.Y)
    np.testing.assert_allclose(space.transform(X_new), before, atol=1e-8)
    space.forget(X[100:], Y[100:])
    expected = SemanticSpace(selection=space.landmarks_.points).fit(X[:100], Y[:100])
    np.testing.assert_allclose(space.transform(X_new), expected.transform(X_new), atol=1e-8)


def test_only_what_was_learned_can_be_forgotten(collection):
    X, Y, X_new = collection
    space = SemanticSpace().fit(X, Y)
    before = space.transform(X_new)
    with pytest.raises(InvalidInput, match="images that were not learned"):
        space.forget(X[:50], Y[:50] + 9 * np.eye(6)[2])
    with pytest.raises(InvalidInput, match="Cannot forget 149 of 150 images"):
        space.forget(X[:149], Y[:149])
    assert_same(space.transform(X_new), before)


def test_what_cannot_have_been_learned_is_noticed(collection):
    X, Y, X_new = collection
    space = SemanticSpace(n_landmarks=40, random_state=0).fit(X, Y)
    with pytest.raises(InvalidInput, match="were not learned"):
        space.forget(-X[:100], Y[:100] * 0)
    space.forget(X[:70], Y[:70])
    with pytest.raises(InvalidInput, match=r"were not learned|forgotten twice"):
        space.forget(X[:70], Y[:70]).transform(X_new)


@pytest.mark.parametrize("n_landmarks", [40, 1000])
def test_a_failed_fit_leaves_what_was_learned(n_landmarks, collection):
    X, Y, X_new = collection
    space = SemanticSpace(n_landmarks=n_landmarks, random_state=0).fit(X, Y)
    before = space.transform(X_new)
    for bad_X, bad_Y in ((X[:60], 0 * Y[:60] + 1), (X[:60, :5] * 0 + 1, Y[:60])):
        with pytest.raises(InvalidInput):
            space.fit(bad_X, bad_Y)
    assert space.n_images_ == 150
    assert_same(space.transform(X_new), before)
    space.set_params(regularization=-1)
    with pytest.raises(InvalidInput, match="regularization"):
        space.partial_fit(X, Y)
    assert space.n_images_ == 150


def test_the_callers_arrays_are_not_kept(collection):
    X, Y, X_new = collection
    landmarks, labels = X[:30].copy(), Y.copy()
    given = SemanticSpace(selection=landmarks).fit(X, Y)
    exact = SemanticSpace().fit(X, labels)
    before = given.transform(X_new)
    landmarks += 1
    labels[:] = 0
    assert_same(given.transform(X_new), before)
    expected = SemanticSpace().fit(X, Y).partial_fit(X, Y).transform(X_new)
    np.testing.assert_allclose(exact.partial_fit(X, Y).transform(X_new), expected)


def test_a_failed_call_adds_nothing(collection):
    X, Y, X_new = collection
    space = SemanticSpace().partial_fit(X, Y)
    before = space.transform(X_new)
    bad = X.copy()
    bad[-1, 3] = np.inf
    with memory_budget(5000), pytest.raises(InvalidInput, match="NaN or infinity"):
        space.partial_fit(bad, Y)
    assert space.n_images_ == 150
    assert_same(space.transform(X_new), before)


# --- invariances ---


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize("n_landmarks", [50, 1000])
def test_block_size_threads_and_row_order_do_not_matter(dtype, tolerance, n_landmarks, collection):
    """Whatever they are, the space is that of float64 features up to the rounding of `dtype`."""
    X, Y, X_new = collection
    exact = SemanticSpace(selection=X[:n_landmarks]).fit(X, Y)
    expected = cosines(exact.transform(X_new))
    X, Y, X_new = (a.astype(dtype) for a in collection)
    landmarks = X[:n_landmarks]
    whole = SemanticSpace(selection=landmarks).fit(X, Y).transform(X_new)
    with memory_budget(3000):
        small = SemanticSpace(selection=landmarks).fit(X, Y).transform(X_new)
    with threadpool_limits(1):
        single = SemanticSpace(selection=landmarks).fit(X, Y).transform(X_new)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = SemanticSpace(selection=landmarks).fit(X[order], Y[order]).transform(X_new)
    for found in (whole, small, single, shuffled):
        np.testing.assert_allclose(cosines(found), expected, atol=tolerance)


def test_row_order_does_not_matter_when_every_image_is_a_landmark(collection):
    X, Y, X_new = collection
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(
        SemanticSpace().fit(X[order], Y[order]).transform(X_new),
        SemanticSpace().fit(X, Y).transform(X_new),
        atol=1e-10,
    )


def test_batch_is_single(collection):
    X, Y, X_new = collection
    space = SemanticSpace(n_landmarks=60, random_state=0).fit(X, Y)
    one_by_one = np.concatenate([space.transform(x[None]) for x in X_new])
    np.testing.assert_allclose(one_by_one, space.transform(X_new), atol=1e-12)


def test_the_same_seed_gives_the_same_space(collection):
    X, Y, X_new = collection
    space = SemanticSpace(n_landmarks=30, random_state=3).fit(X, Y)
    assert_same(clone(space).fit(X, Y).transform(X_new), space.transform(X_new))


# --- kinds of input ---


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_features_agree_with_float64(dtype):
    X, Y, X_new = make_collection(n=500, d=40)
    X, X_new = X.astype(dtype), X_new.astype(dtype)
    for n_landmarks in (100, 1000):
        narrow = SemanticSpace(n_landmarks=n_landmarks, random_state=0).fit(X, Y)
        points = narrow.landmarks_.points.astype(np.float64)
        wide = SemanticSpace(selection=points).fit(X.astype(np.float64), Y)
        psi = narrow.transform(X_new)
        assert psi.dtype == np.float32
        np.testing.assert_allclose(
            cosines(psi), cosines(wide.transform(X_new.astype(np.float64))), atol=1e-4
        )


def test_float32_sums_survive_a_large_common_part():
    """All images alike but for a little: the mean of the kernel is large, what varies small."""
    X, Y, X_new = make_collection(n=3000, d=20)
    X, X_new = X + 30, X_new + 30
    wide = SemanticSpace(n_landmarks=200, random_state=0).fit(X, Y)
    narrow = SemanticSpace(selection=wide.landmarks_.points.astype(np.float32)).fit(
        X.astype(np.float32), Y
    )
    found, expected = (
        cosines(narrow.transform(X_new.astype(np.float32))),
        cosines(wide.transform(X_new)),
    )
    assert np.abs(found - expected).max() < 1e-3


@pytest.mark.parametrize(
    "make",
    [
        scipy.sparse.csr_array,
        scipy.sparse.coo_matrix,
        np.ndarray.tolist,
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(np.int64),
        np.asfortranarray,
    ],
)
def test_labels_in_any_form(make, collection, as_array):
    X, Y, X_new = collection
    given = make(Y)
    if isinstance(given, np.ndarray):
        given = as_array(given)
    for parameters in ({}, {"n_landmarks": 50, "random_state": 0}):
        expected = SemanticSpace(**parameters).fit(X, Y).transform(X_new)
        space = SemanticSpace(**parameters).fit(as_array(X), given)
        np.testing.assert_allclose(space.transform(as_array(X_new)), expected, atol=1e-10)


def test_one_label_needs_no_column(collection):
    X, Y, X_new = collection
    expected = SemanticSpace().fit(X, Y[:, :1]).transform(X_new)
    for labels in (Y[:, 0], scipy.sparse.coo_array(Y[:, 0])):
        assert_same(SemanticSpace().fit(X, labels).transform(X_new), expected)


def test_many_rare_labels_stay_sparse(collection):
    X, _, X_new = collection
    Y = scipy.sparse.random_array(
        (150, 400), density=0.01, rng=np.random.default_rng(0), format="csr"
    )
    sparse = SemanticSpace(n_landmarks=50, random_state=0).fit(X, Y)
    dense = SemanticSpace(n_landmarks=50, random_state=0).fit(X, Y.toarray())
    np.testing.assert_allclose(
        gram(sparse.transform(X_new)), gram(dense.transform(X_new)), atol=1e-10
    )


def test_memory_maps(tmp_path, collection):
    X, Y, X_new = collection
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    space = SemanticSpace(n_landmarks=50, random_state=0).fit(mapped, Y)
    expected = SemanticSpace(n_landmarks=50, random_state=0).fit(X.astype(np.float16), Y)
    assert_same(space.transform(X_new), expected.transform(X_new), 1e-3)


@pytest.mark.parametrize("sparse", [True, False])
def test_memory_does_not_grow_with_the_collection(sparse):
    """Twice the images, the same peak: what is held is landmarks, sums and one block."""

    def peak(n):
        X, Y, _ = make_collection(n=n, d=64, n_labels=50)
        space = SemanticSpace(selection=X[:100].astype(np.float32))
        X = X.astype(np.float32)
        if sparse:
            Y = scipy.sparse.csr_array(Y)
        with memory_budget(2**20):
            tracemalloc.start()
            space.fit(X, Y)
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return found

    small, large = peak(10_000), peak(20_000)
    assert large < small + 2**20, (small, large)
    assert large < 8 * 2**20


# --- bad and odd input ---


def test_labels_on_no_image_change_nothing(collection):
    X, Y, X_new = collection
    with_empty = np.concatenate([Y, np.zeros((150, 3))], axis=1)
    for parameters in ({}, {"n_landmarks": 50, "random_state": 0}):
        found = SemanticSpace(**parameters).fit(X, with_empty)
        expected = SemanticSpace(**parameters).fit(X, Y)
        assert found.n_components_ == 6
        np.testing.assert_allclose(found.transform(X_new), expected.transform(X_new), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaling", ["correlation", "unit", "none"])
@pytest.mark.parametrize("n_landmarks", [100, 10_000])
def test_dependent_labels_make_no_dimension(dtype, scaling, n_landmarks):
    """One label an image: what the last label says, the others have said."""
    rng = np.random.default_rng(0)
    Y = np.eye(10)[rng.integers(0, 10, 1000)]
    X = (Y @ rng.random((10, 32)) + rng.random((1000, 32))).astype(dtype)
    parameters = {"n_landmarks": n_landmarks, "scaling": scaling, "random_state": 0}
    for labels in (Y, np.concatenate([Y, Y[:, :3]], axis=1)):
        space = SemanticSpace(**parameters).fit(X, labels)
        assert space.n_components_ == 9
        assert (space.correlations_ <= 1).all()


def test_views_are_checked(collection):
    X, Y, _ = collection

    class Broken(IndicatorView):
        result: Any

        def transform(self, Y):
            return self.result

    for result, message in (
        (np.full((150, 2), np.nan), "text features contains NaN"),
        (Y[:50], "150 rows in X and 50 in text features"),
    ):
        Broken.result = result
        with pytest.raises(ValueError, match=message):
            SemanticSpace(text_view=Broken()).fit(X, Y)


@pytest.mark.parametrize("n_landmarks", [40, 1000])
def test_overflow_is_named(n_landmarks, collection):
    X, Y, _ = collection
    for kernel, scale in ((Linear(), 1e200), (ArcCosine(normalized=False), 1e200)):
        with (
            np.errstate(all="ignore"),
            pytest.raises(InvalidInput, match=r"leaves the range of float64.*Scale"),
        ):
            SemanticSpace(kernel=kernel, n_landmarks=n_landmarks).fit(scale * X, Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["arc-cosine", "linear", "rbf"])
@pytest.mark.parametrize("n_landmarks", [40, 300, 10_000])
def test_rank_deficient_data_never_fails(dtype, kernel, n_landmarks):
    """Duplicates, zero vectors and a feature matrix of rank 3."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3)) @ rng.standard_normal((3, 8))
    X = np.concatenate([X, X, X, np.zeros((20, 8))]).astype(dtype)
    Y = np.concatenate([X[:, :2] > 0, X[:, :1] > 1], axis=1).astype(float)
    space = SemanticSpace(kernel=kernel, n_landmarks=n_landmarks, random_state=0).fit(X, Y)
    psi = space.transform(X)
    assert np.isfinite(psi).all()
    scale = np.abs(psi).max()
    np.testing.assert_allclose(psi[:100], psi[100:200], atol=1e-4 * scale)
    space.partial_fit(X, Y).forget(X[:50], Y[:50])
    assert np.isfinite(space.transform(X)).all()
    assert (space.correlations_ <= 1 + 1e-9).all()


def test_errors_say_what_was_found_and_what_to_do(collection):
    X, Y, _ = collection
    nan = X.copy()
    nan[7, 1] = np.nan

    def refused(message, X=X, Y=Y, **parameters):
        with pytest.raises(InvalidInput, match=message):
            SemanticSpace(**parameters).fit(X, Y)

    refused(r"Input X contains NaN or infinity in row 7\.", X=nan)
    for seed in range(3):  # whether row 7 is a candidate or not
        refused(r"NaN or infinity in row 7\.", X=nan, n_landmarks=20, random_state=seed)
    with memory_budget(2000):
        refused(r"NaN or infinity in row 7\.", X=nan, selection=X[50:60])
    refused("150 rows in X and 149 in Y", Y=Y[:149])
    refused("No label at all: none of the 150 images carries any of the 6 labels", Y=0 * Y)
    refused("Do all images carry the same labels", Y=0 * Y + 1)
    refused("Do all images carry the same labels", Y=0 * Y + 1, n_landmarks=20)
    refused("All images look the same", X=np.ones_like(X))
    refused("All images look the same", X=np.ones_like(X), n_landmarks=20)
    refused("All images look the same", X=np.zeros_like(X))
    refused("zero vectors", X=np.zeros_like(X), n_landmarks=20)
    refused("If it holds class numbers, make one column a class", Y=np.arange(150) % 3)
    refused("regularization must be a positive number; found 0", regularization=0)
    refused("regularization must be a positive number; found nan", regularization=float("nan"))
    refused("scaling must be one of correlation, unit, none; found 'l2'", scaling="l2")
    refused("scaling must be one of", scaling=np.array(["unit", "none"]))
    refused("n_components must be a whole number from 1, or None; found 0", n_components=0)
    refused("n_components must be a whole number from 1, or None; found 2.5", n_components=2.5)
    refused("n_components must be a whole number from 1, or None; found True", n_components=True)
    refused("n_landmarks must be a whole number from 1; found None", n_landmarks=None)
    refused("regularization must be a positive number; found 'a'", regularization="a")
    refused("Input selection contains NaN", selection=nan)
    refused("Unknown text view 'words'", text_view="words")
    refused("an object with fit and transform; found 3", text_view=3)
    refused("an object with fit and transform; found <class", text_view=IndicatorView)
    refused("sparse", X=scipy.sparse.csr_array(X))
    with pytest.raises(ValueError, match="minimum of 2"):
        SemanticSpace().fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="NaN"):
        SemanticSpace().fit(X, np.where(Y > 0, np.nan, 0))
    space = SemanticSpace().fit(X, Y)
    with pytest.raises(InvalidInput, match="Found 5 labels where 6 were fitted"):
        space.partial_fit(X, Y[:, :5])
    with pytest.raises(ValueError, match="X has 11 features, but SemanticSpace is expecting 12"):
        space.transform(X[:, :11])
    for use in (lambda s: s.transform(X), lambda s: s.correlations_, lambda s: s.forget(X, Y)):
        with pytest.raises(NotFittedError, match="Call fit"):
            use(SemanticSpace())


@pytest.mark.parametrize("selection", ["rpcholesky", "pgso", "uniform", "given"])
@pytest.mark.parametrize("row", [0, 117, 3001, 5999])
def test_the_row_of_a_bad_feature_is_named(selection, row):
    """Whether it is a candidate, in the sample for the shift, or met in a later block."""
    X, Y, _ = make_collection(n=6000)
    X[row, 2] = np.inf
    chosen = make_collection(n=20).X if selection == "given" else selection
    space = SemanticSpace(n_landmarks=20, selection=chosen, random_state=0)
    with memory_budget(100_000), pytest.raises(InvalidInput, match=rf"infinity in row {row}\."):
        space.fit(X, Y)


def test_two_images_are_enough():
    X, Y = np.eye(3)[:2], np.eye(2)
    space = SemanticSpace().fit(X, Y)
    psi = space.transform(X)
    assert space.n_components_ == 1
    np.testing.assert_allclose(psi[0], -psi[1])


def test_what_is_kept_of_landmarks_is_that_of_the_last_fit_and_goes_with_the_space():
    X, Y, _ = make_collection(60, 12, 5)
    space = SemanticSpace(n_landmarks=20).fit(X, Y)
    first = space.transform(X[:2])
    assert_same(space.transform(X[:2]), first)
    space.fit(3 * X[:40] + 1, Y[:40])
    assert_same(
        space.transform(X[:2]),
        SemanticSpace(n_landmarks=20).fit(3 * X[:40] + 1, Y[:40]).transform(X[:2]),
    )
    points = weakref.ref(space.landmarks_.points)
    del space
    gc.collect()
    assert points() is None
