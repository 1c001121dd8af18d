"""The forward pass of our own, part by part, and whole networks by it and as ONNX, against the obvious forward pass."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.contract.networks import load_go, run_onnx
from tests.looping import looped
from tests.naive.katago_forward import forward
from tests.naive.katago_networks import RandomNetworks
from yomi.engine.evaluators.backends import NativeBackend, native_precision
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.network import NetworkEvaluator
from yomi.engine.go.networks import KataGo, make_program, raw_outputs
from yomi.native.forward import builder
from yomi.native.forward.builder import PRECISIONS, ProgramBuilder
from yomi.native.forward.emit import BYTES, FLOATS, HAS_HALF_PRODUCTS, HAS_PAIRS, INTEGERS, SCORE_KINDS, TILES
from yomi.native.forward.gemm import BLOCK_ROWS, PANEL, multiply, pack, quantise, quantise_to_bytes
from yomi.native.forward.points import WEIGHT, softmax
from yomi.native.forward.tiles import halve
from yomi.native.forward.winograd import TILE_OUTPUTS, choose_tile, even_matrices, matrices
from yomi.native.jit import kernel
from yomi.nets.katago.cpu_program import unsupported
from yomi.nets.katago.network import Activation, Conv, KataGoNetwork
from yomi.nets.katago.onnx_export import export_onnx
from yomi.nets.katago.outputs import RawOutputs, describe
from yomi.nets.katago.write import write_network
from yomi.nets.load import NetworkFile, NetworkKind
from yomi.nets.metadata import BoardSize, sides

narrow = pytest.mark.parametrize(
    "precision",
    [
        pytest.param(name, marks=pytest.mark.skipif(name not in PRECISIONS, reason=f"this processor has no {name}"))
        for name in ("int16", "int8", "bf16")
    ],
)
needs_halves = pytest.mark.skipif(
    "bf16" not in PRECISIONS and not HAS_HALF_PRODUCTS, reason="this processor multiplies no bfloats"
)
needs_bytes = pytest.mark.skipif("int8" not in PRECISIONS, reason="this processor has no products of 8-bit integers")
needs_pairs = pytest.mark.skipif(not HAS_PAIRS, reason="this processor has no products of 16-bit integers")


@kernel
def multiply_arrays(numbers, a, b, c, depth):  # type: ignore[no-untyped-def]
    """Multiply a [rows, depth] by packed panels b [panels, depth, PANEL]; see multiply for `numbers`."""
    multiply(
        numbers,
        a.ctypes.data,
        a.shape[1] * 4,
        a.shape[0],
        b.ctypes.data,
        depth,
        b.shape[0],
        c.ctypes.data,
        c.shape[1] * 4,
    )


@looped("rows", [*range(1, 2 * BLOCK_ROWS + 2), 25, 72])
def test_product(rows: int) -> None:
    rng = np.random.default_rng(rows)
    depth, columns = 2 * PANEL + 3, PANEL + 5
    a = rng.standard_normal((rows, depth + -depth % PANEL)).astype(np.float32)
    b = rng.standard_normal((depth, columns)).astype(np.float32)
    packed = pack(b)
    assert packed.shape == (2, 3 * PANEL, PANEL)
    c = np.full((rows, 2 * PANEL), np.nan, np.float32)
    multiply_arrays(0, a, packed, c, 3 * PANEL)
    np.testing.assert_allclose(c[:, :columns], a[:, :depth] @ b, rtol=1e-4, atol=1e-4)
    assert not c[:, columns:].any()


def integers(panels: np.ndarray) -> np.ndarray:
    """Return panels [..., panels, depth / 2, PANEL] of pairs as int16[..., depth, columns], the obvious way."""
    pairs = np.ascontiguousarray(panels).view(np.int16).reshape(*panels.shape, 2)
    *lead, count, half, width, _ = pairs.shape
    found = np.zeros((*lead, 2 * half, count * width), np.int16)
    for panel in range(count):
        for depth in range(2 * half):
            found[..., depth, panel * width : (panel + 1) * width] = pairs[..., panel, depth // 2, :, depth % 2]
    return found


@pytest.mark.parametrize("depth", [1, 3, PANEL, 5 * PANEL])
def test_quantising(depth: int) -> None:
    rng = np.random.default_rng(depth)
    matrices_ = rng.standard_normal((4, depth, PANEL + 1)).astype(np.float32) ** 3
    matrices_[:, :, 2] = 0.0
    panels, most, units = quantise(matrices_)
    found = integers(panels)
    assert not found[:, :, PANEL + 1 :].any()
    assert not found[:, depth:].any()
    whole = found[:, :depth, : PANEL + 1].astype(np.int64)
    np.testing.assert_allclose(whole * units, matrices_, atol=0.501 * units.max())
    assert most < 2**15 - 1
    assert np.abs(whole).sum(axis=1).max() * (most + 0.6) < 2**31
    # A bit is not wasted: either the sums or the entries are as great as they may be.
    assert (np.abs(whole).sum(axis=1).max() * most > 2**30.9) or np.abs(whole).max() > 32_000


def test_weights_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="found weights that are not finite, expected finite weights"):
        quantise(np.full((1, 2, 3), np.nan, np.float32))


@needs_pairs
@pytest.mark.parametrize("rows", [1, BLOCK_ROWS, BLOCK_ROWS + 1, 72])
def test_product_of_pairs(rows: int) -> None:
    rng = np.random.default_rng(rows)
    panels, most, _ = quantise(rng.standard_normal((1, PANEL, PANEL + 5)).astype(np.float32))
    a = rng.integers(-int(most), int(most) + 1, (rows, PANEL)).astype(np.int16)
    b = integers(panels)[0].astype(np.int64)
    a[0] = np.where(b[:, 3] > 0, int(most), -int(most))  # the greatest sum that there may be
    c = np.full((rows, 2 * PANEL), np.nan, np.float32)
    multiply_arrays(1, a.view(np.float32), panels[0], c, PANEL // 2)
    np.testing.assert_array_equal(c.view(np.int32), a.astype(np.int64) @ b)


@pytest.mark.parametrize("depth", [1, 3, 5 * PANEL])
def test_quantising_to_bytes(depth: int) -> None:
    rng = np.random.default_rng(depth)
    matrix = rng.standard_normal((depth, PANEL + 1)).astype(np.float32) ** 3
    matrix[:, 2] = 0.0
    panels, most, units = quantise_to_bytes(matrix)
    head, found = bytes_of(panels)
    whole = found[:depth, : PANEL + 1].astype(np.int64)
    np.testing.assert_allclose(whole * units, matrix, atol=0.501 * units.max())
    np.testing.assert_array_equal(np.abs(whole).max(axis=0), [0 if k == 2 else 127 for k in range(PANEL + 1)])
    assert most == 127
    assert not found[:, PANEL + 1 :].any()
    assert not found[depth:].any()
    np.testing.assert_array_equal(head, -128 * found.astype(np.int64).sum(axis=0))
    with pytest.raises(ValueError, match="weights that are not finite"):
        quantise_to_bytes(np.full((2, 3), np.inf, np.float32))


def bytes_of(panels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of panels, int32[columns], and their other rows as int8[depth, columns]."""
    count, rows, width = panels.shape
    quads = np.ascontiguousarray(panels[:, 1:]).view(np.int8).reshape(count, rows - 1, width, 4)
    return panels[:, 0].view(np.int32).reshape(-1), quads.transpose(1, 3, 0, 2).reshape(4 * (rows - 1), count * width)


