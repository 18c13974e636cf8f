"""Write a small image encoder and a small text encoder that share a space of three colours.

The image encoder gives the mean of each colour; the text encoder the sum of its words' rows. The
names, types and shapes of inputs and outputs are those of the exports that people use.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

SIZE = 8
WORDS = {
    "photo": (1.0, 1.0, 1.0),
    "of": (0.5, 0.5, 0.5),
    "red": (9.0, 0.0, 0.0),
    "green": (0.0, 9.0, 0.0),
    "blue": (0.0, 0.0, 9.0),
}


class Export(NamedTuple):
    """How a joint encoder was exported."""

    image: str
    image_outputs: tuple[str, ...]
    text: tuple[str, ...]
    text_outputs: tuple[str, ...]
    ids: str = "INT64"
    floats: str = "FLOAT"
    batch: int | str = "batch_size"
    length: int | str = "sequence_length"


EXPORTS = {
    # transformers' CLIP, by optimum
    "clip": Export(
        "pixel_values",
        ("image_embeds", "last_hidden_state"),
        ("input_ids", "attention_mask"),
        ("text_embeds", "last_hidden_state"),
    ),
    # transformers' SigLIP and SigLIP 2
    "siglip": Export(
        "pixel_values",
        ("last_hidden_state", "pooler_output"),
        ("input_ids",),
        ("last_hidden_state", "pooler_output"),
    ),
    "siglip-fp16": Export(
        "pixel_values",
        ("last_hidden_state", "pooler_output"),
        ("input_ids",),
        ("last_hidden_state", "pooler_output"),
        floats="FLOAT16",
    ),
    # OpenCLIP, one at a time
    "openclip": Export(
        "image", ("embedding",), ("text",), ("embedding",), ids="INT32", batch=1, length=77
    ),
}


def write_joint_encoder(
    folder: Path, export: str = "clip", *, external: bool = False, **text: object
) -> Path:
    """image.onnx, image.json, text.onnx and tokenizer.json; `text` are further settings of it."""
    import onnx

    folder.mkdir(parents=True, exist_ok=True)
    options = EXPORTS[export]
    for name, model in (("image", _image_encoder(options)), ("text", _text_encoder(options))):
        onnx.save(
            model,
            folder / f"{name}.onnx",
            save_as_external_data=external,
            location=f"{name}.onnx_data",
            size_threshold=60,  # shapes stay in the graph
        )
    _tokenizer().save(str(folder / "tokenizer.json"))
    beside = {"model": "text.onnx", "tokenizer": "tokenizer.json", "prompts": ["photo of {}"]}
    settings = {
        "size": SIZE,
        "resize": "warp",
        "mean": [0, 0, 0],
        "std": [1, 1, 1],
        "text": {**beside, "scale": 10.0, **text},
    }
    (folder / "image.json").write_text(json.dumps(settings))
    return folder


def _tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    numbers = {"[pad]": 0} | {word: i for i, word in enumerate(WORDS, 1)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[pad]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def _image_encoder(export: Export):
    from onnx import TensorProto, helper, numpy_helper

    floats = getattr(TensorProto, export.floats)
    kind = np.float16 if export.floats == "FLOAT16" else np.float32
    embedding = next(name for name in export.image_outputs if name != "last_hidden_state")
    nodes = [
        helper.make_node("Mul", [export.image, "one"], ["each"]),
        helper.make_node("GlobalAveragePool", ["each"], ["means"]),
        helper.make_node("Flatten", ["means"], [embedding], axis=1),
        helper.make_node("Reshape", ["each", "places"], ["channels"]),
        helper.make_node("Transpose", ["channels"], ["last_hidden_state"], perm=[0, 2, 1]),
    ]
    constants = [
        numpy_helper.from_array(np.ones((1, 3, SIZE, SIZE), kind), "one"),
        numpy_helper.from_array(np.array([0, 3, -1]), "places"),
    ]
    shape = [export.batch, 3, SIZE, SIZE]
    pixels = helper.make_tensor_value_info(export.image, floats, shape)
    return _model(nodes, [pixels], export.image_outputs, floats, constants)


def _text_encoder(export: Export):
    """The sum of the rows of all tokens that the mask counts; that of padding is zero."""
    from onnx import TensorProto, helper, numpy_helper

    floats = getattr(TensorProto, export.floats)
    rows = np.array([(0.0, 0.0, 0.0), *WORDS.values()], np.float32)
    embedding = next(name for name in export.text_outputs if name != "last_hidden_state")
    nodes = [helper.make_node("Gather", ["rows", export.text[0]], ["last_hidden_state"])]
    counted = "last_hidden_state"
    if len(export.text) > 1:
        nodes += [
            helper.make_node("Cast", [export.text[1]], ["counts"], to=floats),
            helper.make_node("Unsqueeze", ["counts", "last"], ["wide"]),
            helper.make_node("Mul", [counted, "wide"], ["counted"]),
        ]
        counted = "counted"
    nodes.append(helper.make_node("ReduceSum", [counted, "second"], [embedding], keepdims=0))
    half = rows.astype(np.float16) if export.floats == "FLOAT16" else rows
    constants = [
        numpy_helper.from_array(half, "rows"),
        numpy_helper.from_array(np.array([2]), "last"),
        numpy_helper.from_array(np.array([1]), "second"),
    ]
    ids = getattr(TensorProto, export.ids)
    shape = [export.batch, export.length]
    inputs = [helper.make_tensor_value_info(name, ids, shape) for name in export.text]
    return _model(nodes, inputs, export.text_outputs, floats, constants)


def _model(nodes, inputs, outputs, floats, constants):
    from onnx import helper

    values = [helper.make_tensor_value_info(name, floats, None) for name in outputs]
    graph = helper.make_graph(nodes, "encoder", inputs, values, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_colors(folder: Path, n: int = 24, spread: int = 40) -> dict[str, str]:
    """n plain photographs, whose names tell their number, with their colours as tags."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    colors, rows = {}, []
    for i in range(n):
        pixels = np.full((SIZE, SIZE, 3), 30, np.uint8) + rng.integers(0, spread, 3, dtype=np.uint8)
        pixels[..., i % 3] = 240
        name = f"{i:02}.png"
        Image.fromarray(pixels).save(folder / name)
        colors[name] = ("red", "green", "blue")[i % 3]
        tags = [colors[name]] + ["old"] * (i < n // 2)
        rows.append(json.dumps({"file_name": name, "tags": tags}))
    (folder / "metadata.jsonl").write_text("\n".join(rows))
    return colors
