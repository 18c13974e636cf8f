"""Encoders by path: what they give is what their JSON says, and what is wrong is named."""

import json
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tagkin.errors import InvalidInput, StorageError
from tagkin.features import get_backbone
from tagkin.features.onnx_files import read_onnx_file
from tagkin.features.onnx_sessions import DEVICES, usable_devices

SIZE = 8
RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((5, 3, 1, 1)).astype(np.float32)
BATCH = RNG.integers(0, 256, (7, SIZE, SIZE, 3), dtype=np.uint8)
SETTINGS = {"size": SIZE, "mean": [0.4, 0.5, 0.6], "std": [0.1, 0.2, 0.3]}


def normal(batch=BATCH):
    return (batch / 255 - [0.4, 0.5, 0.6]) / [0.1, 0.2, 0.3]


def expected_map(numbers):
    """(n, h, w, 3) to (n, h, w, 5): the convolution is a product in every place."""
    return numbers @ WEIGHT[:, :, 0, 0].T.astype(float)


def write(
    folder,
    *,
    nodes=(("Conv", ["x", "weight"], ["map"], {}),),
    inputs=(("x", TensorProto.FLOAT, ["n", 3, SIZE, SIZE]),),
    outputs=("map",),
    output_type=TensorProto.FLOAT,
    settings=SETTINGS,
    external=False,
):
    graph = helper.make_graph(
        [helper.make_node(kind, i, o, **attributes) for kind, i, o, attributes in nodes],
        "made",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(name, output_type, None) for name in outputs],
        [numpy_helper.from_array(WEIGHT, "weight")],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    path = folder / "encoder.onnx"
    onnx.save(model, path, save_as_external_data=external, location="weights.bin", size_threshold=0)
    if settings is not None:
        path.with_suffix(".json").write_text(
            settings if isinstance(settings, str) else json.dumps(settings)
        )
    return path


def test_a_map_is_pooled(tmp_path):
    encoder = get_backbone(str(write(tmp_path)))
    assert encoder.dimension == 5
    assert encoder.preprocessing.min_side == 12
    assert repr(encoder) == f"<OnnxEncoder {encoder.name!r}, 5 features>"
    features = encoder(BATCH)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, expected_map(normal()).mean(axis=(1, 2)), rtol=1e-4)
    alone = np.concatenate([encoder(BATCH[i : i + 1]) for i in range(len(BATCH))])
    np.testing.assert_allclose(alone, features, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 3])
def test_a_fixed_batch(tmp_path, n):
    path = write(tmp_path, inputs=[("x", TensorProto.FLOAT, [n, 3, SIZE, SIZE])])
    encoder = get_backbone(str(path))
    assert encoder.batch_size == n
    expected = expected_map(normal()).mean(axis=(1, 2))
    np.testing.assert_allclose(encoder(BATCH), expected, rtol=1e-4)
    assert encoder(BATCH[:0]).shape == (0, 5)


def test_vectors_and_tokens(tmp_path):
    flat = ("Flatten", ["map"], ["row"], {"axis": 1})
    conv = ("Conv", ["x", "weight"], ["map"], {})
    encoder = get_backbone(str(write(tmp_path, nodes=[conv, flat], outputs=["row"])))
    assert encoder.dimension == 5 * SIZE * SIZE
    places = expected_map(normal()).transpose(0, 3, 1, 2).reshape(7, -1)
    np.testing.assert_allclose(encoder(BATCH), places, rtol=1e-3, atol=1e-4)
    mean = ("ReduceMean", ["map"], ["tokens"], {"axes": [3], "keepdims": 0})  # (n, 5, h)
    for pool, expected in (
        ("first", places.reshape(7, 5, SIZE, SIZE)[:, 0].mean(axis=2)),
        ("mean", places.reshape(7, 5, SIZE, SIZE).mean(axis=(1, 3))),
    ):
        settings = SETTINGS | {"pool": pool}
        path = write(tmp_path, nodes=[conv, mean], outputs=["tokens"], settings=settings)
        np.testing.assert_allclose(get_backbone(str(path))(BATCH), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "tolerance"), [(TensorProto.FLOAT16, 5e-2), (TensorProto.DOUBLE, 1e-4)]
)
def test_other_floating_types(tmp_path, kind, tolerance):
    nodes = [
        ("Cast", ["x"], ["numbers"], {"to": TensorProto.FLOAT}),
        ("Conv", ["numbers", "weight"], ["plain"], {}),
        ("Cast", ["plain"], ["map"], {"to": kind}),
    ]
    inputs = [("x", kind, ["n", 3, SIZE, SIZE])]
    path = write(tmp_path, nodes=nodes, inputs=inputs, output_type=kind)
    features = get_backbone(str(path))(BATCH)
    assert features.dtype == np.float32
    expected = expected_map(normal()).mean(axis=(1, 2))
    np.testing.assert_allclose(features, expected, rtol=tolerance, atol=tolerance)