@needs_bytes
@pytest.mark.parametrize("rows", [1, BLOCK_ROWS, BLOCK_ROWS + 1, 72])
def test_product_of_bytes(rows: int) -> None:
    rng = np.random.default_rng(rows)
    panels, most, _ = quantise_to_bytes(rng.standard_normal((2 * PANEL, PANEL + 5)).astype(np.float32))
    a = rng.integers(-int(most), int(most) + 1, (rows, 2 * PANEL))
    b = bytes_of(panels)[1].astype(np.int64)
    a[0] = np.where(b[:, 3] > 0, int(most), -int(most))
    c = np.full((rows, 2 * PANEL), np.nan, np.float32)
    multiply_arrays(BYTES, (a + 128).astype(np.uint8).view(np.float32), panels, c, PANEL // 2)
    np.testing.assert_array_equal(c.view(np.int32), a @ b)


@needs_halves
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 31, 32, 33, 72])
def test_product_of_tiles(rows: int) -> None:
    rng = np.random.default_rng(rows)
    a = rng.standard_normal((rows, 2 * PANEL)).astype(np.float32)
    b = rng.standard_normal((2 * PANEL, PANEL + 5)).astype(np.float32)
    left, right = halve(a[:, :, None])[..., 0], halve(pack(b))
    c = np.full((rows + 1, 2 * PANEL), np.nan, np.float32)
    multiply_arrays(TILES, np.ascontiguousarray(left), right, c[:rows], PANEL)
    exact = halved(a).astype(np.float64) @ halved(b).astype(np.float64)
    np.testing.assert_allclose(c[:rows, : PANEL + 5], exact, rtol=1e-5, atol=1e-5)
    assert not c[:rows, PANEL + 5 :].any()
    assert np.isnan(c[rows]).all()


