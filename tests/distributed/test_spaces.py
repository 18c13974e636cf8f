import numpy as np
import pytest
import scipy.sparse

from tagkin import SemanticSpace
from tagkin.distributed import compute, fit_space, transform
from tagkin.errors import InvalidInput
from tagkin.paper import Chi2View
from tests.conftest import make_collection, relative_error

da = pytest.importorskip("dask.array", reason="Dask is not installed")

N, R = 2600, 48


@pytest.fixture(scope="module")
def collection():
    return make_collection(N, d=10, n_labels=5, seed=3)


def cut(array, rows=500):
    return da.from_array(array, chunks=(rows, -1))


def test_the_space_is_that_of_one_machine(client, collection):
    X, Y, X_new = collection
    here = SemanticSpace(n_landmarks=R, random_state=0).fit(X, Y)
    there = fit_space(SemanticSpace(n_landmarks=R, random_state=0), cut(X), cut(Y))
    np.testing.assert_array_equal(there.landmarks_.indices, here.landmarks_.indices)
    np.testing.assert_allclose(there.correlations_, here.correlations_, rtol=1e-9)
    assert there.n_images_ == N
    assert relative_error(there.readout_, here.readout_) < 1e-7
    assert relative_error(there.transform(X_new), here.transform(X_new)) < 1e-7


@pytest.mark.parametrize("kind", ["memory", "sparse memory", "sparse chunks", "other chunks"])
def test_labels_come_in_several_ways(client, collection, kind):
    X, Y, X_new = collection
    sparse = cut(Y).map_blocks(
        scipy.sparse.csr_array, dtype=Y.dtype, meta=scipy.sparse.csr_array((0, Y.shape[1]))
    )
    labels = {
        "memory": Y,
        "sparse memory": scipy.sparse.csr_array(Y),
        "sparse chunks": sparse,
        "other chunks": sparse.rechunk((700, 3)),
    }[kind]
    landmarks = X[::60]
    here = SemanticSpace(selection=landmarks).fit(X, Y)
    there = fit_space(SemanticSpace(selection=landmarks), cut(X, 400), labels)
    assert relative_error(there.transform(X_new), here.transform(X_new)) < 1e-7


def test_the_chunks_do_not_matter(client, collection):
    X, Y, X_new = collection
    odd = da.from_array(X, chunks=((1, 999, 1600), (4, 6)))
    space = fit_space(SemanticSpace(n_landmarks=R, random_state=0), odd, Y)
    other = fit_space(SemanticSpace(n_landmarks=R, random_state=0), cut(X, 300), Y)
    assert relative_error(space.transform(X_new), other.transform(X_new)) < 1e-9


def test_float32_and_views_that_learn(client, collection):
    X, Y, X_new = (part.astype(np.float32) for part in collection)

    def space():
        return SemanticSpace(n_landmarks=R, text_view=Chi2View(20, random_state=0), random_state=0)

    here = space().fit(X, Y)
    there = fit_space(space(), cut(X), cut(Y))
    embeddings, expected = there.transform(X_new), here.transform(X_new)
    assert embeddings.dtype == np.float32
    cosines = np.sum(embeddings * expected, axis=1) / np.linalg.norm(embeddings, axis=1)
    np.testing.assert_allclose(cosines / np.linalg.norm(expected, axis=1), 1, atol=1e-4)


def test_few_images_are_fitted_exactly(client):
    X, Y, X_new = make_collection(150)
    here = SemanticSpace().fit(X, Y)
    there = fit_space(SemanticSpace(), cut(X, 40), cut(Y, 40))
    np.testing.assert_allclose(there.transform(X_new), here.transform(X_new), rtol=1e-10)


def test_projection_is_that_of_one_machine(client, collection):
    X, Y, _ = collection
    for dtype in (np.float64, np.float32, np.float16):
        space = SemanticSpace(n_landmarks=R, random_state=0).fit(X.astype(dtype), Y)
        places = transform(space, cut(X.astype(dtype)))
        assert places.dtype == (np.float64 if dtype == np.float64 else np.float32)
        assert places.shape == (N, space.n_components_)
        embeddings = compute(places)
        assert embeddings.dtype == places.dtype
        tolerance = 1e-12 if dtype == np.float64 else 1e-5
        assert relative_error(embeddings, space.transform(X.astype(dtype))) < tolerance


