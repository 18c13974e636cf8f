"""What goes into a space: in any order, block, precision and form; what is odd, and refused."""

import gc
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from tagkin import SemanticSpace, load, memory_budget, save
from tagkin.errors import InvalidInput
from tagkin.kernels import ArcCosine, Linear
from tagkin.space.views import IndicatorView
from tests.conftest import assert_same, make_collection
from tests.dense import cosines, gram

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
    for embeddings in (whole, small, single, shuffled):
        np.testing.assert_allclose(cosines(embeddings), expected, atol=tolerance)


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
    actual, expected = (
        cosines(narrow.transform(X_new.astype(np.float32))),
        cosines(wide.transform(X_new)),
    )
    assert np.abs(actual - expected).max() < 1e-3


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


def test_columns_with_names_keep_their_order(collection, tmp_path):
    """Other labels under the same numbers would be learned without a word."""
    pandas = pytest.importorskip("pandas")
    X, Y, X_new = collection
    named = pandas.DataFrame(Y, columns=list("abcdef"))
    space = load(save(SemanticSpace().fit(X[:100], named[:100]), tmp_path / "model"))
    space.partial_fit(X[100:], named[100:])
    before = space.transform(X_new)
    for learn in (space.partial_fit, space.forget):
        with pytest.raises(InvalidInput, match="Column 0 of Y"):
            learn(X[:10], named[:10][list("badcfe")])
    with pytest.raises(InvalidInput, match="2 columns named 'a'"):
        space.fit(X, named.rename(columns={"b": "a"}))
    assert_same(space.transform(X_new), before)
    space.forget(X[100:], Y[100:])  # numbers go by position, as ever


def test_one_label_needs_no_column(collection):
    X, Y, X_new = collection
    expected = SemanticSpace().fit(X, Y[:, :1]).transform(X_new)
    for labels in (Y[:, 0], scipy.sparse.coo_array(Y[:, 0])):
        assert_same(SemanticSpace().fit(X, labels).transform(X_new), expected)


def test_many_rare_labels_stay_sparse(collection):
    X, _, X_new = collection
    Y = scipy.sparse.random_array(
        (150, 400), density=0.01, random_state=np.random.default_rng(0), format="csr"
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
            peak_bytes = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return peak_bytes

    small, large = peak(10_000), peak(20_000)
    assert large < small + 2**20, (small, large)
    assert large < 8 * 2**20


# --- bad and odd input ---


def test_labels_on_no_image_change_nothing(collection):
    X, Y, X_new = collection
    with_empty = np.concatenate([Y, np.zeros((150, 3))], axis=1)
    for parameters in ({}, {"n_landmarks": 50, "random_state": 0}):
        space = SemanticSpace(**parameters).fit(X, with_empty)
        expected = SemanticSpace(**parameters).fit(X, Y)
        assert space.n_components_ == 6
        np.testing.assert_allclose(space.transform(X_new), expected.transform(X_new), atol=1e-10)


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
    refused("No label at all: none of the 150 images has any of the 6 labels", Y=0 * Y)
    refused("Do all images have the same labels", Y=0 * Y + 1)
    refused("Do all images have the same labels", Y=0 * Y + 1, n_landmarks=20)
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
