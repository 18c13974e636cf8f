import json
import os
import re
import warnings

import numpy as np
import pytest
import scipy.sparse
from safetensors.numpy import save as np_save
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from tagkin import LandmarkMap, SemanticSpace, load, save, storage
from tagkin.errors import DamagedModel, InvalidInput, StorageError
from tagkin.kernels import RBF
from tagkin.paper import NeighborVoting
from tagkin.space.views import IndicatorView
from tagkin.storage.model_file import read_model
from tests.conftest import assert_same, make_collection, needs_torch
from tests.hardening.crafting import Crafted, rewrite, sha256_of
from tests.killing import counted, failing_at, steps_of
from tests.test_filesystem import refuse_as_windows_does


@pytest.fixture
def space(collection):
    return SemanticSpace(n_landmarks=40, random_state=0).fit(collection.X, collection.Y)


@pytest.fixture
def saved(space, tmp_path):
    return save(space, tmp_path / "model")


MODELS = [
    SemanticSpace(),
    SemanticSpace(n_landmarks=40, scaling="unit", n_components=3),
    SemanticSpace(kernel="rbf", selection=make_collection().X[:30], text_view=IndicatorView()),
    SemanticSpace(kernel=RBF(0.1), random_state=3),
    LandmarkMap(n_landmarks=20),
]


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_a_loaded_model_is_the_saved_one(model, tmp_path):
    X, Y, X_new = make_collection()
    model = clone(model).fit(X, Y)
    again = load(save(model, tmp_path / "model"))
    assert type(again) is type(model)
    for name in ("kernel", "n_landmarks", "scaling", "n_components"):
        assert getattr(again, name, None) == getattr(model, name, None)
    assert_same(again.transform(X_new), model.transform(X_new))
    if isinstance(model, SemanticSpace):
        again.partial_fit(X[:60], Y[:60])
        model.partial_fit(X[:60], Y[:60])
        np.testing.assert_allclose(again.transform(X_new), model.transform(X_new), atol=1e-9)


def test_the_folder_has_numbers_settings_and_a_card(saved):
    assert sorted(p.name for p in saved.iterdir()) == ["README.md", "model.safetensors"]
    card = (saved / "README.md").read_text()
    assert "Learned from 150 images with 12 features" in card
    assert "| `n_landmarks` | `40` |" in card
    assert str(saved) not in card
    assert not list(saved.parent.glob(".*")), "nothing temporary is left"


def test_sparse_labels_of_an_exact_fit_are_kept(collection, tmp_path):
    X, Y, X_new = collection
    model = SemanticSpace().fit(X, scipy.sparse.csr_array(Y))
    again = load(save(model, tmp_path / "model"))
    for space in (model, again):
        space.forget(X[100:], Y[100:])
    assert_same(again.transform(X_new), model.transform(X_new))


@needs_torch
def test_a_model_can_move_between_numpy_and_torch(collection, tmp_path):
    import torch

    X, Y, X_new = collection
    fitted = SemanticSpace(n_landmarks=40, random_state=0).fit(torch.tensor(X), torch.tensor(Y))
    folder = save(fitted, tmp_path / "model")
    expected = fitted.transform(torch.tensor(X_new))
    np.testing.assert_allclose(load(folder).transform(X_new), expected, atol=1e-12)
    on_device = load(folder, device="cpu")
    torch.testing.assert_close(on_device.transform(torch.tensor(X_new)), expected)


