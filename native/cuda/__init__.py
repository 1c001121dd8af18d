"""CUDA kernels: their source, and the PTX made from it, which any driver compiles for its GPU.

Users need no CUDA compiler. After an edit of a `.cu` file, `python -m yomi.native.cuda` makes the PTX anew with nvcc.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SOURCE, PTX = FOLDER / "unpack.cu", FOLDER / "unpack.ptx"
VIRTUAL_ARCHITECTURE = "compute_75"
"""The oldest that nvcc 13 knows."""
HEADER = {".version": "6.4", ".target": "sm_70"}
"""What the PTX asks for. The kernels use nothing newer, and a driver refuses PTX of a version that it does not know."""


def read_ptx() -> bytes:
    """Return the PTX of all kernels."""
    return PTX.read_bytes()


def compile_ptx(nvcc: str) -> str:
    """Return the PTX of the source as it stands.

    Raises:
        subprocess.CalledProcessError: nvcc does not compile it.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / PTX.name
        command = [nvcc, "-ptx", f"-arch={VIRTUAL_ARCHITECTURE}", "-O3", "-o", str(path), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        text = path.read_text()
    text = re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)  # the compiler's version
    for directive, value in HEADER.items():
        text = re.sub(rf"^\{directive} .*$", f"{directive} {value}", text, flags=re.MULTILINE)
    return text.lstrip()
