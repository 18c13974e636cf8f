"""Small networks with the input and output names, types and shapes of real ones.

The image half gives the mean of each colour times `COLOURS`; the text half the mean of the rows of
its tokens.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(0)
FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
WORDS = ("<pad>", "</s>", "a", "photo", "of", "red", "blue", ".")


def colours(dimension):
    """(3, d): what each colour adds to an embedding."""
    return np.random.default_rng(dimension).standard_normal((3, dimension)).astype(np.float32)


def save(path, nodes, inputs, outputs, constants, external=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    graph = helper.make_graph(
        nodes,
        "main_graph",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    options = {"save_as_external_data": True, "location": external, "size_threshold": 1000}
    onnx.save(model, path, **(options if external else {}))


def write_visual(
    path: Path,
    dimension: int,
    *,
    size: int = 224,
    name: str = "pixel_values",
    outputs: tuple[str, ...] = ("pooler_output",),
    batch: object = "batch_size",
    tokens: int = 0,
    kind: int = FLOAT,
    raw: bool = False,
    external: str = "",
) -> None:
    """An image half; its output "last_hidden_state" has a row per token, all of them equal."""
    nodes = []
    planes = name
    if raw:  # uint8 pixels, channels last
        nodes.append(helper.make_node("Transpose", [name], ["planes"], perm=[0, 3, 1, 2]))
        planes = "planes"
    nodes += [
        helper.make_node("Cast", [planes], ["numbers"], to=FLOAT),
        helper.make_node("GlobalAveragePool", ["numbers"], ["means"]),
        helper.make_node("Flatten", ["means"], ["row"], axis=1),
        helper.make_node("MatMul", ["row", "colours"], ["embedded"]),
        helper.make_node("Cast", ["embedded"], ["typed"], to=kind),
    ]
    constants = {"colours": colours(dimension)}
    shapes = []
    for output in outputs:
        if output == "last_hidden_state":
            nodes.append(helper.make_node("Unsqueeze", ["typed", "one"], ["token"]))
            nodes.append(helper.make_node("Expand", ["token", "many"], [output]))
            constants |= {"one": np.array([1]), "many": np.array([1, tokens, 1])}
            shapes.append((output, kind, [batch, tokens, dimension]))
        else:
            nodes.append(helper.make_node("Identity", ["typed"], [output]))
            shapes.append((output, kind, [batch, dimension]))
    shape = [batch, size, size, 3] if raw else [batch, 3, size, size]
    inputs = [(name, TensorProto.UINT8 if raw else kind, shape)]
    save(path, nodes, inputs, shapes, constants, external)


def write_textual(
    path: Path,
    dimension: int,
    *,
    name: str = "input_ids",
    output: str = "pooler_output",
    shape: tuple[object, object] = ("batch_size", "sequence_length"),
    ids: int = TensorProto.INT64,
    external: str = "",
) -> None:
    rows = RNG.standard_normal((len(WORDS), dimension)).astype(np.float32)
    nodes = [
        helper.make_node("Cast", [name], ["long"], to=TensorProto.INT64),
        helper.make_node("Mod", ["long", "n"], ["known"]),
        helper.make_node("Gather", ["rows", "known"], ["each"]),
        helper.make_node("ReduceMean", ["each"], [output], axes=[1], keepdims=0),
    ]
    constants = {"rows": rows, "n": np.array(len(WORDS))}
    outputs = [(output, FLOAT, [shape[0], dimension])]
    save(path, nodes, [(name, ids, list(shape))], outputs, constants, external)


def write_tokenizer(path: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    numbers = {word: i for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([AddedToken("<pad>"), AddedToken("</s>")])
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))
