"""Compiles kernels for each level of x86-64 processors, for a wheel: `python -m tests.build_kernels [LEVEL|NAME ...]`.

A NAME is a key of `yomi.native.kernel_groups.NAMES`; the default is all. The kernels go to native/compiled/LEVEL. `pip
wheel` then makes a wheel with them for this system and Python.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numba

from yomi import children
from yomi.native.cache_folder import COMPLETE, FACTS, write_json
from yomi.native.kernel_groups import NAMES
from yomi.native.levels import COMPILED, LEVELS, ROOT, SETTING, lacking_features


def build(level: str, names: Sequence[str]) -> None:
    """Compile the kernels of these names for a level and replace the folder.

    Raises:
        subprocess.CalledProcessError: compiling failed; the message is on stderr.
    """
    target = COMPILED / level
    with tempfile.TemporaryDirectory() as folder:
        environment = {**children.environment(), SETTING: level, "YOMI_CACHE_DIR": folder}
        script = "import sys; from yomi.native.precompile import compile_names; "
        script += "compile_names(sys.argv[1:], lambda line: print(line, flush=True))"
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run([sys.executable, "-c", script, *names], cwd=ROOT, env=environment, check=True)
        for path in sorted(Path(folder, "kernels").rglob("*")):
            if path.suffix in (".nbi", ".nbc", COMPLETE):
                place = target / path.relative_to(Path(folder, "kernels"))
                place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                shutil.copyfile(path, place)
    facts = {"python": sys.implementation.cache_tag, "numba": numba.__version__}
    write_json(target / FACTS, facts)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {size / 1e6:.1f} MB", flush=True)


def main(words: Sequence[str]) -> None:
    """Build the named levels, or all, except levels that this processor cannot run.

    Raises:
        SystemExit: an unknown level or name, or no level that can be built.
    """
    for word in words:
        if word not in LEVELS and word not in NAMES:
            raise SystemExit(f"found {word}, expected {' or '.join((*LEVELS, *NAMES))}")
    names = [name for name in NAMES if name in words] or list(NAMES)
    lacking = {level: lacking_features(level) for level in LEVELS if level in words or NAMES.keys() >= set(words)}
    for level, features in lacking.items():
        if features:
            print(f"skipping {level}: this processor lacks {features}", flush=True)
        else:
            build(level, names)
    if all(lacking.values()):
        raise SystemExit("built no kernels: expected a level that this processor has")


if __name__ == "__main__":
    main(sys.argv[1:])
