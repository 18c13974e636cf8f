"""Models in folders: what the registry says of them, and what others have put on the machine."""

import json
import os

import numpy as np
import onnx
import pytest

from tagkin.errors import InvalidInput, NotFound, StorageError
from tagkin.features import get_backbone
from tagkin.features.installed_models import (
    damaged_files,
    installed_models,
    read_installed_model,
    write_installed_model,
)
from tagkin.features.model_imports import import_model, plan_import
from tagkin.features.model_registry import registered_models
from tagkin.features.onnx_sessions import import_onnxruntime

from .joint import write_joint_encoder
from .real_shapes import HALF, colours, write_immich, write_textual, write_tokenizer, write_visual

WHITE = np.full((3, 224, 224, 3), 255, dtype=np.uint8)
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
CLIP = {"image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28], "resample": 3}


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def install(source, name=None):
    return import_model(plan_import(source, name))


def check_white(name, dimension, mean=(0.5,) * 3, std=(0.5,) * 3, rtol=1e-4):
    """White photographs have the features that mean and std give."""
    backbone = get_backbone(name)
    expected = ((1 - np.array(mean)) / np.array(std)) @ colours(dimension)
    np.testing.assert_allclose(backbone(WHITE), [expected] * 3, rtol=rtol, atol=20 * rtol)


# --- the registry -------------------------------------------------------------------------


def test_every_entry_of_the_registry_is_a_model(models):
    entries = registered_models()
    assert len(entries) == 7
    assert [name for name, entry in entries.items() if entry.recommended] == ["siglip2-base"]
    for name, entry in entries.items():
        assert len(entry.revision) == 40
        assert entry.licence_url.startswith("https://")
        files = {file: {"bytes": 1, "sha256": "0" * 64} for file in entry.files}
        values = {"source": entry.source, "licence": entry.licence, **entry.settings}
        (models / name).mkdir(parents=True)
        model = write_installed_model(name, values | {"files": files})
        assert (model.text is None) == ("textual.onnx" not in entry.files)
        for file in entry.files.values():
            assert file.sha256 is None or len(file.sha256) == 64
            assert "/.." not in file.path
    licences = {entry.licence for entry in entries.values() if not entry.terms}
    assert licences == {"Apache-2.0", "MIT"}
    assert {name for name, entry in entries.items() if entry.unknown_digests} == {"mobileclip2-s0"}


def test_a_name_that_is_not_installed_says_how_to_get_it():
    with pytest.raises(InvalidInput, match="not installed: tagkin models get siglip2-base"):
        get_backbone("siglip2-base")
    with pytest.raises(InvalidInput, match="There is no backbone 'nobody'"):
        get_backbone("nobody")
    with pytest.raises(NotFound, match="not installed"):
        read_installed_model("siglip2-base")


# --- imports ------------------------------------------------------------------------------


def test_as_immich_keeps_it(tmp_path):
    """One photograph at a time, int32 tokens, and two JSON files."""
    model = install(write_immich(tmp_path / "clip" / "ViT-B-16-SigLIP2__webli"))
    assert model.name == "vit-b-16-siglip2__webli"
    assert installed_models() == [model.name]
    assert model.preprocessing.resize == "warp"
    assert (model.text.length, model.text.pad) == (64, 0)
    assert model.text.lower_case
    # the same weights as an entry of the registry, so what Immich does not keep is known
    assert (model.scale, model.bias, model.licence) == (112.67, -16.772, "Apache-2.0")
    assert damaged_files(model) == []
    check_white(model.name, 768)
    assert get_backbone(model.name).batch_size == 1


def test_halves_whose_weights_have_the_same_name(tmp_path):
    """Immich keeps them in two folders; here they are in one."""
    folder = write_immich(tmp_path / "two")
    how = {"external": "weights", "shape": (1, 64), "ids": onnx.TensorProto.INT64}
    write_textual(folder / "textual/model.onnx", 768, name="text", output="embedding", **how)
    expected = get_text(folder / "textual/model.onnx")
    how = {"name": "image", "outputs": ("embedding",), "batch": 1, "external": "weights"}
    write_visual(folder / "visual/model.onnx", 768, **how)
    model = install(folder)
    assert {"weights", "textual-weights"} <= set(model.files)
    check_white("two", 768)
    np.testing.assert_allclose(get_text(model.textual), expected, rtol=1e-5)


def get_text(path):
    """What a text half makes of one text."""
    session = import_onnxruntime().InferenceSession(str(path))
    return session.run(["embedding"], {"text": np.full((1, 64), 5)})[0]


def test_pixels_as_they_are_with_channels_last(tmp_path):
    model = install(write_immich(tmp_path / "raw", raw=True))
    assert model.preprocessing.layout == "NHWC"
    assert model.scale is None
    expected = np.full((3, 3), 255.0) @ colours(768)
    np.testing.assert_allclose(get_backbone("raw")(WHITE), expected, rtol=1e-4, atol=1e-3)


def test_an_export_of_transformers_with_weights_in_another_file(tmp_path):
    """As siglip2: two outputs, of which one has a row per patch."""
    folder = tmp_path / "Export"
    outputs = ("last_hidden_state", "pooler_output")
    how = {"tokens": 196, "external": "vision_model.onnx_data"}
    write_visual(folder / "onnx/vision_model.onnx", 768, outputs=outputs, **how)
    write_textual(folder / "onnx/text_model.onnx", 768)
    write_tokenizer(folder / "tokenizer.json")
    size = {"height": 224, "width": 224}
    settings = {"size": size, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    config = {"text_config": {"max_position_embeddings": 64}}
    (folder / "config.json").write_text(json.dumps(config))
    model = install(folder)
    assert "vision_model.onnx_data" in model.files
    assert (model.preprocessing.resize, model.preprocessing.resample) == ("warp", "bilinear")
    assert (model.output, model.text.output) == ("pooler_output", "pooler_output")
    check_white("export", 768)
    assert get_backbone("export").text_encoder(["red"]).shape == (1, 768)


def test_patches_of_which_the_first_is_the_photograph(tmp_path):
    """As dinov2, in the folder of a sentence-transformer, with half precision."""
    folder = tmp_path / "dino" / "0_CLIPModel"
    how = {"outputs": ("last_hidden_state",), "tokens": 257, "kind": HALF}
    write_visual(folder / "onnx/model.onnx", 384, **how)
    settings = {"size": {"shortest_edge": 256}, "crop_size": 224, "resample": 3, **IMAGENET}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    model = install(tmp_path / "dino")
    assert (model.pool, model.text) == ("first", None)
    assert (model.preprocessing.size, model.preprocessing.short_side) == (224, 256)
    check_white("dino", 384, IMAGENET["image_mean"], IMAGENET["image_std"], rtol=1e-2)


def test_an_export_of_open_clip(tmp_path):
    folder = tmp_path / "open"
    write_visual(folder / "visual.onnx", 512, name="image", outputs=("image_embedding",))
    cfg = {"mean": [0.1, 0.2, 0.3], "std": [0.5, 0.6, 0.7], "interpolation": "bicubic"}
    whole = {"model_cfg": {"vision_cfg": {"image_size": 224}}, "preprocess_cfg": cfg}
    (folder / "open_clip_config.json").write_text(json.dumps(whole))
    model = install(folder)
    assert model.preprocessing.resize == "crop"
    check_white("open", 512, cfg["mean"], cfg["std"])


def test_a_plain_file_with_its_settings(tmp_path):
    write_visual(tmp_path / "Encoder.onnx", 512, outputs=("a", "b"))
    write_textual(tmp_path / "words.onnx", 512)
    write_tokenizer(tmp_path / "t.json")
    text = {"model": "words.onnx", "tokenizer": "t.json", "length": 16, "scale": 50.0}
    settings = {"size": 224, "output": "b", "text": text}
    (tmp_path / "Encoder.json").write_text(json.dumps(settings))
    model = install(tmp_path / "Encoder.onnx")
    assert (model.name, model.output, model.scale, model.text.length) == ("encoder", "b", 50.0, 16)
    check_white("encoder", 512, (0,) * 3, (1,) * 3)
    assert get_backbone("encoder").fingerprint == get_backbone(model.source).fingerprint
    assert get_backbone("encoder@2").dimension == 512
    for wrong in ({"size": 224, "nobody": 1}, {"size": 0}, {"size": 224, "text": {}}):
        (tmp_path / "Encoder.json").write_text(json.dumps(wrong))
        with pytest.raises(InvalidInput, match=r"Encoder\.json"):
            plan_import(tmp_path / "Encoder.onnx", "other")


OUTSIDE = ["../secret", "/etc/hostname", "a/../../b", "..", "a\\b"]


def move_weights(path, location):
    """Let a model say that its weights are in another file."""
    model = onnx.load(path)
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("location", OUTSIDE)
def test_weights_outside_of_the_folder_are_refused(tmp_path, models, location):
    folder = write_immich(tmp_path / "evil")
    move_weights(folder / "visual" / "model.onnx", location)
    with pytest.raises(InvalidInput, match="outside of its folder"):
        install(folder)
    assert not models.exists()


@pytest.mark.parametrize("location", OUTSIDE)
@pytest.mark.parametrize("half", ["image", "text"])
def test_paths_of_models_cannot_name_weights_outside_of_their_folder(tmp_path, half, location):
    folder = write_joint_encoder(tmp_path / "inside")
    (tmp_path / "secret").write_bytes(bytes(10**4))
    move_weights(folder / f"{half}.onnx", location)
    with pytest.raises(InvalidInput, match=f"{half}.onnx names weights outside of its folder"):
        _ = get_backbone(str(folder / "image.onnx")).text_encoder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: (f / "visual/model.onnx").unlink(), "has no image half"),
        (lambda f: (f / "visual/model.onnx").write_bytes(b"no"), "is not an ONNX model"),
        (lambda f: (f / "visual/preprocess_cfg.json").unlink(), "does not say how to prepare"),
        (lambda f: (f / "visual/preprocess_cfg.json").write_text("["), "cannot be read as JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "expected an object"),
        (lambda f: (f / "visual/preprocess_cfg.json").write_text('{"mean": 1, "std": 2}'), "size"),
        (lambda f: write_visual(f / "visual/model.onnx", 9, outputs=("a", "b")), "none of them"),
        (lambda f: write_visual(f / "visual/model.onnx", 9, size=99), "Correct size"),
        (lambda f: (f / "textual/model.onnx").write_bytes(b"no"), "is not an ONNX model"),
        (lambda f: (f / "config.json").write_text('{"text_cfg": [1]}'), "how to prepare texts"),
        (lambda f: (f / "config.json").write_text('{"text_cfg": {"context_length": "7"}}'), "leng"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_installed(tmp_path, models, change, said):
    folder = write_immich(tmp_path / "wrong")
    change(folder)
    with pytest.raises((InvalidInput, StorageError), match=said):
        install(folder)
    assert installed_models() == []
    assert not models.exists() or not list(models.iterdir())


def test_names_that_mean_something_else(tmp_path):
    folder = write_immich(tmp_path / "mine")
    for name, said in (
        ("siglip2-base", "another backbone"),
        ("efficientnet-lite0", "another backbone"),
        ("../mine", "cannot be the name"),
        ("a@2", "cannot be the name"),
        ("", "cannot be the name"),
    ):
        with pytest.raises(InvalidInput, match=said):
            plan_import(folder if name else tmp_path / "夕", name or None)
    install(folder)
    with pytest.raises(StorageError, match="already"):
        install(folder)


# --- model.json ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"name": "other"},
        {"licence": None},
        {"files": {"visual.onnx": {"bytes": 1}}},
        {"files": {"../x": {"bytes": 1, "sha256": ""}}},
        {"preprocessing": {"size": 0}},
        {"preprocessing": {"nobody": 0}},
        {"pool": "most"},
        {"scale": "much"},
    ],
    ids=str,
)
def test_a_model_that_was_edited_is_refused(tmp_path, models, change):
    install(write_immich(tmp_path / "mine"))
    path = models / "mine" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StorageError, match=r"model.json.*Remove the model"):
        read_installed_model("mine")
    path.write_text("{")
    with pytest.raises(StorageError, match="is not JSON"):
        get_backbone("mine")


