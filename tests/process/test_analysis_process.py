"""`yomi analysis` through pipes, as KaTrain starts it: with the real search, and with the network where it is there."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.analysis_fuzz import random_line
from tests.process.engine_process import PipedProcess
from tests.shared_data import shared_path

ENGINE = ("yomi", "analysis", "--evaluator", "uniform", "--size", "9", "--workers", "1", "--memory", "64M")
QUERY: dict[str, Any] = {"moves": [], "rules": "tromp-taylor", "komi": 7, "boardXSize": 9, "boardYSize": 9}
NETWORK = "g170-b6c96-s175395328-d26788732.bin.gz"

_MOVE = (
    "move visits edgeVisits weight edgeWeight utility winrate scoreMean scoreSelfplay scoreLead scoreStdev prior lcb"
    " utilityLcb order playSelectionValue pv"
)
_ROOT = (
    "visits weight winrate scoreSelfplay scoreLead scoreStdev utility currentPlayer thisHash symHash rawWinrate rawLead"
    " rawScoreSelfplay rawScoreSelfplayStdev rawNoResultProb rawVarTimeLeft"
)
MOVE_FIELDS, ROOT_FIELDS = frozenset(_MOVE.split()), frozenset(_ROOT.split())
"""Those that KataGo 1.17 answers; the network at hand has no short-term errors."""


class Client(PipedProcess):
    """A client that sends and reads JSON."""

    def send(self, **fields: Any) -> None:
        self.write(json.dumps(fields) + "\n")

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.line())
        return found


@pytest.fixture(scope="module")
def engine() -> Iterator[Client]:
    with Client(*ENGINE) as client:
        yield client


def test_actions_are_answered_at_once(engine: Client) -> None:
    engine.send(id="v", action="query_version")
    assert engine.read()["id"] == "v"
    engine.send(id="m", action="query_models")
    assert engine.read()["models"] == []


def test_reports_and_termination(engine: Client) -> None:
    engine.send(id="ponder", **QUERY, maxVisits=10**7, reportDuringSearchEvery=0.05)
    answers = [engine.read() for _ in range(3)]
    assert all(answer["isDuringSearch"] for answer in answers)
    visits = [answer["rootInfo"]["visits"] for answer in answers]
    assert visits == sorted(visits)
    engine.send(id="t", action="terminate", terminateId="ponder")
    while (answer := engine.read()).get("isDuringSearch", True):
        assert answer["id"] in ("ponder", "t")
    assert answer["id"] == "ponder"
    assert answer["rootInfo"]["visits"] >= visits[-1]


def test_results_do_not_depend_on_earlier_queries(engine: Client) -> None:
    seen = set()
    for size in (9, 5, 9):
        engine.send(id="a", **QUERY | {"boardXSize": size, "boardYSize": size}, maxVisits=100)
        answer = engine.read()
        assert answer["rootInfo"]["visits"] == 100
        if size == 9:
            seen.add(json.dumps(answer))
    assert len(seen) == 1


def test_moves_of_the_root(engine: Client) -> None:
    allowed = ["C3", "pass"]
    engine.send(id="a", **QUERY, maxVisits=30, allowMoves=[{"player": "B", "moves": allowed, "untilDepth": 1}])
    assert {info["move"] for info in engine.read()["moveInfos"]} == set(allowed)
    points = [f"{column}{row}" for column in "ABCDEFGHJ" for row in range(1, 10)]
    engine.send(id="b", **QUERY, maxVisits=30, avoidMoves=[{"player": "B", "moves": points, "untilDepth": 1}])
    assert {info["move"] for info in engine.read()["moveInfos"]} == {"pass"}
    engine.send(
        id="c", **QUERY, maxVisits=30, avoidMoves=[{"player": "B", "moves": [*points, "pass"], "untilDepth": 1}]
    )
    answer = engine.read()
    assert answer["moveInfos"] == []
    assert answer["rootInfo"]["visits"] == 1


def test_a_game_that_is_over_is_analysed_all_the_same(engine: Client) -> None:
    engine.send(id="a", **QUERY | {"moves": [["B", "pass"], ["W", "pass"]]}, maxVisits=30)
    assert engine.read()["rootInfo"]["visits"] == 30


def test_broken_lines(engine: Client) -> None:
    rng = random.Random(2)
    lines = [random_line(rng) for _ in range(300)]
    for line in lines:
        engine.write(line + b"\n")
    engine.send(id="end", **QUERY, maxVisits=5)
    while (answer := engine.read()).get("id") != "end":
        assert "internal error" not in answer.get("error", "")
    assert answer["rootInfo"]["visits"] == 5


@pytest.mark.parametrize("quits", [False, True])
def test_the_end_of_input(tmp_path: Path, quits: bool) -> None:
    flags = ("-quit-without-waiting",) if quits else ()
    with Client(*ENGINE, *flags, folder=tmp_path) as client:
        client.send(id="a", **QUERY, maxVisits=10**7 if quits else 200, analyzeTurns=[0])
        client.send(id="v", action="query_version")
        answers = [client.read()]
        client.close_input()
        answers += [json.loads(line) for line in client.rest().splitlines()]
        assert client.end(60) == 0
        assert all(answer["id"] in ("a", "v") for answer in answers)
        assert quits or [answer["rootInfo"]["visits"] for answer in answers if answer["id"] == "a"] == [200]


def test_a_network_that_is_missing(tmp_path: Path) -> None:
    with Client("yomi", "analysis", "-model", "missing.bin.gz", folder=tmp_path) as client:
        assert client.end(60) == 2
        assert client.rest() == ""
    assert b"missing.bin.gz: no such file" in b"".join(client.errors)


def test_documented_example_field_by_field() -> None:
    """The example of KataGo's documentation, with everything that may be included."""
    network = str(shared_path("data", "katago", NETWORK))
    with Client(
        "yomi", "analysis", "--net", network, "--memory", "128M", "--override-config", "maxVisits=40"
    ) as client:
        client.write(
            '{"id":"foo","initialStones":[["B","Q4"],["B","C4"]],"moves":[["W","P5"],["B","P6"]],"rules":"tromp-taylor",'
            '"komi":7.5,"boardXSize":19,"boardYSize":19,"analyzeTurns":[0,1,2],"includeOwnership":true,'
            '"includeMovesOwnership":true,"includePolicy":true,"includePVVisits":true}\n'
        )
        answers = [client.read() for _ in range(3)]
        client.send(id="m", action="query_models")
        model = client.read()["models"][0]
    assert (model["name"], model["version"]) == (NETWORK, 8)
    for turn, answer in enumerate(answers):
        check_answer(answer, turn)
    best = answers[2]["moveInfos"][0]
    assert (answers[2]["rootInfo"]["currentPlayer"], best["move"]) == ("W", "Q5")  # as in the documentation
    assert 0.6 < best["prior"] < 1.0
    assert 0.5 < best["winrate"] < 0.9  # Black's
    assert best["scoreLead"] > 3


