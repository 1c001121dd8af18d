"""Human-SL networks in the real commands: KaTrain's human-like opponents, and KataGo's fields and commands."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.naive.katago_networks import RandomNetworks
from tests.process.engine_process import GtpProcess
from tests.process.test_analysis_process import Client
from yomi.nets.katago.network import Activation
from yomi.nets.katago.write import write_network

pytestmark = pytest.mark.slow

QUERY: dict[str, Any] = {"moves": [], "rules": "japanese", "komi": 6.5, "boardXSize": 9, "boardYSize": 9}
QUERY |= {"maxVisits": 2, "includePolicy": True}
# The same answer to the same query.
EXACT = [
    "--precision", "fp32", "--memory", "64M", "--size", "9", "--workers", "1", "--symmetry", "none",
    "--wide-root-noise", "0",
]  # fmt: skip
HUMAN_FIELDS = {"humanWinrate", "humanScoreMean", "humanScoreStdev", "humanStWrError", "humanStScoreError"}


def write(path: Path, version: int, seed: int, *, meta: bool = False) -> str:
    made = RandomNetworks(version, seed=seed, activation=Activation.MISH, norms="positive")
    network = made.network(["bottleneck", "ordinary", "gpool"], channels=16, meta=meta)
    path.write_bytes(gzip.compress(write_network(dataclasses.replace(network, name=path.name.partition(".")[0]))))
    return str(path)


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Files of an ordinary and of a human-SL network."""
    folder = tmp_path_factory.mktemp("nets")
    return write(folder / "plain.bin.gz", 14, 2), write(folder / "human.bin.gz", 15, 1, meta=True)


@pytest.fixture(scope="module")
def engine(nets: tuple[str, str]) -> Iterator[Client]:
    """`yomi analysis` with KataGo's flags, as KaTrain passes them."""
    flags = ("-model", nets[0], "-human-model", nets[1], "-override-config", "homeDataDir=none")
    with Client("yomi", "analysis", *flags, *EXACT) as client:
        yield client


def ask(engine: Client, **fields: Any) -> dict[str, Any]:
    engine.send(id="q", **QUERY | fields)
    return engine.read()


@pytest.mark.parametrize(
    "opponent", [{"human_kyu_rank": 8}, {"human_kyu_rank": -2, "modern": True}, {"pro_year": 1985}]
)
def test_opponents_of_katrain_play_a_game(engine: Client, opponent: dict[str, int]) -> None:
    """KaTrain's "Human-like" and "Pro" draw a move from humanPolicy (HumanStyleStrategy in its core/ai.py)."""
    rank = opponent.get("human_kyu_rank")
    text = f"{1 - rank}d" if rank is not None and rank <= 0 else f"{rank}k"
    style = "rank" if opponent.get("modern") else "preaz"
    profile = f"proyear_{opponent['pro_year']}" if rank is None else f"{style}_{text}"
    rng, moves, passes = np.random.default_rng(5), [], 0
    points = [f"{column}{row}" for row in range(9, 0, -1) for column in "ABCDEFGHJ"]
    while passes < 2 and len(moves) < 30:
        settings = {"reportAnalysisWinratesAs": "BLACK", "wideRootNoise": 0.04, "maxTime": 8.0}
        settings |= {"humanSLProfile": profile, "ignorePreRootHistory": False}
        engine.send(
            id="QUERY:1", rules="japanese", priority=100, analyzeTurns=[len(moves)], maxVisits=2, komi=6.5,
            boardXSize=9, boardYSize=9, includeOwnership=True, includeMovesOwnership=True, includePolicy=True,
            initialStones=[], initialPlayer="B", moves=moves, overrideSettings=settings,
        )  # fmt: skip
        answer = engine.read()
        policy = np.array(answer["humanPolicy"])
        assert len(policy) == 82
        legal = policy >= 0.0
        assert policy[legal].sum() == pytest.approx(1.0, abs=1e-4)
        assert set(policy[~legal]) <= {-1.0}
        chosen = int(rng.choice(82, p=policy.clip(0) / policy.clip(0).sum()))
        passes = passes + 1 if chosen == 81 else 0
        moves.append(["BW"[len(moves) % 2], "pass" if chosen == 81 else points[chosen]])
    assert len(moves) == 30 or passes == 2


def test_profiles_change_the_policy_of_people_only(engine: Client) -> None:
    plain = ask(engine)
    assert not HUMAN_FIELDS & set(plain["rootInfo"])
    assert "humanPolicy" not in plain
    seen = []
    for profile in ("rank_20k", "rank_9d", "preaz_9d", "rank_20k_9d", "proyear_1850"):
        answer = ask(engine, overrideSettings={"humanSLProfile": profile})
        assert set(answer["rootInfo"]) >= HUMAN_FIELDS
        by_move = {info["move"]: info for info in answer["moveInfos"]}
        first = next(iter(by_move.values()))
        index = "ABCDEFGHJ".index(first["move"][0]) + 9 * (9 - int(first["move"][1:]))
        assert first["humanPrior"] == pytest.approx(answer["humanPolicy"][index])
        seen.append(answer["humanPolicy"])
        for name in ("policy", "moveInfos"):
            for info in answer["moveInfos"]:
                info.pop("humanPrior", None)
            assert answer[name] == plain[name]
    assert len({tuple(policy) for policy in seen}) == 5


def test_sides_of_a_profile_with_two_ranks(engine: Client) -> None:
    def policy(profile: str, player: str) -> list[float]:
        found: list[float] = ask(engine, initialPlayer=player, overrideSettings={"humanSLProfile": profile})[
            "humanPolicy"
        ]
        return found

    assert policy("rank_5k_2d", "B") != policy("rank_2d_5k", "B")
    assert policy("rank_5k_2d", "B") != policy("rank_5k_5k", "B")
    assert policy("rank_5k_5k", "W") == policy("rank_5k", "W")