@kernel
def softmax_arrays(numbers, scores, columns, units, inverses):  # type: ignore[no-untyped-def]
    """Apply softmax to scores [rows, width]; see softmax."""
    line = scores.shape[1] * 4
    softmax(
        numbers,
        scores.ctypes.data,
        line,
        scores.shape[0],
        columns,
        scores.shape[1],
        units.ctypes.data,
        inverses.ctypes.data,
    )


@looped("numbers", SCORE_KINDS)
@looped("columns", [1, PANEL - 1, PANEL, 2 * PANEL + 3])
def test_softmax(numbers: int, columns: int) -> None:
    rng = np.random.default_rng(columns)
    width, units = columns + -columns % PANEL, np.array([0.001, 0.5], np.float32)
    whole = rng.integers(-150_000, 30_000, (3, width)).astype(np.int32)
    values = whole.astype(np.float32) * units[0]
    scores, inverses = (whole.view(np.float32) if numbers == INTEGERS else values.copy()), np.zeros(3, np.float32)
    softmax_arrays(numbers, scores, columns, units, inverses)
    expected = np.exp(values[:, :columns].astype(np.float64))
    expected /= expected.max(axis=1, keepdims=True)
    if numbers == INTEGERS:
        found = scores.view(np.int16)[:, :width] / WEIGHT
    elif numbers == TILES:
        found = (scores.view(np.uint16)[:, :width].astype(np.uint32) << 16).view(np.float32)
    else:
        found = scores
    rounding = {FLOATS: 1e-6, INTEGERS: 0.6 / WEIGHT, TILES: 2**-8}[numbers]
    np.testing.assert_allclose(found[:, :columns], expected, rtol=1e-4, atol=rounding)
    assert (found[:, columns:] <= 1e-29).all()
    unit = units[1] if numbers == INTEGERS else 1.0
    np.testing.assert_allclose(inverses, unit / expected.sum(axis=1), rtol=2e-4)


def halved(values: np.ndarray) -> np.ndarray:
    """Round floats to bfloats, the obvious way: half of the last kept bit is added, and the rest cut off."""
    bits = values.view(np.uint32).astype(np.uint64)
    ties_to_even = (bits >> 16) & 1
    return (((bits + 0x7FFF + ties_to_even) >> 16 << 16).astype(np.uint32)).view(np.float32)


