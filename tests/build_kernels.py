"""Compiles kernels for each level of x86-64 processors, for a wheel: `python -m tests.build_kernels [LEVEL ...]`.

They go to native/compiled/LEVEL. `pip wheel` then makes a wheel with them for this system and Python.
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
from yomi.native.levels import COMPILED, LEVELS, ROOT, SETTING, lacking_features


def build(level: str) -> None:
    """Compile all kernels for a level and replace the folder.

    Raises:
        subprocess.CalledProcessError: compiling failed; the message is on stderr.
    """
    target = COMPILED / level
    with tempfile.TemporaryDirectory() as folder:
        environment = {**children.environment(), SETTING: level, "YOMI_CACHE_DIR": folder}
        script = "from yomi.native.kernel_groups import NAMES; from yomi.native.precompile import compile_names; "
        command = [sys.executable, "-c", script + "compile_names(list(NAMES), lambda line: print(line, flush=True))"]
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
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
        SystemExit: an unknown level, or none that can be built.
    """
    for word in words:
        if word not in LEVELS:
            raise SystemExit(f"found level {word}, expected {' or '.join(LEVELS)}")
    lacking = {level: lacking_features(level) for level in words or LEVELS}
    for level, features in lacking.items():
        if features:
            print(f"skipping {level}: this processor lacks {features}", flush=True)
        else:
            build(level)
    if all(lacking.values()):
        raise SystemExit("built no kernels: expected a level that this processor has")


if __name__ == "__main__":
    main(sys.argv[1:])