@pytest.mark.skipif(os.name != "posix", reason="Windows needs privileges to make links")
def test_links_in_place_of_files_are_not_followed(tmp_path, models):
    install(write_immich(tmp_path / "mine"))
    visual = models / "mine" / "visual.onnx"
    visual.rename(tmp_path / "elsewhere")
    visual.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"visual.onnx is missing"):
        get_backbone("mine")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_pipes_are_named_and_nobody_waits_for_them(tmp_path, models):
    source = write_immich(tmp_path / "mine")
    install(source)
    (models / "mine" / "model.json").unlink()
    os.mkfifo(models / "mine" / "model.json")
    with pytest.raises(StorageError, match="not a regular file but a pipe"):
        read_installed_model("mine")
    for name, said in (
        ("visual/preprocess_cfg.json", "does not say how to prepare photographs"),
        ("visual/model.onnx", "has no image half"),
    ):
        (source / name).unlink()
        os.mkfifo(source / name)
        with pytest.raises(InvalidInput, match=said):
            install(source, "other")
    plain = tmp_path / "plain" / "a.onnx"
    write_visual(plain, 512)
    os.mkfifo(plain.with_suffix(".json"))
    with pytest.raises(InvalidInput, match="not a regular file but a pipe"):
        install(plain)
    with pytest.raises(StorageError, match="not a regular file but a pipe"):
        get_backbone(str(plain))
    assert installed_models() == ["mine"]


