"""Matches between scripted engines, through the real command."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.process.prepared import ROOT, prepared
from yomi.engine.matches.results import JOURNAL_NAME, GameResult, read_journal

ENGINE = ROOT / "tests" / "process" / "scripted_engine.py"


def scripted(protocol: str, conduct: str, seconds: float = 0.0, name: str = "") -> str:
    """Return the player that behaves in some way."""
    python = f"'{sys.executable}' -S -E"  # without site packages: starts in 20 ms
    return f"{python} '{ENGINE}' {protocol} {conduct} {seconds:g} ;; name={name or conduct}"


def command(*words: str) -> list[str]:
    """Return the command line of a match."""
    return prepared("yomi", "match", *words)


def run_match(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], list[GameResult]]:
    """Play a match to its end and return the process and the games in order of their numbers."""
    done = subprocess.run(
        command(*words, "--out", str(folder)), cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    results = (
        read_journal(folder / JOURNAL_NAME)[1] if (folder / JOURNAL_NAME).exists() and done.returncode == 0 else []
    )
    return done, sorted(results, key=lambda result: result.number)


def kill_and_go_on(folder: Path, times: int, games: int, seed: int) -> tuple[int, int]:
    """Kill the runner of a match again and again, then let it end.

    Returns:
        The kills that came while it played, and the games that had been finished before the last start.

    Raises:
        AssertionError: a game that had been announced is not in the journal, or is in it twice or in another form.
    """
    rng = random.Random(seed)
    words = command(
        "go", scripted("gtp", "fine", 0.004, "a"), scripted("gtp", "flood", 0.004, "b"), "--size", "9",
        "--games", str(games), "--at-once", "2", "--out", str(folder),
    )  # fmt: skip
    announced: dict[int, str] = {}
    kills = 0
    for _ in range(times):
        process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert process.stderr is not None
        before = len(announced)
        wait = rng.uniform(0.0, 0.6)
        for line in process.stderr:
            match = re.match(r"[0-9]+/[0-9]+  game ([0-9]+)  (.*)", line)
            if match:
                announced[int(match[1])] = match[2]
            if len(announced) > before + rng.randrange(4):
                break
        time.sleep(wait)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        for line in process.stderr:  # what was announced before the end
            match = re.match(r"[0-9]+/[0-9]+  game ([0-9]+)  (.*)", line)
            if match:
                announced[int(match[1])] = match[2]
        process.stderr.close()
        process.wait()
        check(folder, announced)
    done_before = len(announced)
    last = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert last.returncode == 0, last.stderr
    results = check(folder, announced)
    assert sorted(result.number for result in results) == list(range(games))
    assert not list(folder.glob(".*.part"))
    return kills, done_before


def check(folder: Path, announced: dict[int, str]) -> list[GameResult]:
    """Compare the journal and the records with what was announced."""
    results = read_journal(folder / JOURNAL_NAME)[1] if (folder / JOURNAL_NAME).exists() else []
    by_number = {result.number: result for result in results}
    assert len(by_number) == len(results), "a game is there twice"
    for number, text in announced.items():
        result = by_number[number - 1]
        assert text.startswith(f"{result.black} - {result.white}: ")
        assert result.detail in text
    for result in results:
        assert (folder / result.files[0]).read_bytes().endswith(b")\n"), "a record is cut off"
    return results
