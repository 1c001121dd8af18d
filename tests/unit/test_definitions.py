"""The networks' definitions: their published numbers of parameters, and that what is exported computes the same."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (extra train)")

from tests.contract.networks import load_go, load_shogi, raw_shogi  # noqa: E402
from yomi.engine.go.networks import raw_outputs  # noqa: E402
from yomi.nets.definitions.catalog import NETWORKS, make  # noqa: E402
from yomi.nets.definitions.export import export_by_torch, export_file, export_onnx  # noqa: E402
from yomi.nets.definitions.katago import from_katago, to_katago  # noqa: E402
from yomi.nets.errors import NetworkError  # noqa: E402
from yomi.nets.gpu_variants import Variant, make_variant  # noqa: E402
from yomi.nets.katago.file import parse_network, read_network  # noqa: E402
from yomi.nets.katago.network import Activation  # noqa: E402
from yomi.nets.katago.write import write_network  # noqa: E402
from yomi.nets.load import NetworkKind, open_file  # noqa: E402
from yomi.nets.metadata import NetworkInfo, feature_set  # noqa: E402

COUNTS = [
    ("cosumi-stack", {"layers": 3, "planes": 2}, 19_137, 19_137),
    ("cosumi-stack", {"layers": 4, "planes": 2}, 28_385, 28_385),
    ("cosumi-stack", {"planes": 2}, 74_625, 74_625),
    ("cosumi-stack", {"planes": 2, "filters": 48}, 167_233, 167_233),
    ("cosumi-stack", {"planes": 2, "filters": 64}, 296_705, 296_705),
    ("cosumi-stack", {"norm": "before"}, 75_489, 76_065),
    ("cosumi-stack", {"norm": "after"}, 75_489, 76_065),
    ("cosumi-residual", {}, 586_513, 589_297),
    # Not published; by hand from the layers' sizes.
    ("aya-policy", {}, 49 * 25 * 128 + 10 * 128 * 9 * 128 + 11 * 128 + 128 * 9 + 1, None),
    ("aya-value", {}, 50 * 25 * 32 + 11 * 32 * 9 * 32 + 32 * 32 + 13 * 32 + 32 * 361 * 256 + 256 + 257, None),
    # 7.33 million with the blocks' norms folded, says dlshogi's format; 20 * 2 * 192 of them are the norms'.
    ("dlshogi-resnet", {}, 7_346_562, None),
]
"""Kind, options, trainable parameters, all weights (Keras's total: the running statistics of norms included)."""


@pytest.mark.parametrize(("kind", "options", "trainable", "total"), COUNTS)
def test_parameter_counts(kind: str, options: dict[str, Any], trainable: int, total: int | None) -> None:
    network = make(kind, options)
    assert network.count() == trainable
    statistics = sum(buffer.numel() for buffer in network.buffers() if buffer.is_floating_point())
    assert total is None or network.count() + statistics == total


def test_alphazero_shogi_has_the_papers_shape() -> None:
    blocks, filters = 10, 192
    convolutions = 45 * 9 * filters + blocks * 2 * 9 * filters**2
    norms = 2 * filters * (2 * blocks + 1)
    policy = filters * 139 + 139 * 81
    value = 9 * filters + 1 + 2 + 81 * 256 + 256 + 257
    network = make("alphazero-shogi", {"blocks": blocks, "filters": filters})
    assert network.count() == convolutions + norms + policy + value


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("resnet", {}, "network 'resnet' found, expected one of alphazero-shogi"),
        ("go", {"width": 3}, "option 'width' found, expected one of blocks"),
        ("go", {"blocks": "six"}, "blocks = 'six' found, expected a value such as 6"),
        ("go", {"pooling_blocks": [6]}, "blocks 0 to 5"),
        ("go", {"trunk": ["ffn"]}, r"trunk = \['ffn'\] found, expected a list of tables"),
        ("go", {"trunk": [{"kind": "ffn"}], "blocks": 3}, "trunk found beside blocks"),
        ("go", {"trunk": [{"kind": "mlp"}]}, "block kind 'mlp' found, expected one of residual, bottleneck"),
        ("go", {"trunk": [{"kind": "ffn", "style": 1}]}, "block ffn: option 'style' found, expected one of hidden"),
        ("go", {"trunk": [{"kind": "bottleneck"}]}, "no blocks found"),
        ("go", {"trunk": [{"kind": "attention", "heads": 5, "kv_heads": 2}]}, "expected a multiple of kv_heads"),
        ("go", {"trunk": [{"kind": "attention", "q_dim": 5}]}, "expected an even width"),
        ("go", {"version": 16}, "version = 16 found, expected one of 8, 10"),
        ("no/such.py:Tower", {}, "expected a Python file"),
        ("cosumi-stack", {"layers": 10}, "layers = 10 found, expected 1 to 9"),
        ("dlshogi-resnet", {"activation": "gelu"}, "expected one of relu, swish"),
    ],
)
def test_wrong_options(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        make(kind, options)


def trained(kind: str, options: dict[str, Any]) -> Any:
    """Return a network whose weights and statistics are nowhere zero or one."""
    torch.manual_seed(1)
    network = make(kind, options)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim == 1:
                parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
            elif not parameter.any():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * parameter[0].numel() ** -0.5)
        for name, buffer in network.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(0.2 * torch.randn(buffer.shape, generator=generator))
            elif name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator))
    return network.eval()


