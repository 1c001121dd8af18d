"""A GPU that is asked for and cannot be used, in every front end: an error in time that says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.networks import write_small_network
from tests.naive.shogi_networks import NetworkShape, write_network
from tests.process.engine_process import ROOT, GtpProcess, UsiProcess

pytestmark = pytest.mark.slow

IN_TIME = 300.0
DRIVER = """
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetName(char *name, int length, int device) { name[0] = 'G'; name[1] = 0; return 0; }
"""
ONNXRUNTIME = """
import os

os.write(1, b"************ EP Error ************\\nFalling back\\n")  # as onnxruntime does, past sys.stdout


def preload_dlls():
    print("Failed to load libcudnn.so.9")
"""


def compile_library(folder: Path, name: str, source: str, *arguments: str) -> Path:
    path = folder / name
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), *arguments]
    subprocess.run(command, input=source.encode(), check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a folder with a driver, and an onnxruntime for CUDA one of whose libraries is missing."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler to make a driver with")
    folder = tmp_path_factory.mktemp("broken")
    capi = folder / "onnxruntime" / "capi"
    capi.mkdir(parents=True)
    (folder / "onnxruntime" / "__init__.py").write_text(ONNXRUNTIME)
    compile_library(folder, "libcuda.so.1", DRIVER)
    lost = compile_library(folder, "libcublasLt.so.12", "int lost;", "-Wl,-soname,libcublasLt.so.12")
    compile_library(capi, "libonnxruntime_providers_shared.so", "int shared;")
    needs = ["-Wl,--no-as-needed", f"-L{folder}", "-l:libcublasLt.so.12"]
    compile_library(capi, "libonnxruntime_providers_cuda.so", "int provider;", *needs)
    lost.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(folder))
        patch.setenv("PYTHONPATH", os.pathsep.join((str(folder), str(ROOT))))  # the current folder does not count
        patch.setenv("YOMI_CACHE_DIR", str(folder / "cache"))  # without compiled kernels: they must not be waited for
        yield folder


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("nets")
    shogi = write_network(folder / "net.onnx", NetworkShape(blocks=1, channels=16))
    return {"go": str(write_small_network(folder)), "shogi": str(shogi)}


REASON = "device cuda:0: libcublasLt.so.12 is not found; to mend it: "


def test_gtp(broken: Path, nets: dict[str, str]) -> None:
    begin = time.monotonic()
    with GtpProcess("yomi", "gtp", "--net", nets["go"], "--device", "cuda", folder=broken) as engine:
        engine.write("name\nboardsize 9\ngenmove b\n")
        assert engine.line() == "= yomi"
        assert engine.line() == ""
        assert engine.rest() == ""
        assert engine.end(IN_TIME) == 2
        assert time.monotonic() - begin < IN_TIME
    errors = b"".join(engine.errors).decode()
    assert REASON in errors
    assert "compiling" not in errors


@pytest.mark.parametrize("by_option", [False, True])
def test_usi(broken: Path, nets: dict[str, str], by_option: bool) -> None:
    words = [] if by_option else ["--net", nets["shogi"], "--device", "cuda"]
    with UsiProcess("yomi", "usi", *words, folder=broken) as engine:
        engine.send("usi")
        assert all(line.startswith(("id ", "option ", "usiok")) for line in engine.until("usiok"))
        if by_option:
            engine.send(f"setoption name DNN_Model value {nets['shogi']}", "setoption name Device value cuda")
        begin = time.monotonic()
        engine.send("isready")
        lines = engine.until("info string Error!")
        assert time.monotonic() - begin < IN_TIME
        assert all(line.startswith("info string ") for line in lines)
        assert REASON in lines[-1]
        assert not any("compiling" in line for line in lines)


@pytest.mark.parametrize(
    "command",
    [
        "play go", "play shogi", "selfplay go", "selfplay shogi", "bench nps", "bench nps shogi", "bench evaluator",
        "analysis", "analyze game.sgf", "net tune NET",
    ],
)  # fmt: skip
def test_the_terminal(broken: Path, nets: dict[str, str], command: str) -> None:
    net = nets["shogi" if "shogi" in command else "go"]
    (broken / "game.sgf").write_text("(;GM[1]SZ[9];B[ee];W[cc])")
    words = command.split()
    words = [net if word == "NET" else word for word in words] if "NET" in words else [*words, "--net", net]
    words += ["--device", "cuda"]
    begin = time.monotonic()
    found = subprocess.run(
        [sys.executable, "-m", "yomi", *words],
        cwd=broken,
        capture_output=True,
        text=True,
        timeout=IN_TIME,
        check=False,
    )
    assert time.monotonic() - begin < IN_TIME
    assert found.returncode == 2
    assert REASON in found.stderr
    assert "Traceback" not in found.stderr
    assert "compiling" not in found.stderr
    assert "Failed to load libcudnn" not in found.stdout