@narrow
@pytest.mark.parametrize("size", [5, 9, 11, 19])
@pytest.mark.parametrize(
    "kinds", [["gpool", "bottleneck", "ordinary"], ["attention", "ffn-gated", "attention-plain", "ffn"]]
)
def test_networks_in_fewer_bits_are_close(size: int, kinds: list[str], precision: str) -> None:
    network = RandomNetworks(15).network(kinds, channels=40)
    planes, extras = inputs(size, 3)
    exact = raw_outputs(evaluator(network, size), planes, extras)
    made = evaluator(network, size, precision)
    fewer = raw_outputs(made, planes, extras)
    most = 0.1 if made.precision == "int8" else 0.01
    assert made.precision == ("int16" if precision == "int8" and "ordinary" in kinds else precision)
    for name in ("policy", "value", "misc", "ownership"):
        found, expected = getattr(fewer, name), getattr(exact, name)
        assert not np.array_equal(found, expected)
        assert np.abs(found - expected).mean() < most * np.abs(expected).mean(), name


@narrow
@pytest.mark.parametrize("size", [2, 19])
def test_attention_in_fewer_bits_adds_up_equal_values(size: int, precision: str) -> None:
    network = RandomNetworks(15).network(["attention-plain"], channels=40)
    network.trunk.conv.weights[:] = 0.0  # All points are equal, and so all weights are: no sum can be greater.
    planes, extras = inputs(size, 2)
    exact = raw_outputs(evaluator(network, size), planes, extras)
    fewer = raw_outputs(evaluator(network, size, precision), planes, extras)
    np.testing.assert_allclose(fewer.ownership, exact.ownership, rtol=0.05, atol=0.05 * np.abs(exact.ownership).max())


@narrow
def test_fewer_bits_do_not_depend_on_the_batch(precision: str) -> None:
    network = RandomNetworks(15).network(["ordinary", "gpool", "bottleneck"], channels=40)
    planes, extras = inputs(7, 5)
    planes[3] *= 50.0
    made = evaluator(network, 7, precision)
    together = raw_outputs(made, planes, extras)
    for row in range(5):
        alone = raw_outputs(made, planes[row : row + 1], extras[row : row + 1])
        np.testing.assert_array_equal(alone.policy[0], together.policy[row])
        np.testing.assert_array_equal(alone.value[0], together.value[row])


@narrow
@pytest.mark.parametrize("factor", [1e-20, 1e25])
def test_fewer_bits_have_the_range_of_their_inputs(factor: float, precision: str) -> None:
    network = RandomNetworks(15, norms="bias").network(["ordinary", "bottleneck"], channels=24)
    planes, extras = inputs(7, 2)
    planes[1] *= factor
    extras[1] *= factor
    exact = raw_outputs(evaluator(network, 7), planes, extras).policy
    found = raw_outputs(evaluator(network, 7, precision), planes, extras).policy
    assert np.abs(found[1] - exact[1]).mean() < 0.01 * np.abs(exact[1]).mean()


@narrow
def test_fewer_bits_of_an_empty_map(precision: str) -> None:
    network = RandomNetworks(15).network(["ordinary"], channels=8)
    network.trunk.conv.weights[:] = 0.0
    planes, extras = inputs(7, 2)
    extras[:] = 0.0
    exact = raw_outputs(evaluator(network, 7), planes, extras)
    np.testing.assert_allclose(
        raw_outputs(evaluator(network, 7, precision), planes, extras).value, exact.value, rtol=1e-3
    )


@pytest.mark.skipif(HAS_PAIRS, reason="this processor has products of 16-bit integers")
def test_integers_are_refused_where_there_are_none() -> None:
    with pytest.raises(EvaluatorError, match="precision int16 is not for this processor: expected auto or fp32"):
        native_precision("int16")


