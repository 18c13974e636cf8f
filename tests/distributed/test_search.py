import numpy as np
import pytest
from sklearn.base import clone

from tagkin import KinReadout
from tagkin.distributed import compute, nearest
from tagkin.errors import InvalidInput
from tagkin.neighbors import nearest as nearest_here
from tagkin.paper import NeighborVoting
from tests.conftest import make_collection

da = pytest.importorskip("dask.array", reason="Dask is not installed")


def points(n=400, m=6, dtype=np.float32, seed=0):
    """Points among which many are the same, in different shards."""
    rng = np.random.default_rng(seed)
    part = rng.standard_normal((n // 4, m)).astype(dtype)
    part[3] = 0
    return part[rng.integers(0, len(part), n)]


def cut(array, rows=90):
    return da.from_array(array, chunks=(rows, -1))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_and_ties_are_those_of_one_machine(client, metric, dtype):
    P = points(dtype=dtype) + (100 if metric == "euclidean" else 0)
    P = P.astype(dtype)
    here = nearest_here(P, P, 20, metric=metric)
    asked = nearest(cut(P, 150), cut(P), 20, metric=metric)
    there = compute(asked)
    np.testing.assert_array_equal(P[there.indices], P[here.indices])  # equal points change places
    np.testing.assert_allclose(there.distances, here.distances, rtol=1e-4, atol=1e-6)
    assert there.distances.dtype == asked.distances.dtype == here.distances.dtype
    assert asked.indices.shape == (len(P), 20)


def test_shards_smaller_than_the_answer(client):
    P = points(50)
    here = nearest_here(P, P, 49)
    there = compute(nearest(P, cut(P, 7), 49))
    np.testing.assert_array_equal(P[there.indices], P[here.indices])
    everything = compute(nearest(P[:5], cut(P, 7), 50))
    np.testing.assert_array_equal(P[everything.indices], P[nearest_here(P[:5], P, 50).indices])


@pytest.mark.parametrize("method", [NeighborVoting(9), KinReadout(9, n_landmarks=40)])
def test_labels_pass_between_neighbours_that_a_cluster_found(client, method):
    X, Y, _ = make_collection(150)
    method = clone(method).fit(X[:100], Y[:100])
    neighbors = compute(nearest(cut(X[100:], 30), cut(X[:100], 40), 9))
    scores = method.score_neighbors(*neighbors, X[100:])
    np.testing.assert_allclose(scores, method.decision_function(X[100:]), rtol=1e-5, atol=1e-5)


def test_what_cannot_be_used_is_refused(client):
    P = points()
    with pytest.raises(InvalidInput, match="Asked for 401"):
        nearest(P, cut(P), 401)
    with pytest.raises(InvalidInput, match="5 features, but points with 6"):
        nearest(P[:, :5], cut(P), 3)
    with pytest.raises(InvalidInput, match="metric must be"):
        nearest(P, cut(P), 3, metric="manhattan")
    bad = P.copy()
    bad[100, 0] = np.inf
    with pytest.raises(InvalidInput, match=r"In rows 90 to 179.*row 10"):
        compute(nearest(P, cut(bad), 3))
    with pytest.raises(InvalidInput, match=r"In rows 90 to 179.*queries.*row 10"):
        compute(nearest(cut(bad), cut(P), 3))


def test_an_index_is_made_once_for_every_shard():
    import dask

    P = points()
    neighbors = nearest(cut(P, 50), cut(P), 3)
    (optimized,) = dask.optimize(neighbors.indices)
    tasks = map(str, dict(optimized.__dask_graph__()))
    assert sum(task.startswith("tagkin-index") for task in tasks) == 5