def inputs_of(network: Any, rows: int, size: int) -> tuple[Any, Any]:
    """Return planes and globals as random as real ones: bits, on a board without anything off it."""
    features = feature_set(network.feature_set)
    rng = np.random.default_rng(3)
    planes = (rng.random((rows, features.planes, size, size)) < 0.2).astype(np.float32)
    globals_ = (rng.random((rows, features.extras)) < 0.3).astype(np.float32)
    return planes, globals_


def outputs_of(network: Any, planes: Any, globals_: Any, **options: Any) -> dict[str, Any]:
    with torch.no_grad():
        outputs = network(torch.from_numpy(planes), torch.from_numpy(globals_)[:, :, None, None], **options)
    return {name: output.numpy() for name, output in outputs.items()}


SMALL = {
    "board-resnet": {"features": "go-stones-2", "board_size": 7, "blocks": 1, "channels": 8},
    "alphazero-shogi": {"blocks": 1, "filters": 8},
    "aya-policy": {"filters": 8},
    "aya-value": {"filters": 8, "board_size": 9},
    "cosumi-residual": {"layers": 6, "filters": 8, "board_size": 9},
    "cosumi-stack": {"layers": 4, "filters": 8, "board_size": 9, "norm": "after"},
    "dlshogi-resnet": {"blocks": 2, "channels": 16, "activation": "swish"},
    "go": {"blocks": 3, "channels": 16, "pooled": 8, "pooling_blocks": [1], "head": 8, "hidden": 16},
}


@pytest.mark.parametrize("kind", sorted(set(NETWORKS) - {"go", "sparse-shogi"}))
def test_onnx_files_compute_the_same(kind: str, tmp_path: Path) -> None:
    network = trained(kind, SMALL[kind])
    path = tmp_path / "net.onnx"
    path.write_bytes(export_onnx(network, "small", {"recipe": "test"}).SerializeToString())
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for size in (9, 13) if network.board_size == 0 else (network.board_size,):
        planes, globals_ = inputs_of(network, 3, size)
        fed = {session.get_inputs()[0].name: planes}
        if globals_.shape[1]:
            spread = np.broadcast_to(globals_[:, :, None, None], (*globals_.shape, size, size))
            fed[session.get_inputs()[1].name] = np.ascontiguousarray(spread)
        found = session.run(None, fed)
        expected = outputs_of(network, planes, globals_)
        for name, array in zip(expected, found, strict=True):
            wanted = 1 / (1 + np.exp(-expected[name])) if name == "value_logit" else expected[name]
            np.testing.assert_allclose(array, wanted, atol=1e-4, err_msg=name)
        if kind.startswith(("aya", "cosumi")):
            (raw,) = load_go(path, size, "cpu").run(planes, globals_)
            np.testing.assert_allclose(raw.reshape(found[0].shape), found[0], atol=1e-4)
    info = NetworkInfo.from_props({p.key: p.value for p in export_onnx(network, "small", {}).metadata_props})
    assert info.feature_set == network.feature_set
    assert open_file(path).kind is NetworkKind.YOMI_ONNX


