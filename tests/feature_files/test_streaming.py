"""Work over features on disk gives what work in memory gives, also after a stop."""

import os
import signal
import subprocess

import numpy as np
import pytest
import scipy.sparse

from tagkin import SemanticSpace, memory_budget
from tagkin.errors import InvalidInput
from tagkin.feature_files import fit_streamed, nearest_streamed, streaming, transform_streamed
from tagkin.neighbors import nearest
from tests.conftest import assert_same, make_collection, needs_torch

SMALL = 3 * 100 * 12 * 4  # blocks of 100 images


@pytest.fixture
def stored(tmp_path):
    """Features in two shards, labels, and the features themselves."""
    X, Y, _ = make_collection(n=1000)
    X = X.astype(np.float32)
    (tmp_path / "x").mkdir()
    np.save(tmp_path / "x" / "0.npy", X[:430])
    np.save(tmp_path / "x" / "1.npy", X[430:])
    return tmp_path / "x", Y, X


@pytest.fixture(autouse=True)
def _landmarks_among_few(monkeypatch):
    monkeypatch.setattr(streaming, "FEWEST_CANDIDATES", 100)


class Stop(Exception):
    pass


def stopping_at(image):
    def progress(what, done, total):
        assert total == 1000
        if done >= image:
            raise Stop

    return progress


@pytest.mark.parametrize("sparse", [False, True])
def test_a_streamed_fit_is_a_fit_with_its_landmarks(stored, sparse):
    folder, Y, X = stored
    labels = scipy.sparse.csr_array(Y) if sparse else Y
    space = SemanticSpace(n_landmarks=60, random_state=0)
    with memory_budget(SMALL):
        assert fit_streamed(space, folder, labels) is space
    assert space.n_images_ == 1000
    assert len(space.landmarks_.indices) == 60
    np.testing.assert_array_equal(space.landmarks_.points, X[space.landmarks_.indices])
    given = SemanticSpace(selection=X[space.landmarks_.indices]).fit(X, Y)
    np.testing.assert_allclose(space.correlations_, given.correlations_, atol=1e-5)
    np.testing.assert_allclose(space.transform(X), given.transform(X), atol=1e-3)


def test_a_fit_that_was_stopped_goes_on_to_the_same_result(stored, tmp_path):
    folder, Y, X = stored
    mark = tmp_path / "checkpoint"
    with memory_budget(SMALL):
        whole = fit_streamed(SemanticSpace(n_landmarks=60, random_state=0), folder, Y)
        space = SemanticSpace(n_landmarks=60, random_state=0)
        with pytest.raises(Stop):
            fit_streamed(space, folder, Y, checkpoint=mark, save_every=0, progress=stopping_at(500))
        assert not hasattr(space, "landmarks_")
        assert [path.name for path in mark.glob("images-*")] == ["images-000000000400"]
        seen = []
        fit_streamed(
            space,
            folder,
            Y,
            checkpoint=mark,
            save_every=0,
            progress=lambda what, done, total: seen.append(done),
        )
    assert seen == [500, 600, 700, 800, 900, 1000]
    assert not mark.exists()
    np.testing.assert_array_equal(space.landmarks_.indices, whole.landmarks_.indices)
    assert_same(space.transform(X), whole.transform(X), 1e-4)


KILLED = """
import os, signal, sys
import numpy as np
from tagkin import SemanticSpace, memory_budget
from tagkin.feature_files import fit_streamed, streaming, transform_streamed

def kill(what, done, total):
    if done >= 500:
        os.kill(os.getpid(), signal.SIGKILL)

folder, work = sys.argv[1:]
streaming.FEWEST_CANDIDATES = 100
Y = np.load(os.path.join(work, "labels.npy"))
with memory_budget(int(os.environ["BUDGET"])):
    space = SemanticSpace(n_landmarks=60, random_state=0)
    mark = os.path.join(work, "checkpoint")
    fit_streamed(space, folder, Y, checkpoint=mark, save_every=0, progress=kill)
"""


