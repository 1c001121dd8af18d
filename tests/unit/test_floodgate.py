"""Floodgate's schedule: the client waits for hours between games, in a time that passes at once."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.clients import Running
from tests.fakes.floodgate import Floodgate
from tests.fakes.seats import FakeShogiSeat
from yomi.engine.shogi.records.files import read_records


@pytest.fixture
def floodgate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Floodgate]:
    server = Floodgate(now=420.0, plies=9)
    server.install(monkeypatch)
    yield server
    server.close()


def lengths(running: Running) -> list[int]:
    """Return the number of moves of each record."""
    return [len(read_records(text)[0].moves) for text in running.records()]


def waits_of(server: Floodgate) -> list[float]:
    """Return the seconds between a line from the client and the next one, where the next one is empty."""
    pairs = itertools.pairwise(server.heard)
    return [after - before for (before, _), (after, line) in pairs if line == ""]


def test_hours_of_waiting_between_games(floodgate: Floodgate, tmp_path: Path) -> None:
    """The client comes at :07 and plays at each :00 and :30; meanwhile it sends empty lines, and not too many."""
    running = Running(tmp_path, 1, FakeShogiSeat(), games=4)
    running.join()
    assert floodgate.errors == []
    assert floodgate.paired == [1800.0, 3600.0, 5400.0, 7200.0]
    assert lengths(running) == [9] * 4
    assert running.events("lost") == []
    assert floodgate.logins == 4
    waits = waits_of(floodgate)
    assert waits == pytest.approx([60.0] * len(waits))
    assert len(waits) == pytest.approx((7200 - 420) / 60, abs=4)


def test_a_waiting_connection_that_the_server_drops(floodgate: Floodgate, tmp_path: Path) -> None:
    """It is there again for the next game, even if the server was away, or was dropped seconds before the pairing."""
    floodgate.at(900.0, lambda: floodgate.restart(600.0))
    floodgate.at(3590.0, lambda: floodgate.restart(0.0))
    running = Running(tmp_path, 1, FakeShogiSeat(), games=3)
    running.join()
    assert floodgate.errors == []
    assert floodgate.paired == [1800.0, 3600.0, 5400.0]
    assert lengths(running) == [9] * 3
    assert 600 / 45 <= floodgate.refused <= 600 / 15 + 6  # pauses of 15 to 45 s, once they have grown
    lost = running.events("lost")
    assert [event["why"] for event in (lost[0], lost[-1])] == ["the server has closed the connection"] * 2
    assert len(lost) == floodgate.refused + 2
    logins = [now for now, line in floodgate.heard if line.startswith("LOGIN ")]
    assert 1500.0 <= logins[1] < 1545.0
    assert sum(3590.0 <= login < 3591.0 for login in logins) == 1


def test_a_waiting_connection_that_has_died_without_a_word(floodgate: Floodgate, tmp_path: Path) -> None:
    """Its empty lines are not answered: within 80 s the client has logged in anew."""
    floodgate.at(1000.0, floodgate.fall_silent)
    running = Running(tmp_path, 1, FakeShogiSeat(), games=1)
    running.join()
    assert floodgate.paired == [1800.0]
    assert [event["why"] for event in running.events("lost")] == ["no answer to a keep-alive"]
    logins = [now for now, line in floodgate.heard if line.startswith("LOGIN ")]
    assert len(logins) == 2
    assert 1020.0 <= logins[1] < 1081.0