def test_pixels_as_they_are(tmp_path):
    nodes = [
        ("Cast", ["x"], ["numbers"], {"to": TensorProto.FLOAT}),
        ("Conv", ["numbers", "weight"], ["map"], {}),
    ]
    path = write(tmp_path, nodes=nodes, inputs=[("x", TensorProto.UINT8, ["n", 3, SIZE, SIZE])])
    expected = expected_map(BATCH.astype(float)).mean(axis=(1, 2))
    np.testing.assert_allclose(get_backbone(str(path))(BATCH), expected, rtol=1e-4)


def test_names_of_inputs_and_outputs(tmp_path):
    nodes = [
        ("Conv", ["x", "weight"], ["map"], {}),
        ("GlobalMaxPool", ["map"], ["top"], {}),
    ]
    two = {"nodes": nodes, "outputs": ["map", "top"]}
    with pytest.raises(InvalidInput, match=r"outputs map, top; its \.json names none\. Set"):
        get_backbone(str(write(tmp_path, **two)))
    with pytest.raises(InvalidInput, match=r"names 'best'"):
        get_backbone(str(write(tmp_path, **two, settings=SETTINGS | {"output": "best"})))
    path = write(tmp_path, **two, settings=SETTINGS | {"output": "top", "input": "x"})
    expected = expected_map(normal()).max(axis=(1, 2))
    np.testing.assert_allclose(get_backbone(str(path))(BATCH), expected, rtol=1e-4)


def test_weights_in_another_file(tmp_path):
    path = write(tmp_path, external=True)
    encoder = get_backbone(str(path))
    expected = expected_map(normal()).mean(axis=(1, 2))
    np.testing.assert_allclose(encoder(BATCH), expected, rtol=1e-4)
    weights = tmp_path / "weights.bin"
    data = bytearray(weights.read_bytes())
    data[0] ^= 1
    weights.write_bytes(data)
    assert get_backbone(str(path)).fingerprint != encoder.fingerprint
    weights.unlink()
    with pytest.raises(StorageError, match=r"keeps weights in .*weights\.bin, which is not there"):
        get_backbone(str(path))


