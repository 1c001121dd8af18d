"""NNUE kernels against the slow twin: inputs of all architectures, sums that follow moves, layers of every size."""

import random
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.naive.nnue import fixed_tensors, output_of, random_tensors, rows_of
from tests.shared_data import shared_path
from tests.unit.nnue_values import raw_output, value_of
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import parse_usi
from yomi.native.alphabeta import nnue
from yomi.native.alphabeta.nnue import (
    MAX_ROWS,
    SHAPES,
    NnueNetwork,
    begin,
    find_changes,
    make_inputs,
    make_scratch,
    network_of,
    no_changes,
)
from yomi.native.shogi.movegen import legal_moves
from yomi.native.shogi.position import MAX_MOVES, POSITION_DTYPE, copy, pass_move, play
from yomi.nets.nnue import FEATURES, Architecture, read_nnue

PLIES = 12
START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
HANDS = "ln1gkg1nl/6+P2/2sppps1p/2p3p2/p8/P1P1P3P/2NP1PP2/3s1KSR1/L1+b2G1NL w R2Pbgp 42"
SPARSE = ("4k4/9/9/9/9/9/9/9/4K4 b - 1", "4k4/9/3s5/9/9/9/9/2R6/9 w 2P 1", "8k/9/9/9/6B2/9/9/9/K8 b r9p 1")
"""Positions with most pieces absent, one of them without a king."""
# Values of YaneuraOu 9.70git (33ccf1f9) with the networks of `fixed_tensors`, FV_SCALE 16.
YANEURAOU = {
    "SFNN HalfKA_hm2 1536-15-32 k3k3": {
        START: -1389,
        HANDS: -1203,
        "2s1r3l/l2ksb3/+P1gpp1ppn/Lpp1P3p/1P5Pg/2P2PP2/2GP4P/P2K1G2R/bN3S1NL b NPs 87": -13,
        "ln3s3/2gg3bl/1ps1rknpp/p1p1pp3/9/2P2PpP1/PPBSPR2P/L1GP3KL/1N3G1NS w 2p 56": 20,
        "ln2ksgnl/1sr1g2b1/ppp3ppp/1P1ppp3/9/2P3P2/P2PPP1PP/LBS1G1GRL/1N2K1SN1 b - 31": -786,
        "r1s1s2n1/l1g3k1l/ppnppg3/7P1/2p2P2p/1P2R1P1P/P2PPb2L/L2bG4/1N1G1KSN1 b 4Ps 63": -51,
        "lns4n1/r1kg1g1bl/p1ppp1s1p/5pp2/1p5p1/P2PG4/NPP1PPPPP/1BK4R1/L1SG2SNL b - 29": -187,
    },
    "HalfKA_hm2 512x2-8-96": {
        START: -251,
        HANDS: -4,
        "2s1r3l/l2ksb3/+P1gpp1ppn/Lpp1P3p/1P5Pg/2P2PP2/2GP4P/P2K1G2R/bN3S1NL b NPs 87": -384,
        "r1s1s2n1/l1g3k1l/ppnppg3/7P1/2p2P2p/1P2R1P1P/P2PPb2L/L2bG4/1N1G1KSN1 b 4Ps 63": -1020,
        "lnsk1gsnl/1r1g3b1/ppppp3p/5pp2/7p1/P6P1/1PPPPPP1P/1BR3S1L/LNSGKG1N1 b - 13": 199,
    },
}


class Case(NamedTuple):
    """An architecture, or what differs in its numbers."""

    name: str
    width: int = 128
    hidden: tuple[int, int] = (8, 32)
    size: int = 40
    stacks: int = 0


CASES = [Case(name) for name in SHAPES]
CASES += [Case("K-P", 256, (32, 32)), Case("K-P", 384, (16, 64)), Case("K-P", 128, (32, 96)), Case("K-P", size=9000)]
CASES += [
    Case("K-P", 256, (15, 32), stacks=9),
    Case("HalfKA_hm2", 128, (7, 64), stacks=9),
    Case("K-P", 384, (16, 32), stacks=1),
    Case("K-P", 128, (15, 48), 9000, stacks=9),
]


@cache
def made(case: Case) -> tuple[NnueNetwork, dict[str, Any]]:
    features = next(row for row in FEATURES if row.name == case.name)
    tensors = random_tensors(Architecture(features, case.width, case.hidden, case.stacks), 7, case.size)
    return network_of(make_inputs(case.name), tensors, 16), tensors


def views_of(name: str, pos: Any) -> list[list[int]]:
    return [rows_of(name, pos["board"].tolist(), pos["hand"].tolist(), view) for view in range(2)]


def ranks_of(pos: Any) -> tuple[int, int]:
    """Return the ranks of the mover's and the opponent's king, each seen by its own side."""
    ranks = int(pos["king"][0]) % 9, 8 - int(pos["king"][1]) % 9
    return ranks if pos["side_to_move"] == 1 else ranks[::-1]


