"""The library in a process of its own: import, output, Ctrl-C and the end of the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.process.engine_process import ROOT


def run(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a program and return its output."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | settings
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_import_loads_nothing() -> None:
    code = """
import sys
modules, switch = set(sys.modules), sys.getswitchinterval()
import yomi
assert set(sys.modules) - modules == {"yomi"}, set(sys.modules) - modules
yomi.Error, yomi.Limit(visits=1), yomi.BLACK
assert "numba" not in sys.modules
assert "numpy" not in sys.modules
assert sys.getswitchinterval() == switch
"""
    found = run(code)
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_an_engine_prints_nothing_and_needs_no_close() -> None:
    code = """
import yomi
engine = yomi.Engine("shogi")
engine.play(engine.new_game(), yomi.Limit(visits=10))
analysis = engine.analysis(engine.new_game())
next(analysis)
"""
    found = run(code)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


SEARCHES = [
    "engine.play(engine.new_game(), yomi.Limit(seconds=600))",
    "engine.analysis(engine.new_game()).wait()",
    "[report for report in engine.analysis(engine.new_game())]",
    "while True: engine.evaluate([engine.new_game()] * 20000)",
]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process")
def test_ctrl_c_ends_a_search_and_the_engine_lives_on() -> None:
    code = "import signal, yomi\n"
    code += "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores Ctrl-C\n"
    for search in SEARCHES:  # in one process, which has to load the engine's kernels once
        code += f"""
try:
    with yomi.Engine("shogi") as engine:
        try:
            print("ready", flush=True)
            {search}
        except KeyboardInterrupt:
            print(engine.play(engine.new_game(), yomi.Limit(visits=20)).move is not None, flush=True)
            raise
except KeyboardInterrupt as error:
    last = error
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}\nraise last"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        try:
            assert process.stdout is not None
            for search in SEARCHES:
                assert process.stdout.readline() == "ready\n", search
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
                assert process.stdout.readline() == "True\n", search
            output, errors = process.communicate(timeout=300)
        finally:
            process.kill()  # leaving the block waits for the end
    assert output == ""
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert process.returncode == -signal.SIGINT


SHARP = "2g2l1+P1/ps1r1k3/+Pppp5/1G2pb2s/1PG1Lp1p1/L2P4P/4PGPP1/7K1/+n1S2LSN1 w 2NPrb2p 94"


@pytest.mark.slow
@pytest.mark.parametrize("game", ["go.Game()", f"shogi.Game({SHARP!r})"])
def test_no_thread_reads_freed_memory(game: str) -> None:
    """All threads share freed memory, which is overwritten: an earlier version of shogi crashed."""
    code = f"""
import yomi
game = yomi.{game}
with yomi.Engine(game.game, memory="64M", workers=4, seed=1, evaluator="uniform") as engine:
    assert engine.play(game, yomi.Limit(playouts=100000)).move is not None
"""
    tunables = "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"
    found = run(code, MALLOC_PERTURB_="165", GLIBC_TUNABLES=tunables)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