@pytest.mark.parametrize(
    ("activation", "extras", "by_torch"),
    [("relu", 57, False), ("relu", 119, False), ("swish", 57, False), ("swish", 119, True)],
)
def test_a_shogi_network_plays_as_it_was_trained(activation: str, extras: int, by_torch: bool, tmp_path: Path) -> None:
    if by_torch:
        pytest.importorskip("onnxscript", reason="needs onnxscript (extra train)")
    network = trained("dlshogi-resnet", {"blocks": 2, "channels": 16, "activation": activation, "extras": extras})
    path = tmp_path / "net.onnx"
    export = export_by_torch if by_torch else export_onnx
    path.write_bytes(export(network, "small", {"recipe": "test"}).SerializeToString())
    assert open_file(path).describe().training == {"recipe": "test"}
    planes, globals_ = inputs_of(network, 5, 9)
    expected = outputs_of(network, planes, globals_)
    for backend in ("native", "onnx"):
        evaluator = load_shogi(path, "cpu", backend)
        logits, values = raw_shogi(evaluator, planes, globals_)
        np.testing.assert_allclose(logits, expected["policy"], atol=1e-4)
        np.testing.assert_allclose(values, 1 / (1 + np.exp(-expected["value_logit"][:, 0])), atol=1e-4)
        evaluator.close()


def session_of(content: bytes) -> Any:
    return pytest.importorskip("onnxruntime").InferenceSession(content)


def on_board(planes: Any) -> Any:
    planes[:, 0] = 1.0
    return planes


ATTENTION = {"kind": "attention", "heads": 4, "kv_heads": 2, "q_dim": 6, "v_dim": 5}
FFN = {"kind": "ffn", "hidden": 24}
HEADS = {"channels": 16, "head": 8, "hidden": 16, "kernel": 3}
GO = {
    "fixup": (8, SMALL["go"]),
    "batch": (8, {**SMALL["go"], "norm": "batch"}),
    "mish": (11, {**SMALL["go"], "norm": "affine", "activation": "mish", "pooling_blocks": [0, 2]}),
    "bottleneck": (
        14,
        {
            **HEADS,
            "version": 14,
            "norm": "batch",
            "trunk": [
                {
                    "kind": "bottleneck",
                    "times": 2,
                    "inner": [{"kind": "residual"}, {"kind": "residual", "pooled": 4, "middle": 6}],
                }
            ],
        },
    ),
    "transformer": (
        15,
        {
            **HEADS,
            "activation": "silu",
            "tip": "rms",
            "trunk": [{"kind": "bottleneck", "middle": 12, "inner": [ATTENTION, FFN]}, ATTENTION, FFN],
        },
    ),
    "mixed": (
        17,
        {
            **HEADS,
            "activation": "mish",
            "tip": "spatial-rms",
            "version": 17,
            "value_head": 6,
            "trunk": [
                {"kind": "attention", "rope": "fixed"},
                {**FFN, "gated": False},
                {**ATTENTION, "rope": "none"},
                {"kind": "residual", "pooled": 4},
            ],
        },
    ),
}
"""By name: the version of the file, and options."""