def test_large_settings_are_not_read(tmp_path, models):
    install(write_immich(tmp_path / "mine"))
    with open(models / "mine" / "model.json", "r+b") as file:
        file.truncate(1 << 40)  # which takes no room
    with pytest.raises(StorageError, match=r"1\.1e\+03 GB, above the cap of 1\.05 MB"):
        read_installed_model("mine")


@pytest.mark.skipif(os.name != "posix", reason="Windows needs privileges to make links")
@pytest.mark.parametrize("name", ["visual/model.onnx", "textual/tokenizer.json"])
def test_an_import_does_not_follow_links_out_of_the_folder(tmp_path, models, name):
    source = write_immich(tmp_path / "mine")
    secret = (source / name).rename(tmp_path / "secret")
    (source / name).symlink_to(secret)
    with pytest.raises(InvalidInput, match=r"is outside of .*Copy the file itself"):
        install(source)
    assert not models.exists()


@pytest.mark.skipif(os.name != "posix", reason="Windows needs privileges to make links")
def test_links_of_the_hubs_cache_stay_in_its_repository(tmp_path):
    repository = tmp_path / "models--somebody--mine"
    source = write_immich(repository / "snapshots" / "mine")
    for number, path in enumerate(sorted(source.rglob("*.*"))):
        blob = repository / "blobs" / str(number)
        blob.parent.mkdir(exist_ok=True)
        path.rename(blob)
        path.symlink_to(blob)
    assert install(source).visual.is_file()
