"""Compile the PTX of the CUDA kernels: `python -m yomi.native.cuda`."""

import shutil
import sys

from yomi.native.cache_folder import write_file
from yomi.native.cuda import PTX, compile_ptx

if __name__ == "__main__":
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        sys.exit("nvcc not found: install CUDA's compiler, or add it to PATH")
    write_file(PTX, compile_ptx(nvcc))