def test_a_process_that_was_killed_is_continued(stored, tmp_path, forked):
    folder, Y, X = stored
    work = tmp_path / "work"
    work.mkdir()
    np.save(work / "labels.npy", Y)
    environment = {**os.environ, "BUDGET": str(SMALL)}
    killed = forked(
        ["-c", KILLED, str(folder), str(work)], env=environment, stderr=subprocess.PIPE, text=True
    )
    _, stderr = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, stderr
    seen = []
    with memory_budget(SMALL):
        space = SemanticSpace(n_landmarks=60, random_state=0)
        fit_streamed(
            space,
            folder,
            Y,
            checkpoint=work / "checkpoint",
            progress=lambda what, done, total: seen.append(done),
        )
        whole = fit_streamed(SemanticSpace(n_landmarks=60, random_state=0), folder, Y)
    assert seen[0] == 500
    np.testing.assert_allclose(space.transform(X), whole.transform(X), atol=1e-5)


def test_a_checkpoint_half_written_is_not_used(stored, tmp_path):
    folder, Y, _ = stored
    mark = tmp_path / "checkpoint"
    space = SemanticSpace(n_landmarks=60, random_state=0)
    seen = []
    with memory_budget(SMALL):
        with pytest.raises(Stop):
            fit_streamed(space, folder, Y, checkpoint=mark, save_every=0, progress=stopping_at(500))
        (mark / "images-000000000700").mkdir()
        fit_streamed(
            space, folder, Y, checkpoint=mark, progress=lambda what, done, total: seen.append(done)
        )
    assert seen[0] == 500
    assert space.n_images_ == 1000


def test_a_checkpoint_of_something_else_is_refused(stored, tmp_path):
    folder, Y, X = stored
    mark = tmp_path / "checkpoint"
    space = SemanticSpace(n_landmarks=60, random_state=0)
    with memory_budget(SMALL), pytest.raises(Stop):
        fit_streamed(space, folder, Y, checkpoint=mark, progress=stopping_at(1))
    others = [(SemanticSpace(n_landmarks=61, random_state=0), Y)]
    others += [(space, labels) for labels in (2 * Y, Y[::-1], Y[:, ::-1])]
    for other, labels in others:
        with pytest.raises(InvalidInput, match="belongs to other features, labels or parameters"):
            fit_streamed(other, folder, labels, checkpoint=mark)
    np.save(folder / "1.npy", X[430:][::-1])
    with pytest.raises(InvalidInput, match="belongs to other features, labels or parameters"):
        fit_streamed(space, folder, Y, checkpoint=mark)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo.jpg").write_bytes(b"1")
    with pytest.raises(InvalidInput, match="files that are not a checkpoint"):
        fit_streamed(space, folder, Y, checkpoint=tmp_path / "mine")
    assert (tmp_path / "mine" / "photo.jpg").exists()


def test_a_checkpoint_knows_sparse_labels_in_their_places(stored, tmp_path):
    folder, Y, _ = stored
    mark = tmp_path / "checkpoint"
    space = SemanticSpace(n_landmarks=60, random_state=0)
    sparse = scipy.sparse.csr_array(Y)
    with memory_budget(SMALL), pytest.raises(Stop):
        fit_streamed(space, folder, sparse, checkpoint=mark, progress=stopping_at(1))
    for labels in (sparse[::-1], sparse[:, ::-1]):
        with pytest.raises(InvalidInput, match="belongs to other features, labels or parameters"):
            fit_streamed(space, folder, labels, checkpoint=mark)
    fit_streamed(space, folder, sparse.copy(), checkpoint=mark)


def test_bad_features_are_named_and_what_was_learned_stays(stored):
    folder, Y, X = stored
    space = SemanticSpace(n_landmarks=60, random_state=0).fit(X, Y)
    before = space.transform(X)
    X[612] = np.nan
    np.save(folder / "1.npy", X[430:])
    space.selection = X[:60].copy()
    with memory_budget(SMALL), pytest.raises(InvalidInput, match="infinity in row 612"):
        fit_streamed(space, folder, Y)
    X[612] = X[0]
    assert_same(space.transform(X)[:600], before[:600], 1e-4)
    with pytest.raises(InvalidInput, match="1000 rows in X and 999 in Y"):
        fit_streamed(space, folder, Y[:999])


