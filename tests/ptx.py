"""Compile the PTX of the CUDA kernels: `python -m tests.ptx`, which needs nvcc."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from yomi.native.cuda import PTX, SOURCE

VIRTUAL_ARCHITECTURE = "compute_75"  # the oldest architecture that nvcc 13 knows
# Header of the PTX. The kernels need nothing newer, and drivers refuse PTX of versions that they do not know.
HEADER = {".version": "6.4", ".target": "sm_70"}


def compile_ptx(nvcc: str) -> str:
    """Compile the source and return its PTX."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / PTX.name
        command = [nvcc, "-ptx", f"-arch={VIRTUAL_ARCHITECTURE}", "-O3", "-o", str(path), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        text = path.read_text()
    text = re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)  # comments with the compiler's version
    for directive, value in HEADER.items():
        text = re.sub(rf"^\{directive} .*$", f"{directive} {value}", text, flags=re.MULTILINE)
    return text.lstrip()


if __name__ == "__main__":
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        sys.exit("nvcc not found: install CUDA's compiler, or add it to PATH")
    PTX.write_text(compile_ptx(nvcc))
