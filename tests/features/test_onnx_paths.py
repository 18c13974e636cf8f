"""Networks by the paths of their files, which lead nowhere else."""

import os

import onnx
import pytest

from tagkin.errors import InvalidInput, StorageError
from tagkin.features import get_backbone

from .joint import write_joint_encoder

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
    plain = write_joint_encoder(tmp_path) / "image.onnx"
    plain.with_suffix(".json").unlink()
    os.mkfifo(plain.with_suffix(".json"))
    with pytest.raises(StorageError, match="not a regular file but a pipe"):
        get_backbone(str(plain))


def test_large_settings_are_not_read(tmp_path):
    write_joint_encoder(tmp_path)
    with open(tmp_path / "image.json", "wb") as file:
        file.truncate(1 << 40)  # which takes no room
    with pytest.raises(StorageError, match=r"1\.1e\+03 GB, above the cap of 1\.05 MB"):
        get_backbone(str(tmp_path / "image.onnx"))