def test_the_fingerprint_follows_model_and_settings(tmp_path):
    prints = [get_backbone(str(write(tmp_path))).fingerprint for _ in range(2)]
    assert prints[0] == prints[1]
    other = write(tmp_path, settings=SETTINGS | {"resize": "warp"})
    assert get_backbone(str(other)).fingerprint != prints[0]
    same = [SETTINGS | {"mean": mean} for mean in ([0, 0, 0], [0.0, 0.0, 0.0])]
    prints = [get_backbone(str(write(tmp_path, settings=s))).fingerprint for s in same]
    assert prints[0] == prints[1]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (None, r"encoder\.json is missing.*Create it, for example"),
        ("{", "is not JSON"),
        ("[]", r"is \[\]; expected an object"),
        ({"mean": [0, 0, 0]}, r"encoder\.json lacks size"),
        (SETTINGS | {"crop": 1}, "unknown crop; known are size, resize"),
        (SETTINGS | {"size": 0}, "settings.size is 0, not from 1 to 16384"),
        (SETTINGS | {"size": "8"}, "settings.size is '8', not a whole number"),
        (SETTINGS | {"short_side": 5}, 'short_side goes with resize "crop", and is at least size'),
        (SETTINGS | {"resize": "pad"}, "settings.resize is 'pad', none of crop, warp"),
        (SETTINGS | {"resize": "warp", "short_side": 9}, 'short_side goes with resize "crop"'),
        (
            SETTINGS | {"resample": "best"},
            "settings.resample is 'best', none of bicubic, bilinear",
        ),
        (
            SETTINGS | {"mean": [0, 1]},
            "mean and std are three numbers each, one per channel",
        ),
        (SETTINGS | {"std": [0, 1, 1]}, r"settings\.std\[0\] is 0, not above 0"),
        (SETTINGS | {"mean": ["a", 1, 1]}, r"settings\.mean\[0\] is 'a', not a number"),
        (SETTINGS | {"scale": -1}, "settings.scale is -1, not above 0"),
        (SETTINGS | {"scale": 10**400}, "settings.scale is a number of very many digits, not from"),
        (SETTINGS | {"pool": "median"}, "settings.pool is 'median', none of mean, first"),
        (SETTINGS | {"pool": "first"}, '"pool" must be one of null, "mean"; its .json says'),
        (SETTINGS | {"output": 3}, "settings.output is 3, not a text"),
        (SETTINGS | {"size": 9}, r"takes tensor\(float\) of shape .* says size 9, which is"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, settings, why):
    with pytest.raises(InvalidInput, match=why):
        get_backbone(str(write(tmp_path, settings=settings)))


def test_files_that_are_no_models(tmp_path):
    path = write(tmp_path)
    path.write_bytes(b"\x0a\xff not a model")
    with pytest.raises(InvalidInput, match="is not an ONNX model"):
        get_backbone(str(path))
    path.write_bytes(b"")
    with pytest.raises(InvalidInput, match="cannot be opened"):
        get_backbone(str(path))
    path.unlink()
    with pytest.raises(StorageError, match="cannot be read: No such file"):
        get_backbone(str(path))
    with pytest.raises(StorageError, match=r"other\.onnx cannot be read: No such file"):
        get_backbone(str(tmp_path / "other.onnx"))  # without a .json file, too
    nodes = [("NoSuchLayer", ["x", "weight"], ["map"], {})]
    with pytest.raises(InvalidInput, match="cannot be opened"):
        get_backbone(str(write(tmp_path, nodes=nodes)))


def test_a_model_that_fails_when_it_runs(tmp_path):
    nodes = [("MatMul", ["x", "weight"], ["map"], {})]  # of shapes that do not fit
    path = write(tmp_path, nodes=nodes, inputs=[("x", TensorProto.FLOAT, ["n", "c", "h", "w"])])
    with pytest.raises(InvalidInput, match="cannot be run"):
        get_backbone(str(path))


def test_an_output_that_is_no_feature(tmp_path):
    nodes = [
        ("Conv", ["x", "weight"], ["m"], {}),
        ("ReduceSum", ["m"], ["map"], {"keepdims": 0}),
    ]
    with pytest.raises(InvalidInput, match=r"has shape \(\) for 1 photographs; expected \(n, d\)"):
        get_backbone(str(write(tmp_path, nodes=nodes)))


# --- batches and devices ---------------------------------------------------------------------


def write_quantized(folder, batch="n"):
    """Rounds pixels by the largest of the whole batch, as dynamic quantisation does."""
    nodes = [
        ("DynamicQuantizeLinear", ["x"], ["bytes", "scale", "zero"], {}),
        ("DequantizeLinear", ["bytes", "scale", "zero"], ["rounded"], {}),
        ("Conv", ["rounded", "weight"], ["map"], {}),
    ]
    return write(folder, nodes=nodes, inputs=[("x", TensorProto.FLOAT, [batch, 3, SIZE, SIZE])])


