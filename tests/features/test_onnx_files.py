"""What is read of an ONNX file is what the package onnx reads of it, whatever is in it."""

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, NodeProto, TensorProto, helper

from tagkin.errors import InvalidInput, StorageError
from tagkin.features.onnx_files import read_onnx_file


def tensor(*files):
    made = helper.make_tensor("t", TensorProto.FLOAT, [1], [0.5])
    for name in files:
        made.external_data.add(key="offset", value="0")
        made.external_data.add(key="location", value=name)
    return made


def graph_of(nodes, tensors=()):
    return helper.make_graph(nodes, "g", [], [], tensors)


def sparse(*files):
    return helper.make_sparse_tensor(tensor(*files), helper.make_tensor("i", 7, [1], [0]), [4])


def everywhere():
    """A model with operators and other files in each place that the format has for them."""
    deep = graph_of([helper.make_node("Deep", [], [])], [tensor("deep.bin")])
    inside = graph_of([helper.make_node("If", [], [], then_branch=deep, name="Not")])
    attributes = NodeProto(op_type="Loop")
    attributes.attribute.append(helper.make_attribute("body", inside))
    attributes.attribute.append(helper.make_attribute("value", tensor("value.bin")))
    attributes.attribute.append(helper.make_attribute("several", [tensor("list.bin")]))
    attributes.attribute.append(helper.make_attribute("graphs", [deep, deep]))
    attributes.attribute.append(
        AttributeProto(name="s", type=AttributeProto.SPARSE_TENSOR, sparse_tensor=sparse("s.bin"))
    )
    model = helper.make_model(graph_of([attributes], [tensor("a.bin", "b.bin")]))
    model.graph.sparse_initializer.append(sparse("sparse.bin"))
    function = model.functions.add()
    function.node.append(helper.make_node("Inner", [], []))
    function.attribute_proto.append(helper.make_attribute("start", tensor("function.bin")))
    training = model.training_info.add()
    training.initialization.CopyFrom(graph_of([helper.make_node("Start", [], [])]))
    training.algorithm.CopyFrom(graph_of([], [tensor("training.bin")]))
    return model


def parts_of(message, kind):
    """All parts of a kind in a message, by the package's own description of the format."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                if isinstance(part, kind):
                    yield part
                yield from parts_of(part, kind)


def names_by_onnx(model):
    entries = (e for part in parts_of(model, TensorProto) for e in part.external_data)
    return {entry.value for entry in entries if entry.key == "location"}


def read(folder, data):
    path = folder / "model.onnx"
    path.write_bytes(data)
    return read_onnx_file(path)


def test_operators_and_files_everywhere(tmp_path):
    model = everywhere()
    names = names_by_onnx(model)
    assert len(names) == 9
    for name in names:
        (tmp_path / name).touch()
    found = read(tmp_path, model.SerializeToString())
    assert found.operators == {node.op_type for node in parts_of(model, NodeProto)}
    assert found.operators == {"Deep", "If", "Loop", "Inner", "Start"}
    assert {path.name for path in found.weights} == names
    assert all(path.parent == tmp_path for path in found.weights)


@pytest.mark.parametrize("place", range(9))
def test_a_file_that_leads_elsewhere_is_refused_in_every_place(tmp_path, place):
    model = everywhere()
    for name in names_by_onnx(model):
        (tmp_path / name).touch()
    entries = [e for part in parts_of(model, TensorProto) for e in part.external_data]
    locations = {e.value: e for e in entries if e.key == "location"}
    locations[sorted(locations)[place]].value = "../secret"
    with pytest.raises(InvalidInput, match=r"names weights outside of its folder: '\.\./secret'"):
        read(tmp_path, model.SerializeToString())


@pytest.mark.parametrize("depth", [10_000])
def test_graphs_in_graphs_are_not_a_recursion(tmp_path, depth):
    data = b"\x22\x04Deep"  # a node's operator
    for _ in range(depth):
        for field in (1, 6, 5):  # a node of a graph, in an attribute, of a node
            data = bytes([field << 3 | 2]) + varint(len(data)) + data
    data = b"\x0a" + varint(len(data)) + data
    found = read(tmp_path, b"\x3a" + varint(len(data)) + data)
    assert found.operators >= {"Deep"}


def varint(number):
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


@settings(max_examples=300)
@given(st.data())
def test_whatever_is_wrong_is_told(tmp_path_factory, data):
    """Of what onnx can read, nothing is missed; other files are refused or read, never worse."""
    folder = tmp_path_factory.mktemp("models")
    content = bytearray(everywhere().SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    content = bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        found = read(folder, content)
    except (InvalidInput, StorageError):
        return
    try:
        model = onnx.load_from_string(content)
    except Exception:
        return  # onnx checks more
    assert found.operators >= {node.op_type for node in parts_of(model, NodeProto)}
    assert {path.name for path in found.weights} >= names_by_onnx(model)
