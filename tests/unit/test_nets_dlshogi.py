"""Networks for shogi: recognising their files, their settings, and evaluating them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.contract.networks import load_go, load_shogi, raw_shogi
from tests.naive.shogi_networks import NetworkShape, make_model, write_network
from yomi.engine.cli.net import facts
from yomi.engine.evaluators.base import EvaluatorError
from yomi.nets.dlshogi.network import AREA, ShogiForm, read_settings
from yomi.nets.errors import NetworkError
from yomi.nets.gpu_variants import Variant, variant_file
from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.load import NetworkKind, open_file, prepare
from yomi.nets.models import default_network
from yomi.nets.onnx_file import data_files, read_onnx_graph

SMALL = NetworkShape(blocks=2, channels=16)
KINDS = {
    "dlshogi": SMALL,
    "nyugyoku": NetworkShape(blocks=1, channels=16, extras=119, activation="swish"),
    "half": NetworkShape(blocks=1, channels=16, half=True),
    "unfolded": NetworkShape(blocks=1, channels=16, folded=False, activation="swish"),
    "squeeze": NetworkShape(blocks=1, channels=16, squeeze=8),
    "alphazero": NetworkShape(blocks=2, channels=16, form=ShogiForm.ALPHAZERO),
}


def random_inputs(shape: NetworkShape, rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    dlshogi = shape.form is ShogiForm.DLSHOGI
    planes = (rng.random((rows, 62 if dlshogi else 45, 9, 9)) < 0.1).astype(np.float32)
    return planes, (rng.random((rows, shape.extras if dlshogi else 0)) < 0.3).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_recognised_by_themselves(kind: str, tmp_path: Path) -> None:
    shape = KINDS[kind]
    path = write_network(tmp_path / "weights.bin", shape)
    file = open_file(path)
    network, info = file.shogi, file.describe()
    assert network is not None
    alphazero = shape.form is ShogiForm.ALPHAZERO
    assert open_file(path).kind is (NetworkKind.ALPHAZERO_SHOGI if alphazero else NetworkKind.DLSHOGI)
    assert network.form is shape.form
    assert network.extras == (0 if alphazero else shape.extras)
    assert network.policy_size == (139 if alphazero else 27) * AREA
    assert network.fixed_rows is None
    assert (info.game, info.board_size, info.name) == ("shogi", 9, "weights.bin")
    assert info.feature_set == ("alphazero-shogi-45" if alphazero else f"dlshogi-62-{shape.extras}")
    with pytest.raises(NetworkError, match="a network for shogi found, expected one for Go"):
        prepare(open_file(path), 9)
    told = dict(facts(path))
    assert (told["kind"], told["game"]) == (open_file(path).kind.value, "shogi")
    assert (told["blocks"], told["channels"]) == (str(shape.blocks), "16")
    assert told["computed by"].startswith("own kernels")


@pytest.mark.parametrize("backend", ["native", "onnx"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_is_what_the_graph_says(kind: str, backend: str, tmp_path: Path) -> None:
    shape = KINDS[kind]
    evaluator = load_shogi(write_network(tmp_path / "net.onnx", shape), "cpu", backend, batch_size=3)
    assert ("native" in evaluator.description) == (backend == "native")
    planes, extras = random_inputs(shape, 7)
    logits, values = raw_shogi(evaluator, planes, extras)
    session = onnx.reference.ReferenceEvaluator(make_model(shape))
    kind_of = np.float16 if shape.half else np.float32
    inputs = {session.input_names[0]: planes.astype(kind_of)}
    if extras.shape[1]:
        inputs["input2"] = np.tile(extras[:, :, None, None], (1, 1, 9, 9)).astype(kind_of)
    expected = session.run(None, inputs)
    # Halves are rounded in between, but by our own kernels.
    tolerance = 2e-2 if shape.half else 1e-4
    assert logits == pytest.approx(expected[0].astype(np.float32), abs=tolerance)
    assert values == pytest.approx(expected[1][:, 0].astype(np.float32), abs=tolerance)
    assert np.abs(values).max() < 1.0
    assert logits.std() > 0.3
    evaluator.close()


@pytest.mark.parametrize(
    ("kind", "index", "shape"),
    [
        ("Conv", 0, (16, 61, 3, 3)),
        ("Conv", 0, (16, 62, 39, 39)),
        ("Conv", 1, (16, 58, 1, 1)),
        ("Conv", 2, (16, 15, 3, 3)),
        ("Conv", 2, (16, 16, 3)),
        ("Gemm", 0, (2186, 2186)),
        ("Gemm", 1, (3, 3)),
    ],
)
def test_weights_that_do_not_fit_are_not_computed(
    kind: str, index: int, shape: tuple[int, ...], tmp_path: Path
) -> None:
    model = make_model(SMALL)
    nodes = [node for node in model.graph.node if node.op_type == kind]
    weights = next(each for each in model.graph.initializer if each.name == nodes[index].input[1])
    weights.CopyFrom(numpy_helper.from_array(np.ones(shape, np.float32), weights.name))
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(EvaluatorError, match=r"found, expected|has no kernel|do not fit|meets"):
        load_shogi(tmp_path / "net.onnx", "cpu", "native")


@pytest.mark.parametrize(
    ("kind", "field", "numbers", "dims", "message"),
    [
        ("INT8", "int32_data", [128], [1], "weights 'x' with 128 to 128 found, expected int8"),
        ("INT32", "int32_data", [1, 2], [2, -1], r"with 2 numbers found, expected shape \[2, -1\]"),
        ("INT64", "int64_data", [], [1 << 32, 1 << 32], "with 0 numbers found"),
        ("FLOAT16", "int32_data", [65536], [1], "with 65536 to 65536 found, expected float16"),
        ("UINT8", "int32_data", [-1], [1], "with -1 to -1 found, expected uint8"),
        ("FLOAT", "float_data", [1.0], [1] * 33, "with 1 numbers found"),
    ],
)
def test_integers_out_of_range_are_refused(
    kind: str, field: str, numbers: list[float], dims: list[int], message: str, tmp_path: Path
) -> None:
    model = make_model(SMALL)
    tensor = TensorProto(name="x", dims=dims, data_type=TensorProto.DataType.Value(kind))
    getattr(tensor, field).extend(numbers)
    model.graph.initializer.append(tensor)
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(NetworkError, match=message):
        read_onnx_graph(tmp_path / "net.onnx")


def test_a_batch_has_a_largest_size(tmp_path: Path) -> None:
    model = make_model(SMALL)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1 << 62
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(NetworkError, match="expected batches of at most 16384 rows"):
        open_file(tmp_path / "net.onnx")


def test_outputs_that_are_larger_than_the_file_declares_are_refused(tmp_path: Path) -> None:
    model = make_model(SMALL)
    policy = model.graph.output[0].name
    last = next(node for node in model.graph.node if policy in node.output)
    last.output[0] = "once"
    model.graph.node.append(helper.make_node("Concat", ["once", "once"], [policy], axis=1))
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(EvaluatorError, match=r"output_policy \(1, 4374\) found, expected 2187 numbers a row"):
        load_shogi(tmp_path / "net.onnx", "cpu", "onnx")


def test_a_file_for_one_batch_size_gets_whole_batches(tmp_path: Path) -> None:
    model = make_model(SMALL)
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_value = 4
    onnx.save(model, tmp_path / "fixed.onnx")
    fixed = load_shogi(tmp_path / "fixed.onnx", "cpu", "onnx")
    assert fixed.batch_size == 4
    free = load_shogi(write_network(tmp_path / "free.onnx", SMALL), "cpu", "onnx")
    planes, extras = random_inputs(SMALL, 6)
    for found, expected in zip(fixed.run(planes, extras), free.run(planes, extras), strict=True):
        assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("backend", ["native", "onnx"])
def test_half_precision_inside_and_float32_outside(backend: str, tmp_path: Path) -> None:
    model = make_model(KINDS["half"])
    graph = model.graph
    casts = []
    for tensor in graph.input:
        tensor.type.tensor_type.elem_type = TensorProto.FLOAT
        for node in graph.node:
            for index, name in enumerate(node.input):
                if name == tensor.name:
                    node.input[index] = f"{name}_half"
        casts.append(helper.make_node("Cast", [tensor.name], [f"{tensor.name}_half"], to=TensorProto.FLOAT16))
    for tensor in graph.output:
        tensor.type.tensor_type.elem_type = TensorProto.FLOAT
        last = next(node for node in graph.node if tensor.name in node.output)
        last.op_type = "Cast"
        last.attribute.append(helper.make_attribute("to", TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, tmp_path / "mixed.onnx")
    mixed = load_shogi(tmp_path / "mixed.onnx", "cpu", backend)
    half = load_shogi(write_network(tmp_path / "half.onnx", KINDS["half"]), "cpu", backend)
    planes, extras = random_inputs(KINDS["half"], 3)
    for found, expected in zip(mixed.run(planes, extras), half.run(planes, extras), strict=True):
        assert found == pytest.approx(expected, abs=1e-2)


def test_unknown_backend_and_precision() -> None:
    net = default_network("shogi")
    with pytest.raises(EvaluatorError, match="backend cuda found for device cpu, expected auto or native or onnx"):
        load_shogi(net, backend="cuda")
    message = "precision int4 found for device cpu and backend auto, expected auto or fp32 or int16"
    with pytest.raises(EvaluatorError, match=message):
        load_shogi(net, precision="int4")


def foreign(path: Path, inputs: dict[str, list[int | str]], outputs: dict[str, list[int | str]], kind: int) -> Path:
    def declare(tensors: dict[str, list[int | str]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, kind, shape) for name, shape in tensors.items()]

    nodes = [helper.make_node("Identity", [next(iter(inputs))], [name]) for name in outputs]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", declare(inputs), declare(outputs))), path)
    return path


OUTPUTS: dict[str, list[int | str]] = {"output_policy": ["N", 2187], "output_value": ["N", 1]}


def test_networks_of_other_shapes_are_refused_in_one_line(tmp_path: Path) -> None:
    def refused(inputs: dict[str, list[int | str]], message: str, kind: int = TensorProto.FLOAT) -> None:
        path = foreign(tmp_path / "x.onnx", inputs, OUTPUTS, kind)
        with pytest.raises(NetworkError, match=message) as caught:
            open_file(path)
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)

    good: dict[str, list[int | str]] = {"input1": ["N", 62, 9, 9], "input2": ["N", 57, 9, 9]}
    refused({**good, "input1": ["N", 61, 9, 9]}, r"input1 \(float32 Nx61x9x9\).* found, expected dlshogi's")
    refused({**good, "input2": ["N", 58, 9, 9]}, r"input2 \(float32 Nx58x9x9\).* found, expected dlshogi's")
    refused({**good, "input2": ["N", 57]}, r"input2 \(float32 Nx57\).* found, expected dlshogi's")
    refused(good, r"input1 \(int64 Nx62x9x9\) found, expected float32 or float16", TensorProto.INT64)
    refused({"spatial": ["N", 45, 9, 9]}, "an ONNX file with inputs spatial and outputs output_policy, output_value")
    # the names are the exporter's business
    renamed = {"board": good["input1"], "hands": good["input2"]}
    network = open_file(foreign(tmp_path / "y.onnx", renamed, OUTPUTS, TensorProto.FLOAT)).shogi
    assert network is not None
    assert network.extras == 57


def test_games_are_not_mixed_up(tmp_path: Path) -> None:
    path = write_network(tmp_path / "net.onnx", SMALL)
    for size in (9, 19):
        with pytest.raises(NetworkError, match="a network for shogi found, expected a network for Go"):
            load_go(path, size, "cpu", "onnx")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(NetworkError, match="starts with b'hello' found"):
        load_shogi(tmp_path / "text")


def test_broken_files_are_refused_in_one_line(tmp_path: Path) -> None:
    path = write_network(tmp_path / "net.onnx", SMALL)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(NetworkError, match="found, expected a KataGo network"):
        load_shogi(path, "cpu", "onnx")
    model = make_model(SMALL)
    model.graph.node[0].input[1] = "nowhere"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(EvaluatorError, match="onnxruntime cannot load it") as caught:
        load_shogi(path, "cpu", "onnx")
    assert "\n" not in str(caught.value)


def test_a_value_that_is_no_probability_is_refused(tmp_path: Path) -> None:
    model = make_model(SMALL)
    # The exporter left the sigmoid out, and the net sees a board that is won.
    sigmoid = model.graph.node[-2]
    assert sigmoid.op_type == "Sigmoid"
    sigmoid.op_type = "Exp"
    path = tmp_path / "net.onnx"
    next(t for t in model.graph.initializer if list(t.dims) == [1]).raw_data = np.float32(3.0).tobytes()
    onnx.save(model, path)
    with pytest.raises(EvaluatorError, match="for an empty board found, expected 0 to 1"):
        load_shogi(path, "cpu", "onnx")


def test_settings_beside_a_network(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    assert read_settings(path) == {}
    settings = Path(f"{path}.ini")
    settings.write_bytes(b"\xef\xbb\xbfSoftmax_Temperature=174\r\n\r\n# a comment\nC_init = 144\n[x]\nBook_File=a=b\n")
    assert read_settings(path) == {"Softmax_Temperature": "174", "C_init": "144", "Book_File": "a=b"}
    settings.write_text("C_init 144\n")
    with pytest.raises(NetworkError, match="line 1 is 'C_init 144', expected Name=Value"):
        read_settings(path)
    settings.write_bytes(b"\xff\xfe")
    with pytest.raises(NetworkError, match="no UTF-8 text found"):
        read_settings(path)


def changed(path: Path, change: Callable[[onnx.ModelProto], None]) -> Path:
    model = make_model(SMALL)
    change(model)
    path.write_bytes(model.SerializeToString())
    return path


def _rename(model: onnx.ModelProto, kind: str, new: str) -> None:
    next(node for node in model.graph.node if node.op_type == kind).op_type = new


def _stride(model: onnx.ModelProto) -> None:
    conv = [node for node in model.graph.node if node.op_type == "Conv"][4]
    conv.attribute.append(helper.make_attribute("strides", [1, 2]))


def _read_again(model: onnx.ModelProto) -> None:
    """Let the last convolution of the value head read what the second block has been added to."""
    relus = [node for node in model.graph.node if node.op_type == "Relu"]
    convs = [node for node in model.graph.node if node.op_type == "Conv"]
    convs[-1].input[0] = relus[2].output[0]


def _set_weight(value: float) -> Callable[[onnx.ModelProto], None]:
    """Change one weight of the first convolution."""

    def change(model: onnx.ModelProto) -> None:
        conv = next(node for node in model.graph.node if node.op_type == "Conv")
        tensor = next(tensor for tensor in model.graph.initializer if tensor.name == conv.input[1])
        weights = numpy_helper.to_array(tensor).copy()
        weights.flat[0] = value
        tensor.CopyFrom(numpy_helper.from_array(weights, tensor.name))

    return change


def _keep_nan_in_node(model: onnx.ModelProto) -> None:
    _set_weight(np.nan)(model)
    conv = next(node for node in model.graph.node if node.op_type == "Conv")
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == conv.input[1])
    model.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))
    model.graph.initializer.remove(tensor)


def test_weights_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    for change in (_set_weight(np.nan), _keep_nan_in_node):
        path = changed(tmp_path / "nan.onnx", change)
        for backend in ("auto", "native"):
            with pytest.raises(NetworkError, match=r"nan.onnx: weights '.*' with NaN found, expected numbers"):
                load_shogi(path, "cpu", backend)
    path = changed(tmp_path / "inf.onnx", _set_weight(np.inf))
    with pytest.raises(EvaluatorError, match="Conv has weights that are not finite: expected backend onnx"):
        load_shogi(path, "cpu", "native")
    with pytest.raises(EvaluatorError, match=r"inf.onnx: .*(value|output_policy)"):
        load_shogi(path, "cpu", "auto")


UNSUPPORTED: dict[str, Callable[[onnx.ModelProto], None]] = {
    "operator Elu has no kernel": lambda model: _rename(model, "Relu", "Elu"),
    r"a convolution with strides \[1, 2\] has no kernel": _stride,
    "a map is read again after a sum with it": _read_again,
}


@pytest.mark.parametrize("message", UNSUPPORTED)
def test_graphs_without_kernels_go_to_onnxruntime(message: str, tmp_path: Path) -> None:
    path = changed(tmp_path / "net.onnx", UNSUPPORTED[message])
    with pytest.raises(EvaluatorError, match=f"{message}: expected backend onnx") as caught:
        load_shogi(path, "cpu", "native")
    assert "\n" not in str(caught.value)
    assert dict(facts(path))["computed by"].startswith("onnxruntime (")
    if "strides" not in message:
        assert "onnxruntime" in load_shogi(path, "cpu", "auto").description


def test_the_reader_of_graphs_reads_what_onnx_reads(tmp_path: Path) -> None:
    for name in ("unfolded", "half"):
        path = write_network(tmp_path / name, KINDS[name])
        graph, model = read_onnx_graph(path), make_model(KINDS[name])
        assert [node.kind for node in graph.nodes] == [node.op_type for node in model.graph.node]
        for node, expected in zip(graph.nodes, model.graph.node, strict=True):
            assert list(node.inputs) == list(expected.input)
            assert list(node.outputs) == list(expected.output)
            wanted = {attribute.name: helper.get_attribute_value(attribute) for attribute in expected.attribute}
            assert node.attributes == wanted
        for tensor in model.graph.initializer:
            np.testing.assert_array_equal(graph.weights[tensor.name], numpy_helper.to_array(tensor))


def test_weights_in_typed_fields_are_read(tmp_path: Path) -> None:
    tensors = [
        helper.make_tensor("f", TensorProto.FLOAT, [2, 2], [1.0, -2.5, 3.0, 0.0]),
        helper.make_tensor("h", TensorProto.FLOAT16, [3], [0.5, -1.0, 2.0]),
        helper.make_tensor("i", TensorProto.INT64, [3], [-1, 0, 2**40]),
        helper.make_tensor("d", TensorProto.DOUBLE, [1], [0.25]),
        helper.make_tensor("s", TensorProto.FLOAT, [], [7.0]),
    ]
    node = helper.make_node("Identity", ["f"], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])
    model = helper.make_model(helper.make_graph([node], "g", [], [output], tensors))
    path = tmp_path / "weights.onnx"
    path.write_bytes(model.SerializeToString())
    graph = read_onnx_graph(path)
    for tensor in tensors:
        expected = numpy_helper.to_array(tensor)
        assert graph.weights[tensor.name].dtype == expected.dtype
        np.testing.assert_array_equal(graph.weights[tensor.name], expected)


def write_apart(path: Path, location: str = "net.data") -> Path:
    """Write SMALL with its weights in a file of their own."""
    onnx.save(make_model(SMALL), path, save_as_external_data=True, location=location, size_threshold=0)
    return path


def test_weights_in_other_files_go_to_onnxruntime(tmp_path: Path) -> None:
    path = write_apart(tmp_path / "net.onnx")
    with pytest.raises(EvaluatorError, match=r"net.onnx: weights '.*' lie in another file: expected backend onnx"):
        load_shogi(path, "cpu", "native")
    apart = load_shogi(path, "cpu", "auto")
    assert "onnxruntime" in apart.description
    whole = load_shogi(write_network(tmp_path / "whole.onnx", SMALL), "cpu", "onnx")
    planes, extras = random_inputs(SMALL, 3)
    for found, expected in zip(apart.run(planes, extras), whole.run(planes, extras), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert dict(facts(path))["computed by"].startswith("onnxruntime (weights ")


def test_weights_of_unusual_types_go_to_onnxruntime(tmp_path: Path) -> None:
    def change(model: onnx.ModelProto) -> None:
        conv = next(node for node in model.graph.node if node.op_type == "Conv")
        tensor = next(tensor for tensor in model.graph.initializer if tensor.name == conv.input[1])
        bits = (numpy_helper.to_array(tensor).view(np.uint32) >> 16).astype(np.uint16)
        model.graph.node.insert(0, helper.make_node("Cast", ["narrow"], [tensor.name], to=TensorProto.FLOAT))
        model.graph.initializer.remove(tensor)
        model.graph.initializer.append(
            helper.make_tensor("narrow", TensorProto.BFLOAT16, bits.shape, bits.tobytes(), raw=True)
        )

    path = changed(tmp_path / "net.onnx", change)
    with pytest.raises(EvaluatorError, match=r"weights 'narrow' are of ONNX type 16: expected backend onnx"):
        load_shogi(path, "cpu", "native")
    assert "onnxruntime" in load_shogi(path, "cpu", "auto").description
    assert dict(facts(path))["computed by"].startswith("onnxruntime (")


def test_weights_in_other_files_count_for_the_digest(tmp_path: Path) -> None:
    path, data, cache = write_apart(tmp_path / "net.onnx"), tmp_path / "net.data", tmp_path / "cache"
    before = open_file(path).describe()
    variant = Variant(packed=("input1",))
    files = [variant_file(path, each, cache) for each in (variant, Variant())]
    (np.fromfile(data, np.float32) * 0.5).tofile(data)
    assert open_file(path).describe().source_sha256 != before.source_sha256
    assert variant_file(path, variant, cache) != files[0]
    assert all(not data_files(file) and file.parent == cache / "nets" for file in files)
    data.unlink()
    with pytest.raises(NetworkError, match=r"net.onnx: weights in 'net.data' found, expected a file in the folder"):
        open_file(path).describe()


@pytest.mark.parametrize("name", ["../net.data", "/dev/zero"])
def test_weights_outside_of_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "net.data").write_bytes(b"weights")
    (tmp_path / "folder").mkdir()
    model = make_model(SMALL)
    onnx.external_data_helper.convert_model_to_external_data(model, location="net.data", size_threshold=0)
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.external_data[0].value = name
    path = tmp_path / "folder" / "net.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(NetworkError, match=r"net.onnx: weights in '.*' found, expected a file in the folder"):
        load_shogi(path, "cpu")


def test_constants_in_other_files_are_seen(tmp_path: Path) -> None:
    tensor = helper.make_tensor("c", TensorProto.FLOAT, [1], bytes(4), raw=True)
    onnx.external_data_helper.set_external_data(tensor, "constants.data")
    node = helper.make_node("Constant", [], ["y"], value=tensor)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    path = tmp_path / "net.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([node], "g", [], [output])).SerializeToString())
    assert data_files(path) == ["constants.data"]


class _Drawn(GraphBuilder):
    """Graphs with random weights."""

    def __init__(self) -> None:
        super().__init__()
        self._rng = np.random.default_rng(3)

    def weights(self, *shape: int) -> str:
        """Return a constant that keeps activations near 1."""
        return self.constant(self._rng.normal(0.0, (2.0 / np.prod(shape[1:])) ** 0.5, shape))

    def conv(self, source: str, outputs: int, inputs: int, side: int) -> str:
        weights = self.weights(outputs, inputs, side, side)
        return self.op("Conv", source, weights, kernel_shape=[side, side], pads=[side // 2] * 4)

    def relu(self, *summands: str) -> str:
        return self.op("Relu", self.op("Add", *summands))


def _write_drawn(path: Path, tower: Callable[[_Drawn, str], tuple[str, str]]) -> Path:
    """Write a network of dlshogi's form: `tower` makes of a map what the policy reads and what the value reads."""
    graph = _Drawn()
    board, hands = graph.input("input1", ["N", 62, 9, 9]), graph.input("input2", ["N", 57, 9, 9])
    first = graph.relu(graph.conv(board, 16, 62, 3), graph.conv(hands, 16, 57, 1))
    last, pooled = tower(graph, first)
    value = graph.op("Gemm", graph.op("Flatten", pooled, axis=1), graph.weights(16, 1), graph.constant(np.zeros(1)))
    graph.output(graph.op("Flatten", graph.conv(last, 27, 16, 1), axis=1), "output_policy", ["N", 2187])
    graph.output(graph.op("Sigmoid", value), "output_value", ["N", 1])
    onnx.save(graph.model("drawn", {}), path)
    return path


