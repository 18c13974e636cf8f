"""Models by name: what the registry says of them, and what is installed."""

import os
from dataclasses import fields
from pathlib import Path

import numpy as np
import onnx
import pytest

from tagkin.errors import InvalidInput, NotFound, StorageError
from tagkin.features import get_backbone, model_registry
from tagkin.features.backbone import Preprocessing
from tagkin.features.model_files import sha256_of_file
from tagkin.features.model_registry import (
    ModelEntry,
    RemoteFile,
    find_entry,
    installed_models,
    registered_models,
)
from tagkin.features.text_encoder import read_text_settings

from .joint import write_joint_encoder
from .real_shapes import HALF, colours, write_textual, write_tokenizer, write_visual

WHITE = np.full((3, 224, 224, 3), 255, dtype=np.uint8)
HALVES = {"size": 224, "resize": "warp", "mean": [0.5] * 3, "std": [0.5] * 3}
TEXT = {"tokenizer": "tokenizer.json", "length": 8, "output": "pooler_output"}
IMAGENET = {"size": 224, "short_side": 256, "resize": "crop"}
IMAGENET |= {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def register(models, monkeypatch):
    """Enter the files in the folder of a model into the registry."""

    def enter(name, settings):
        files = {
            path.name: RemoteFile(path.name, path.stat().st_size, sha256_of_file(path))
            for path in (models / name).iterdir()
        }
        entry = ModelEntry(name, "tests", "a/b", "0" * 40, "MIT", "", 0, files, settings)
        entries = {**registered_models(), name: entry}
        monkeypatch.setattr(model_registry, "registered_models", lambda: entries)

    return enter


def check_white(name, dimension, mean=(0.5,) * 3, std=(0.5,) * 3, rtol=1e-4):
    """White photographs have the features that mean and std give."""
    backbone = get_backbone(name)
    expected = ((1 - np.array(mean)) / np.array(std)) @ colours(dimension)
    np.testing.assert_allclose(backbone(WHITE), [expected] * 3, rtol=rtol, atol=20 * rtol)


def test_every_entry_of_the_registry_is_a_model():
    entries = registered_models()
    assert [name for name, entry in entries.items() if entry.recommended] == ["siglip2-base"]
    for entry in entries.values():
        assert len(entry.revision) == 40
        assert entry.licence_url.startswith("https://")
        assert "visual.onnx" in entry.files
        assert ("text" in entry.settings) == ("textual.onnx" in entry.files)
        known = {field.name for field in fields(Preprocessing)} & entry.settings.keys()
        Preprocessing(**{key: entry.settings[key] for key in known})
        if "text" in entry.settings:
            text = read_text_settings(entry.folder / "visual.json", entry.settings["text"])
            assert {Path(text.model).name, Path(text.tokenizer).name} <= entry.files.keys()
            assert text.scale > 0
        for name, file in entry.files.items():
            assert len(file.sha256) == 64
            assert file.bytes > 0
            assert "/.." not in file.path
            assert os.path.basename(name) == name
    licences = {entry.licence for entry in entries.values() if not entry.terms}
    assert licences == {"Apache-2.0", "MIT"}


def test_a_name_that_is_not_installed_says_how_to_get_it():
    with pytest.raises(InvalidInput, match="not installed: tagkin models get siglip2-base"):
        get_backbone("siglip2-base")
    with pytest.raises(InvalidInput, match="There is no backbone 'nobody'"):
        get_backbone("nobody")
    with pytest.raises(NotFound, match="There is no model"):
        find_entry("../siglip2-base")


def test_two_halves_with_weights_in_another_file(models, register):
    """As siglip2: two outputs, of which one has a row per patch."""
    outputs = ("last_hidden_state", "pooler_output")
    options = {"tokens": 196, "external": "vision_model.onnx_data"}
    write_visual(models / "two/visual.onnx", 768, outputs=outputs, **options)
    write_textual(models / "two/textual.onnx", 768)
    write_tokenizer(models / "two/tokenizer.json")
    text = TEXT | {"model": "textual.onnx", "scale": 112.67, "bias": -16.772}
    register("two", HALVES | {"output": "pooler_output", "text": text})
    assert list(installed_models()) == ["two"]
    check_white("two", 768)
    encoder = get_backbone("two").text_encoder
    assert encoder(["red"]).shape == (1, 768)
    assert (encoder.settings.scale, encoder.settings.bias) == (112.67, -16.772)


def test_patches_of_which_the_first_is_the_photograph(models, register):
    """As dinov2, with half precision."""
    options = {"outputs": ("last_hidden_state",), "tokens": 257, "kind": HALF}
    write_visual(models / "dino/visual.onnx", 384, **options)
    output = {"output": "last_hidden_state", "pool": "first"}
    register("dino", IMAGENET | output)
    check_white("dino", 384, IMAGENET["mean"], IMAGENET["std"], rtol=1e-2)
    assert get_backbone("dino").text_encoder is None


@pytest.mark.skipif(os.name != "posix", reason="Windows needs privileges to make links")
@pytest.mark.parametrize("change", ["link", "pipe", "folder", "short", "gone"])
def test_only_regular_files_of_the_right_size_are_a_model(models, register, tmp_path, change):
    path = models / "mine/visual.onnx"
    write_visual(path, 64, outputs=("a",))
    register("mine", HALVES | {"output": "a"})
    check_white("mine", 64)
    path.rename(tmp_path / "elsewhere")
    match change:
        case "link":
            path.symlink_to(tmp_path / "elsewhere")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "short":
            path.write_bytes((tmp_path / "elsewhere").read_bytes()[:-1])
    with pytest.raises(InvalidInput, match="not installed: tagkin models get mine"):
        get_backbone("mine")


# --- models by their paths ------------------------------------------------------------------


OUTSIDE = ["../secret", "/etc/hostname", "a/../../b", "..", "a\\b"]


def move_weights(path, location):
    """Let a model say that its weights are in another file."""
    model = onnx.load(path)
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("location", OUTSIDE)
@pytest.mark.parametrize("half", ["image", "text"])
def test_paths_of_models_cannot_name_weights_outside_of_their_folder(tmp_path, half, location):
    folder = write_joint_encoder(tmp_path / "inside")
    (tmp_path / "secret").write_bytes(bytes(10**4))
    move_weights(folder / f"{half}.onnx", location)
    with pytest.raises(InvalidInput, match=f"{half}.onnx names weights outside of its folder"):
        _ = get_backbone(str(folder / "image.onnx")).text_encoder


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_pipes_are_named_and_nobody_waits_for_them(tmp_path):
    plain = tmp_path / "a.onnx"
    write_visual(plain, 512)
    os.mkfifo(plain.with_suffix(".json"))
    with pytest.raises(StorageError, match="not a regular file but a pipe"):
        get_backbone(str(plain))


def test_large_settings_are_not_read(tmp_path):
    write_visual(tmp_path / "a.onnx", 512)
    with open(tmp_path / "a.json", "wb") as file:
        file.truncate(1 << 40)  # which takes no room
    with pytest.raises(StorageError, match=r"1\.1e\+03 GB, above the cap of 1\.05 MB"):
        get_backbone(str(tmp_path / "a.onnx"))
