"""From files to suggestions: features and their cache, backbones, models that are kept."""

import copy
import json
import shutil

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin import Annotator
from tagkin.annotator import photograph_reader
from tagkin.errors import DamagedModel, InvalidInput, StorageError
from tagkin.features import FeatureCache
from tests.features.test_onnx import write as write_encoder
from tests.hardening.crafting import settings_of

from .conftest import SPACE, VOTING, seen

COLOURS = {"red": (200, 40, 30), "green": (40, 170, 60), "blue": (40, 60, 200)}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Discs and squares in three colours: 24 JPEG files and a broken one."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:96, 0:96] - 48
    tags = {}
    for i in range(24):
        colour, shape = list(COLOURS)[i % 3], ("disc", "square")[i % 2]
        size = rng.integers(20, 40)
        inside = x**2 + y**2 < size**2 if shape == "disc" else np.maximum(abs(x), abs(y)) < size
        pixels = rng.integers(180, 256, (96, 96, 3))
        pixels[inside] = COLOURS[colour]
        path = folder / f"{i:02}.jpg"
        Image.fromarray(pixels.astype(np.uint8)).save(path)
        tags[str(path)] = [colour, shape]
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not much of a photograph")
    tags[str(folder / "broken.jpg")] = ["red"]
    return tags


def test_from_photographs_to_suggestions(photos, tmp_path):
    files = list(photos)
    seen_steps = []
    annotator = Annotator(cache=False)
    annotator.fit(
        files[4:], [photos[file] for file in files[4:]], progress=lambda *s: seen_steps.append(s)
    )
    assert [failure.file for failure in annotator.failures_] == [files[-1]]
    steps = {what for what, *_ in seen_steps}
    assert steps == {"Reading photographs", "Reading dates", "Finding copies", "Learning"}
    suggestions = annotator.suggest(files[:4], n=2)
    assert [p.file for p in suggestions] == files[:4]
    right = [s.tag in photos[p.file] for p in suggestions for s in p.suggestions]
    assert sum(right) >= 6
    document = json.loads(json.dumps(suggestions[0].to_dict()))
    assert set(document) == {"file", "tags", "suggestions"}
    assert set(document["suggestions"][0]) == {
        "tag",
        "confidence",
        "kin",
        "name_share",
        "readout_share",
        "time_share",
        "place_share",
        "folder_share",
    }
    assert set(document["suggestions"][0]["kin"][0]) == {"file", "share", "tags"}


def test_a_second_look_costs_no_inference_and_neither_does_a_move(photos, tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_CACHE", str(tmp_path / "cache"))
    files = list(photos)[:6]
    annotator = Annotator()
    assert annotator.read_features(files).n_computed == 6
    again = annotator.read_features(files)
    assert (again.n_computed, again.n_cached) == (0, 6)
    shutil.copy(files[0], tmp_path / "moved.jpg")
    moved = annotator.read_features([tmp_path / "moved.jpg"])
    assert moved.n_computed == 0
    np.testing.assert_array_equal(moved.features[0], again.features[0])


def test_only_unreadable_photographs_are_an_error(tmp_path, fitted):
    (tmp_path / "a.jpg").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"The photograph could not be read.*a\.jpg"):
        fitted.suggest([tmp_path / "a.jpg"])
    with pytest.raises(InvalidInput, match="not be read"):
        Annotator(cache=False).fit([tmp_path / "a.jpg"], [["x"]])


# --- models and features that are kept ---


def test_a_cache_is_not_a_path(tmp_path):
    with pytest.raises(InvalidInput, match="cache must be a FeatureCache, True or False"):
        Annotator(cache=str(tmp_path)).read_features("a.jpg")


def test_an_unfitted_copy_shares_the_cache(tmp_path):
    cache = FeatureCache(tmp_path / "cache")
    assert Annotator(cache=cache).unfitted().cache is cache
    assert Annotator(cache=False).unfitted().cache is False


def test_a_clone_of_a_fitted_annotator_has_learned_nothing(fitted):
    fresh = clone(fitted)
    assert repr(fresh) == repr(fitted)
    assert hasattr(fitted, "model_")
    with pytest.raises(NotFittedError):
        fresh.suggest(["a.jpg"])


def test_a_saved_annotator_suggests_the_same(fitted, synthetic, tmp_path):
    photos = seen(synthetic.X[300:], first=300)
    folder = fitted.save(tmp_path / "model")
    loaded = tagkin.load(folder)
    loaded.relocate(fitted.root_)
    assert loaded.suggest(photos) == fitted.suggest(photos)
    assert loaded.audit(10) == fitted.audit(10)
    assert loaded.describe() == fitted.describe()
    assert loaded.failures_ == ()
    with pytest.raises(StorageError, match="overwrite"):
        fitted.save(folder)


def test_where_features_are_kept_does_not_go_into_the_model(synthetic, tmp_path):
    annotator = Annotator(space=SPACE, method=VOTING, cache=FeatureCache(tmp_path / "cache"))
    annotator.fit(seen(synthetic.X[:50]), synthetic.tags[:50]).save(tmp_path / "model")
    assert str(tmp_path / "cache") not in str(settings_of(tmp_path / "model"))


def test_the_backbone_is_opened_once(fitted, synthetic, tmp_path, monkeypatch):
    opened = []
    real = photograph_reader.get_backbone
    monkeypatch.setattr(
        photograph_reader, "get_backbone", lambda name: opened.append(name) or real(name)
    )
    model = tagkin.load(fitted.save(tmp_path / "model"))
    model.cache = False
    Image.new("RGB", (64, 64), "red").save(tmp_path / "photo.png")
    looked = model.read_features([tmp_path / "photo.png"])
    for _ in range(2):
        model.read_features([tmp_path / "photo.png"])
        model.suggest(seen(synthetic.X[300:303], first=300))
        model.similar(seen(synthetic.X[300:303], first=300))
    assert opened == ["efficientnet-lite0-whole"]
    for other in (copy.deepcopy(model), tagkin.load(model.save(tmp_path / "again"))):
        other.suggest(seen(synthetic.X[300:303], first=300))
    assert opened == 3 * ["efficientnet-lite0-whole"]
    model.backbone = str(write_encoder(tmp_path))
    assert model.read_features([tmp_path / "photo.png"]).features.shape != looked.features.shape
    with pytest.raises(DamagedModel, match="another version of"):
        model.suggest(seen(synthetic.X[300:303], first=300))


def test_features_of_another_length_are_refused(fitted, synthetic):
    narrow = seen(synthetic.X[300:303, :5], first=300)
    for use in (fitted.suggest, fitted.similar, fitted.predict_proba):
        with pytest.raises(InvalidInput, match=r"found 5\. Read all images with the same"):
            use(narrow)


def test_a_model_of_another_backbone_is_refused(fitted, synthetic, tmp_path):
    other = tagkin.load(fitted.save(tmp_path / "model"))
    other.fingerprint_ = "0" * 64
    for use in (other.suggest, other.similar):
        with pytest.raises(DamagedModel, match="another version of 'efficientnet-lite0-whole'"):
            use(seen(synthetic.X[:3]))
    with pytest.raises(DamagedModel, match="another version"):
        other.partial_fit(seen(synthetic.X[:3]), synthetic.tags[:3])
