"""EfficientNet-Lite against torch, layer by layer, and on pictures anybody can name."""

import functools
import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from tagkin.errors import InvalidInput, StorageError
from tagkin.features import BACKBONES, efficientnet, get_backbone
from tagkin.features.backbone import fingerprint_of
from tagkin.features.efficientnet import NETWORK
from tagkin.features.onnx_sessions import import_onnxruntime, open_session

NOTICE = NETWORK.with_suffix(".txt")


@functools.cache
def known_backbone(name):
    """One of each, which opens its network once."""
    return get_backbone(name)


@functools.cache
def weights():
    """The weights that the network's file was made of; skips where they are not installed."""
    network = release_network()
    pytest.importorskip(network.PACKAGE, reason="`make test TORCH=1` installs the weights")
    pytest.importorskip("torch", reason="`make test TORCH=1` installs torch")
    return network.read_weights()


def release_network():
    from release import network

    return network


@functools.cache
def all_layers():
    """Names of all layers, and a session that gives them in single precision."""
    layers = ["stem", *(f"block_{i}" for i in range(16)), "head", "features", "logits"]
    model = release_network().build(weights(), layers, half=False)
    return layers, open_session(model.SerializeToString())


@pytest.fixture
def lite0():
    return known_backbone("efficientnet-lite0")


def photograph(name):
    if name == "china":
        from sklearn.datasets import load_sample_image

        return load_sample_image("china.jpg")
    data = pytest.importorskip("skimage.data")
    return getattr(data, name)()


def test_the_file_is_made_of_the_weights():
    made = release_network().build(weights()).SerializeToString(deterministic=True)
    assert hashlib.sha256(made).hexdigest() == hashlib.sha256(NETWORK.read_bytes()).hexdigest()


def test_the_notice_names_licence_and_authors():
    text = NOTICE.read_text(encoding="utf-8")
    assert "Copyright (c) 2020, ML Illustrated" in text
    assert "http://www.apache.org/licenses/LICENSE-2.0" in text
    assert "release.network" in text


# classes of ImageNet: tabby, tiger cat, Persian, Siamese and Egyptian cat; espresso; palace
@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize(
    ("picture", "classes"),
    [("chelsea", {281, 282, 283, 284, 285}), ("coffee", {967}), ("china", {698})],
)
def test_it_recognises_pictures(name, picture, classes):
    """The layer of classes, which the file does not have, after the features of the file."""
    backbone = known_backbone(name)
    features = backbone(backbone.prepare(photograph(picture))[None])
    logits = features @ weights()["_fc.weight"].T + weights()["_fc.bias"]
    # squeezed into the square, a palace is a bell cote first
    n_best = 3 if backbone.preprocessing.resize == "warp" else 1
    assert classes & set(np.argsort(-logits[0])[:n_best].tolist())


@pytest.mark.parametrize("name", BACKBONES)
def test_every_layer_is_torchs(name):
    """Largest difference within 2e-5 of the largest value, at every layer."""
    layers, session = all_layers()
    torch = pytest.importorskip("torch")
    reference = pytest.importorskip("efficientnet_lite_pytorch").EfficientNet.from_pretrained(
        "efficientnet-lite0",
        weights_path=str(release_network().weights_file()),
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
    assert layers == list(expected)
    features = session.run(None, {"pixels": batch})
    for layer, values in zip(layers, features, strict=True):
        right = expected[layer].numpy()
        assert values.shape == right.shape, layer
        assert np.abs(values - right).max() <= 2e-5 * np.abs(right).max(), layer
    # half precision of the weights moves features by less than 1e-5, as cosine distances
    features, right = backbone(batch), expected["features"].numpy()
    cosines = np.sum(features * right, axis=1)
    cosines /= np.linalg.norm(features, axis=1) * np.linalg.norm(right, axis=1)
    assert np.all(cosines > 1 - 1e-5)


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
    session = onnxruntime.InferenceSession(NETWORK, options)
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


@pytest.mark.parametrize("name", BACKBONES)
def test_the_fingerprint_is_of_the_file_and_the_preparation(name):
    digest = hashlib.sha256(NETWORK.read_bytes()).hexdigest()
    known = known_backbone(name)
    assert known.fingerprint == fingerprint_of(digest, known.preprocessing)


def test_wrong_pixels_are_refused(lite0):
    for batch in (np.zeros((1, 224, 224, 3)), np.zeros((1, 256, 256, 3), dtype=np.uint8)):
        with pytest.raises(InvalidInput, match=r"takes uint8 pixels of shape \(n, 224, 224, 3\)"):
            lite0(batch)


def test_another_file_is_refused(tmp_path, monkeypatch):
    damaged = bytearray(NETWORK.read_bytes())
    damaged[1_000_000] ^= 1
    path = tmp_path / NETWORK.name
    path.write_bytes(damaged)
    monkeypatch.setattr(efficientnet, "NETWORK", path)
    with pytest.raises(StorageError, match=r"is damaged: its SHA-256 is .*Install tagkin again"):
        get_backbone()
    path.unlink()
    monkeypatch.setattr(efficientnet, "NETWORK", tmp_path / "gone.onnx")
    with pytest.raises(StorageError, match=r"gone\.onnx cannot be read: No such file"):
        get_backbone()


def test_unknown_names_get_a_list():
    with pytest.raises(InvalidInput, match=r"no backbone 'resnet'.*efficientnet-lite0.*\.onnx"):
        get_backbone("resnet")
    assert BACKBONES[0] == "efficientnet-lite0-whole"
