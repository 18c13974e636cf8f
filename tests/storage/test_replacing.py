"""A model is replaced in one step: whoever looks, and whatever is killed, there is a whole one."""

import errno
import os
import sys
from functools import partial

import numpy as np
import pytest

from tagkin import FeatureAnnotator, SemanticSpace, load, save
from tagkin.errors import StorageError
from tagkin.filesystem import folder_lock
from tagkin.paper import NeighborVoting
from tagkin.storage import folders
from tests.conftest import make_collection
from tests.forking import in_child, needs_fork
from tests.killing import failing_at, kill_everywhere, steps_of

N_SAVERS, N_SAVES, N_READS = 8, 10, 6


@pytest.fixture(scope="module")
def models():
    """Two models that can be told apart, the second with other numbers throughout."""
    X, Y, _ = make_collection()
    return [SemanticSpace(r, n_landmarks=20, random_state=0).fit(X, Y) for r in (0.5, 2.0)]


def whole(folder):
    """Which of the two models a folder holds, all of which is as it was saved."""
    loaded = load(folder)
    assert loaded.moments_.count == 150
    return loaded.regularization


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


WHOLE = ["README.md", "model.safetensors"]


@needs_fork
@pytest.mark.parametrize("stride", [5, 1])
def test_a_kill_at_any_step_leaves_a_whole_model(stride, models, tmp_path, lean):
    """Also the next save, after each kill, finds nothing in its way and leaves nothing behind."""
    assert lean(kill_replacing, models, tmp_path, stride) > 20 // stride
    assert whole(tmp_path / "model") == 2.0
    assert names_in(tmp_path / "model") == WHOLE


def kill_replacing(models, tmp_path, stride):
    folder, seen = tmp_path / "model", []

    def check(step):
        seen.append(whole(folder))
        assert os.listdir(tmp_path) == ["model"]
        save(models[0], folder, overwrite=True)
        assert names_in(folder) == WHOLE
        assert whole(folder) == 0.5

    n = kill_everywhere(
        lambda: save(models[1], folder, overwrite=True),
        prepare=lambda: save(models[0], folder, overwrite=True),
        check=check,
        stride=stride,
    )
    assert seen == sorted(seen), "from one step on it is the new one"
    assert set(seen) == {0.5, 2.0}
    return n


@needs_fork
@pytest.mark.parametrize("stride", [5, 1])
def test_a_kill_of_the_first_save_leaves_nothing_in_the_way(stride, models, tmp_path, lean):
    assert lean(kill_first_save, models[0], tmp_path / "new", stride) > 20 // stride


def kill_first_save(model, folder, stride):
    def check(step):
        if (folder / "model.safetensors").exists():
            assert whole(folder) == 0.5
            save(model, folder, overwrite=True)
        else:
            with pytest.raises(StorageError, match="not a tagkin model"):
                load(folder)
            save(model, folder)
        assert names_in(folder) == WHOLE
        clear(folder)

    def clear(folder):
        if folder.exists():
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()

    return kill_everywhere(lambda: save(model, folder), lambda: clear(folder), check, stride=stride)


@needs_fork
@pytest.mark.parametrize("stride", [5, 1])
def test_adding_images_and_saving_survives_kills(stride, tmp_path, lean):
    """Load, partial_fit, save."""
    assert lean(kill_adding, tmp_path / "model", stride) > 20 // stride
    assert load(tmp_path / "model").method_.labels.shape[0] == 60


