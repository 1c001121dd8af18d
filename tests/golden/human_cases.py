"""A random human-SL network, and positions with profiles, made by a recipe that never changes.

`python -m tests.golden.human_cases queries NETWORK QUERIES` writes the network's file and the queries for KataGo's
analysis engine. `... numbers MAIN SECOND` reads its answers and writes the numbers of `katago/human.json.gz`. MAIN are
the answers with the network as `-model`, SECOND those with it as `-human-model`.
"""

import dataclasses
import functools
import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.naive.katago_networks import RandomNetworks
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import Board
from yomi.engine.go.rules import Rules
from yomi.native.go.board import PASS
from yomi.nets.katago.network import Activation, KataGoNetwork
from yomi.nets.katago.write import write_network

SIZES = (9, 13, 19)
RULES = ("japanese", "chinese", "tromp-taylor", "aga")
POSITIONS = 50
NUMBERS = Path(__file__).parent / "katago" / "human.json.gz"
PROFILES = ("preaz_5k", "rank_20k", "rank_9d", "rank_8k_3d", "proyear_1803", "proyear_2022")


def network() -> KataGoNetwork:
    made = RandomNetworks(15, activation=Activation.MISH, norms="positive")
    made.rng = np.random.RandomState(49)  # type: ignore[assignment]  # its numbers are the same in every version
    found = made.network(["bottleneck", "ordinary", "gpool"], channels=16, meta=True)
    # A policy as sharp as a trained one's, and profiles that change it.
    found.policy_head.p2.weights[:] *= 6
    found.trunk.meta_encoder.matmul3.weights[:] *= 2
    return dataclasses.replace(found, name="random-human")


@functools.cache
def games() -> list[tuple[GoGame, str]]:
    """Return the positions after random moves, with the names of their rules."""
    found = []
    for number in range(POSITIONS):
        rng = random.Random(number)
        rules = RULES[number % len(RULES)]
        size = SIZES[number % len(SIZES)]
        game = GoGame(Board(size, size), Rules.parse(rules), komi=rng.choice([0.5, 5.5, 6.5, 7.5]))
        for _ in range(rng.randrange(0, size * size * 2 // 3)):
            moves = [move for move in game.legal_moves() if move != PASS]
            game.push(rng.choice(moves))
        found.append((game, rules))
    return found


def query(number: int, game: GoGame, rules: str, profile: str) -> dict[str, Any]:
    board = game.board
    return {
        "id": f"{number} {profile}",
        "moves": [["?BW"[color], board.vertex(move)] for color, move in game.moves],
        "rules": rules,
        "komi": game.komi,
        "boardXSize": board.width,
        "boardYSize": board.height,
        "maxVisits": 1,
        "includePolicy": True,
        "overrideSettings": {"humanSLProfile": profile, "ignorePreRootHistory": False},
    }


def projected(policy: Any) -> list[float]:
    """Return three sums that depend on every probability of a policy, and the pass's. NaN and -1 are illegal moves."""
    legal = np.maximum(np.nan_to_num(np.asarray(policy, np.float64)), 0.0)
    places = np.arange(len(legal))
    return [*(float(legal @ np.cos(factor * places)) for factor in (1.0, 1.7, 2.9)), float(legal[-1])]


def numbers_of(root: dict[str, Any], policy: Any) -> list[float]:
    """Return the numbers that are compared: of the policy, then of White's values."""
    names = ["humanWinrate", "rawLead", "humanScoreMean", "humanScoreStdev", "humanStWrError", "humanStScoreError"]
    return [*projected(policy), *(root[name] for name in names)]


def read_answers(path: str) -> dict[str, dict[str, Any]]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return {answer["id"]: answer for answer in map(json.loads, lines)}


if __name__ == "__main__":
    _, action, first, second = sys.argv
    if action == "queries":
        Path(first).write_bytes(gzip.compress(write_network(network())))
        made = (query(n, game, rules, profile) for n, (game, rules) in enumerate(games()) for profile in PROFILES)
        Path(second).write_text("".join(json.dumps(line) + "\n" for line in made))
    else:
        main, human = read_answers(first), read_answers(second)
        rows = []
        for identity in (f"{n} {profile}" for n in range(POSITIONS) for profile in PROFILES):
            root = human[identity]["rootInfo"] | {"rawLead": main[identity]["rootInfo"]["rawLead"]}
            rows.append([float(f"{number:.7g}") for number in numbers_of(root, human[identity]["humanPolicy"])])
        NUMBERS.write_bytes(gzip.compress(json.dumps(rows).encode(), mtime=0))