@pytest.mark.parametrize("m", TILE_OUTPUTS)
def test_winograd_matrices(m: int) -> None:
    rng = np.random.default_rng(m)
    a, g, b = matrices(m)
    inputs, filter_ = rng.standard_normal((m + 2, m + 2)), rng.standard_normal((3, 3))
    found = a @ ((g @ filter_ @ g.T) * (b @ inputs @ b.T)) @ a.T
    expected = [[(inputs[y : y + 3, x : x + 3] * filter_).sum() for x in range(m)] for y in range(m)]
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("m", TILE_OUTPUTS)
def test_even_matrices(m: int) -> None:
    rng = np.random.default_rng(m)
    a, g, factors = even_matrices(m)
    b = matrices(m)[2] * factors[:, None]
    inputs_, filter_ = rng.uniform(-1, 1, (m + 2, m + 2)), rng.standard_normal((3, 3))
    expected = [[(inputs_[y : y + 3, x : x + 3] * filter_).sum() for x in range(m)] for y in range(m)]
    np.testing.assert_allclose(a @ ((g @ filter_ @ g.T) * (b @ inputs_ @ b.T)) @ a.T, expected, atol=1e-10)
    signs = np.sign(b)
    for i in range(m + 2):
        for j in range(m + 2):
            assert abs((b @ np.outer(signs[i], signs[j]) @ b.T)[i, j]) <= 1.0 + 1e-8  # the greatest input is 1


def test_weights_may_cross_the_arrays_they_are_gathered_in(monkeypatch: pytest.MonkeyPatch) -> None:
    network = RandomNetworks(11).network(["ordinary", "gpool"])
    whole = make_program(network, 7, "fp32").weights
    monkeypatch.setattr(builder, "SLAB", 1008)
    np.testing.assert_array_equal(make_program(network, 7, "fp32").weights, whole)
    assert whole.size > 3 * 1008


def test_choice_of_tiles() -> None:
    assert [choose_tile(size) for size in (3, 4, 9, 13, 19)] == [3, 4, 5, 5, 5]


def evaluator(network: KataGoNetwork, size: int, precision: str = "fp32") -> NetworkEvaluator:
    program = make_program(network, size, precision)
    info = describe(network, size, "random.bin.gz", "")
    form = KataGo(NetworkFile(Path(info.source_file), NetworkKind.KATAGO), size).described(info)
    return NetworkEvaluator(form, NativeBackend(program, form))


def inputs(size: BoardSize, batch: int, seed: int = 7, numbers: int = 19) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    planes = (rng.random((batch, 22, *sides(size)[::-1])) < 0.3).astype(np.float32)
    planes[:, 0] = 1.0
    return planes, rng.uniform(-1, 1, (batch, numbers)).astype(np.float32)


def compare(network: KataGoNetwork, planes: np.ndarray, extras: np.ndarray, *found: RawOutputs) -> None:
    for index in range(len(planes)):
        expected = forward(network, planes[index], extras[index])
        # Human-SL networks are played without optimism.
        expected["policy"] = expected["policy"][: 1 if network.trunk.meta_encoder is not None else 2]
        for raw, (name, values) in itertools.product(found, expected.items()):
            output = getattr(raw, name)[index]
            assert output.shape == values.shape
            np.testing.assert_allclose(output, values, rtol=1e-4, atol=2e-4, err_msg=name)


def exported(network: KataGoNetwork, size: BoardSize, planes: np.ndarray, extras: np.ndarray) -> RawOutputs:
    """Return the outputs of the network as an ONNX graph."""
    return RawOutputs(**run_onnx(export_onnx(network, size), **{"spatial": planes, "global": extras}))


def check(network: KataGoNetwork, size: int = 5, batch: int = 3) -> None:
    planes, extras = inputs(size, batch, numbers=network.global_channels)
    assert unsupported(network) is None
    native = raw_outputs(evaluator(network, size), planes, extras)
    compare(network, planes, extras, native, exported(network, size, planes, extras))


@looped("version", range(8, 18))
def test_every_version(version: int) -> None:
    check(RandomNetworks(version).network(["ordinary", "gpool"]))


