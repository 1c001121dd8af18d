"""CUDA kernels: source and PTX. After editing a `.cu` file run `python -m tests.ptx`, which needs nvcc."""

from pathlib import Path

# A driver compiles PTX for its GPU, so users need no CUDA compiler.
FOLDER = Path(__file__).resolve().parent
SOURCE, PTX = FOLDER / "unpack.cu", FOLDER / "unpack.ptx"
