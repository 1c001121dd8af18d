"""Exported graphs: boards that are not square, and variants for GPUs. test_forward compares all kinds of networks."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.contract.networks import run_onnx
from tests.naive.katago_networks import RandomNetworks
from tests.naive.shogi_networks import NetworkShape, write_network
from tests.unit.test_forward import compare, exported, inputs
from yomi.nets.dlshogi.network import ShogiForm
from yomi.nets.gpu_variants import VIEWS, Variant, make_variant
from yomi.nets.katago.network import Activation
from yomi.nets.katago.onnx_export import export_onnx


@pytest.mark.parametrize("tip", ["rms", "rms-spatial"])
def test_norms_of_transformers_stay_in_float32_in_half_precision(tip: str, tmp_path: Path) -> None:
    made = RandomNetworks(17, activation=Activation.SILU, norms="bias")
    path = tmp_path / "net.onnx"
    onnx.save(export_onnx(made.network(["attention", "ffn"], tip=tip), 5), path)
    graph = onnx.load_from_string(make_variant(path, Variant(half=True))).graph
    made_by = {output: node for node in graph.node for output in node.output}
    roots = [node for node in graph.node if node.op_type == "Sqrt"]
    assert len(roots) >= 3
    for root in roots:
        chain, node = [], root
        while node.input[0] in made_by and node.op_type not in ("Pow", "Mul", "Cast"):
            node = made_by[node.input[0]]
            chain.append(node.op_type)
        assert chain == ["Add", "ReduceMean", "Pow"]  # nothing is cast in between


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("kind", ["attention", "attention-plain"])
def test_single_operators_compute_the_same(kind: str, half: bool, tmp_path: Path) -> None:
    made = RandomNetworks(17, activation=Activation.SILU, norms="bias")
    path = tmp_path / "net.onnx"
    onnx.save(export_onnx(made.network(["ordinary", kind, "ffn-gated", kind], tip="rms"), 5), path)
    rng = np.random.default_rng(7)
    inputs = {"spatial": (rng.random((3, 22, 5, 5)) < 0.3).astype(np.float32)}
    inputs["global"] = rng.uniform(-1, 1, (3, 19)).astype(np.float32)
    plain, fused = (
        onnx.load_from_string(make_variant(path, Variant(half=half, fused=fused))) for fused in (False, True)
    )
    operators = [node.op_type for node in fused.graph.node]
    assert operators.count("MultiHeadAttention") == 2
    assert operators.count("RotaryEmbedding") == (4 if kind == "attention" else 0)
    assert operators.count("SimplifiedLayerNormalization") == 4
    assert not {"Softmax", "Pow"}.intersection(operators)
    expected, found = run_onnx(plain, **inputs), run_onnx(fused, **inputs)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=2e-2 if half else 1e-5, err_msg=name)


def test_products_that_are_no_attention_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(export_onnx(RandomNetworks(15).network(["gpool", "bottleneck"]), 5), path)
    plain, fused = (onnx.load_from_string(make_variant(path, Variant(half=True, fused=each))) for each in (False, True))
    assert fused.graph == plain.graph


@pytest.mark.parametrize("size", [(19, 13), (2, 7), (7, 2)])
def test_boards_that_are_not_square(size: tuple[int, int]) -> None:
    made, (planes, extras) = RandomNetworks(17, activation=Activation.SILU, norms="bias"), inputs(size, 3)
    for network in (
        RandomNetworks(15).network(["gpool", "bottleneck"], kernel=5),
        made.network(["ordinary", "attention", "ffn", "gpool"], tip="rms-spatial"),
    ):
        compare(network, planes, extras, exported(network, size, planes, extras))
    with pytest.raises(ValueError, match="board size 38x5 found"):
        export_onnx(RandomNetworks(8).network([]), (38, 5))


@pytest.mark.parametrize("size", [0, 1, 38])
def test_impossible_board_sizes(size: int) -> None:
    with pytest.raises(ValueError, match=f"board size {size} found"):
        export_onnx(RandomNetworks(8).network([]), size)


def test_metadata_is_written() -> None:
    model = export_onnx(RandomNetworks(8).network([]), 5, {"key": "text"})
    assert {item.key: item.value for item in model.metadata_props} == {"key": "text"}


def test_outputs_that_end_in_a_view_are_computed_for_recorded_commands(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(export_onnx(RandomNetworks(14, seed=3).network(["ordinary", "gpool"]), 5), path)
    plain, computed = (onnx.load_from_string(make_variant(path, Variant(webgpu=each))) for each in (False, True))
    views, ends = (
        {name: node.op_type for node in each.graph.node for name in node.output} for each in (plain, computed)
    )
    names = [output.name for output in computed.graph.output]
    assert {views[name] for name in names} & set(VIEWS)
    assert not {ends[name] for name in names} & set(VIEWS)
    random = np.random.default_rng(0)
    fed = {"spatial": random.random((2, 22, 5, 5), np.float32), "global": random.random((2, 19), np.float32)}
    wanted, found = run_onnx(plain, **fed), run_onnx(computed, **fed)
    for name in names:
        np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.parametrize("opset", [9, 17])
def test_convolutions_that_webgpu_computes_wrongly_get_a_channel_of_zeros(opset: int, tmp_path: Path) -> None:
    path = write_network(tmp_path / "net.onnx", NetworkShape(blocks=1, channels=18, form=ShogiForm.ALPHAZERO))
    model = onnx.load(path)
    model.opset_import[0].version = opset
    onnx.save(model, path)
    plain, padded = (onnx.load_from_string(make_variant(path, Variant(webgpu=each))) for each in (False, True))

    def channels(model: onnx.ModelProto) -> list[int]:
        kernels = {tensor.name: tensor.dims for tensor in model.graph.initializer}
        found = [kernels[node.input[1]] for node in model.graph.node if node.op_type == "Conv"]
        return [dims[1] for dims in found if dims[2] > 1]

    assert channels(plain) == [45, 18, 18]
    assert channels(padded) == [46, 19, 19]
    onnx.checker.check_model(padded)
    board = np.random.default_rng(0).random((2, 45, 9, 9), np.float32)
    wanted, found = run_onnx(plain, input_1=board), run_onnx(padded, input_1=board)
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, atol=1e-4)
