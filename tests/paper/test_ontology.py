import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from tagkin import SemanticSpace, load, save
from tagkin.errors import InvalidInput
from tagkin.paper.ontology import OntologyView, psd_factor
from tagkin.paper.wordnet import WordNet
from tagkin.space.views import TextView, as_text_view
from tests.conftest import (
    assert_same,
    make_collection,
    needs_torch,
    needs_wordnet,
    relative_error,
)
from tests.labels.given import GivenFeatures
from tests.paper.wordnet_writer import write_wordnet

NAMES = ["dog", "cat", "bat", "racket", "unicorn", "yeti"]


@pytest.fixture
def wordnet(tmp_path):
    return WordNet(write_wordnet(tmp_path / "wordnet"))


@pytest.fixture
def nowhere(monkeypatch):
    """WordNet cannot be found any more."""

    def refuse(*args, **kwargs):
        raise AssertionError("looked for WordNet")

    monkeypatch.setattr(WordNet, "__init__", refuse)


def test_the_kernel_is_that_of_the_paper(wordnet, as_array):
    """K^T = Y S Yᵀ (equation 4)."""
    Y = make_collection().Y
    S = wordnet.lin_matrix(NAMES)
    assert np.linalg.eigvalsh(S)[0] > 0, "nothing is to be clipped"
    view = OntologyView(NAMES, wordnet).fit(as_array(Y))
    T = np.asarray(view.transform(as_array(Y)))
    np.testing.assert_allclose(T @ T.T, Y @ S @ Y.T, atol=1e-12)
    np.testing.assert_allclose(view.similarity_, S, atol=1e-12)
    assert view.clipped_ == 0
    assert view.unknown_ == ["unicorn"]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
def test_every_kind_of_labels_gives_the_same(wordnet, as_array, dtype):
    Y = make_collection().Y.astype(dtype)
    view = OntologyView(NAMES, wordnet).fit(Y)
    expected = view.transform(Y.astype(float))
    assert_same(view.transform(as_array(Y)), expected, 1e-5)
    for form in (scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.coo_array):
        np.testing.assert_allclose(view.transform(form(Y)), expected, atol=1e-12)


def test_an_indefinite_matrix_gets_the_nearest_kernel():
    """Of eigenvalues 3 and −1, the one is kept and the other clipped."""
    F, clipped = psd_factor(np.array([[1.0, 2.0], [2.0, 1.0]]))
    np.testing.assert_allclose(F @ F.T, [[1.5, 1.5], [1.5, 1.5]])
    assert F.shape == (2, 1)
    assert clipped == pytest.approx(1 / np.sqrt(10))


def test_no_other_kernel_is_nearer():
    rng = np.random.default_rng(0)
    S = rng.standard_normal((8, 8))
    S += S.T
    F, clipped = psd_factor(S)
    assert np.linalg.eigvalsh(F @ F.T)[0] > -1e-12
    distance = np.linalg.norm(S - F @ F.T)
    assert distance / np.linalg.norm(S) == pytest.approx(clipped)
    for _ in range(100):
        G = F + 0.1 * rng.standard_normal(F.shape)
        assert np.linalg.norm(S - G @ G.T) > distance


def test_words_of_one_meaning_share_a_dimension(wordnet):
    names = ["dog", "Dogs", "domestic dog", "cat"]
    view = OntologyView(names, wordnet).fit(np.eye(4))
    assert view.factor_.shape == (4, 2)


@needs_wordnet
def test_real_labels_need_little_clipping():
    """Best pairs of senses do not add up to a kernel, but nearly so."""
    names = ["person", "dog", "cat", "bat", "mouse", "orange", "apple", "keyboard", "bank", "tie"]
    names += ["train", "bus", "skis", "traffic light", "cell phone", "stop sign", "laptop"]
    wordnet = WordNet()
    view, S = OntologyView(names, wordnet).fit(np.eye(len(names))), wordnet.lin_matrix(names)
    assert np.linalg.eigvalsh(S)[0] < -0.01
    assert np.linalg.eigvalsh(view.similarity_)[0] > -1e-12
    assert 0 < view.clipped_ < 0.1
    distance = np.linalg.norm(view.similarity_ - S) / np.linalg.norm(S)
    assert view.clipped_ == pytest.approx(distance)
    assert view.unknown_ == ["stop sign"]


