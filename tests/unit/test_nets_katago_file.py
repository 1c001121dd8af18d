"""Reading KataGo network files: everything that is written is read back, and nothing broken is accepted."""

import dataclasses
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.looping import looped
from tests.naive.katago_networks import RandomNetworks, write_text
from yomi.nets.errors import NetworkError
from yomi.nets.katago.file import looks_like_network, parse_network, read_network
from yomi.nets.katago.network import Activation, AttentionBlock, KataGoNetwork
from yomi.nets.katago.write import write_network

Write = Callable[[KataGoNetwork], bytes]
ALL_KINDS = ["ordinary", "gpool", "bottleneck", "attention", "attention-plain", "ffn", "ffn-gated"]


def same(a: object, b: object) -> bool:
    """Compare two records deeply, but for the names of records."""
    if dataclasses.is_dataclass(a):
        names = [item.name for item in dataclasses.fields(a)]
        return type(a) is type(b) and all(same(getattr(a, name), getattr(b, name)) for name in names)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and np.array_equal(a, b)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def refusal(content: bytes) -> str | None:
    """Return the message with which a file is refused, or None if it is taken."""
    try:
        parse_network(content)
    except NetworkError as error:
        return str(error)
    return None


@looped("version", range(8, 18))
@looped("write", [write_network, write_text])
def test_reads_back_what_was_written(version: int, write: Write) -> None:
    activation = Activation.MISH if version >= 11 else Activation.RELU
    made = RandomNetworks(version, activation=activation)
    tip = "rms" if version >= 15 else "bn"
    network = made.network(ALL_KINDS, tip=tip, meta=version >= 15)
    assert same(network, parse_network(write(network)))


