"""Recognising, converting and caching networks."""

import dataclasses
import errno
import gzip
import hashlib
import json
import logging
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.naive.katago_networks import RandomNetworks
from yomi.engine.cli.net import facts
from yomi.nets import files as files_module
from yomi.nets.errors import NetworkError
from yomi.nets.files import atomic_writer, default_cache_dir, naming, write_atomically
from yomi.nets.katago.write import write_network
from yomi.nets.load import NetworkKind, open_file, prepare
from yomi.nets.metadata import KATAGO_CONVERTER_VERSION, NetworkInfo
from yomi.nets.models import default_network
from yomi.nets.onnx_file import read_onnx_header


@pytest.fixture
def network_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.bin.gz"
    path.write_bytes(gzip.compress(write_network(RandomNetworks(15).network(["ordinary"]))))
    return path


def foreign_onnx(path: Path, outputs: list[str]) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in outputs]
    nodes = [helper.make_node("Identity", ["input1"], [name]) for name in outputs]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("input1", TensorProto.FLOAT, [1])], values)
    onnx.save(helper.make_model(graph), path)
    return path


def test_converts_once_then_reads_the_cache(network_file: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    path, info = prepare(open_file(network_file), 9, cache)
    assert path.parent == cache / "nets"
    own = hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.name == f"{info.source_sha256[:16]}-{KATAGO_CONVERTER_VERSION}-9-{own[:16]}.onnx"
    assert (info.game, info.board_size, info.feature_set) == ("go", 9, "katago-v7")
    assert (info.name, info.model_version, info.policy_channels, info.misc_channels) == ("random-net", 15, 2, 6)
    assert info.scales["lead"] == 16.0
    before = path.stat().st_mtime_ns
    assert prepare(open_file(network_file), 9, cache) == (path, info)
    assert path.stat().st_mtime_ns == before
    assert prepare(open_file(network_file), 13, cache)[0] != path
    assert len(list(path.parent.iterdir())) == 2


def test_human_networks_have_no_optimism(tmp_path: Path) -> None:
    path = tmp_path / "human.bin"
    path.write_bytes(write_network(RandomNetworks(15).network(["ordinary"], meta=True)))
    assert prepare(open_file(path), 5, tmp_path / "cache")[1].policy_channels == 1


def test_the_onnx_file_says_the_same_and_can_be_given_itself(network_file: Path, tmp_path: Path) -> None:
    path, info = prepare(open_file(network_file), 9, tmp_path)
    assert open_file(path).kind is NetworkKind.YOMI_ONNX
    assert prepare(open_file(path), 9, tmp_path / "other") == (path, info)
    assert not (tmp_path / "other").exists()
    header = read_onnx_header(path)
    assert header is not None
    assert header.inputs == ("spatial", "global")
    assert set(header.outputs) == {"policy", "value", "misc", "ownership"}
    with pytest.raises(NetworkError, match="made for boards of size 9, expected size 19"):
        prepare(open_file(path), 19)


@pytest.mark.parametrize("name", ["one.onnx", "two.onnx"])
def test_a_file_that_was_made_of_no_other_is_its_own_source(name: str, network_file: Path, tmp_path: Path) -> None:
    converted, info = prepare(open_file(network_file), 9, tmp_path)
    model = onnx.load(converted)
    own = dataclasses.replace(info, name=name, source_file="", source_sha256="")
    helper.set_model_props(model, own.to_props())
    path = tmp_path / name
    onnx.save(model, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert prepare(open_file(path), 9)[1] == dataclasses.replace(own, source_file=name, source_sha256=digest)
    told = dict(facts(path))
    assert (told["source file"], told["source sha256"]) == (name, digest)


def test_the_same_for_shogi() -> None:
    path = default_network("shogi")
    info = open_file(path).describe()
    assert info.source_file == path.name
    assert info.source_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("damage", ["middle", "end", "metadata", "lost"])
def test_damaged_entries_are_made_again(
    network_file: Path, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, info = prepare(open_file(network_file), 9, tmp_path)
    content = path.read_bytes()
    if damage == "middle":
        path.write_bytes(content[:-100] + bytes(100))
    elif damage == "end":
        path.write_bytes(content[:1000])
    elif damage == "metadata":
        path.write_bytes(content.replace(b'"policy_channels": 2', b'"policy_channels": 9'))
    else:
        path.unlink()
    with caplog.at_level(logging.WARNING):
        assert prepare(open_file(network_file), 9, tmp_path) == (path, info)
    assert path.read_bytes() == content
    assert ("damaged" in caplog.text) == (damage != "lost")


def test_an_unwritable_cache_gives_a_warning_and_a_temporary_folder(
    network_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file in place of the folder is unwritable for root as well, whom permissions do not stop.
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setattr(files_module.tempfile, "gettempdir", lambda: str(tmp_path))
    path, info = prepare(open_file(network_file), 9, blocked)
    assert path.is_file()
    assert blocked not in path.parents
    assert info.board_size == 9
    assert "cannot be written" in caplog.text


def test_cache_folder_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # on Windows
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("YOMI_CACHE_DIR", raising=False)
    assert default_cache_dir() == tmp_path / ".cache" / "yomi"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_cache_dir() == tmp_path / "x" / "yomi"
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "own"))
    assert default_cache_dir() == tmp_path / "own"


@pytest.mark.parametrize(("name", "folder"), [("YOMI_CACHE_DIR", "own"), ("XDG_CACHE_HOME", "own/yomi")])
def test_a_relative_cache_folder_stays_where_it_is(
    name: str, folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files_module._absolute.cache_clear()
    monkeypatch.delenv("YOMI_CACHE_DIR", raising=False)
    monkeypatch.setenv(name, "own")
    monkeypatch.chdir(tmp_path)
    assert default_cache_dir() == tmp_path / folder
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert default_cache_dir() == tmp_path / folder


def test_a_warm_start_imports_neither_onnx_nor_onnxruntime(network_file: Path, tmp_path: Path) -> None:
    prepare(open_file(network_file), 9, tmp_path)
    code = (
        "import sys, yomi.nets\n"
        "assert 'numpy' not in sys.modules\n"
        "from yomi.nets.load import open_file, prepare\n"
        f"prepare(open_file({str(network_file)!r}), 9, {str(tmp_path)!r})\n"
        "print([name for name in ('onnx', 'onnxruntime') if name in sys.modules])\n"
    )
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, env=os.environ
    )
    assert result.stdout.strip() == "[]"


def test_katago_files_are_known_by_their_content(network_file: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "weights.onnx"
    renamed.write_bytes(network_file.read_bytes())
    assert open_file(renamed).kind is NetworkKind.KATAGO


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    def refused(name: str, content: bytes, message: str) -> None:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(NetworkError, match=message):
            open_file(path)

    refused("empty.bin.gz", b"", "an empty file found, expected a KataGo network")
    refused("readme.txt", b"This is a text.\n", "starts with b'This is a text")
    refused("other.gz", gzip.compress(b"hello world"), "gzip data of another kind")
    start = default_network("shogi").read_bytes()[:100_000]
    refused("cut.onnx", start, "an ONNX file that is cut off or damaged found, expected")
    refused("noise.bin", bytes(range(256)), "found, expected a KataGo network")
    checkpoint = tmp_path / "model.ckpt"
    with zipfile.ZipFile(checkpoint, "w") as archive:
        archive.writestr("data.pkl", b"x")
    refused("model.ckpt", checkpoint.read_bytes(), "zip archive")
    with pytest.raises(NetworkError, match="cannot be read: No such file"):
        open_file(tmp_path / "missing")
    with pytest.raises(NetworkError, match="is a folder"):
        open_file(tmp_path)


def test_foreign_onnx_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"input1 \(float32 1\).* found, expected dlshogi's input1 Nx62x9x9"):
        open_file(foreign_onnx(tmp_path / "shogi.onnx", ["output_policy", "output_value"]))
    with pytest.raises(NetworkError, match="inputs input1 and outputs y found, expected one with yomi's metadata"):
        open_file(foreign_onnx(tmp_path / "other.onnx", ["y"]))


def test_broken_networks_and_sizes_are_refused(network_file: Path, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="board size 99 found, expected 2 to 37"):
        prepare(open_file(network_file), 99, tmp_path)
    content = network_file.read_bytes()
    network_file.write_bytes(content[: len(content) // 2])
    with pytest.raises(NetworkError, match="truncated"):
        prepare(open_file(network_file), 9, tmp_path)


def test_onnx_header_of_cut_files_is_none_or_short(network_file: Path, tmp_path: Path) -> None:
    content = prepare(open_file(network_file), 9, tmp_path)[0].read_bytes()
    path = tmp_path / "cut.onnx"
    for cut in range(1, len(content), max(1, len(content) // 200)):
        path.write_bytes(content[:cut])
        read_onnx_header(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "format 99 found, expected 1"),
        ({"board_size": "9"}, "'board_size' is '9', expected int"),
        ({"scales": {"lead": "x"}}, "expected numbers"),
        ({"game": None}, "'game' is None, expected str"),
    ],
)
def test_metadata_is_checked(network_file: Path, tmp_path: Path, change: dict[str, object], message: str) -> None:
    info = prepare(open_file(network_file), 9, tmp_path)[1]
    assert NetworkInfo.from_json(info.to_json()) == info
    assert NetworkInfo.from_props(info.to_props()) == info
    with pytest.raises(NetworkError, match=message):
        NetworkInfo.from_json(json.dumps({**json.loads(info.to_json()), **change}))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}'])
def test_metadata_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(NetworkError):
        NetworkInfo.from_json(text)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_files_are_written_whole_and_as_the_umask_says(tmp_path: Path, umask: int, mode: int) -> None:
    path = tmp_path / "entry"
    before = os.umask(umask)
    try:
        write_atomically(path, b"first")
        write_atomically(path, b"second", sync=True)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == mode
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", b"third")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["entry", "folder"]


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "some.file"
    with pytest.raises(OSError, match="No space") as caught, atomic_writer(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(path)
    with pytest.raises(OSError) as caught, naming(path):  # noqa: PT011  # numpy's has no number
        raise OSError("262144 requested and 81920 written")
    assert (caught.value.filename, caught.value.strerror) == (str(path), "262144 requested and 81920 written")