def test_what_does_not_fit_is_refused(wordnet):
    Y = np.eye(6)
    with pytest.raises(InvalidInput, match=r"needs the labels' names: OntologyView\(names\)"):
        OntologyView().fit(Y)
    with pytest.raises(InvalidInput, match="Found 2 names for the 6 labels of Y"):
        OntologyView(NAMES[:2], wordnet).fit(Y)
    with pytest.raises(InvalidInput, match="Expected a list of words; found the string"):
        OntologyView("abcdef", wordnet).fit(Y)
    with pytest.raises(InvalidInput, match="Found 3 labels where 6 were fitted"):
        OntologyView(NAMES, wordnet).fit(Y).transform(np.eye(3))
    with pytest.raises(InvalidInput, match="Unknown text view 'ontology'"):
        as_text_view("ontology")


def test_a_view_is_cloned_with_the_wordnet_it_was_given(wordnet):
    view = OntologyView(NAMES, wordnet)
    assert isinstance(view, TextView)
    assert clone(view).wordnet is wordnet
    assert as_text_view(view) is not view


def test_a_saved_space_needs_no_wordnet(wordnet, tmp_path, nowhere):
    X, Y, X_new = make_collection()
    view = OntologyView(NAMES, wordnet)
    model = SemanticSpace(text_view=view, n_landmarks=40, random_state=0).fit(X, Y)
    assert view.wordnet is wordnet
    folder = save(model, tmp_path / "model")
    again = load(folder)
    assert_same(again.transform(X_new), model.transform(X_new))
    assert_same(again.text_view_.transform(Y), model.text_view_.transform(Y))
    assert again.text_view_.unknown_ == ["unicorn"]
    assert again.text_view.names == NAMES
    assert again.text_view.wordnet is None
    for space in (again, model):
        space.partial_fit(X[:60], scipy.sparse.csr_array(Y[:60]))
    np.testing.assert_allclose(again.transform(X_new), model.transform(X_new), atol=1e-9)
    for file in folder.iterdir():
        assert str(tmp_path).encode() not in file.read_bytes()


@needs_torch
def test_a_view_loaded_to_a_device_takes_every_kind_of_labels(wordnet, tmp_path):
    import torch

    X, Y, _ = make_collection()
    view = OntologyView(NAMES, wordnet)
    folder = save(SemanticSpace(text_view=view, n_landmarks=40).fit(X, Y), tmp_path / "model")
    loaded = load(folder, device="cpu").text_view_
    expected = OntologyView(NAMES, wordnet).fit(Y).transform(Y)
    for labels in (Y, torch.tensor(Y), scipy.sparse.csr_array(Y)):
        np.testing.assert_allclose(np.asarray(loaded.transform(labels)), expected, atol=1e-12)


def test_a_space_takes_the_meaning_of_labels_in(wordnet):
    """Its directions are those of the labels Y S^½, and not of Y."""
    X, Y, X_new = make_collection()
    S = wordnet.lin_matrix(NAMES)
    values, vectors = np.linalg.eigh(S)
    root = vectors * np.sqrt(values) @ vectors.T
    embeddings = SemanticSpace(text_view=OntologyView(NAMES, wordnet)).fit(X, Y).transform(X_new)
    view = GivenFeatures(Y @ root)
    expected = SemanticSpace(text_view=view).fit(X, Y).transform(X_new)
    plain = SemanticSpace().fit(X, Y).transform(X_new)
    assert relative_error(embeddings @ embeddings.T, expected @ expected.T) < 1e-9
    assert relative_error(embeddings @ embeddings.T, plain @ plain.T) > 1e-3
