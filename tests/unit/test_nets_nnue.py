"""NNUE files: what is read is what was written, and every fault is one line."""

import logging
from pathlib import Path

import numpy as np
import pytest

from tests.looping import looped
from tests.naive.nnue import file_of, random_tensors, text_of
from tests.shared_data import shared_path
from yomi.nets.errors import NetworkError
from yomi.nets.load import NetworkKind, open_file
from yomi.nets.nnue import FEATURES, Architecture, read_architecture, read_nnue

BY_NAME = {features.name: features for features in FEATURES}
SMALL = Architecture(BY_NAME["K-P"], 128, (8, 64))
SFNN = Architecture(BY_NAME["K-P"], 128, (15, 32), 9)


@pytest.fixture(scope="module")
def content() -> bytes:
    return file_of(SMALL, random_tensors(SMALL, 1))


def written(folder: Path, content: bytes) -> Path:
    path = folder / "nn.bin"
    path.write_bytes(content)
    return path


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    sizes = ((128, (8, 64), 0), (256, (32, 32), 0), (384, (16, 96), 0), (128, (15, 32), 9), (256, (24, 40), 1))
    for width, hidden, stacks in sizes:
        architecture = Architecture(BY_NAME["K-P"], width, hidden, stacks)
        tensors = random_tensors(architecture, width, 16000 if width == 128 else 40)  # up to three bytes a number
        path = written(tmp_path, file_of(architecture, tensors))
        if not stacks:
            assert path.stat().st_size == architecture.size(len(text_of(architecture)))
        assert read_architecture(path) == architecture
        found_architecture, found = read_nnue(path)
        assert found_architecture == architecture
        assert found.keys() == tensors.keys()
        assert all(np.array_equal(found[name], tensor) for name, tensor in tensors.items())
        file = open_file(path)
        assert (file.kind, file.game) == (NetworkKind.NNUE, "shogi")


@looped(
    ("features", "width", "hidden", "transformer", "network", "whole", "size"),
    [
        ("K-P", 256, (32, 32), 0x3F5715FF, 0x63337156, 0x5C6464A9, 893917 - 165),
        ("HalfKP", 256, (32, 32), 0x5D69D7B8, 0x63337156, 0x3E5AA6EE, 64217066 - 178),
        ("HalfKP", 512, (8, 96), 0x5D69D1B8, 0x633376B4, 0x3E5AA70C, 128410314 - 178),
        ("HalfKP", 768, (16, 64), 0x5D69D3B8, 0x6333719A, 0x3E5AA222, 192624717 - 181),
        ("HalfKP", 1024, (8, 32), 0x5D69DDB8, 0x63336A54, 0x3E5AB7EC, 256814475 - 179),
        ("HalfKP_vm", 256, (32, 32), 0x0B6B1F9A, 0x63337156, 0x68586ECC, 35684332 - 180),
        ("HalfKA_hm1", 256, (32, 32), 0x7F134EB8, 0x63337156, 0x1C203FEE, 39416813 - 181),
        ("HalfKA_hm2", 512, (8, 96), 0x7F2348B8, 0x633376B4, 0x1C103E0C, 75077325 - 181),
    ],
)
def test_hashes_and_sizes_are_those_of_known_files(
    features: str, width: int, hidden: tuple[int, int], transformer: int, network: int, whole: int, size: int
) -> None:
    found = Architecture(BY_NAME[features], width, hidden)
    assert (found.transformer_hash, found.network_hash, found.hash) == (transformer, network, whole)
    assert found.size(0) == size


def test_suisho_petite_is_read() -> None:
    architecture, tensors = read_nnue(shared_path("data", "shogi", "suisho-petite-20211123.kp256.nn.bin"))
    assert architecture.name == "K-P 256x2-32-32"
    assert tensors["bias"][:4].tolist() == [31, 24, 25, 49]


def test_a_text_of_another_network_is_overruled_by_the_size(tmp_path: Path) -> None:
    text = text_of(Architecture(BY_NAME["K-P"], 128, (32, 32)))
    assert read_architecture(written(tmp_path, file_of(SMALL, random_tensors(SMALL, 1), text))) == SMALL