def _pool_early(graph: _Drawn, x: str) -> tuple[str, str]:
    pooled = graph.op("GlobalAveragePool", x)
    return graph.relu(graph.conv(x, 16, 16, 3), x), pooled


def _pool_late(graph: _Drawn, x: str) -> tuple[str, str]:
    y = graph.op("Relu", graph.conv(x, 16, 16, 3))
    return graph.relu(graph.conv(y, 16, 16, 3), x), graph.op("GlobalAveragePool", x)


def _gate_late(graph: _Drawn, x: str) -> tuple[str, str]:
    y = graph.op("Relu", graph.conv(x, 16, 16, 3))
    last = graph.relu(graph.conv(y, 16, 16, 3), x)
    pooled = graph.op("Flatten", graph.op("GlobalAveragePool", last), axis=1)
    gates = graph.op("Gemm", pooled, graph.weights(16, 16), graph.constant(np.zeros(16)))
    gates = graph.op("Sigmoid", graph.op("Reshape", gates, graph.shape(-1, 16, 1, 1)))
    return last, graph.op("GlobalAveragePool", graph.op("Mul", x, gates))


def _add_own_sum(graph: _Drawn, x: str) -> tuple[str, str]:
    """Add a map to a sum that it is part of, and that is not a map of its own yet."""
    y = graph.op("Relu", graph.conv(x, 16, 16, 3))
    both = graph.op("Add", x, y)
    last = graph.relu(graph.conv(x, 16, 16, 3), both)
    return last, graph.op("GlobalAveragePool", last)


