import numpy as np
import pytest
import scipy.sparse

from tagkin import SemanticSpace, TagDenoiser
from tagkin.distributed import compute, denoise, fit_space
from tagkin.errors import InvalidInput
from tests.conftest import make_collection

da = pytest.importorskip("dask.array", reason="Dask is not installed")


@pytest.fixture(scope="module")
def collection():
    X, Y, _ = make_collection(300, d=10, n_labels=6, seed=1)
    X[7] = X[250] = 0  # like nothing
    Y[5] = 0
    return X.astype(np.float32), Y


def cut(array, rows=130):
    return da.from_array(array, chunks=(rows, -1))


@pytest.mark.parametrize(
    "chosen",
    [
        {"blend": 1.0},
        {"blend": 0.4, "n_neighbors": 15},
        {"blend": 0.3, "metric": "euclidean", "scale": "mean", "n_neighbors": 30},
        {"blend": 0.5, "scale": 0.7},
        {"blend": 1.0, "n_neighbors": 1},
        {"blend": 0},
        {"blend": 1.0, "n_neighbors": 1000},
        {"n_neighbors": 20, "space": SemanticSpace(n_landmarks=1024)},
    ],
    ids=str,
)
def test_tags_are_those_of_one_machine(client, collection, chosen):
    X, Y = collection
    here = TagDenoiser(**chosen).fit_transform(X, Y)
    there = denoise(TagDenoiser(**chosen), cut(X), scipy.sparse.csr_array(Y))
    assert there.shape == Y.shape
    assert there.dtype == np.float32
    found = compute(there)
    assert isinstance(found, scipy.sparse.csr_array)
    np.testing.assert_allclose(found.toarray(), here.toarray(), atol=2e-6)


def test_denoised_tags_make_a_space(client):
    X, Y, _ = make_collection(2300, d=10, n_labels=6, seed=1)
    denoiser = TagDenoiser(blend=0.5, n_neighbors=10)
    here = SemanticSpace(n_landmarks=30, random_state=0).fit(X, denoiser.fit_transform(X, Y))
    tags = denoise(denoiser, cut(X, 1000), cut(Y, 500))
    there = fit_space(SemanticSpace(n_landmarks=30, random_state=0), cut(X, 1000), tags)
    np.testing.assert_allclose(there.correlations_, here.correlations_, rtol=1e-5)


def test_a_sample_decides_where_images_are_many(client, collection, monkeypatch):
    X, Y, _ = make_collection(900, d=10, n_labels=6, seed=2)
    monkeypatch.setattr("tagkin.distributed.denoising.SAMPLE_SIZE", 700)
    found = compute(
        denoise(
            TagDenoiser(n_neighbors=10, space=SemanticSpace(n_landmarks=1024)),
            cut(X, 400),
            cut(Y, 400),
        )
    )
    assert found.shape == Y.shape
    assert np.isfinite(found.data).all()


def test_what_cannot_be_used_is_refused(client, collection):
    X, Y = collection
    with pytest.raises(InvalidInput, match="blend must be"):
        denoise(TagDenoiser(blend=3), cut(X), Y)
    bad = Y.copy()
    bad[150, 2] = -1
    with pytest.raises(InvalidInput, match=r"In rows 130 to 259.*negative entry in row 20 of Y"):
        compute(denoise(TagDenoiser(blend=1.0), cut(X), cut(bad)))
