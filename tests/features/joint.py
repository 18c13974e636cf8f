"""Write a small image encoder and a small text encoder that share a space of three colours.

The image encoder gives the mean of each colour; the text encoder the mean of its words' rows.
"""

import json
from pathlib import Path

import numpy as np

SIZE = 8
WORDS = {
    "photo": (1.0, 1.0, 1.0),
    "of": (0.5, 0.5, 0.5),
    "red": (9.0, 0.0, 0.0),
    "green": (0.0, 9.0, 0.0),
    "blue": (0.0, 0.0, 9.0),
}


def write_joint_encoder(folder: Path, **text: object) -> Path:
    """image.onnx, image.json, text.onnx and tokenizer.json; `text` are further settings of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "image.onnx").write_bytes(_image_encoder())
    (folder / "text.onnx").write_bytes(_text_encoder())
    _tokenizer().save(str(folder / "tokenizer.json"))
    beside = {"model": "text.onnx", "tokenizer": "tokenizer.json", "prompt": "photo of {}"}
    settings = {
        "size": SIZE,
        "resize": "warp",
        "mean": [0, 0, 0],
        "std": [1, 1, 1],
        "text": {**beside, "neutral": "photo", "scale": 10.0, **text},
    }
    (folder / "image.json").write_text(json.dumps(settings))
    return folder


def _tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    numbers = {"[pad]": 0} | {word: i for i, word in enumerate(WORDS, 1)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[pad]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def _image_encoder() -> bytes:
    from onnx import TensorProto, helper

    pool = helper.make_node("GlobalAveragePool", ["pixels"], ["means"])
    flat = helper.make_node("Flatten", ["means"], ["embedding"], axis=1)
    pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, SIZE, SIZE])
    out = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["n", 3])
    return _model(helper.make_graph([pool, flat], "image", [pixels], [out]))


def _text_encoder() -> bytes:
    """The mean of the rows of all tokens that the mask counts."""
    from onnx import TensorProto, helper, numpy_helper

    rows = np.array([(0.0, 0.0, 0.0), *WORDS.values()], dtype=np.float32)
    nodes = [
        helper.make_node("Gather", ["rows", "input_ids"], ["each"]),
        helper.make_node("Cast", ["attention_mask"], ["counts"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["counts", "last"], ["wide"]),
        helper.make_node("Mul", ["each", "wide"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "second"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["wide", "second"], ["n"], keepdims=0),
        helper.make_node("Div", ["sum", "n"], ["text_embeds"]),
    ]
    constants = [
        numpy_helper.from_array(rows, "rows"),
        numpy_helper.from_array(np.array([2]), "last"),
        numpy_helper.from_array(np.array([1]), "second"),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    out = helper.make_tensor_value_info("text_embeds", TensorProto.FLOAT, ["n", 3])
    return _model(helper.make_graph(nodes, "text", inputs, [out], constants))


def _model(graph) -> bytes:
    from onnx import helper

    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()