def test_features_of_a_quantised_graph_do_not_depend_on_other_photographs(tmp_path):
    encoder = get_backbone(str(write_quantized(tmp_path)))
    assert encoder.batch_size == 1
    dark, bright = BATCH[:1] // 16, np.full_like(BATCH[:1], 255)
    alone = encoder(dark)
    np.testing.assert_array_equal(encoder(np.concatenate([dark, bright]))[:1], alone)


def test_a_quantised_graph_with_a_larger_batch_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"takes 2 photographs at once.*Export it with a batch"):
        get_backbone(str(write_quantized(tmp_path, batch=2)))
    assert get_backbone(str(write_quantized(tmp_path, batch=1))).batch_size == 1


def test_a_batch_that_does_not_fit_into_memory_is_divided(tmp_path):
    """A layer has 1 number for one photograph, and more than any memory for three."""
    nodes = [
        ("Conv", ["x", "weight"], ["map"], {}),
        ("Shape", ["x"], ["n"], {"end": 1}),
        ("Pow", ["n", "n36"], ["many"], {}),
        ("ConstantOfShape", ["many"], ["large"], {}),
        ("ReduceSum", ["large"], ["zero"], {"keepdims": 0}),
        ("Add", ["map", "zero"], ["sum"], {}),
        ("Constant", [], ["n36"], {"value_ints": [36]}),
    ]
    path = write(tmp_path, nodes=[nodes[-1], *nodes[:-1]], outputs=["sum"])
    expected = expected_map(normal(BATCH[:3])).mean(axis=(1, 2))
    np.testing.assert_allclose(get_backbone(str(path))(BATCH[:3]), expected, rtol=1e-4)


@pytest.mark.parametrize("device", usable_devices())
def test_features_are_the_same_on_every_device(tmp_path, monkeypatch, device):
    """Up to the rounding that `tagkin.features.onnx_sessions` states; those at hand are tested."""
    monkeypatch.setenv("TAGKIN_DEVICE", "cpu")
    path = str(write(tmp_path))
    expected = get_backbone(path)(BATCH)
    monkeypatch.setenv("TAGKIN_DEVICE", device)
    encoder = get_backbone(path)
    tolerance = 1e-2 if device == "coreml" else 5e-4
    length = np.linalg.norm(expected, axis=1).min()
    np.testing.assert_allclose(encoder(BATCH), expected, rtol=0, atol=tolerance * length)
    assert encoder.fingerprint == get_backbone(path).fingerprint


def test_a_device_that_is_not_there_is_told(tmp_path, monkeypatch):
    path = str(write(tmp_path))
    for device in set(DEVICES) - {"auto", *usable_devices()}:
        monkeypatch.setenv("TAGKIN_DEVICE", device)
        with pytest.raises(InvalidInput, match=f"has no {device}, only .*cpu.*Install"):
            get_backbone(path)
    monkeypatch.setenv("TAGKIN_DEVICE", "abacus")
    with pytest.raises(
        InvalidInput, match=r"The device must be one of auto, cpu, .*; found 'abacus'"
    ):
        get_backbone(path)
    monkeypatch.setenv("TAGKIN_DEVICE", "auto")
    assert get_backbone(path).dimension == 5


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_pipes_are_named_and_nobody_waits_for_them(tmp_path):
    path = write(tmp_path)
    settings = path.with_suffix(".json")
    settings.unlink()
    os.mkfifo(settings)
    with pytest.raises(StorageError, match="not a regular file but a pipe"):
        get_backbone(str(path))
    pipe = tmp_path / "pipe.onnx"
    os.mkfifo(pipe)
    with pytest.raises(InvalidInput, match="is not a regular file"):
        read_onnx_file(pipe)


def test_large_settings_are_not_read(tmp_path):
    path = write(tmp_path)
    with open(path.with_suffix(".json"), "r+b") as file:
        file.truncate(1 << 40)  # which takes no room
    with pytest.raises(StorageError, match="above the cap of"):
        get_backbone(str(path))
