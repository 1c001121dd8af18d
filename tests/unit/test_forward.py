"""The forward pass of our own computes what the obvious one computes, part by part and as a whole."""

from __future__ import annotations

import numpy as np
import pytest

from engine.evaluators.base import EvaluatorError
from engine.evaluators.katago_cpu import NativeKataGoEvaluator
from native.forward.builder import ProgramBuilder
from native.forward.emit import HAS_BF16
from native.forward.gemm import BLOCK_ROWS, PANEL, multiply, pack, pack_pairs
from native.forward.winograd import TILE_OUTPUTS, choose_tile, matrices
from native.jit import kernel
from nets.katago.cpu_program import unsupported
from nets.katago.description import describe
from nets.katago.network import Activation, KataGoNetwork
from nets.katago.outputs import RawOutputs
from tests.naive.katago_forward import forward
from tests.naive.katago_networks import RandomNetworks

needs_bf16 = pytest.mark.skipif(not HAS_BF16, reason="this processor multiplies no bfloats")


@kernel
def multiply_arrays(narrow, a, b, c, depth):  # type: ignore[no-untyped-def]
    """Multiply a [rows, depth] by packed panels b [panels, depth, PANEL]; see multiply for `narrow`."""
    multiply(
        narrow,
        a.ctypes.data,
        a.shape[1] * 4,
        a.shape[0],
        b.ctypes.data,
        depth,
        b.shape[0],
        c.ctypes.data,
        c.shape[1] * 4,
    )


@pytest.mark.parametrize("rows", [*range(1, 2 * BLOCK_ROWS + 2), 25, 72])
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