@pytest.mark.parametrize("version", range(15, 18))
def test_every_version_of_human_networks(version: int) -> None:
    check(RandomNetworks(version).network(["ordinary", "gpool"], meta=True))


@looped("tip", ["bn", "rms", "rms-spatial"])
@looped("kind", ["attention", "attention-plain", "ffn", "ffn-gated"])
def test_transformer_blocks_between_convolutions(kind: str, tip: str) -> None:
    made = RandomNetworks(17, activation=Activation.SILU)
    check(made.network(["ordinary", kind, kind, "gpool", kind], tip=tip))
    check(made.network([kind, "ordinary"], tip=tip, channels=40))


@pytest.mark.parametrize("size", [2, 7, 13, 19])
def test_transformers_on_all_boards(size: int) -> None:
    check(RandomNetworks(17).network(["attention", "ffn-gated"] * 2, tip="rms-spatial", channels=36), size)


@pytest.mark.parametrize("activation", Activation)
def test_tips_with_every_activation(activation: Activation) -> None:
    check(RandomNetworks(17, activation=activation).network(["attention"], tip="rms"))


@pytest.mark.parametrize("last", ["ordinary", "ffn-gated"])
def test_transformers_inside_bottlenecks(last: str) -> None:
    made = RandomNetworks(17, activation=Activation.SILU)
    network = made.network(["bottleneck", "bottleneck"], tip="rms")
    for block in network.trunk.blocks:
        channels = block.conv1.out_channels
        inner = tuple(made.block(kind, channels) for kind in ("attention", "ffn-gated", "ordinary", "attention", last))
        object.__setattr__(block, "blocks", inner)
    check(network, 9)


def test_inner_channels_that_are_zero_are_left_out() -> None:
    network = RandomNetworks(17).network(["ffn-gated", "ffn"], channels=24)
    for block in network.trunk.blocks:
        block.w1.weights[:, 3:9] = 0.0
        block.w2.weights[5:12] = 0.0
    network.trunk.blocks[1].w1.weights[:] = 0.0
    check(network)


@looped("activation", Activation)
@looped("norms", ["any", "positive", "bias"])
@looped("kind", ["ordinary", "gpool", "bottleneck"])
def test_every_block_norm_and_activation(kind: str, norms: str, activation: Activation) -> None:
    check(RandomNetworks(11, activation=activation, norms=norms).network([kind, "ordinary"]))


@pytest.mark.parametrize("size", [2, 3, 4, 7, 9, 13, 19])
def test_board_sizes(size: int) -> None:
    check(RandomNetworks(15).network(["gpool", "bottleneck", "ordinary"], kernel=5), size)


@pytest.mark.parametrize("channels", [7, 16, 40, 100])
def test_channels_of_any_number(channels: int) -> None:
    check(RandomNetworks(15, norms="positive").network(["ordinary", "gpool"], channels=channels), 6, 2)


def test_network_without_blocks() -> None:
    check(RandomNetworks(15).network([]))


@pytest.mark.parametrize("batch", [1, 2, 16, 37])
def test_batches_of_any_size(batch: int) -> None:
    check(RandomNetworks(10).network(["ordinary", "gpool"]), 4, batch)


def test_inputs_need_not_be_zero_or_one() -> None:
    network = RandomNetworks(10).network(["ordinary"], kernel=5)
    rng = np.random.default_rng(1)
    planes, extras = inputs(5, 2)
    planes[:] = rng.standard_normal(planes.shape)
    planes[:, 3:6] = 0.0
    compare(network, planes, extras, raw_outputs(evaluator(network, 5), planes, extras))


def test_large_activations_do_not_overflow() -> None:
    for activation in (Activation.MISH, Activation.SILU):
        network = RandomNetworks(11, activation=activation).network(["ordinary"])
        network.trunk.conv.weights[:] *= 300.0
        planes, extras = inputs(5, 1)
        with np.errstate(over="ignore"):
            expected = forward(network, planes[0], extras[0])
        for found in (raw_outputs(evaluator(network, 5), planes, extras), exported(network, 5, planes, extras)):
            np.testing.assert_allclose(found.policy[0], expected["policy"], rtol=1e-3, atol=1e-2)


