"""Settings of every test. Hypothesis has no deadline: on a busy machine, or if an example compiles, time says nothing.

No test reads the file of options of the user who runs the tests, and yomi speaks English.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("yomi", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("yomi")

os.environ["XDG_CONFIG_HOME"] = str(Path(__file__).parent / "no-config")
os.environ["YOMI_LANGUAGE"] = "en"

# A script's shell that starts the tests in the background hands Ctrl-C down ignored, to them and to their processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of processes import yomi. Without bytecode each would spend up to a second on compiling its sources.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Files of tests go to memory: runs, journals and replaced files are flushed, and a disk takes milliseconds for each.
MEMORY = Path("/dev/shm")
ROOM = 2 << 30  # containers often have 64 MiB there; the tests leave some 300 MiB
if (
    "PYTEST_DEBUG_TEMPROOT" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > ROOM
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC  # tests start scripts that they have written
):
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


def pytest_configure(config: pytest.Config) -> None:
    """Run files that are named whole: -m "not slow" of pyproject.toml is for all tests."""
    words = config.invocation_params.args
    is_named = config.args_source is pytest.Config.ArgsSource.ARGS
    if is_named and not any(str(word).startswith("-m") for word in words):
        config.option.markexpr = ""


@pytest.hookimpl(tryfirst=True)  # before the workers start
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile yomi's kernels before a run of all tests: otherwise each worker would compile most of them, too."""
    config = session.config
    is_part = config.args_source is pytest.Config.ArgsSource.ARGS or config.option.keyword
    if not is_part and not config.option.collectonly and not hasattr(config, "workerinput"):
        setup = [sys.executable, "-m", "yomi", "setup"]
        subprocess.run(setup, cwd=Path(__file__).parents[1], stdout=subprocess.DEVNULL, check=False)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    processes = f"{Path(__file__).parent / 'process'}{os.sep}"  # as text: 4,000 paths and their parents take a second
    for item in items:
        if str(item.path).startswith(processes):
            item.add_marker("process")
        if sys.platform != "linux" and item.get_closest_marker("linux"):
            item.add_marker(pytest.mark.skip(reason="only Linux does this for certain"))


@pytest.hookimpl(specname="pytest_collection_modifyitems", trylast=True)  # a random order is made before
def begin_with_early_tests(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("early") is None)