def test_the_winrate_of_people_has_the_query_s_point_of_view(engine: Client) -> None:
    black, white = (
        ask(engine, overrideSettings={"humanSLProfile": "rank_3k", "reportAnalysisWinratesAs": side})["rootInfo"]
        for side in ("BLACK", "WHITE")
    )
    assert black["humanWinrate"] == pytest.approx(1.0 - white["humanWinrate"], abs=1e-6)
    assert black["humanScoreMean"] == -white["humanScoreMean"]
    assert black["humanScoreStdev"] == white["humanScoreStdev"]


def test_unknown_profiles_are_refused(engine: Client) -> None:
    answer = ask(engine, overrideSettings={"humanSLProfile": "rank_30k"})
    assert answer["field"] == "overrideSettings"
    assert "Unknown human SL network profile: rank_30k" in answer["error"]


def test_likely_moves_of_people_are_searched(engine: Client) -> None:
    """KataGo's recipe "Ensuring all likely human moves are analyzed"."""
    settings: dict[str, Any] = {"humanSLProfile": "rank_3d", "ignorePreRootHistory": False}
    plain = ask(engine, maxVisits=100, overrideSettings=settings)
    policy = plain["humanPolicy"]
    likeliest = max(range(82), key=lambda index: policy[index])
    move = "pass" if likeliest == 81 else f"{'ABCDEFGHJ'[likeliest % 9]}{9 - likeliest // 9}"
    settings |= {"humanSLRootExploreProbWeightless": 0.5, "humanSLCpuctPermanent": 2.0, "rootSymmetryPruning": False}
    wide = ask(engine, maxVisits=100, overrideSettings=settings)
    visits = [{info["move"]: info["edgeVisits"] for info in answer["moveInfos"]} for answer in (plain, wide)]
    assert visits[1][move] > visits[0].get(move, 0) + 4
    assert wide["rootInfo"]["visits"] == 100


def test_both_models_are_listed(engine: Client) -> None:
    engine.send(id="m", action="query_models")
    models = engine.read()["models"]
    assert [(model["name"], model["usesHumanSLProfile"]) for model in models] == [
        ("plain.bin.gz", False),
        ("human.bin.gz", True),
    ]


def test_without_a_human_network_katago_s_errors_are_answered(nets: tuple[str, str]) -> None:
    with Client("yomi", "analysis", "--net", nets[0], *EXACT) as client:
        answer = ask(client, overrideSettings={"humanSLProfile": "rank_3k"})
        assert answer["field"] == "overrideSettings"
        assert "model(s) don't use it: plain" in answer["error"]
        for name in ("humanSLChosenMoveProp", "humanSLRootExploreProbWeightless", "humanSLCpuctPermanent"):
            answer = ask(client, overrideSettings={name: 0.5})
            assert f"Provided parameter {name} but no human model was specified" in answer["error"]
        assert "error" not in ask(client)


def test_a_human_network_may_search(nets: tuple[str, str]) -> None:
    with Client("yomi", "analysis", "--net", nets[1], *EXACT) as client:
        answer = ask(client)
        assert "SGFMetadata is required for human but was not initialized" in answer["error"]
        answers = {
            name: ask(client, maxVisits=20, overrideSettings={"humanSLProfile": name})
            for name in ("rank_20k", "preaz_9d", "rank_20k")
        }
        assert "humanPolicy" not in answers["rank_20k"]
        assert answers["rank_20k"]["policy"] != answers["preaz_9d"]["policy"]
        again = ask(client, maxVisits=20, overrideSettings={"humanSLProfile": "preaz_9d"})
        assert again["rootInfo"] == answers["preaz_9d"]["rootInfo"]  # nothing was kept of the other profile


def test_gtp_plays_moves_of_people(nets: tuple[str, str]) -> None:
    with GtpProcess("yomi", "gtp", "--net", nets[0], "--human-net", nets[1], *EXACT, "--visits", "2") as gtp:
        assert "humanSLProfile parameter was not set" in gtp.ask("kata-raw-human-nn 0")
        assert "Unknown human SL network profile" in gtp.ask("kata-set-param humanSLProfile rank_77k")
        assert gtp.ask("kata-set-param humanSLProfile preaz_5k") == "="
        assert gtp.ask("kata-get-param humanSLProfile") == "= preaz_5k"
        values = {"humanSLChosenMoveProp": "1", "humanSLChosenMoveIgnorePass": "true", "rootSymmetryPruning": "false"}
        for line in (*(f"kata-set-param {name} {value}" for name, value in values.items()), "play b C3"):
            assert gtp.ask(line) == "="
        raw = gtp.ask("kata-raw-human-nn 0").splitlines()
        assert raw[0] == "= symmetry 0"
        assert [line.split()[0] for line in raw[1:8]] == [
            *("whiteWin", "whiteLoss", "noResult", "whiteScore", "whiteScoreSq"),
            *("shorttermWinlossError", "shorttermScoreError"),
        ]
        policy = np.nan_to_num(np.array([[float(cell) for cell in line.split()] for line in raw[9:18]]))
        y, x = np.unravel_index(int(policy.argmax()), policy.shape)
        likeliest = f"= {'ABCDEFGHJ'[x]}{9 - y}"
        assert gtp.ask("genmove w") == likeliest
        gtp.ask("undo")
        gtp.ask("kata-set-param humanSLChosenMoveProp 0")
        assert gtp.ask("genmove w") != likeliest