def test_feature_names_are_kept(collection, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(collection.X, columns=[f"f{i}" for i in range(12)])
    model = SemanticSpace().fit(frame, collection.Y)
    again = load(save(model, tmp_path / "model"))
    assert again.feature_names_in_.tolist() == list(frame.columns)


# --- nothing is lost ---


def test_an_existing_model_is_replaced_only_on_request(space, saved, collection):
    with pytest.raises(StorageError, match="holds a model already"):
        save(space, saved)
    other = SemanticSpace(regularization=3.0).fit(collection.X, collection.Y)
    save(other, saved, overwrite=True)
    assert load(saved).regularization == 3.0
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


def test_a_folder_of_something_else_is_never_touched(space, saved, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"precious")
    (saved / "notes.txt").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model.safetensors").write_bytes(np_save({"a": np.ones(3)}))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "README.md").write_text("mine")
    for folder, name in (
        ("photos", "a.jpg"),
        ("model", "notes.txt"),
        ("other", "model.safetensors"),
        ("project", "README.md"),
    ):
        with pytest.raises(StorageError, match=f"not a tagkin model \\({name}\\)"):
            save(space, tmp_path / folder, overwrite=True)
    assert (tmp_path / "photos" / "a.jpg").read_bytes() == b"precious"
    (saved / "notes.txt").unlink()
    (saved / "README.md").unlink()
    (saved / "README.md").mkdir()
    with pytest.raises(StorageError, match=r"not a tagkin model \(README\.md\)"):
        save(space, saved, overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="is a file"):
        save(space, tmp_path / "file", overwrite=True)


LITTER = (".DS_Store", "Thumbs.db", "desktop.ini", "._model.safetensors")


def test_what_systems_leave_in_a_folder_is_no_obstacle(space, saved, tmp_path):
    for folder in (saved, tmp_path / "new"):
        folder.mkdir(exist_ok=True)
        for name in LITTER:
            (folder / name).write_bytes(b"\0")
    with pytest.raises(StorageError, match="holds a model already"):
        save(space, saved)
    for folder in (save(space, saved, overwrite=True), save(space, tmp_path / "new")):
        assert load(folder).n_images_ == 150
    (saved / ".DS_Store").unlink()
    (saved / ".DS_Store").mkdir()
    with pytest.raises(StorageError, match=r"not a tagkin model \(\.DS_Store\)"):
        save(space, saved, overwrite=True)


def test_a_refusal_can_be_had_before_the_training(saved, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"precious")
    (tmp_path / "file").write_text("x")
    for folder, overwrite, match in (
        (saved, False, "holds a model already"),
        (tmp_path / "photos", True, "not a tagkin model"),
        (tmp_path / "file", True, "is a file"),
        (tmp_path / "file" / "model", True, "not a folder"),
    ):
        with pytest.raises(StorageError, match=match):
            storage.check_folder(folder, overwrite=overwrite)
    assert storage.check_folder(saved, overwrite=True) == saved
    assert storage.check_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_model_may_be_read_by_those_who_may_read_other_files(space, tmp_path, umask):
    before = os.umask(umask)
    try:
        folder = save(space, tmp_path / "model")
    finally:
        os.umask(before)
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask, path.name
    assert folder.stat().st_mode & 0o777 == 0o777 & ~umask


def test_models_are_saved_and_replaced_under_the_rules_of_windows(space, tmp_path, monkeypatch):
    refuse_as_windows_does(monkeypatch)
    folder = save(space, tmp_path / "model")
    save(space, folder, overwrite=True)
    (tmp_path / "empty").mkdir()
    save(space, tmp_path / "empty")
    assert load(folder).n_images_ == load(tmp_path / "empty").n_images_ == 150
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "model"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_appears_while_saving_is_not_touched(space, saved, overwrite):
    """Someone puts a file into the target between the check and the rename."""
    target = saved if overwrite else saved.parent / "new"
    target.mkdir(exist_ok=True)

    def step(name):
        if name == "write" and not (target / "photo.jpg").exists():
            (target / "photo.jpg").write_bytes(b"precious")

    with counted(step), pytest.raises(StorageError, match=r"not a tagkin model \(photo\.jpg\)"):
        save(space, target, overwrite=overwrite)
    assert (target / "photo.jpg").read_bytes() == b"precious"
    assert load(saved).n_images_ == 150
    if not overwrite:
        assert [p.name for p in target.iterdir()] == ["photo.jpg"]


def test_impossible_paths_are_refused(space, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop", tmp_path / "nul\0"):
        with pytest.raises(StorageError, match="Could not save"):
            save(space, path)


def test_a_link_to_a_model_is_followed(space, saved, tmp_path):
    (tmp_path / "link").symlink_to(saved)
    save(space, tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert load(saved).n_images_ == 150


def test_a_full_disk_leaves_the_old_model(space, saved):
    """Full from any step on, until what was written first is to last."""
    for n in range(steps_of(lambda: save(space, saved, overwrite=True)).index("fsync") + 1):
        with (
            failing_at(n),
            pytest.raises(StorageError, match=r"No space left on device\. Nothing was changed"),
        ):
            save(space, saved, overwrite=True)
        assert load(saved).n_images_ == 150
        assert [p.name for p in saved.parent.iterdir()] == ["model"]


# --- damaged and foreign folders ---


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.99])
def test_a_truncated_file_is_noticed(share, saved):
    path = saved / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(DamagedModel, match="cannot be read"):
        load(saved)


@pytest.mark.parametrize(
    ("dtype", "shape", "reason"),
    [
        ("BF16", [4], "it has numbers of the type 'BF16'"),
        ("F32", [2**62, 0], "array is too big"),
        ("F32", [2**62, 4], "[Oo]verflow"),
        ("F32", [9], "([Ii]nvalid shape|TensorInvalid)"),  # by version of safetensors
        ("BOOL", [8], "'a' has flags that are neither 0 nor 1"),
    ],
)
def test_a_header_that_lies_is_noticed(dtype, shape, reason, tmp_path):
    """Also if whoever wrote it has signed the file."""
    data = b"" if 0 in shape else b"\2" * 8
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}
    about = {"format": "tagkin-model", "format_version": "7"}
    if dtype == "BOOL":
        about["sha256"] = sha256_of({"a": np.frombuffer(data, np.uint8).view(bool)})
    header = json.dumps({"__metadata__": about, "a": entry}).encode()
    content = len(header).to_bytes(8, "little") + header + data
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(DamagedModel, match=rf"cannot be read: .*{reason}") as raised:
        read_model(tmp_path)
    assert not re.search(r"\.\.", str(raised.value))