def test_bottleneck_whose_first_convolution_is_wide() -> None:
    made = RandomNetworks(11, activation=Activation.MISH)
    network = made.network(["bottleneck", "bottleneck"])
    for block in network.trunk.blocks:
        object.__setattr__(block, "conv1", made.conv(8, 8, 3))
        object.__setattr__(block, "conv2", made.conv(8, 8, 3))
    check(network, 9)


def test_activations_of_the_heads_may_differ() -> None:
    network = RandomNetworks(11, activation=Activation.RELU).network(["gpool"])
    object.__setattr__(network.policy_head, "act_g1", Activation.SILU)
    object.__setattr__(network.value_head, "act_v1", Activation.MISH)
    check(network)


def test_what_is_not_supported(tmp_path: Path) -> None:
    made = RandomNetworks(17)
    wide = made.network(["ordinary"])
    object.__setattr__(wide.trunk.blocks[0], "conv1", made.conv(8, 8, 5))
    assert unsupported(wide) == "ordinary has a convolution of 5x5 points"
    path = tmp_path / "net.bin"
    path.write_bytes(write_network(wide))
    with pytest.raises(EvaluatorError, match="a convolution of 5x5 points: expected backend onnx"):
        load_go(path, 9, backend="native")
    with pytest.raises(EvaluatorError, match="board size 38 found, expected 2 to 37"):
        evaluator(made.network([]), 38)


@pytest.mark.parametrize(
    ("part", "name", "shape", "reason"),
    [
        ("trunk", "conv", (3, 5), "its first convolution is of 3x5 points"),
        ("policy_head", "p1", (3, 3), "the first convolutions of its heads differ in size"),
        ("value_head", "v1", (3, 3), "the first convolutions of its heads differ in size"),
        ("policy_head", "p2", (5, 5), "a head has a convolution of 5x5 points"),
        ("policy_head", "p2", (1, 3), "a head has a convolution of 1x3 points"),
        ("value_head", "ownership", (3, 3), "its ownership is a convolution of more than one point"),
    ],
)
def test_convolutions_of_other_sizes_go_to_onnxruntime(
    part: str, name: str, shape: tuple[int, int], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = RandomNetworks(11).network(["ordinary"])
    owner = getattr(network, part)
    out, channels = getattr(owner, name).weights.shape[:2]
    weights = 0.1 * np.random.default_rng(5).standard_normal((out, channels, *shape))
    object.__setattr__(owner, name, Conv(name, weights.astype(np.float32)))
    assert unsupported(network) == reason
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "net.bin"
    path.write_bytes(write_network(network))
    planes, extras = inputs(5, 2)
    made = load_go(path, 5, "cpu", "auto")
    assert "onnxruntime" in made.description
    compare(network, planes, extras, raw_outputs(made, planes, extras))


def test_heads_may_see_their_neighbours() -> None:
    made = RandomNetworks(11)
    network = made.network(["ordinary"])
    heads = {network.policy_head: ("p1", "g1", "p2"), network.value_head: ("v1",)}
    for head, names in heads.items():
        for name in names:
            out, channels = getattr(head, name).weights.shape[:2]
            object.__setattr__(head, name, made.conv(channels, out, 3))
    check(network)


def test_program_without_operations() -> None:
    program = ProgramBuilder(9, 22, 19).build()
    planes, extras = inputs(9, 1)
    value = np.full((1, 3), 7.0, np.float32)
    ownership = np.zeros((1, 81), np.float32)
    program.run(
        program.make_scratch(),
        planes,
        extras,
        np.zeros((1, 1, 82), np.float32),
        value,
        np.zeros((1, 4), np.float32),
        ownership,
    )
    assert (value == 7.0).all()