def test_another_hash_is_logged(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    read_nnue(written(tmp_path, content))
    assert not caplog.messages
    with caplog.at_level(logging.WARNING):
        read_nnue(written(tmp_path, content[:4] + b"abcd" + content[8:]))
    assert "hash 64636261 is not K-P 128x2-8-64's hash" in caplog.text


def test_sizes_of_sfnn_come_from_its_text_or_from_the_file(tmp_path: Path) -> None:
    content = file_of(SFNN, random_tensors(SFNN, 1))
    features = "ModelType=SFNNWithoutPsqt;Features=K-P(Friend)[1710->128x2],Network="
    layers = "AffineTransform[1<-32](ClippedReLU(AffineTransform[32<-{}](ClippedReLU(AffineTransform[16<-256]))))"
    for name in ("SFNN-1536", "SFNN_KP_128_7_64_K3K3", layers.format(15), layers.format(30)):
        path = written(tmp_path, with_text(content, f"{features}{name}{{LayerStack=9}}".encode()))
        assert read_architecture(path) == SFNN, name
        assert read_architecture(path).name == "SFNN K-P 128-15-32 k3k3"
    single = Architecture(BY_NAME["K-P"], 128, (8, 64), 1)
    content = with_text(file_of(single, random_tensors(single, 1)), f"{features}SFNN_KP_128_8_64".encode())
    assert read_architecture(written(tmp_path, content)) == single
    assert single.name == "SFNN K-P 128-8-64"


def with_text(content: bytes, text: bytes) -> bytes:
    """Return a file with another architecture text."""
    length = int.from_bytes(content[8:12], "little")
    return content[:8] + len(text).to_bytes(4, "little") + text + content[12 + length :]


def sfnn_faults() -> dict[str, tuple[bytes, str]]:
    """Return broken SFNN files by name, and parts of the messages."""
    content = file_of(SFNN, random_tensors(SFNN, 1))
    bias, rows = (content.index(b"COMPRESSED_LEB128", start) for start in (0, content.index(b"COMPRESSED") + 1))
    long = content[: rows + 21] + b"\x80" * 3 + content[rows + 24 :]
    end = rows + 21 + int.from_bytes(content[rows + 17 : rows + 21], "little")
    ended = next(i for i in range(bias + 21, rows) if content[i] < 128)
    few = content[:ended] + bytes([content[ended] | 128]) + content[ended + 1 :]
    return {
        "cut": (content[:-1], f"{len(content) - 1} bytes found, expected {len(content)} for SFNN K-P 128-15-32 k3k3"),
        "magic": (content.replace(b"_LEB128", b"_LEB129"), "b'COMPRESSED_LEB129' found, expected b'COMPRESSED_LEB128'"),
        "bytes": (content[: bias + 17] + b"\xff" * 4 + content[bias + 21 :], "4294967295 bytes found, expected"),
        "cut block": (content[: rows + 9], "b'COMPRESSE' found"),
        "long number": (long, "packed numbers are damaged, expected 218880 of 1 to 3 bytes"),
        "few numbers": (few, "packed numbers are damaged, expected 128 of"),
        "open number": (content[: end - 1] + b"\x80" + content[end:], "packed numbers are damaged"),
        "stacks": (content.replace(b"Stack=9", b"Stack=8"), "8 stacks of layers found, expected 1, or 9"),
        "model": (content.replace(b"WithoutPsqt", b"WithSomePsq"), "'ModelType=SFNNWithSomePsq' found, expected SFNN"),
    }


def faults(content: bytes) -> dict[str, tuple[bytes, str]]:
    """Return broken files by name, and parts of the messages."""
    text = content[12 : 12 + int.from_bytes(content[8:12], "little")]
    return {
        "cut": (content[:-1], f"{len(content) - 1} bytes found, expected {len(content)} for K-P 128x2-8-64"),
        "longer": (content + b"x", f"{len(content) + 1} bytes found"),
        "header": (content[:9], "9 bytes found, expected an NNUE file with a header of 12"),
        "version": (b"\x17" + content[1:], "version 7AF32F17 found, expected an NNUE file of version 7AF32F16"),
        "text": (content[:8] + b"\xff" * 4 + content[12:], "an architecture text of 4294967295 bytes found"),
        "no inputs": (with_text(content, b"Features=\n\x1b[2J"), "the architecture 'Features="),
        "inputs": (with_text(content, text.replace(b"1710->", b"1711->")), "1711 inputs found, expected K-P, HalfKP"),
        "width": (
            with_text(content, text.replace(b"->128x2", b"->130x2")),
            "width 130 found, expected a multiple of 128",
        ),
        "layers": (with_text(content, text.replace(b"<-8]", b"<-999]")), "layers of (999, 64) outputs found"),
    }


def test_every_fault_is_one_line(tmp_path: Path, content: bytes) -> None:
    for name, (broken, expected) in (faults(content) | sfnn_faults()).items():
        path = written(tmp_path, broken)
        with pytest.raises(NetworkError) as caught:
            read_nnue(path)
        message = str(caught.value)
        assert expected in message, name
        assert message.isprintable()
        assert str(path) in message