def test_a_space_learned_in_part_goes_on(client, collection):
    X, Y, X_new = collection
    landmarks = X[::60]
    here = SemanticSpace(selection=landmarks).fit(X, Y)
    space = SemanticSpace(selection=landmarks).partial_fit(X[:900], Y[:900])
    fit_space(space, cut(X), cut(Y), resume=True)
    assert space.n_images_ == N
    assert relative_error(space.transform(X_new), here.transform(X_new)) < 1e-7
    fit_space(space, cut(X), cut(Y), resume=True)
    assert space.n_images_ == N
    with pytest.raises(InvalidInput, match="Cannot continue"):
        fit_space(space, cut(X[:, :5]), cut(Y), resume=True)


def test_what_cannot_be_used_is_refused(client, collection):
    X, Y, _ = collection
    space = SemanticSpace(n_landmarks=R, random_state=0)
    refused = [
        (X, Y[:-1], "one row per image"),
        (cut(X)[:, 0], Y, "2D"),
        (cut(X).astype(complex), Y, "real numbers"),
        (cut(X)[cut(X)[:, 0] > 0], Y, "compute_chunk_sizes"),
        ([[1.0]], Y, "Dask array"),
        (cut(X), cut(Y * 0), "None of the .* images has a label"),
        (cut(X), cut(Y)[:, 0], "2D Dask array for Y"),
    ]
    for features, labels, match in refused:
        with pytest.raises(InvalidInput, match=match):
            fit_space(space, features, labels)
        assert not hasattr(space, "landmarks_")
    with pytest.raises(InvalidInput, match="pgso"):
        fit_space(SemanticSpace(n_landmarks=R, selection="pgso"), cut(X), Y)
    with pytest.raises(InvalidInput, match="whole number"):
        fit_space(SemanticSpace(n_landmarks="many"), cut(X), Y)
    with pytest.raises(InvalidInput, match="regularization"):
        fit_space(SemanticSpace(regularization=-1), cut(X), Y)


def test_an_error_names_the_rows(client, collection):
    X, Y, _ = collection
    bad = X.copy()
    bad[1234, 3] = np.nan
    space = SemanticSpace(selection=X[:30])
    with pytest.raises(InvalidInput, match=r"rows 1000 to 1499.*row 234"):
        fit_space(space, cut(bad), Y)
    assert not hasattr(space, "landmarks_")
    fitted = SemanticSpace(n_landmarks=R).fit(X, Y)
    with pytest.raises(InvalidInput, match=r"rows 1000 to 1499.*row 234"):
        compute(transform(fitted, cut(bad)))
    with pytest.raises(InvalidInput, match="expecting 10 features"):
        transform(fitted, cut(X[:, :4]))


def test_blocks_of_different_types_are_refused(client, collection):
    X, Y, _ = collection

    def mixed(block, block_info=None):
        return block.astype(np.float32) if block_info[0]["chunk-location"][0] == 2 else block

    array = cut(X).map_blocks(mixed, dtype=np.float64, meta=np.empty((0, 0)))
    space = SemanticSpace(selection=X[:30])
    with pytest.raises(InvalidInput, match=r"row 1000 on is float32, but the array is float64"):
        fit_space(space, array, Y)
    fitted = SemanticSpace(n_landmarks=R).fit(X, Y)
    with pytest.raises(InvalidInput, match="float32, but the array is float64"):
        compute(transform(fitted, array))


def test_blocks_that_are_no_arrays_are_refused(client, collection):
    X, Y, _ = collection
    array = cut(X).map_blocks(np.ndarray.tolist, dtype=np.float64, meta=np.empty((0, 0)))
    with pytest.raises(InvalidInput, match=r"is a builtins\.list; blocks are NumPy arrays"):
        fit_space(SemanticSpace(selection=X[:30]), array, Y)
