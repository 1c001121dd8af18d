"""The learning loop: who plays while a network is trained and measured, and what the log names."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_learning_store import played
from tests.waiting import wait_until
from yomi.engine.learning.journal import NAME, Figures, Journal
from yomi.engine.learning.loop import MAX_AHEAD, Goal, Loop
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.learning.store import Store
from yomi.engine.learning.workers import Delivery, Task
from yomi.engine.matches.score import DuelScore
from yomi.engine.options import Options
from yomi.engine.registry import GAMES
from yomi.nets.files import write_atomically
from yomi.settings import make_settings

ROWS = 30
PLAYED = DuelScore(3, 1, 2, (0, 1, 1, 1, 0))


class Players:
    """Deliver a game of three rows whenever they are asked."""

    def __init__(self) -> None:
        self.networks: list[str] = []

    def use(self, task: Task) -> None:
        """Note the network."""
        self.networks.append(task.network)

    def take(self, seconds: float) -> list[Delivery]:
        """Return a game."""
        time.sleep(0.002)
        return [Delivery([played(1)], 1)]

    def close(self) -> None:
        """Do nothing."""


class Learner:
    """Makes files of other contents."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def first(self) -> Path:
        """Write a network."""
        self._count += 1
        write_atomically(self._folder / "net.bin.gz", str(self._count).encode())
        return self._folder / "net.bin.gz"

    def run(self, *_: Any) -> tuple[Path, int]:
        """Report some losses, and write a network."""
        _[-1](1, {"total": 2.0, "hints": 0.5, "short_value": 0.25, "learning_rate": 0.1, "seconds": 1.0})
        return self.first(), ROWS


def loop(tmp_path: Path, matches: Any, said: list[str], players: Players, **settings: Any) -> Loop:
    store = Store(tmp_path / "run", {"game": "go", "window": 100}, frozenset(), "katago-v7", ".sgf")
    chosen = make_settings(LearnSettings, {"rows": ROWS, "ladder": 6, "ladder_every": 1, **settings})
    game, options = GAMES["go"], Options(size=5)
    learner = Learner(tmp_path)
    return Loop(game, options, chosen, store, players, lambda: learner, said.append, beside=True, matches=matches)


def test_self_play_goes_on_during_gate_and_ladder_up_to_two_generations_ahead(tmp_path: Path) -> None:
    said: list[str] = []
    players = Players()
    before: list[int] = []
    after: list[int] = []

    def match(*_: Any) -> DuelScore:
        if not after:
            before.append(made.store.rows)
            wait_until(lambda: any("waits for" in line for line in said))
            after.append(made.store.rows)
        return PLAYED

    made = loop(tmp_path, match, said, players)
    made.run(Goal(generations=2))
    assert after[0] > before[0], "nobody played during the ladder"
    assert after[0] > MAX_AHEAD * ROWS
    waits = [line for line in said if "waits for" in line]
    assert waits[0] == "self-play is 2 generations ahead and waits for the ladder of network 1 against uniform"
    assert "network 1 against uniform: 3-2-1 (wins-losses-draws)" in said
    waited = [each["for"] for each in Journal(tmp_path / "run" / NAME).read() if each["event"] == "wait"]
    assert "the ladder of network 1 against uniform" in waited
    first = next(line for line in said if line.startswith("network 1 ("))[11:19]
    assert any(network.startswith(first) for network in players.networks), "nobody played with network 1"


def test_training_in_turn_is_no_time_of_self_play(tmp_path: Path) -> None:
    begin = time.monotonic()
    made = loop(tmp_path, lambda *_: PLAYED, [], Players(), ladder=0)
    made._concurrent = False
    learn = made._learner.run
    made._learner.run = lambda *each: time.sleep(0.2) or learn(*each)  # type: ignore[method-assign, func-returns-value]
    made.run(Goal(generations=4))
    events = Journal(tmp_path / "run" / NAME).read()
    seconds = {
        part: sum(each["seconds"] for each in events if each["event"] == part) for part in ("selfplay", "training")
    }
    assert seconds["training"] > 0.8
    assert seconds["selfplay"] < time.monotonic() - begin - seconds["training"]


def test_all_losses_reach_the_journal(tmp_path: Path) -> None:
    made = loop(tmp_path, lambda *_: PLAYED, [], Players(), ladder=0)
    made.run(Goal(generations=1))
    (trained,) = (each for each in Journal(tmp_path / "run" / NAME).read() if each["event"] == "training")
    assert trained["losses"] == {"total": 2.0, "hints": 0.5, "short_value": 0.25}


def test_the_chosen_precision_reaches_the_journal(tmp_path: Path) -> None:
    for generations in (2, 3):  # a continued run computes in the same precision
        made = loop(tmp_path, lambda *_: PLAYED, [], Players(), ladder=0)
        made._adapt = lambda options: replace(options, precision="int8")
        made.run(Goal(generations=generations))
    events = Journal(tmp_path / "run" / NAME).read()
    assert [event["precision"] for event in events if event["event"] == "precision"] == ["int8"]


def test_a_caller_gets_the_figures_of_each_network(tmp_path: Path) -> None:
    made = loop(tmp_path, lambda *_: PLAYED, [], Players())
    found: list[Figures] = []
    made._on_generation = found.append
    made.run(Goal(generations=2))
    assert [figures["generation"] for figures in found] == [1, 2]
    for figures in found:
        assert (figures["loss/total"], figures["match/uniform"]) == (2.0, 3.5 / 6)
    assert sum(figures.get("selfplay/rows", 0.0) for figures in found) > 0.0


def test_an_exception_of_the_caller_ends_the_run(tmp_path: Path) -> None:
    made = loop(tmp_path, lambda *_: PLAYED, [], Players(), ladder=0)

    def fail(figures: Figures) -> None:
        raise RuntimeError(f"network {figures['generation']:g} is enough")

    made._on_generation = fail
    with pytest.raises(RuntimeError, match="network 1 is enough"):
        made.run(Goal(generations=2))
    assert made.store.state.generation == 1


def test_a_run_that_has_lost_all_networks_goes_on(tmp_path: Path) -> None:
    loop(tmp_path, lambda *_: PLAYED, [], Players(), ladder=0).run(Goal(generations=1))
    for path in (tmp_path / "run/networks").iterdir():
        path.unlink()
    made = loop(tmp_path, lambda *_: PLAYED, [], Players(), ladder=0)
    assert made.store.state.network == ""
    made.run(Goal(generations=2))
    assert made.store.state.generation == 2
    assert made.store.network(made.store.state.network).exists()
