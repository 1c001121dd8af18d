"""CUDA kernels: source and PTX. After editing a `.cu` file run `python -m yomi.native.cuda`, which needs nvcc."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

# A driver compiles PTX for its GPU, so users need no CUDA compiler.

FOLDER = Path(__file__).resolve().parent
SOURCE, PTX = FOLDER / "unpack.cu", FOLDER / "unpack.ptx"
VIRTUAL_ARCHITECTURE = "compute_75"  # the oldest architecture that nvcc 13 knows
# Header of the PTX. The kernels need nothing newer, and drivers refuse PTX of versions that they do not know.
HEADER = {".version": "6.4", ".target": "sm_70"}


def read_ptx() -> bytes:
    return PTX.read_bytes()


def compile_ptx(nvcc: str) -> str:
    """Compile the source and return its PTX.

    Raises:
        subprocess.CalledProcessError: nvcc failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / PTX.name
        command = [nvcc, "-ptx", f"-arch={VIRTUAL_ARCHITECTURE}", "-O3", "-o", str(path), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        text = path.read_text()
    text = re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)  # comments with the compiler's version
    for directive, value in HEADER.items():
        text = re.sub(rf"^\{directive} .*$", f"{directive} {value}", text, flags=re.MULTILINE)
    return text.lstrip()