def walked(seed: int, sfen: str = START, plies: int = 120) -> list[np.void]:
    """Return positions of a random game."""
    rng = random.Random(seed)
    game = ShogiGame(sfen)
    found = [game.position.copy()]
    for _ in range(plies):
        moves = game.legal_moves()
        if not moves:
            break
        game.play(rng.choice(moves))
        found.append(game.position.copy())
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_rows_are_those_of_the_twin(name: str) -> None:
    tables = make_inputs(name)
    rows = np.zeros(MAX_ROWS, np.int32)
    positions = [pos for sfen in (START, HANDS) for pos in walked(3, sfen)[::7]]
    for pos in [*positions, *(ShogiGame(sfen).position for sfen in SPARSE)]:
        for view, wanted in enumerate(views_of(name, pos)):
            count = nnue.find_rows(tables, pos, view, rows)
            assert sorted(rows[:count].tolist()) == wanted


@pytest.mark.parametrize(
    ("sfen", "name", "sums"),
    [
        (START, "HalfKP", (2605103, 2605103)),
        (START, "HalfKA1", (3029704, 3029704)),
        (START, "HalfKA2", (2887063, 2887063)),
        (HANDS, "HalfKP", (2014349, 2602549)),
        (HANDS, "HalfKA1", (2343180, 3027160)),
        (HANDS, "HalfKA2", (2232939, 2884519)),
    ],
)
def test_rows_are_those_of_the_engines(sfen: str, name: str, sums: tuple[int, int]) -> None:
    rows = np.zeros(MAX_ROWS, np.int32)
    for view, expected in enumerate(sums):
        count = nnue.find_rows(make_inputs(name), ShogiGame(sfen).position, view, rows)
        assert rows[:count].sum() == expected


@pytest.mark.parametrize("case", CASES, ids=str)
def test_outputs_are_those_of_the_twin_after_every_move(case: Case) -> None:
    network, tensors = made(case)
    scratch = make_scratch(network, PLIES)
    positions = np.zeros(PLIES, POSITION_DTYPE)
    history = np.zeros(4 * PLIES, np.uint64)
    moves = np.zeros(MAX_MOVES, np.uint16)
    rng = random.Random(case.width)
    for start in [*walked(5)[::15], *walked(6, HANDS)[::30]]:
        positions[0] = start
        positions[0]["history_length"] = 2
        begin(network, scratch, positions[0])
        for ply in range(1, PLIES):
            count = legal_moves(positions[ply - 1], history, moves)
            scratch.is_summed[ply] = 0
            copy(positions[ply], positions[ply - 1])
            if count == 0 or (ply == 5 and not positions[ply]["in_check"]):
                no_changes(scratch.changes, ply)
                pass_move(positions[ply], history)
            else:
                move = int(rng.choice(moves[:count]))
                find_changes(network.inputs, positions[ply - 1], move, scratch.changes, ply)
                play(positions[ply], history, move)
            if ply % 3 == 0:  # otherwise the sums of several plies are made at once
                pos = positions[ply]
                wanted = output_of(tensors, views_of(case.name, pos), int(pos["side_to_move"]) - 1, ranks_of(pos))
                assert raw_output(network, scratch, positions, ply) == wanted
                quotient = abs(wanted) // 16 * (1 if wanted >= 0 else -1)
                value = np.clip(quotient, -nnue.MAX_VALUE, nnue.MAX_VALUE)
                assert value_of(network, scratch, positions, ply) == value


def test_values_are_those_of_yaneuraou() -> None:
    _, tensors = read_nnue(shared_path("data", "shogi", "suisho-petite-20211123.kp256.nn.bin"))
    network = network_of(make_inputs("K-P"), tensors, 24)
    scratch = make_scratch(network, 1)
    lines = shared_path("data", "shogi", "nnue-reference-kp256.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert len(rows) == 1000
    for text, raw, value, _ in rows:
        game = ShogiGame(START if text.startswith("startpos") else text)
        for move in text.split()[2:] if text.startswith("startpos") else []:
            game.play(parse_usi(move))
        positions = np.array([game.position], POSITION_DTYPE)
        begin(network, scratch, positions[0])
        assert raw_output(network, scratch, positions, 0) == int(raw), text
        assert value_of(network, scratch, positions, 0) == int(value), text


@pytest.mark.parametrize("sizes", [(1536, (15, 32), 9), (512, (8, 96), 0)])
def test_values_of_fixed_networks_are_those_of_yaneuraou(sizes: tuple[int, tuple[int, int], int]) -> None:
    name = "HalfKA_hm2"
    architecture = Architecture(next(row for row in FEATURES if row.name == name), *sizes)
    wanted = YANEURAOU[architecture.name]
    games = {sfen: ShogiGame(sfen).position for sfen in wanted}
    used = {row for pos in games.values() for view in views_of(name, pos) for row in view}
    network = network_of(make_inputs(name), fixed_tensors(architecture, used), 16)
    scratch = make_scratch(network, 1)
    for sfen, pos in games.items():
        positions = np.array([pos], POSITION_DTYPE)
        begin(network, scratch, positions[0])
        assert value_of(network, scratch, positions, 0) == wanted[sfen], sfen
