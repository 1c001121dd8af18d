"""Programs of big networks are kept, found again, and made anew wherever what was kept cannot be used."""

import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import load_go
from tests.naive.katago_networks import RandomNetworks
from yomi.engine.evaluators import program_cache
from yomi.engine.evaluators.network import NetworkEvaluator
from yomi.engine.go import networks
from yomi.native.forward.emit import HAS_PAIRS
from yomi.nets.katago.network import KataGoNetwork
from yomi.nets.katago.write import write_network

SIZE = 7
PRECISIONS = ["fp32", pytest.param("int16", marks=pytest.mark.skipif(not HAS_PAIRS, reason="no 16-bit products"))]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(program_cache, "WORTH", 1)
    return tmp_path / "cache" / "programs"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.bin"
    path.write_bytes(write_network(RandomNetworks(11).network(["ordinary", "gpool", "bottleneck"])))
    return path


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that networks were read from."""
    paths: list[Path] = []
    read: Callable[[Path], KataGoNetwork] = networks.read_network

    def watched(path: Path) -> KataGoNetwork:
        paths.append(path)
        return read(path)

    monkeypatch.setattr(networks, "read_network", watched)
    return paths


def outputs(evaluator: NetworkEvaluator) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    planes = (rng.random((2, 22, SIZE, SIZE)) < 0.3).astype(np.float32)
    return evaluator.run(planes, rng.uniform(-1, 1, (2, 19)).astype(np.float32))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_second_start_reads_the_program_alone(precision: str, net: Path, cache: Path, parsed: list[Path]) -> None:
    first = load_go(net, SIZE, precision=precision)
    moved = net.rename(net.with_name("other.bin"))
    second = load_go(moved, SIZE, precision=precision)
    assert parsed == [net]
    assert second.info.source_file == "other.bin"
    assert second.description == first.description
    for a, b in zip(outputs(first), outputs(second), strict=True):
        np.testing.assert_array_equal(a, b)
    load_go(moved, SIZE + 1, precision=precision)
    assert len(parsed) == len(list(cache.iterdir())) == 2


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[:-1],
    "weights": lambda content: garbled(content, len(content) - 1000),
    "operations": lambda content: garbled(content, content.index(b"\n") + 300),
    # another digit, with which the kernels would write beyond their memory
    "sizes": lambda content: garbled(content, content.index(b'"scratch_floats": ') + len(b'"scratch_floats": ')),
    "header": lambda content: b"\xff" + content[1:],
    "empty": lambda content: b"",
}


def garbled(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_made_anew(
    damage: str,
    net: Path,
    cache: Path,
    parsed: list[Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = load_go(net, SIZE)
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    with caplog.at_level(logging.WARNING):
        second = load_go(net, SIZE)
    assert "packing the network again" in caplog.text
    assert len(parsed) == 2
    assert path.read_bytes() == whole
    for a, b in zip(outputs(first), outputs(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_full_disk_costs_a_line(
    net: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(program_cache, "_write", fail)
    load_go(net, SIZE)
    assert len(caplog.records) == 1
    assert "cannot be written (No space left on device)" in caplog.text
    assert list(cache.iterdir()) == []


def test_a_cache_that_is_no_folder_costs_a_line(net: Path, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache.parent.mkdir()
    cache.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        load_go(net, SIZE)
    assert len(caplog.records) == 1
    assert "cannot be written" in caplog.text


def test_programs_of_other_versions_go(net: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_go(net, SIZE)
    (old,) = cache.iterdir()
    monkeypatch.setattr(program_cache, "_recipe", lambda: "newer")
    load_go(net, SIZE)
    (new,) = cache.iterdir()
    assert new != old


def test_small_networks_are_not_kept(net: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "WORTH", 64 << 20)
    load_go(net, SIZE)
    assert not cache.exists()
