"""The CUDA source, run on this processor, and the PTX that is shipped."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.gpu_driver import unpack_rows
from tests.ptx import compile_ptx
from yomi.native import cuda
from yomi.native.packing import pack

HOST = """
#define __device__
#define __global__
struct Three {{ unsigned x, y, z; }};
static Three blockIdx, threadIdx, blockDim, gridDim;
#include "{source}"
extern "C" void run(int half, int blocks, int rows, int threads, const unsigned *packed, void *numbers, int words,
                    int bits, int repeat) {{
    gridDim = {{(unsigned)blocks, (unsigned)rows, 1}};
    blockDim = {{(unsigned)threads, 1, 1}};
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
                if (half)
                    unpack_float16(packed, (unsigned short *)numbers, words, bits, repeat);
                else
                    unpack_float32(packed, (float *)numbers, words, bits, repeat);
}}
"""


@pytest.fixture(scope="module")
def on_the_processor(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give the CUDA source as a function of this processor, thread after thread."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler to run the kernel's source with")
    library = tmp_path_factory.mktemp("kernel") / "unpack.so"
    command = ["c++", "-shared", "-fPIC", "-O1", "-x", "c++", "-", "-o", str(library)]
    subprocess.run(command, input=HOST.format(source=cuda.SOURCE).encode(), check=True, capture_output=True)
    return ctypes.CDLL(str(library)).run


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("bits", "repeat", "blocks"), [(22 * 81, 1, 7), (22 * 361, 1, 32), (62 * 81, 1, 20), (57, 81, 19), (119, 81, 3)]
)
def test_the_kernels_source_is_numpys(on_the_processor: Any, bits: int, repeat: int, blocks: int, dtype: str) -> None:
    rng = np.random.default_rng(bits)
    values = (rng.random((5, bits)) < 0.3).astype(np.float32)
    packed = pack(values).view(np.uint8)
    numbers = np.full((6, bits * repeat), 9, dtype)
    on_the_processor(
        int(dtype == "float16"), blocks, 5, 256, packed.ctypes.data_as(ctypes.c_void_p),
        numbers.ctypes.data_as(ctypes.c_void_p), packed.shape[1] // 4, bits, repeat,
    )  # fmt: skip
    assert (numbers[:5] == values.repeat(repeat, axis=1)).all()
    assert (numbers[:5] == unpack_rows(packed, bits, repeat)).all()
    assert (numbers[5] == 9).all()


def test_the_shipped_ptx_is_that_of_the_source() -> None:
    text = cuda.PTX.read_text()
    for name in ("unpack_float32", "unpack_float16"):
        assert f".visible .entry {name}(" in text
    assert ".target sm_70" in text
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc to compile the source anew")
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    if "release 13.0" not in version:
        pytest.skip("another nvcc than the one that made the PTX: its registers are numbered otherwise")
    assert compile_ptx(nvcc) == text


def test_the_shipped_ptx_assembles(tmp_path: Path) -> None:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas")
    for architecture in ("sm_75", "sm_90"):
        subprocess.run([ptxas, f"-arch={architecture}", str(cuda.PTX), "-o", str(tmp_path / "x")], check=True)
