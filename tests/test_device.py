"""The paths that accelerators take, on torch tensors of the processor that pass for one."""

import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import tagkin.space.moments as moments
from tagkin import (
    SemanticSpace,
    arrays,
    memory_budget,
)
from tagkin.arrays import namespaces
from tagkin.arrays.linalg import matmul
from tagkin.errors import InvalidInput
from tagkin.kernels import ArcCosine, arc_cosine
from tagkin.neighbors import ExactNeighbors, nearest
from tagkin.paper import NeighborVoting, TagProp, TwoPassKNN
from tagkin.paper.pairs import Pairs
from tagkin.space.space import Landmarks
from tests.conftest import make_collection, needs_torch
from tests.transfer.contract.methods import methods

pytestmark = needs_torch


@pytest.fixture
def accelerator(monkeypatch):
    """Tensors of the processor pass for those of an accelerator; makes such tensors."""
    import torch

    monkeypatch.setattr(namespaces, "PROCESSORS", set())
    monkeypatch.setitem(sys.modules, "tagkin.kernels.triton_order2", None)  # for GPUs alone
    return lambda a: torch.from_numpy(np.array(a))


@pytest.fixture
def on_gpu():
    """Makes tensors on a GPU, where there is one."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("this machine has no CUDA device")
    return lambda a: torch.from_numpy(np.array(a)).cuda()


# --- memory ------------------------------------------------------------------------------


def test_a_full_device_gets_smaller_blocks():
    import torch

    tried = []

    @arrays.smaller_blocks_when_full
    def work(rows):
        tried.append(arrays.block_rows(1))
        if tried[-1] > 2**25:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return rows

    assert work(3) == 3
    assert tried[1:] == sorted(tried[1:], reverse=True)
    assert tried[-1] <= 2**25
    assert arrays.block_rows(1) == 128 * 2**20


def test_a_device_that_stays_full_says_so():
    import torch

    @arrays.smaller_blocks_when_full
    def work():
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        work()

    @arrays.smaller_blocks_when_full
    def fails():
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        fails()


def test_a_fit_begins_anew_where_the_device_is_full(monkeypatch, collection):
    import torch

    X, Y, X_new = (torch.from_numpy(part).repeat(30, 1) for part in collection)
    expected = SemanticSpace(n_landmarks=40, random_state=0).fit(X, Y)
    columns, tried = Landmarks.columns, []

    def of_few(self, X, **options):
        tried.append(X.shape[0])
        if X.shape[0] > 1000:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return columns(self, X, **options)

    monkeypatch.setattr(Landmarks, "columns", of_few)
    with memory_budget(2**22):
        space = SemanticSpace(n_landmarks=40, random_state=0).fit(X, Y)
        places = space.transform(X_new)
    assert max(tried) > 1000
    torch.testing.assert_close(places, expected.transform(X_new), atol=1e-8, rtol=0)


# --- the fused kernel --------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 10, 1031])
def test_the_fused_kernel_is_the_kernel(on_gpu, n):
    rng = np.random.default_rng(0)
    X, points = (rng.standard_normal((size, 12)).astype(np.float32) for size in (n, 300))
    X[0] = points[0]
    shift = np.linspace(0, 1, 300, dtype=np.float32)
    there = [on_gpu(part) for part in (X, points, shift)]
    kernel_values = ArcCosine().less(*there).cpu()
    np.testing.assert_allclose(kernel_values, ArcCosine().less(X, points, shift), atol=1e-6)
    points[3] = 0  # zero vectors take the long way
    there[1] = on_gpu(points)
    kernel_values = ArcCosine().less(*there).cpu().numpy()
    np.testing.assert_array_equal(kernel_values[:, 3], np.full(n, -shift[3]))


def test_without_triton_the_kernel_is_the_same_after_one_product(accelerator, monkeypatch):
    products = []
    monkeypatch.setattr(
        arc_cosine, "matmul", lambda *args, **out: products.append(1) or matmul(*args, **out)
    )
    X, _, X_new = make_collection()
    X, X_new = X.astype(np.float32), X_new.astype(np.float32)
    shift = np.linspace(0, 1, len(X)).astype(np.float32)
    kernel_values = ArcCosine().less(accelerator(X_new), accelerator(X), accelerator(shift))
    assert len(products) == 1
    np.testing.assert_allclose(kernel_values, ArcCosine().less(X_new, X, shift), atol=1e-6)
    X[3] = 0
    kernel_values = ArcCosine().less(accelerator(X_new), accelerator(X), accelerator(shift))
    assert (np.asarray(kernel_values)[:, 3] == -shift[3]).all()


# --- the same answers --------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["rpcholesky", "uniform"])
def test_the_space_on_a_gpu_is_that_of_the_host(on_gpu, selection):
    X, Y, X_new = (part.astype(np.float32) for part in make_collection(n=6001, d=64))
    space = SemanticSpace(n_landmarks=600, selection=selection, random_state=0)
    space.fit(on_gpu(X), on_gpu(Y))
    embeddings = space.transform(on_gpu(X_new)).cpu().numpy()
    # the same landmarks: pivots are drawn from residuals, which round in another way there
    host = SemanticSpace(selection=space.landmarks_.points.cpu().numpy())
    expected = host.fit(X, Y).transform(X_new)
    cosines = (embeddings * expected).sum(axis=1) / np.linalg.norm(embeddings, axis=1)
    cosines /= np.linalg.norm(expected, axis=1)
    assert cosines.min() > 1 - 1e-4


@pytest.mark.parametrize("n_landmarks", [40, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_space_is_that_of_the_host(accelerator, n_landmarks, dtype):
    X, Y, X_new = make_collection(n=400)
    X, X_new = X.astype(dtype), X_new.astype(dtype)
    host = SemanticSpace(n_landmarks=n_landmarks, random_state=0).fit(X, Y)
    there = SemanticSpace(n_landmarks=n_landmarks, random_state=0)
    there.fit(accelerator(X), accelerator(Y))
    tolerance = 1e-8 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(
        np.asarray(there.transform(accelerator(X_new))), host.transform(X_new), atol=tolerance
    )
    if n_landmarks == 40:
        for space, kind in ((host, np.array), (there, accelerator)):
            space.partial_fit(kind(X_new), kind(Y[: len(X_new)]))
        np.testing.assert_allclose(
            np.asarray(there.correlations_), host.correlations_, atol=tolerance
        )


def test_gram_panels_are_the_whole_product(accelerator):
    rng = np.random.default_rng(0)
    # two parts of rows, two panels of columns, and what is left of both
    K, T = rng.standard_normal((4300, 1100)), rng.standard_normal((4300, 3))
    sums = moments.Moments.of_columns(accelerator(K), accelerator(T), accelerator(np.zeros(1100)))
    np.testing.assert_allclose(np.asarray(sums.kernel_gram), K.T @ K, atol=1e-9)
    np.testing.assert_allclose(np.asarray(sums.kernel_sum), K.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(np.asarray(sums.cross), K.T @ T, atol=1e-10)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(("n_points", "k"), [(300, 7), (5003, 30), (5003, 60)])
@pytest.mark.parametrize("alike", [False, True])
def test_neighbours_are_those_of_the_host(accelerator, metric, n_points, k, alike):
    rng = np.random.default_rng(0)
    points, queries = rng.standard_normal((n_points, 6)), rng.standard_normal((40, 6))
    if alike:  # crowds of equal points
        points = points[rng.integers(0, 20, n_points)]
        queries[::2] = points[:20]
    host = nearest(queries, points, k, metric=metric)
    with memory_budget(2**20):
        there = nearest(accelerator(queries), accelerator(points), k, metric=metric)
    np.testing.assert_array_equal(np.asarray(there.indices), host.indices)
    np.testing.assert_allclose(np.asarray(there.distances), host.distances, atol=1e-12)


METHODS = [
    NeighborVoting(7),
    NeighborVoting(7, weighted=True),
    *methods("relevance"),
    TagProp(7),
    TagProp(7, weights="distance", sigmoids=False),
    TwoPassKNN(2),
    TwoPassKNN(2, form="authors", decay=3.0),
    *methods("kin and read-out", "logistic read-out", "svm", "ridge"),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_pass_as_on_the_host(accelerator, method, dtype):
    X, Y, X_new = make_collection(n=200)
    X, X_new = X.astype(dtype), X_new.astype(dtype)
    host = clone(method).fit(X, Y)
    there = clone(method).fit(accelerator(X), scipy.sparse.csr_array(Y))
    scores = there.decision_function(accelerator(X_new))
    expected = host.decision_function(X_new)
    assert str(scores.dtype) == f"torch.{dtype}"
    tolerance = 1e-10 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(
        np.asarray(scores), expected, atol=tolerance * np.abs(expected).max()
    )
    assert there.suggest(accelerator(X_new), 3)[0][0].label == host.suggest(X_new, 3)[0][0].label
    if hasattr(host, "explain"):
        shares = [[voice.shares.sum() for voice in row] for row in host.explain(X_new, [0, 1])]
        again = there.explain(accelerator(X_new), [0, 1])
        again = [[voice.shares.sum() for voice in row] for row in again]
        np.testing.assert_allclose(again, shares, atol=1e-4)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("by_rank", [True, False])
def test_tagprop_sums_over_the_same_pairs(accelerator, by_rank, alone):
    rng = np.random.default_rng(0)
    n, k, d = 60, 5, 7
    indices = rng.integers(-1, n, (n, k))
    indices[3] = -1  # no neighbour at all
    Y = rng.random((n, d)) < 0.3
    Y[:, 4] = False  # a tag on no image
    if alone:  # nobody's neighbours carry a tag
        Y[1:] = False
        indices[indices == 0] = -1
    labels = scipy.sparse.csr_array(Y.astype(np.float32))
    here = Pairs.of(indices, labels, by_rank=by_rank)
    there = Pairs.of(accelerator(indices), labels, by_rank=by_rank)
    for name in ("label", "present"):
        actual, expected = (getattr(pairs, name) for pairs in (there, here))
        np.testing.assert_array_equal(np.asarray(actual), expected)
    for name in ("cost", "sign", "unsupported_present", "unsupported_absent"):
        actual, expected = (np.asarray(getattr(pairs, name)) for pairs in (there, here))
        np.testing.assert_allclose(actual, expected, rtol=1e-14)
    weights = rng.random(k if by_rank else (n, k))
    votes = here.votes(weights)
    np.testing.assert_allclose(np.asarray(there.votes(accelerator(weights))), votes)
    by_pair = rng.standard_normal(len(votes))
    for name in ("by_weight", "by_label"):
        actual = getattr(there, name)(accelerator(by_pair))
        np.testing.assert_allclose(actual, getattr(here, name)(by_pair), atol=1e-13)


def test_tagprop_learns_on_the_host_where_the_device_is_full(accelerator, collection, monkeypatch):
    import torch

    def full(*args, **options):
        raise torch.OutOfMemoryError("CUDA out of memory")

    X, Y, X_new = collection
    expected = TagProp(7).fit(accelerator(X), Y).decision_function(accelerator(X_new))
    monkeypatch.setattr("array_api_compat.torch.segment_reduce", full)
    scores = TagProp(7).fit(accelerator(X), Y).decision_function(accelerator(X_new))
    np.testing.assert_allclose(np.asarray(scores), np.asarray(expected), atol=1e-10)


def test_labels_that_do_not_fit_the_device_stay_on_the_host(accelerator, collection):
    X, Y, X_new = collection
    model = NeighborVoting(7).fit(accelerator(X), Y)
    expected = model.decision_function(accelerator(X_new))
    model = NeighborVoting(7).fit(accelerator(X), Y)
    with memory_budget(100):
        scores = model.decision_function(accelerator(X_new))
    np.testing.assert_array_equal(np.asarray(scores), np.asarray(expected))


def test_added_images_vote_on_the_device(accelerator, collection):
    X, Y, X_new = collection
    model = NeighborVoting(7).fit(accelerator(X[:100]), Y[:100])
    model.decision_function(accelerator(X_new))
    model.partial_fit(accelerator(X[100:]), Y[100:])
    expected = NeighborVoting(7).fit(X, Y).decision_function(X_new)
    np.testing.assert_array_equal(np.asarray(model.decision_function(accelerator(X_new))), expected)


def test_mixed_kinds_and_devices_are_named(collection):
    import torch

    X, Y, _ = collection
    space = SemanticSpace(n_landmarks=40, random_state=0).fit(X, Y)
    with pytest.raises(InvalidInput, match="NumPy arrays and torch tensors together"):
        space.transform(torch.from_numpy(X))
    index = ExactNeighbors().fit(torch.from_numpy(X))
    with pytest.raises(InvalidInput, match="different devices: cpu, meta"):
        index.kneighbors(torch.from_numpy(X).to("meta"), 3)