def check_answer(answer: dict[str, Any], turn: int) -> None:
    """Check every field of a response for 19×19 against its documented type and range."""
    assert set(answer) == {"id", "isDuringSearch", "turnNumber", "moveInfos", "rootInfo", "ownership", "policy"}
    assert (answer["id"], answer["isDuringSearch"], answer["turnNumber"]) == ("foo", False, turn)
    root, infos = answer["rootInfo"], answer["moveInfos"]
    assert set(root) == ROOT_FIELDS
    assert root["visits"] == 40
    assert root["visits"] == 1 + sum(info["edgeVisits"] for info in infos)
    assert 0 <= root["winrate"] <= 1
    assert 0 <= root["rawWinrate"] <= 1
    assert root["rawVarTimeLeft"] == -1  # of networks before version 9
    assert len(root["thisHash"]) == len(root["symHash"]) == 32
    for order, info in enumerate(infos):
        assert set(info) == MOVE_FIELDS | {"pvVisits", "pvEdgeVisits", "ownership"}
        assert info["order"] == order
        assert info["pv"][0] == info["move"]
        assert len(info["pv"]) == len(info["pvVisits"]) == len(info["pvEdgeVisits"]) <= 16
        assert info["pvVisits"][0] == info["visits"] > 0
        assert 0 <= info["winrate"] <= 1
        assert 0 <= info["prior"] <= 1
        assert info["scoreMean"] == info["scoreLead"]
        check_ownership(info["ownership"])
    values = [info["playSelectionValue"] for info in infos]
    assert values == sorted(values, reverse=True)
    check_ownership(answer["ownership"])
    legal = [value for value in answer["policy"] if value >= 0]
    assert len(answer["policy"]) == 362
    assert answer["policy"].count(-1.0) == 2 + turn
    assert math.isclose(sum(legal), 1.0, abs_tol=0.01)


def check_ownership(values: list[float]) -> None:
    assert len(values) == 361
    assert all(-1.0 <= value <= 1.0 for value in values)
    assert values[19 * 15 + 2] > 0.3  # C4, a black stone
