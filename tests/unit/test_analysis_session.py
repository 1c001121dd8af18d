"""The analysis protocol's threads: priorities, termination, the end of input, and lines that are broken."""

import json
import random
import threading
from typing import Any

import pytest

from tests.fakes.analyst import FakeAnalyst, ScriptedAnalysis
from tests.process.analysis_fuzz import identity_of, random_line
from tests.waiting import wait_until
from yomi.engine.go.analysis.fields import Settings
from yomi.engine.go.analysis.session import Session
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.setup import Analysis
from yomi.engine.options import Options
from yomi.engine.players.request import Request
from yomi.engine.protocols.session import LoadError
from yomi.engine.protocols.streams import OutputClosedError
from yomi.native.go.rules import MAX_HISTORY

QUERY: dict[str, Any] = {"moves": [], "rules": "chinese", "boardXSize": 3, "boardYSize": 3}
ENDLESS = QUERY | {"maxVisits": 10**6}


class Served:
    """A session with its threads and fake analysts."""

    def __init__(self, count: int = 1, analyst: type[FakeAnalyst] = FakeAnalyst, **options: bool) -> None:
        self.analysts = [analyst() for _ in range(count)]
        self.written: list[str] = []
        self.session = Session(Settings(Options(visits=16)), lambda: self.analysts, self.written.append, **options)
        self.session.start_loading()
        self.thread = threading.Thread(target=self.session.run, daemon=True)
        self.thread.start()

    def send(self, **fields: Any) -> None:
        self.session.receive(json.dumps(fields).encode())

    def end(self) -> list[dict[str, Any]]:
        """Send the end of input and return all answers."""
        self.session.receive_end(False)
        self.thread.join(60)
        assert not self.thread.is_alive()
        return [json.loads(line) for line in self.written]


def turns(answers: list[dict[str, Any]]) -> list[tuple[str, int, bool]]:
    return [(a["id"], a["turnNumber"], a.get("noResults", False)) for a in answers if "turnNumber" in a]


def test_what_is_queued_is_finished_at_the_end_of_input() -> None:
    served = Served(2)
    moves = [["B", "B2"], ["W", "A1"], ["B", "C3"]]
    served.send(id="a", **QUERY | {"moves": moves, "analyzeTurns": [3, 0, 2, 1, 0]})
    assert sorted(turns(served.end())) == [("a", turn, False) for turn in range(4)]


@pytest.mark.slow
def test_more_moves_than_a_game_has_room_for() -> None:
    served = Served()
    served.send(id="a", **QUERY | {"moves": [["B", "pass"]] * 10_000, "analyzeTurns": [0]})
    (answer,) = served.end()
    most = MAX_HISTORY - 2
    assert (answer["field"], answer["error"]) == ("moves", f"10000 moves found, expected at most {most}")


def test_terminate() -> None:
    served = Served()
    served.send(id="run", **ENDLESS)
    assert served.analysts[0].began.wait(60)
    moves = [["B", "B2"], ["W", "A1"]]
    served.send(id="wait", **QUERY | {"moves": moves, "analyzeTurns": [0, 1, 2]})
    served.send(id="t1", action="terminate", terminateId="wait", turnNumbers=[1])
    served.send(id="t2", action="terminate", terminateId="run")
    answers = served.end()
    assert turns(answers) == [("wait", 1, True), ("run", 0, False), ("wait", 0, False), ("wait", 2, False)]
    acknowledged = [answer for answer in answers if "action" in answer]
    assert acknowledged[0] == {"id": "t1", "action": "terminate", "terminateId": "wait", "turnNumbers": [1]}
    assert acknowledged[1] == {"id": "t2", "action": "terminate", "terminateId": "run"}


def test_terminate_all() -> None:
    served = Served()
    served.send(id="run", **ENDLESS)
    assert served.analysts[0].began.wait(60)
    served.send(id="wait", **ENDLESS)
    served.send(id="t", action="terminate_all")
    served.send(id="after", **QUERY)
    found = turns(served.end())
    assert sorted(found) == [("after", 0, False), ("run", 0, False), ("wait", 0, True)]


def test_a_search_is_interrupted_only_for_its_own_query() -> None:
    served = Served()
    served.send(id="run", **ENDLESS)
    assert served.analysts[0].began.wait(60)
    served.send(id="t", action="terminate", terminateId="other")
    served.send(id="v", action="query_version")
    wait_until(lambda: len(served.written) >= 2)
    assert served.analysts[0].calls == []
    served.send(id="t", action="terminate", terminateId="run")
    assert turns(served.end()) == [("run", 0, False)]