def _add_thrice(graph: _Drawn, x: str) -> tuple[str, str]:
    last = graph.relu(graph.op("Add", x, x), x)
    return last, graph.op("GlobalAveragePool", last)


DRAWN = {
    _pool_early: True,
    _pool_late: False,
    _gate_late: False,
    _add_own_sum: True,
    _add_thrice: False,
}
"""Towers, and whether our kernels compute them."""


@pytest.mark.parametrize("tower", DRAWN)
def test_maps_that_are_read_again_are_not_mistaken(
    tower: Callable[[_Drawn, str], tuple[str, str]], tmp_path: Path
) -> None:
    path = _write_drawn(tmp_path / "net.onnx", tower)
    if not DRAWN[tower]:
        with pytest.raises(EvaluatorError, match=r"a map is read again after a sum with it|has no kernel"):
            load_shogi(path, "cpu", "native")
    planes, extras = random_inputs(SMALL, 7)
    results = []
    for backend in ("auto", "onnx"):
        evaluator = load_shogi(path, "cpu", backend)
        assert ("native" in evaluator.description) == (backend == "auto" and DRAWN[tower])
        results.append(evaluator.run(planes, extras))
    for found, expected in zip(*results, strict=True):
        assert found == pytest.approx(expected, abs=1e-4)