def test_an_edited_model_is_noticed(saved):
    path = saved / "model.safetensors"
    data = path.read_bytes()
    assert b'"regularization": 0.5' in data
    path.write_bytes(data.replace(b'"regularization": 0.5', b'"regularization": 0.6'))
    with pytest.raises(DamagedModel, match="checksum differs"):
        load(saved)


def test_a_changed_number_is_noticed(saved):
    path = saved / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(DamagedModel, match="checksum differs"):
        load(saved)


def test_only_listed_classes_are_built(saved):
    rewrite(saved, lambda d: d.update({"$record": "Popen"}))
    with pytest.raises(DamagedModel, match="'Popen' is not a class that tagkin loads"):
        load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.clear(),
        lambda d: (d.clear(), d.update({"a": 1})),
        lambda d: (d.clear(), d.update({"$record": "kernels.Linear"})),
        lambda d: (d.clear(), d.update({"$table": {}})),
        lambda d: d.update({"$record": ["SemanticSpace"]}),
        lambda d: d.pop("scaling"),
        lambda d: d.update(transform=3),
        lambda d: d.update(selection={"$array": ["x"]}),
        lambda d: d.update(selection={"$array": "absent"}),
        lambda d: d.update(selection={"$csr": []}),
        lambda d: d.update(selection={"$texts": 3}),
        lambda d: d.update(selection={"$table": [3]}),
        lambda d: d["landmarks_"].pop("points"),
    ],
)
def test_nonsense_is_a_damaged_model(change, saved):
    rewrite(saved, change)
    with pytest.raises(DamagedModel):
        load(saved)


def test_a_stream_is_solved_when_it_is_saved_or_says_why_not(collection, tmp_path):
    X, Y, X_new = collection
    space = SemanticSpace().partial_fit(X, Y)
    again = load(save(space, tmp_path / "solved"))
    assert "Not usable yet" not in (tmp_path / "solved" / "README.md").read_text()
    np.testing.assert_allclose(again.transform(X_new), space.transform(X_new), atol=1e-6)
    same = SemanticSpace().partial_fit(X, np.ones((150, 2)))
    folder = save(same, tmp_path / "unsolved")
    assert "Not usable yet" in (folder / "README.md").read_text()
    labels = (Y[:, :2] > 0).astype(float)
    assert load(folder).partial_fit(X, labels).transform(X_new).shape == (40, 2)


@needs_torch
def test_an_unknown_device_is_named(saved):
    for device in ("toaster", object()):
        with pytest.raises(InvalidInput, match="torch cannot use the device"):
            load(saved, device=device)