def test_projections_are_written_and_go_on_after_a_stop(stored, tmp_path):
    folder, Y, X = stored
    space = SemanticSpace(n_landmarks=60, random_state=0).fit(X, Y)
    out = tmp_path / "psi.npy"
    with memory_budget(SMALL):
        with pytest.raises(Stop):
            transform_streamed(space, folder, out, progress=stopping_at(300))
        assert not out.exists()
        partial = tmp_path / "psi.npy.partial"
        partial.write_bytes(partial.read_bytes()[:-5])  # killed within a row
        seen = []
        transform_streamed(space, folder, out, progress=lambda what, done, total: seen.append(done))
    assert seen[0] == 300
    assert seen[-1] == 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["psi.npy", "x"]
    np.testing.assert_allclose(np.load(out), space.transform(X), atol=1e-5)
    with pytest.raises(InvalidInput, match="already exists"):
        transform_streamed(space, folder, out)


def test_projections_of_another_space_are_not_continued(stored, tmp_path):
    folder, Y, X = stored
    first = SemanticSpace(n_landmarks=60, random_state=0).fit(X, Y)
    second = SemanticSpace(n_landmarks=60, random_state=1).fit(X, Y)
    out = tmp_path / "psi.npy"
    with memory_budget(SMALL), pytest.raises(Stop):
        transform_streamed(first, folder, out, progress=stopping_at(300))
    transform_streamed(second, folder, out)
    np.testing.assert_allclose(np.load(out), second.transform(X), atol=1e-5)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbours_on_disk_are_those_in_memory(stored, metric):
    folder, _, X = stored
    X[700:] = X[:300]  # equal points in different blocks
    np.save(folder / "1.npy", X[430:])
    expected = nearest(X[:50], X, 20, metric=metric)
    with memory_budget(SMALL):
        neighbors = nearest_streamed(X[:50], folder, 20, metric=metric)
    if metric == "cosine":
        np.testing.assert_array_equal(neighbors.indices, expected.indices)
    np.testing.assert_allclose(neighbors.distances, expected.distances, atol=1e-5)
    with memory_budget(SMALL):  # more than a block holds
        assert nearest_streamed(X[:5], folder, 300).indices.shape == (5, 300)
    with pytest.raises(InvalidInput, match="1001 neighbours among 1000 points"):
        nearest_streamed(X[:5], folder, 1001)


@needs_torch
def test_blocks_go_to_a_device(stored, tmp_path):
    import torch

    folder, Y, X = stored
    with memory_budget(SMALL):
        here = fit_streamed(SemanticSpace(n_landmarks=60, random_state=0), folder, Y)
        there = fit_streamed(SemanticSpace(n_landmarks=60, random_state=0), folder, Y, device="cpu")
        out = transform_streamed(there, folder, tmp_path / "psi.npy")
        queries = torch.from_numpy(X[:9])
        neighbors = nearest_streamed(queries, folder, 5, device="cpu")
    assert isinstance(there.landmarks_.points, torch.Tensor)
    np.testing.assert_allclose(np.load(out), here.transform(X), atol=1e-3)
    np.testing.assert_array_equal(np.asarray(neighbors.indices), nearest(X[:9], X, 5).indices)


def test_a_space_that_is_only_prepared_says_so(stored):
    _, Y, X = stored
    space = SemanticSpace(n_landmarks=60, random_state=0).prepare(X, Y)
    assert space.n_images_ == 0
    with pytest.raises(InvalidInput, match="learned from 0 images"):
        space.transform(X)
    space.partial_fit(X, Y)
    expected = SemanticSpace(n_landmarks=60, random_state=0).fit(X, Y)
    assert_same(space.transform(X), expected.transform(X), 1e-3)