def rounded(array: np.ndarray) -> np.ndarray:
    """Return the nearest bfloats, ties to even, as floats: the obvious way, by distance to both neighbours."""
    below = (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    above = ((array.view(np.uint32) & np.uint32(0xFFFF0000)) + np.uint32(0x10000)).view(np.float32)
    nearer = np.abs(array - above) < np.abs(array - below)
    tie = np.abs(array - above) == np.abs(array - below)
    is_odd = (below.view(np.uint32) >> np.uint32(16)) & np.uint32(1) == 1
    return np.where(nearer | (tie & is_odd), above, below)


def test_packing_of_pairs() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.standard_normal((PANEL, PANEL + 1)).astype(np.float32)
    matrix[0, 0] = np.array([0x3F808000], np.uint32).view(np.float32)[0]  # halfway, the lower one even
    matrix[1, 0] = np.array([0x3F818000], np.uint32).view(np.float32)[0]  # halfway, the upper one even
    pairs = pack_pairs(matrix).view(np.uint32)
    assert pairs.shape == (2, PANEL // 2, PANEL)
    low = (pairs << np.uint32(16)).view(np.float32)
    high = (pairs & np.uint32(0xFFFF0000)).view(np.float32)
    expected = rounded(matrix)
    for depth in range(PANEL):
        found = (low, high)[depth % 2][:, depth // 2].ravel()
        np.testing.assert_array_equal(found[: PANEL + 1], expected[depth])
        assert not found[PANEL + 1 :].any()


@needs_bf16
@pytest.mark.parametrize("rows", [1, BLOCK_ROWS, BLOCK_ROWS + 1, 72])
def test_product_of_pairs(rows: int) -> None:
    rng = np.random.default_rng(rows)
    a = rounded(rng.standard_normal((rows, PANEL)).astype(np.float32))
    b = rng.standard_normal((PANEL, PANEL + 5)).astype(np.float32)
    c = np.full((rows, 2 * PANEL), np.nan, np.float32)
    bfloats = (a.view(np.uint32) >> np.uint32(16)).astype(np.uint16).view(np.float32)
    multiply_arrays(1, bfloats, pack_pairs(b), c, PANEL // 2)
    np.testing.assert_allclose(c[:, : PANEL + 5], a @ rounded(b), rtol=1e-4, atol=1e-4)


@needs_bf16
@pytest.mark.parametrize("size", [9, 19])
def test_networks_in_bfloats_are_close(size: int) -> None:
    network = RandomNetworks(15).network(["gpool", "bottleneck", "ordinary"], channels=40)
    planes, extras = inputs(size, 3)
    info = describe(network, size, "random.bin.gz", "")
    exact = NativeKataGoEvaluator(network, info).run(planes, extras)
    narrow = NativeKataGoEvaluator(network, info, precision="bf16").run(planes, extras)
    for name in ("policy", "value", "misc", "ownership"):
        found, expected = getattr(narrow, name), getattr(exact, name)
        assert not np.array_equal(found, expected)
        assert np.abs(found - expected).mean() < 0.03 * np.abs(expected).mean(), name


@pytest.mark.skipif(HAS_BF16, reason="this processor multiplies bfloats")
def test_bfloats_are_refused_where_there_are_none() -> None:
    network = RandomNetworks(10).network(["ordinary"])
    with pytest.raises(EvaluatorError, match="without AVX512-BF16 found: expected precision auto or fp32"):
        NativeKataGoEvaluator(network, describe(network, 5, "random.bin.gz", ""), precision="bf16")


@pytest.mark.parametrize("m", TILE_OUTPUTS)
def test_winograd_matrices(m: int) -> None:
    rng = np.random.default_rng(m)
    a, g, b = matrices(m)
    inputs, filter_ = rng.standard_normal((m + 2, m + 2)), rng.standard_normal((3, 3))
    found = a @ ((g @ filter_ @ g.T) * (b @ inputs @ b.T)) @ a.T
    expected = [[(inputs[y : y + 3, x : x + 3] * filter_).sum() for x in range(m)] for y in range(m)]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_choice_of_tiles() -> None:
    assert choose_tile(9) == 3
    assert choose_tile(19) == 4


def evaluator(network: KataGoNetwork, size: int) -> NativeKataGoEvaluator:
    return NativeKataGoEvaluator(network, describe(network, size, "random.bin.gz", ""))


def inputs(size: int, batch: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    planes = (rng.random((batch, 22, size, size)) < 0.3).astype(np.float32)
    planes[:, 0] = 1.0
    return planes, rng.uniform(-1, 1, (batch, 19)).astype(np.float32)


def compare(network: KataGoNetwork, raw: RawOutputs, planes: np.ndarray, extras: np.ndarray) -> None:
    for index in range(len(planes)):
        expected = forward(network, planes[index], extras[index])
        expected["policy"] = expected["policy"][:2]
        for name, values in expected.items():
            found = getattr(raw, name)[index]
            assert found.shape == values.shape
            np.testing.assert_allclose(found, values, rtol=1e-4, atol=2e-4, err_msg=name)


def check(network: KataGoNetwork, size: int = 5, batch: int = 3) -> None:
    planes, extras = inputs(size, batch)
    assert unsupported(network) is None
    compare(network, evaluator(network, size).run(planes, extras), planes, extras)


@pytest.mark.parametrize("version", range(8, 18))
def test_every_version(version: int) -> None:
    check(RandomNetworks(version).network(["ordinary", "gpool"], meta=version >= 15))


@pytest.mark.parametrize("activation", Activation)
@pytest.mark.parametrize("norms", ["any", "bias"])
@pytest.mark.parametrize("kind", ["ordinary", "gpool", "bottleneck"])
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
    compare(network, evaluator(network, 5).run(planes, extras), planes, extras)


def test_large_activations_do_not_overflow() -> None:
    for activation in (Activation.MISH, Activation.SILU):
        network = RandomNetworks(11, activation=activation).network(["ordinary"])
        network.trunk.conv.weights[:] *= 300.0
        planes, extras = inputs(5, 1)
        found = evaluator(network, 5).run(planes, extras)
        with np.errstate(over="ignore"):
            expected = forward(network, planes[0], extras[0])
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


def test_what_is_not_supported() -> None:
    made = RandomNetworks(17)
    assert unsupported(made.network(["ordinary", "attention"])) == "it has transformer blocks"
    assert unsupported(made.network(["ordinary"], tip="rms")) == "its trunk ends in an RMS norm"
    wide = made.network(["ordinary"])
    object.__setattr__(wide.trunk.blocks[0], "conv1", made.conv(8, 8, 5))
    assert unsupported(wide) == "ordinary has a convolution of 5x5 points"
    with pytest.raises(EvaluatorError, match="transformer blocks: expected backend onnx"):
        evaluator(made.network(["ffn"]), 9)
    with pytest.raises(EvaluatorError, match="board size 38 found, expected 2 to 37"):
        evaluator(made.network([]), 38)


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