def test_other_versions_and_foreign_folders_are_named(saved, tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        load(tmp_path / "nowhere")
    with pytest.raises(StorageError, match=r"holds no model\.safetensors"):
        load(tmp_path)
    crafted = Crafted(saved)
    crafted.about |= {"format_version": "99", "tagkin_version": "9.0"}
    crafted.write(saved)
    with pytest.raises(DamagedModel, match=r"model format '99', written by tagkin '9\.0'"):
        load(saved)
    (saved / "model.safetensors").write_bytes(np_save({"a": np.ones(3)}))
    with pytest.raises(DamagedModel, match="not a model of tagkin"):
        load(saved)


def test_what_cannot_be_saved_is_said_before_anything_is_written(collection, tmp_path):
    class OwnView(IndicatorView):
        pass

    own = SemanticSpace(text_view=OwnView()).fit(collection.X, collection.Y)
    with pytest.raises(InvalidInput, match="OwnView is not a class of tagkin"):
        save(own, tmp_path / "model")
    seeded = SemanticSpace(random_state=np.random.RandomState(0)).fit(collection.X, collection.Y)
    with pytest.raises(InvalidInput, match=r"random_state: .*RandomState is not a class of tagkin"):
        save(seeded, tmp_path / "model")
    pipeline = make_pipeline(SemanticSpace(), NeighborVoting())
    for thing in ({}, IndicatorView().fit(collection.Y), pipeline):
        with pytest.raises(InvalidInput, match="is not a model"):
            save(thing, tmp_path / "model")
    with pytest.raises(NotFittedError, match="fit it, then save"):
        save(SemanticSpace(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_what_could_not_be_loaded_is_not_saved(collection, tmp_path):
    """A parameter that no fit would take, an attribute of the caller's own, numbers too large."""
    X, Y, _ = collection
    for change, message in (
        (
            lambda model: model.set_params(n_neighbors=0),
            r"could not be loaded again: .*n_neighbors must be .* found 0",
        ),
        (lambda model: setattr(model, "note", "mine"), r"NeighborVoting\.note is not declared"),
        (lambda model: model.fit(1e31 * X, Y), r"model\.model_\.index\.points_ has numbers"),
    ):
        model = NeighborVoting(metric="euclidean").fit(X, Y)
        change(model)
        with pytest.raises(InvalidInput, match=message):
            save(model, tmp_path / "model")
    space = SemanticSpace(n_landmarks=40).fit(X, Y)
    space.moments_.kernel_gram[0, 0] = np.nan
    with pytest.raises(InvalidInput, match=r"could not be loaded again: .*kernel_gram has numbers"):
        save(space, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_what_scikit_learn_was_told_is_no_obstacle(collection, tmp_path):
    """Outputs and requests of metadata are settings of a session, and not stored."""
    X, Y, X_new = collection
    space = SemanticSpace(n_landmarks=40).set_output(transform="pandas").fit(X, Y)
    voting = NeighborVoting(n_neighbors=9).fit(X, Y)
    with config_context(enable_metadata_routing=True):
        voting.set_fit_request(groups=True)
    again = load(save(space, tmp_path / "space")).set_output(transform="pandas")
    assert list(again.transform(X_new)) == list(space.transform(X_new))
    with warnings.catch_warnings(action="error"):
        loaded = load(save(voting, tmp_path / "voting"))
        assert_same(loaded.decision_function(X_new), voting.decision_function(X_new))


def test_landmarks_of_float16_are_kept(collection, tmp_path):
    """Features on disk often are, and some of them may be passed as landmarks."""
    X, Y, X_new = (np.float16(part) for part in collection)
    space = SemanticSpace(selection=X[::5]).fit(X, Y)
    again = load(save(space, tmp_path / "model"))
    np.testing.assert_array_equal(again.selection, X[::5])
    assert_same(again.transform(X_new), space.transform(X_new))


def test_a_record_can_be_saved_without_its_estimator(collection, tmp_path):
    X, Y, X_new = collection
    space = SemanticSpace().fit(X, Y)
    record = load(save(space.space_, tmp_path / "space"))
    assert_same(record.transform(X_new), space.transform(X_new))