def kill_adding(folder, stride):
    X, Y, X_new = make_collection(60)
    tags = [[f"tag {t}" for t in np.flatnonzero(row)] for row in Y]
    learned = FeatureAnnotator(method=NeighborVoting()).fit(X[:50], tags[:50])
    learned.save(folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    extended = load(folder).partial_fit(X[50:], tags[50:])

    def prepare():
        for path in folder.iterdir():
            path.unlink()
        for name, data in files.items():
            (folder / name).write_bytes(data)

    def work():
        extended.save(folder, overwrite=True)

    def check(step):
        loaded = load(folder)
        assert loaded.method_.labels.shape[0] in (50, 60)
        assert loaded.belonging_.shape == loaded.method_.labels.shape
        assert len(loaded.suggest(X_new[:1])) == 1

    return kill_everywhere(work, prepare, check, stride=stride)


@pytest.mark.parametrize("first", [True, False])
def test_a_disk_that_is_full_at_any_step_leaves_what_was_there(first, models, tmp_path):
    folder = tmp_path / "model"
    steps = steps_of(lambda: save(models[0], folder))
    n_failed = 0
    for n in range(len(steps)):
        if first:
            for path in folder.iterdir() if folder.exists() else ():
                path.unlink()
            if folder.exists():
                folder.rmdir()
        try:
            with failing_at(n, errno.ENOSPC):
                save(models[not first], folder, overwrite=True)
        except StorageError as error:
            assert "No space left" in str(error)  # noqa: PT017
            n_failed += 1
            switched = not first and whole(folder) == 2.0  # the card alone is missing
        else:
            switched = True
        if first:
            assert not folder.exists() or whole(folder) == 0.5
        else:
            assert whole(folder) == (2.0 if switched else 0.5)
            save(models[0], folder, overwrite=True)
            assert names_in(folder) == WHOLE
    assert n_failed > 10


def race(folder, numbers, enough):
    """Save models again and again, beside others who do; at least until a file is there."""
    X, Y, _ = make_collection(60)
    models = [SemanticSpace(r, n_landmarks=10, random_state=0).fit(X, Y) for r in numbers]
    n = 0
    while n < N_SAVES or not enough.exists():
        save(models[n % len(models)], folder, overwrite=True)
        n += 1


@needs_fork
def test_racing_saves_and_loads(tmp_path):
    """Eight processes save to one folder, ten times each, while this one reads."""
    folder, enough = tmp_path / "models" / "model", tmp_path / "enough"
    folder.parent.mkdir()
    savers = [partial(race, folder, (k + 1.0, k + 1.5), enough) for k in range(N_SAVERS)]
    n_read, running = 0, {in_child(saver) for saver in savers}
    try:
        while running:
            for child in list(running):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    running.remove(child)
                    assert os.waitstatus_to_exitcode(status) == 0
            if (folder / "model.safetensors").exists():
                loaded = load(folder)
                # the numbers are those of the settings
                assert loaded.moments_.count == 60
                n_read += 1
                if n_read == N_READS:
                    enough.touch()
    finally:
        enough.touch()
    assert n_read >= N_READS
    assert names_in(folder) == WHOLE
    assert os.listdir(folder.parent) == ["model"]


def test_one_who_waits_too_long_is_told(models, tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="Windows has no fcntl")
    folder = save(models[0], tmp_path / "model")
    monkeypatch.setattr(folders, "folder_lock", partial(folder_lock, patience=0.1))
    with (folder / ".saving").open("wb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        with pytest.raises(StorageError, match="Another process has been saving"):
            save(models[1], folder, overwrite=True)
    assert whole(folder) == 0.5
    save(models[1], folder, overwrite=True)
    assert whole(folder) == 2.0


def test_without_locks_what_others_may_be_writing_is_left_alone(models, tmp_path, monkeypatch):
    """On file systems that know no locks, a scratch file may be that of a save that goes on."""
    folder = save(models[0], tmp_path / "model")
    scratch = folder / ".model.safetensors-0123456789abcdef"
    scratch.write_text("of another process")
    monkeypatch.setattr(sys.modules["tagkin.filesystem"], "try_lock", lambda file: None)
    save(models[1], folder, overwrite=True)
    assert scratch.exists()
    assert whole(folder) == 2.0
    monkeypatch.undo()
    save(models[0], folder, overwrite=True)
    assert names_in(folder) == WHOLE