def test_quit_without_waiting() -> None:
    served = Served(quit_without_waiting=True)
    served.send(id="run", **ENDLESS)
    served.send(id="wait", **ENDLESS)
    assert served.analysts[0].began.wait(60)
    assert served.end() == []


def test_priorities() -> None:
    served = Served()
    served.send(id="run", **ENDLESS)
    assert served.analysts[0].began.wait(60)
    for number, priority in enumerate((0, 5, -1, 5.0)):
        served.send(id=str(number), **QUERY | {"priority": priority})
    served.send(id="t", action="terminate", terminateId="run")
    assert [identity for identity, _, _ in turns(served.end())] == ["run", "1", "3", "0", "2"]


class FaultyAnalyst(FakeAnalyst):
    """Raises what is no EvaluatorError on boards of 4x4."""

    def analyze(self, request: Request[GoGame], *arguments: Any, **keys: Any) -> Analysis:
        if request.game.board.side == 4:
            raise ZeroDivisionError("on purpose")
        return super().analyze(request, *arguments, **keys)


def test_an_internal_error_costs_one_position_only(caplog: pytest.LogCaptureFixture) -> None:
    served = Served(analyst=FaultyAnalyst)
    served.send(id="bad", **QUERY | {"boardXSize": 4, "boardYSize": 4, "moves": [["B", "A1"]], "analyzeTurns": [0, 1]})
    served.send(id="good", **QUERY)
    answers = served.end()
    message = "internal error: ZeroDivisionError: on purpose"
    assert answers[:2] == [{"id": "bad", "turnNumber": turn, "error": message} for turn in (0, 1)]
    assert turns(answers[2:]) == [("good", 0, False)]
    assert "Traceback" in caplog.text


def test_a_client_that_is_gone_ends_the_session() -> None:
    def write(text: str) -> None:
        raise OutputClosedError("gone")

    session = Session(Settings(Options(visits=16)), lambda: [FakeAnalyst()], write)
    session.receive(json.dumps(QUERY | {"id": "a"}).encode())
    session.start_loading()
    with pytest.raises(OutputClosedError):
        session.run()


def test_analysts_that_cannot_be_made() -> None:
    def fail() -> list[FakeAnalyst]:
        raise LoadError("no such network")

    session = Session(Settings(Options()), fail, [].append)
    session.start_loading()
    with pytest.raises(LoadError, match="no such network"):
        session.run()


def test_settings_reach_the_analyst() -> None:
    session = ScriptedAnalysis()
    session.send(
        json.dumps(
            QUERY
            | {
                "id": "a",
                "maxVisits": 7,
                "analysisPVLen": 3,
                "rootFpuReductionMax": 0,
                "rootPolicyTemperature": 1.5,
                "overrideSettings": {
                    **{"wideRootNoise": 0.25, "cpuctExploration": "2", "maxTime": 1, "maxPlayouts": 9},
                    "ignorePreRootHistory": True,
                },
                "reportDuringSearchEvery": 0.5,
                "firstReportDuringSearchAfter": 0.25,
            }
        )
    )
    request = session.fake.requests[0]
    options = request.options
    assert options is not None
    assert (options.visits, options.playouts, options.seconds) == (7, 9, 1.0)
    assert request.pv_length == 3
    assert options.root_fpu_reduction == 0.0
    assert (options.root_policy_temperature, options.wide_root_noise) == (1.5, 0.25)
    assert options.c_puct == 2.0
    assert request.hide_history
    assert (request.first_report, request.interval) == (0.25, 0.5)
    assert session.settings.options.c_puct is None


def test_the_debug_log_has_every_line(caplog: pytest.LogCaptureFixture) -> None:
    session = ScriptedAnalysis()
    query = json.dumps(QUERY | {"id": "a"})
    with caplog.at_level("DEBUG", "yomi.analysis"):
        answers = session.send(query).splitlines()
    assert [record.getMessage() for record in caplog.records] == [f"< {query}", *(f"> {line}" for line in answers)]


def test_broken_lines() -> None:
    rng = random.Random(1)
    session = ScriptedAnalysis()
    for _ in range(2000):
        line = random_line(rng)
        answers = [json.loads(text) for text in session.send(line).splitlines()]
        assert all("internal error" not in answer.get("error", "") for answer in answers), line
        identity = identity_of(line)
        if line.strip():
            assert answers, line
        if identity is not None:
            assert all(answer["id"] == identity for answer in answers), line
