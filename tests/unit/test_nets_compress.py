"""Networks in a third of their bytes: what rounding leaves as it was, and how far the rest is from it."""

from pathlib import Path

import numpy as np
import pytest

from tests.looping import looped
from tests.naive.katago_networks import RandomNetworks
from yomi.engine.cli.main import main
from yomi.nets.katago.file import read_network
from yomi.nets.katago.network import AttentionBlock, BatchNorm, KataGoNetwork
from yomi.nets.katago.write import STEPS, compress, round_weights, write_network


def network() -> KataGoNetwork:
    return RandomNetworks(15).network(["attention", "ffn", "bottleneck"], channels=32, tip="rms")


@looped("shape", [(1, 3), (5, 400), (8, 6, 3, 3)])
@looped("size", [0.0, 1e-30, 0.003, 40.0])
def test_weights_are_multiples_of_a_power_of_two_and_their_sums_stay(shape: tuple[int, ...], size: float) -> None:
    weights = (size * np.random.default_rng(1).standard_normal(shape)).astype(np.float32)
    rounded = round_weights(weights)
    assert rounded.shape == shape
    assert rounded.dtype == np.float32
    root_mean_square = float(np.sqrt(np.square(weights, dtype=np.float64).mean()))
    mantissas = np.frexp(rounded)[0] * 2**12
    assert (mantissas == np.round(mantissas)).all()
    assert np.abs(rounded - weights).max() <= 1.5 * np.sqrt(2.0) * root_mean_square / STEPS
    sums = [np.asarray(each, np.float64).reshape(len(each), -1).sum(axis=1) for each in (rounded, weights)]
    assert np.abs(sums[0] - sums[1]).max() <= np.sqrt(2.0) * root_mean_square / STEPS


def test_a_compressed_network_is_smaller_and_the_same_but_for_the_weights_of_its_blocks(tmp_path: Path) -> None:
    whole = network()
    path = tmp_path / "net.bin.xz"
    path.write_bytes(compress(whole))
    found = read_network(path)
    assert path.stat().st_size < 0.7 * len(write_network(whole)), "heads, which stay as they are, are most of it"
    assert np.array_equal(found.trunk.conv.weights, whole.trunk.conv.weights)
    assert np.array_equal(found.policy_head.p1.weights, whole.policy_head.p1.weights)
    for old, new in zip(whole.trunk.blocks, found.trunk.blocks, strict=True):
        assert type(old) is type(new)
        if isinstance(old, AttentionBlock) and isinstance(new, AttentionBlock):
            error = np.sqrt(np.square(new.q.weights - old.q.weights).mean() / np.square(old.q.weights).mean())
            assert 0.0 < error < 1.0 / STEPS
            assert np.array_equal(old.norm.gamma, new.norm.gamma)
    assert not isinstance(found.trunk.tip_norm, BatchNorm)


def test_the_command_says_what_it_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "net.bin", tmp_path / "net.bin.xz"
    source.write_bytes(write_network(network()))
    assert main(["net", "compress", str(source), "--out", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}: {target.stat().st_size:,} bytes of {source.stat().st_size:,}\n"
    assert main(["net", "info", str(target)]) == 0
    assert "KataGo network" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("out", "error"),
    [("net.bin.gz", "expected a name ending in .bin.xz"), ("no/such/folder/net.bin.xz", "No such file or directory")],
)
def test_the_command_refuses(out: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "net.bin"
    source.write_bytes(write_network(network()))
    assert main(["net", "compress", str(source), "--out", str(tmp_path / out)]) == 2
    assert error in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [source]
