"""`yomi analysis` through pipes, as KaTrain starts it: with the real search, and with the network where it is there."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.process.analysis_fuzz import random_line
from tests.process.engine_process import PipedProcess
from tests.shared_data import shared_path

pytestmark = pytest.mark.slow

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
COUNTS = frozenset({"visits", "edgeVisits", "order"})
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


def test_moves_below_the_root(engine: Client) -> None:
    """`untilDepth` counts moves from the root; then all moves are allowed again."""
    for depth in (2, 3):
        entries = [{"player": player, "moves": ["C3", "C4"], "untilDepth": depth} for player in "BW"]
        engine.send(id="a", **QUERY, maxVisits=400, allowMoves=entries)
        infos = engine.read()["moveInfos"]
        assert {info["move"] for info in infos} == {"C3", "C4"}
        for info in infos:
            assert set(info["pv"][:2]) == {"C3", "C4"}
            # With both points taken no move is left at the third depth.
            assert (len(info["pv"]) == 2) == (depth == 3)


def test_a_move_gets_visits_while_its_query_is_searched(engine: Client) -> None:
    engine.send(id="a", **QUERY, maxVisits=10**7, reportDuringSearchEvery=0.05)
    seldom = engine.read()["moveInfos"][-1]["move"]
    engine.send(id="r", action="raise_visits", targetId="a", moves=[seldom], visits=5000)
    visits = -1
    while visits < 5000:
        answer = engine.read()
        if answer.get("action"):
            assert answer == {
                "id": "r", "action": "raise_visits", "targetId": "a", "moves": [seldom], "visits": 5000,
                "turnNumbers": [0],
            }  # fmt: skip
            continue
        assert answer["isDuringSearch"]
        visits = next(info["edgeVisits"] for info in answer["moveInfos"] if info["move"] == seldom)
    engine.send(id="t", action="terminate", terminateId="a")
    while engine.read().get("isDuringSearch", True):
        pass
    engine.send(id="r", action="raise_visits", targetId="a", moves=[seldom], visits=5)
    assert engine.read()["turnNumbers"] == []  # it has ended
    engine.send(id="r", action="raise_visits", moves=[seldom], visits=5)
    assert engine.read()["field"] == "targetId"


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


def test_boards_that_are_not_square(engine: Client) -> None:
    """KaTrain's 19x13, and the fields that have an entry for each point."""
    fields = QUERY | {"boardXSize": 19, "boardYSize": 13, "moves": [["B", "T13"], ["W", "(0,12)"]]}
    engine.send(id="a", **fields, maxVisits=60, includeOwnership=True, includePolicy=True, includeMovesOwnership=True)
    answer = engine.read()
    assert answer["rootInfo"]["visits"] == 60
    assert len(answer["ownership"]) == len(answer["moveInfos"][0]["ownership"]) == 19 * 13
    assert len(answer["policy"]) == 19 * 13 + 1
    assert [index for index, value in enumerate(answer["policy"]) if value < 0] == [18, 19 * 12]
    assert all(info["move"] not in ("T13", "A1") for info in answer["moveInfos"])
    engine.send(id="b", **QUERY | {"boardXSize": 19, "boardYSize": 20})
    assert engine.read() == {"id": "b", "field": "boardYSize", "error": "Must provide an integer from 2 to 19"}


def test_a_network_plays_on_boards_that_are_not_square() -> None:
    network = str(shared_path("data", "katago", NETWORK))
    with Client("yomi", "analysis", "--net", network, "--memory", "128M") as client:
        answers = {}
        for width, height in ((13, 9), (9, 13)):
            # The first stone lies on the shorter side's star point, and its image on the turned board.
            move = "D7" if width > height else "G10"
            fields = QUERY | {"boardXSize": width, "boardYSize": height, "moves": [["B", move]]}
            client.send(id="a", **fields, maxVisits=30, includeOwnership=True, includePolicy=True,
                        overrideSettings={"symmetry": "average"})  # fmt: skip
            answers[width] = client.read()
        wide, tall = (np.array(answers[width]["policy"][:-1]) for width in (13, 9))
        wide, tall = wide.reshape(9, 13), tall.reshape(13, 9)
        assert abs(answers[13]["rootInfo"]["rawWinrate"] - answers[9]["rootInfo"]["rawWinrate"]) < 0.05
        assert np.abs(wide.T[:, ::-1] - tall).max() < 0.1
        owners = np.array(answers[13]["ownership"]).reshape(9, 13)
        assert owners[2, 3] > 0.2


def test_documented_example_field_by_field() -> None:
    """The example of KataGo's documentation, with everything that may be included."""
    network = str(shared_path("data", "katago", NETWORK))
    with Client(
        "yomi", "analysis", "--net", network, "--memory", "128M", "--override-config", "maxVisits=40"
    ) as client:
        client.write(
            '{"id":"foo","initialStones":[["B","Q4"],["B","C4"]],"moves":[["W","P5"],["B","P6"]],"rules":"tromp-taylor",'
            '"komi":7.5,"boardXSize":19,"boardYSize":19,"analyzeTurns":[0,1,2],"includeOwnership":true,'
            '"includeMovesOwnership":true,"includePolicy":true,"includePVVisits":true,"includeOwnershipStdev":true,'
            '"includeMovesOwnershipStdev":true,"includeNoResultValue":true}\n'
        )
        answers = [client.read() for _ in range(3)]
        client.send(id="m", action="query_models")
        model = client.read()["models"][0]
        assert set(model) == {"name", "internalName", "maxBatchSize", "usesHumanSLProfile", "version", "usingFP16"}
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
    parts = "id isDuringSearch turnNumber moveInfos rootInfo ownership ownershipStdev policy"
    assert set(answer) == set(parts.split())
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
        assert set(info) == MOVE_FIELDS | {"pvVisits", "pvEdgeVisits", "ownership", "ownershipStdev", "noResultValue"}
        assert info["noResultValue"] == 0.0  # superko
        assert info["order"] == order
        assert info["pv"][0] == info["move"]
        assert len(info["pv"]) == len(info["pvVisits"]) == len(info["pvEdgeVisits"]) <= 16
        assert info["pvVisits"][0] == info["visits"] > 0
        assert 0 <= info["winrate"] <= 1
        assert 0 <= info["prior"] <= 1
        assert info["scoreMean"] == info["scoreLead"]
        check_ownership(info["ownership"])
        check_stdev(info["ownershipStdev"])
        numbers = set(info) - {"move", "pv", "pvVisits", "pvEdgeVisits", "ownership", "ownershipStdev"}
        assert all(type(info[name]) is (int if name in COUNTS else float) for name in numbers)
    values = [info["playSelectionValue"] for info in infos]
    assert values == sorted(values, reverse=True)
    check_ownership(answer["ownership"])
    check_stdev(answer["ownershipStdev"])
    legal = [value for value in answer["policy"] if value >= 0]
    assert len(answer["policy"]) == 362
    assert answer["policy"].count(-1.0) == 2 + turn
    assert math.isclose(sum(legal), 1.0, abs_tol=0.01)


def check_stdev(values: list[float]) -> None:
    assert len(values) == 361
    assert all(0.0 <= value <= 1.0 for value in values)


def check_ownership(values: list[float]) -> None:
    assert len(values) == 361
    assert all(-1.0 <= value <= 1.0 for value in values)
    assert values[19 * 15 + 2] > 0.3  # C4, a black stone