COMPRESSORS = {".gz": gzip.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", [".bin", ".bin.gz", ".bin.xz", ".txt", ".txt.gz", ".txt.xz"])
def test_reads_every_container(tmp_path: Path, suffix: str) -> None:
    network = RandomNetworks(8).network(["ordinary"])
    content = (write_text if "txt" in suffix else write_network)(network)
    path = tmp_path / f"net{suffix}"
    path.write_bytes(COMPRESSORS.get(path.suffix, bytes)(content))
    assert looks_like_network(path)
    assert same(network, read_network(path))


def write_with_fixed_rope(network: KataGoNetwork, theta: float) -> bytes:
    """Return a network's file with fixed instead of learnable RoPE in its only attention block."""
    (block,) = network.trunk.blocks
    assert isinstance(block, AttentionBlock)
    assert block.rope is not None
    sizes = f"{block.heads}\n{block.kv_heads}\n{block.q_dim}\n{block.v_dim}\n1\n".encode()
    shape = "\n".join(map(str, block.rope.shape))
    content = write_network(network)
    for learnable, fixed in (
        (sizes + b"1\n", sizes + b"0\n"),
        (f"rope\n{shape}\n@BIN@".encode() + block.rope.tobytes(), f"rope\n{theta}".encode()),
    ):
        assert content.count(learnable) == 1
        content = content.replace(learnable, fixed)
    return content


def test_fixed_rope_turns_the_first_half_with_y_and_the_second_with_x() -> None:
    made = RandomNetworks(17)
    block = made.block("attention", 8)
    assert isinstance(block, AttentionBlock)
    block = dataclasses.replace(
        block, heads=2, kv_heads=1, q_dim=8, v_dim=3, q=made.matmul(8, 16), k=made.matmul(8, 8), v=made.matmul(8, 3)
    )
    block = dataclasses.replace(block, out=made.matmul(6, 8))
    network = made.network(["ordinary"])
    network = dataclasses.replace(network, trunk=dataclasses.replace(network.trunk, blocks=(block,)))
    read = parse_network(write_with_fixed_rope(network, 100.0)).trunk.blocks[0]
    assert isinstance(read, AttentionBlock)
    assert read.rope is not None
    # 4 pairs: 100^(-2i/4) for i = 0, 1 in y, then in x.
    np.testing.assert_allclose(read.rope[0], [[0, 1], [0, 0.1], [1, 0], [0.1, 0]], rtol=1e-6)


def test_fixed_rope_of_an_odd_number_of_pairs_gives_x_one_more() -> None:
    """As KataGo has it (desc.cpp, computeRopeCosSin)."""
    network = RandomNetworks(15).network(["attention"])
    read = parse_network(write_with_fixed_rope(network, 8.0)).trunk.blocks[0]
    assert isinstance(read, AttentionBlock)
    assert read.rope is not None
    np.testing.assert_allclose(read.rope[1], [[0, 1], [1, 0], [0.25, 0]], rtol=1e-6)


def test_every_truncation_is_refused() -> None:
    content = write_network(RandomNetworks(17).network(["attention", "gpool"], channels=4))
    rng = np.random.default_rng(1)
    cuts = {*range(120), *rng.integers(0, len(content) - 1, 400).tolist()}
    for cut in cuts:
        with pytest.raises(NetworkError, match=r"^.+$"):
            parse_network(content[:cut])


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_network, write_text])
def test_corruption_never_escapes_as_another_error(write: Write) -> None:
    content = write(RandomNetworks(15).network(["ordinary"], channels=2))
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(600):
        broken = bytearray(content)
        for _ in range(int(rng.integers(1, 4))):
            broken[rng.integers(0, len(broken) if rng.random() < 0.5 else 200)] = rng.integers(0, 256)
        if (message := refusal(bytes(broken))) is not None:
            refused += 1
            assert "\n" not in message
    assert refused > 200


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_corrupted_data_are_refused(suffix: str, tmp_path: Path) -> None:
    content = COMPRESSORS[suffix](write_network(RandomNetworks(8).network(["ordinary"])))
    path = tmp_path / f"net.bin{suffix}"
    rng = np.random.default_rng(3)
    for _ in range(100):
        broken = bytearray(content)
        # Bytes 4 to 9 of a gzip header hold a time, flags for speed and a system: nothing that can be wrong.
        position = int(rng.integers(10, len(broken)))
        broken[position] ^= 1 << int(rng.integers(0, 8))
        path.write_bytes(broken)
        with pytest.raises(NetworkError):
            read_network(path)
    for cut in (0, 1, 5, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(NetworkError):
            read_network(path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_bomb_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"net.bin{suffix}"
    path.write_bytes(COMPRESSORS[suffix](bytes(100 << 20)))
    with pytest.raises(NetworkError, match="expands to more than"):
        read_network(path)


@looped(
    ("old", "new", "message"),
    [
        (b"net\n8\n", b"net\n7\n", "version 7 found, expected one of 8 to 17"),
        (b"net\n8\n", b"net\n18\n", "version 18 found, expected one of 8 to 17"),
        (b"net\n8\n22\n", b"net\n8\n21\n", "found 21, expected the number of spatial inputs"),
        (b"ordinary_block", b"dilated_block", "'dilated_block'.*block kind"),
        (b"conv\n3\n3\n22\n8\n1\n1", b"conv\n3\n3\n22\n8\n2\n1", "found 2, expected the vertical dilation"),
        (b"conv\n3\n3\n22\n8\n", b"conv\n3\n3\n22\n16000\n", "found 16000, expected output channels"),
        (b"conv\n3\n3\n22\n", b"conv\n4\n3\n22\n", "odd"),
        (b"trunk\n1\n8\n", b"trunk\n1\n16000\n", "found 8, expected output channels"),
        (b"trunk\n1\n8\n", b"trunk\n1\n99999999999\n", "found 99999999999"),
    ],
)
def test_says_what_was_found_and_what_was_expected(old: bytes, new: bytes, message: str) -> None:
    content = write_network(RandomNetworks(8).network(["ordinary"]))
    assert old in content
    with pytest.raises(NetworkError, match=message):
        parse_network(content.replace(old, new, 1))


def test_a_huge_header_allocates_nothing() -> None:
    content = write_network(RandomNetworks(8).network(["ordinary"]))
    content = content.replace(b"trunk\n1\n8\n", b"trunk\n1\n16000\n", 1)
    content = content.replace(b"conv\n3\n3\n22\n8\n", b"conv\n37\n37\n22\n16000\n", 1)
    with pytest.raises(NetworkError, match="truncated"):
        parse_network(content)


def test_weights_must_be_finite() -> None:
    content = write_network(RandomNetworks(8).network(["ordinary"]))
    start = content.index(b"@BIN@") + 5
    with pytest.raises(NetworkError, match="not finite"):
        parse_network(content[:start] + np.float32(np.nan).tobytes() + content[start + 4 :])


def test_nothing_may_follow_the_value_head() -> None:
    content = write_network(RandomNetworks(8).network(["ordinary"]))
    parse_network(content + b" \n")
    with pytest.raises(NetworkError, match="4 bytes left"):
        parse_network(content + b"more")
