"""Runs on a cluster of Ray that lose their command or actors are the runs of one process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.process.match_process import ROOT, scripted
from tests.process.ray_nodes import TOKEN, Nodes
from tests.process.test_clusters import contents, described, in_order
from tests.unit.test_go_dataset import random_record
from yomi.engine.cli.main import main
from yomi.engine.clusters import actors
from yomi.engine.clusters.jobs import RUN_NAME
from yomi.engine.clusters.units import Unit, UnitPool
from yomi.engine.matches.results import JOURNAL_NAME, GameResult, MatchJournal, read_journal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (the extra cluster)"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not list its processes there"),
    pytest.mark.filterwarnings("ignore"),  # Ray leaves sockets and processes to the end of the process
]
GAMES = 20
KILLED = """\
import os, signal, sys
from yomi.engine.cli.main import main
from yomi.engine.matches.results import MatchJournal

add = MatchJournal.add
def add_and_die(journal, result):
    add(journal, result)
    os.kill(os.getpid(), signal.SIGKILL)

MatchJournal.add = add_and_die
main(sys.argv[1:])
"""  # the command ends after its first game


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    before = dict(os.environ)
    os.environ.pop("RAY_AUTH_MODE", None)
    os.environ["RAY_AUTH_TOKEN"] = TOKEN
    made = Nodes(2, "token")
    yield made
    made.close()
    os.environ.clear()
    os.environ.update(before)


def test_a_killed_command_and_a_killed_actor_cost_no_game(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "openings.sfen").write_text("startpos moves 2g2f 8c8d\nstartpos moves 7g7f 3c3d\n")
    words = ["shogi", scripted("usi", "fine", 0.01), scripted("usi", "resign", 0.01), "--games", str(GAMES)]
    words += ["--openings", str(tmp_path / "openings.sfen"), "--byoyomi", "60", "--timeout", "60"]
    assert main(["match", *words, "--out", str(tmp_path / "whole")]) == 0

    words += ["--cluster", nodes.address, "--at-once", "2", "--out", str(tmp_path / "cluster")]
    driver = subprocess.run([sys.executable, "-c", KILLED, "match", *words], cwd=ROOT, capture_output=True, check=False)
    assert driver.returncode == -signal.SIGKILL, driver.stderr
    assert len(read_journal(tmp_path / "cluster" / JOURNAL_NAME)[1]) == 1

    earlier = nodes.actors()  # those of the killed command may take a moment to end
    add, killed = MatchJournal.add, list[int]()

    def add_and_kill(journal: MatchJournal, result: GameResult) -> None:
        add(journal, result)
        if not killed:
            killed.append(next(pid for pid in nodes.actors() if pid not in earlier))
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(MatchJournal, "add", add_and_kill)
    capfd.readouterr()
    assert main(["match", *words]) == 0
    assert re.search(r"^yomi: actor \d lost: ", capfd.readouterr().err, re.MULTILINE)
    assert killed
    numbers = [result.number for result in read_journal(tmp_path / "cluster" / JOURNAL_NAME)[1]]
    assert sorted(numbers) == list(range(GAMES))
    assert in_order(contents(tmp_path / "cluster")) == in_order(contents(tmp_path / "whole"))
    assert described(tmp_path / "cluster") == described(tmp_path / "whole")


KILLS = 10
SMALL = ["go", "--size", "5", "--net", "fast", "--visits", "2", "--at-once", "2", "--opening-moves", "2"]
COMMANDS = {
    "duel": ["duel", *SMALL, "--second", "visits=3", "--games", "40"],
    "tune": ["tune", *SMALL, "--parameter", "c_puct", "0.5:2.0", "--games", "40", "--pairs", "10", "--confirm", "0"],
    "review": ["review", "GAMES", "--net", "fast", "--visits", "4", "--seed", "1", "--workers", "1", "--html"],
    "dataset make": ["dataset", "make", "GAMES", "--shard-rows", "24"],
}


@pytest.mark.parametrize("command", COMMANDS if "YOMI_EVERY_STATE" in os.environ else ["dataset make"])
def test_ten_killed_actors_cost_no_unit(
    command: str, nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "games").mkdir()
    for seed in range(24):
        (tmp_path / "games" / f"{seed}.sgf").write_text(random_record(7, seed, 20, "B+R"))
    words = [word.replace("GAMES", str(tmp_path / "games")) for word in COMMANDS[command]]
    alone = ["--processes", "1"] if "--at-once" in words else []
    assert main([*words, *alone, "--out", str(tmp_path / "whole")]) == 0
    run, killed = UnitPool.run, list[int]()

    def killing(pool: UnitPool, units: Iterable[Unit], *, in_order: bool = False) -> Iterator[Unit]:
        for result in run(pool, units, in_order=in_order):
            yield result
            found = [pid for pid in nodes.actors() if pid not in killed]
            if found and len(killed) < KILLS:
                killed.append(found[len(killed) % len(found)])
                os.kill(killed[-1], signal.SIGKILL)

    monkeypatch.setattr(UnitPool, "run", killing)
    monkeypatch.setattr(actors, "RESTART_SECONDS", 0.5)
    capfd.readouterr()
    assert main([*words, "--cluster", nodes.address, "--out", str(tmp_path / "cluster")]) == 0
    assert len(killed) == KILLS
    assert len(re.findall(r"actor \d lost: ", capfd.readouterr().err)) == KILLS
    found, wanted = (contents(tmp_path / name, (RUN_NAME, "records.jsonl")) for name in ("cluster", "whole"))
    for files in (found, wanted):  # games are written as they end
        files |= {name: b"".join(sorted(files[name].splitlines())) for name in files if name == JOURNAL_NAME}
    assert found == wanted


def test_actors_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise RuntimeError('not this one')\n")
    words = ["duel", "go", "--size", "5", "--net", "fast", "--visits", "2", "--second", "visits=3", "--games", "2"]
    command = [sys.executable, "-m", "yomi", *words, "--cluster", "local", "--processes", "1"]
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 games, " in done.stdout
