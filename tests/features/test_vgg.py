"""VGG16 with synthetic, narrow weights against a forward pass in SciPy."""

import hashlib

import numpy as np
import pytest
import scipy.signal

from tagkin.errors import InvalidInput, StorageError
from tagkin.features import get_backbone
from tagkin.features.onnx_sessions import open_session
from tagkin.features.vgg import VGG16, build_model

WIDTHS = {0: 2, 2: 3, 5: 2, 7: 3, 10: 2, 12: 3, 14: 2, 17: 3, 19: 2, 21: 3, 24: 2, 26: 3, 28: 4}
POOLED_AFTER = {2, 7, 14, 21, 28}


def made_weights():
    rng = np.random.default_rng(0)
    tensors, width = {}, 3
    for number, n in WIDTHS.items():
        tensors[f"features.{number}.weight"] = rng.standard_normal((n, width, 3, 3)) / 3
        tensors[f"features.{number}.bias"] = rng.standard_normal(n) / 2
        width = n
    for number, n_in, n_out in ((0, 4 * 49, 11), (3, 11, 9), (6, 9, 5)):
        tensors[f"classifier.{number}.weight"] = rng.standard_normal((n_out, n_in)) / 5
        tensors[f"classifier.{number}.bias"] = rng.standard_normal(n_out) / 2
    return {name: values.astype(np.float32) for name, values in tensors.items()}


def forward(tensors, pixels, last):
    """The definition, in float64: one image (224, 224, 3), one layer after the other."""
    x = (pixels / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    maps = x.transpose(2, 0, 1)
    for number in WIDTHS:
        weight, bias = (tensors[f"features.{number}.{kind}"] for kind in ("weight", "bias"))
        maps = np.array(
            [
                sum(
                    scipy.signal.correlate2d(m, k, "same")
                    for m, k in zip(maps, kernels, strict=True)
                )
                for kernels in weight.astype(float)
            ]
        )
        maps = np.maximum(maps + bias[:, None, None], 0)
        if number in POOLED_AFTER:
            n, side, _ = maps.shape
            maps = maps.reshape(n, side // 2, 2, side // 2, 2).max(axis=(2, 4))
    row = maps.ravel()
    for number in (0, 3)[: 1 if last == "fc6" else 2]:
        weight, bias = (tensors[f"classifier.{number}.{kind}"] for kind in ("weight", "bias"))
        row = np.maximum(weight.astype(float) @ row + bias, 0)
    return row


@pytest.mark.parametrize("layer", ["fc7", "fc6"])
def test_features_are_those_of_the_definition(layer):
    tensors = made_weights()
    batch = np.random.default_rng(1).integers(0, 256, (3, 224, 224, 3), dtype=np.uint8)
    features = open_session(build_model(tensors, layer)).run(None, {"pixels": batch})[0]
    expected = np.stack([forward(tensors, pixels, layer) for pixels in batch])
    assert features.shape == expected.shape
    assert 0 < (expected > 0).mean() < 1
    np.testing.assert_allclose(features, expected, atol=1e-5 * expected.max())


@pytest.fixture
def weights_file(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "vgg16.pth"
    tensors = {name: torch.from_numpy(values) for name, values in made_weights().items()}
    torch.save(tensors, path, _use_new_zipfile_serialization=False)
    return path


def test_from_a_file(weights_file):
    fc7, fc6 = get_backbone(f"vgg16:{weights_file}"), get_backbone(f"vgg16-fc6:{weights_file}")
    assert (fc7.dimension, fc6.dimension) == (9, 11)
    assert fc7.fingerprint != fc6.fingerprint
    assert fc7.fingerprint == VGG16(weights_file).fingerprint
    assert fc7.name == f"vgg16:{weights_file}"
    photograph = np.random.default_rng(2).integers(0, 256, (300, 400, 3), dtype=np.uint8)
    square = fc7.prepare(photograph)
    assert square.shape == (224, 224, 3)
    np.testing.assert_allclose(
        fc7(square[None])[0], forward(made_weights(), square, "fc7"), atol=1e-4
    )


def test_the_hash_in_the_name_is_checked(weights_file):
    digest = hashlib.sha256(weights_file.read_bytes()).hexdigest()
    right = weights_file.rename(weights_file.with_name(f"vgg16-{digest[:8]}.pth"))
    assert VGG16(right).dimension == 9
    wrong = right.rename(right.with_name("vgg16-397923af.pth"))
    with pytest.raises(StorageError, match=f"begins with {digest[:8]}, not with 397923af"):
        VGG16(wrong)


def test_other_networks_are_refused(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.pth"
    torch.save({"conv1.weight": torch.ones(1)}, path)
    with pytest.raises(InvalidInput, match=r"not contain .* VGG16: there is no features\.0"):
        VGG16(path)
    tensors = {name: torch.from_numpy(values) for name, values in made_weights().items()}
    torch.save(tensors | {"features.5.weight": torch.ones(2, 7, 3, 3)}, path)
    with pytest.raises(InvalidInput, match=r"features\.5 has weights of shape \(2, 7, 3, 3\)"):
        VGG16(path)
    with pytest.raises(InvalidInput, match="layer must be one of fc6, fc7"):
        VGG16(path, layer="fc8")
    with pytest.raises(StorageError, match="cannot be read"):
        VGG16(tmp_path / "none.pth")