@pytest.mark.parametrize("name", GO)
def test_a_go_network_plays_as_it_was_trained_on_all_boards(name: str, tmp_path: Path) -> None:
    version, options = GO[name]
    network = trained("go", options)
    path = tmp_path / "net.bin"
    path.write_bytes(write_network(to_katago(network, "small")))
    stored = read_network(path)
    assert (stored.name, stored.version) == ("small", version)
    back = from_katago(stored).eval()
    for size in (7, 9):
        planes, globals_ = inputs_of(network, 4, size)
        expected = outputs_of(network, on_board(planes), globals_)
        for kind, output in outputs_of(back, planes, globals_).items():
            np.testing.assert_allclose(output, expected[kind], atol=1e-4, err_msg=kind)
        for backend in ("native", "onnx"):
            evaluator = load_go(path, size, "cpu", backend)
            raw = raw_outputs(evaluator, planes, globals_)
            for channel in range(raw.policy.shape[1]):
                np.testing.assert_allclose(raw.policy[:, channel], expected["policy"], atol=1e-4)
            np.testing.assert_allclose(raw.value, expected["outcome"], atol=1e-4)
            np.testing.assert_allclose(raw.misc, expected["misc"], atol=1e-4)
            np.testing.assert_allclose(raw.ownership, expected["ownership"], atol=1e-4)
            evaluator.close()
    again = write_network(to_katago(back, "small"))
    assert again == write_network(to_katago(from_katago(parse_network(again)), "small"))


def test_katago_networks_with_other_parts_are_refused() -> None:
    plain = to_katago(trained("go", SMALL["go"]), "small")
    scaled = dataclasses.replace(plain, scales=dataclasses.replace(plain.scales, lead=2.0 * plain.scales.lead))
    mixed = dataclasses.replace(plain, trunk=dataclasses.replace(plain.trunk, tip_act=Activation.MISH))
    late = dataclasses.replace(plain, version=9)
    for each in (scaled, mixed, late):
        with pytest.raises(NetworkError, match="small: expected a network with one activation"):
            from_katago(each)


OWN = """
import torch
from torch import nn
from yomi.nets.definitions.base import Network

class Tower(Network):
    feature_set = "katago-v7"
    board_size = 0

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.conv = nn.Conv2d(22, width, 3, padding=1)
        self.norm = nn.GroupNorm(2, width)
        self.map = nn.Conv2d(width, 2, 1)
        self.dense = nn.Linear(width + 19, 8)

    def forward(self, planes, globals_):
        x = nn.functional.gelu(self.norm(self.conv(planes)))
        policy, ownership = self.map(x).flatten(2).unbind(1)
        rest = self.dense(torch.cat([x.mean((2, 3)), globals_.flatten(1)], 1))
        policy = torch.cat([policy, rest[:, :1]], 1)
        return {"policy": policy, "outcome": rest[:, 1:4], "misc": rest[:, 4:], "ownership": ownership}
"""


def test_a_network_of_ones_own_is_trained_and_plays(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="needs onnxscript (extra train)")
    (tmp_path / "own.py").write_text(OWN)
    torch.manual_seed(1)
    network = make("own.py:Tower", {"width": 16}, tmp_path)
    with pytest.raises(NetworkError, match="option 'depth' found, expected one of width"):
        make("own.py:Tower", {"depth": 3}, tmp_path)
    with pytest.raises(NetworkError, match=r"no Mast found, expected one of its names: .*Tower"):
        make("own.py:Mast", {}, tmp_path)
    path = export_file(network, "own", tmp_path, {"recipe": "test"})
    for size in (7, 9):
        planes, globals_ = inputs_of(network, 3, size)
        expected = outputs_of(network, planes, globals_)
        evaluator = load_go(path, size, "cpu")
        raw = raw_outputs(evaluator, planes, globals_)
        np.testing.assert_allclose(raw.policy[:, 0], expected["policy"], atol=1e-4)
        np.testing.assert_allclose(raw.value, expected["outcome"], atol=1e-4)
        np.testing.assert_allclose(raw.misc, expected["misc"], atol=1e-4)
        np.testing.assert_allclose(raw.ownership, expected["ownership"], atol=1e-4)
        assert evaluator.format.any_size
        # GPUs read a file for one board size, whose planes are bits.
        content = make_variant(path, Variant(packed=("spatial",), side=size))
        bits = np.zeros((3, -(-22 * size * size // 64) * 8), np.uint8)
        packed = np.packbits(planes.reshape(3, -1) != 0.0, axis=1, bitorder="little")
        bits[:, : packed.shape[1]] = packed
        (policy,) = session_of(content).run(["policy"], {"spatial_packed": bits, "global": globals_})
        np.testing.assert_allclose(policy[:, 0], expected["policy"], atol=1e-4)
        evaluator.close()
