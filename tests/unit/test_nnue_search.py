"""The search at a leaf: captures and exchanges against slow twins, then what it finds and keeps to."""

from typing import Any

import numpy as np
import pytest

from tests.naive.nnue import random_tensors
from tests.naive.shogi_exchange import gain
from tests.unit.shogi_boards import walk
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_usi
from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load
from yomi.native.shogi.effects import gains
from yomi.native.shogi.movegen import generate, generate_captures
from yomi.native.shogi.nnue import make_inputs
from yomi.native.shogi.position import MAX_MOVES, POSITION_DTYPE
from yomi.native.shogi.spec import shogi_spec
from yomi.native.sparse.nnue import NnueNetwork, begin, make_scratch, network_of, value_of
from yomi.native.sparse.nnue_leaf import (
    ALL_NODES,
    ARGUMENTS,
    BEST,
    DEPTH,
    NODES,
    PLIES,
    LeafScratch,
    make_leaf_scratch,
    make_settings,
    static_at,
)
from yomi.native.sparse.nnue_search import MATE, SURE, WON, clear_rows, evaluate_leaves, search_leaf
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import VALUE, Batch
from yomi.native.tree.buffers import make_batch
from yomi.nets.nnue.architecture import FEATURES, Architecture

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"
MATE_IN_THREE = "7nl/5+P1k1/6ppp/9/9/9/9/9/4K4 b 2G2r2b2g4s3n3l14p 1"
HANGING = "4k4/9/9/9/4r4/9/9/4R4/4K4 b - 1"


def material_network() -> NnueNetwork:
    """Return a network whose value is about that of the pieces: a sum for the own side's, as far as it fits."""
    features = next(row for row in FEATURES if row.name == "K-P")
    tensors: dict[str, Any] = random_tensors(Architecture(features, 128, (8, 32)), 1)
    for name in ("rows", "bias", "first", "second", "last", "first_bias", "second_bias", "last_bias"):
        tensors[name] = np.zeros_like(tensors[name])
    for first, last, count in (
        (1, 20, 1),
        (39, 44, 3),
        (49, 54, 3),
        (59, 64, 5),
        (69, 74, 5),
        (79, 82, 8),
        (85, 88, 9),
    ):
        tensors["rows"][first:last, 0] = count
    for first, count in ((90, 1), (252, 3), (414, 3), (576, 5), (738, 5), (900, 8), (1062, 10), (1224, 9), (1386, 12)):
        tensors["rows"][first : first + 81, 0] = count
    tensors["first"][0, 0], tensors["first"][1, 128] = 64, 64
    tensors["second"][0, 0], tensors["second"][1, 1] = 64, 64
    tensors["last"][0, :2] = 90, -90
    return network_of(make_inputs("K-P"), tensors, 1)


@pytest.fixture(scope="module")
def network() -> NnueNetwork:
    return material_network()


def batch_of(*sfens: str) -> Batch:
    batch = make_batch(shogi_spec(), len(sfens), Inputs.POSITIONS)
    for row, sfen in enumerate(sfens):
        game = ShogiGame(sfen)
        batch.positions[row] = game.position
        moves = game.searched_moves()
        batch.move_count[row] = len(moves)
        batch.moves[row, : len(moves)] = moves
        batch.indices[row, : len(moves)] = range(len(moves))
    return batch


@entry(ARGUMENTS)
def search_rows(address, rows):  # type: ignore[no-untyped-def]
    """Write the value of a search into values, its best move into node."""
    batch, _, leaf, _ = load(address, ARGUMENTS)
    for row in range(U(rows)):
        batch.values[row, U(0)] = search_leaf(address, batch.positions[row])
        batch.node[row] = leaf.counters[U(BEST)]


@entry(ARGUMENTS)
def static_rows(address, rows):  # type: ignore[no-untyped-def]
    """Write the static value at ply `rows` into values."""
    batch, _, _, _ = load(address, ARGUMENTS)
    batch.values[U(0), U(0)] = static_at(address, rows)


def searched(network: NnueNetwork, nodes: int, *sfens: str, leaf: LeafScratch | None = None) -> list[tuple[int, str]]:
    """Return value and best move of searches."""
    batch = batch_of(*sfens)
    leaf = leaf or make_leaf_scratch(network)
    search_rows.bind(batch, network, leaf, make_settings(nodes, 600.0, 1.0, 0.0)).run(len(sfens))
    moves = (int(move) for move in batch.node)
    return [
        (int(value), format_usi(move) if move else "") for value, move in zip(batch.values[:, 0], moves, strict=True)
    ]


def test_captures_are_those_of_all_moves() -> None:
    moves, captures = np.zeros(MAX_MOVES, np.uint16), np.zeros(MAX_MOVES, np.uint16)
    for seed in range(6):
        for board in walk(seed, 150):
            pos = ShogiGame(board.sfen()).position
            if pos["in_check"]:
                continue
            king = int(pos["king"][pos["side_to_move"] - 1])
            wanted, pinned = set(), set()
            for move in map(int, moves[: generate(pos, moves)]):
                target, origin, promotes = move & 127, move >> 7 & 127, move >> 14
                is_pawn = origin <= 80 and pos["board"][origin] % 16 == 1
                rank = target % 9 if pos["side_to_move"] == 1 else 8 - target % 9
                if is_pawn and rank < 3:
                    # A pinned pawn moves along the king's file: its moves are made like those of other pieces.
                    (pinned if king // 9 == origin // 9 else wanted if promotes else set()).add(move)
                elif pos["board"][target] and origin <= 80:
                    wanted.add(move)
            found = captures[: generate_captures(pos, captures)].tolist()
            assert len(found) == len(set(found))
            assert set(found) - pinned == wanted, board.sfen()


def test_exchanges_are_those_of_the_twin() -> None:
    moves = np.zeros(MAX_MOVES, np.uint16)
    boards = [board.sfen() for seed in range(3) for board in walk(seed + 50, 120)][::5]
    for sfen in boards:
        game = ShogiGame(sfen)
        board = game.position["board"].tolist()
        for move in map(int, moves[: generate(game.position, moves)][::3]):
            worth = gain(board, move, game.side_to_move)
            assert gains(game.position, move, worth), (sfen, format_usi(move), worth)
            assert not gains(game.position, move, worth + 1), (sfen, format_usi(move), worth)


def test_mates_and_hanging_pieces_are_found(network: NnueNetwork) -> None:
    (value, _), (deep, _) = searched(network, 3000, MATE_IN_ONE, MATE_IN_THREE)
    assert value == MATE - 1
    assert deep >= WON
    (value, move), _ = searched(network, 300, HANGING, MATE_IN_ONE)
    assert move == "5h5e"
    assert value > 900


def test_a_mated_side_has_lost(network: NnueNetwork) -> None:
    (value, _) = searched(network, 100, "4k4/4G4/4P4/9/9/9/9/9/4K4 w 2r2b3g4s4n4l17p 1")[0]
    assert value == -MATE


def test_nodes_are_kept_and_searches_repeat(network: NnueNetwork) -> None:
    boards = [board.sfen() for board in walk(9, 60)][::10]
    for nodes in (1, 2, 10, 100, 1000):
        results = []
        for _ in range(2):
            leaf = make_leaf_scratch(network)
            found = searched(network, nodes, *boards, leaf=leaf)
            assert 0 < leaf.counters[NODES] <= nodes
            assert leaf.counters[ALL_NODES] <= nodes * len(boards)
            results.append(found)
        assert results[0] == results[1]


def test_more_nodes_go_deeper_and_a_best_move_is_legal(network: NnueNetwork) -> None:
    depths = []
    for nodes in (100, 1000, 10000):
        leaf = make_leaf_scratch(network)
        sfen = next(walk(3, 1)).sfen()
        (_, move) = searched(network, nodes, sfen, leaf=leaf)[0]
        depths.append(int(leaf.counters[DEPTH]))
        if depths[-1]:
            assert move in [format_usi(each) for each in ShogiGame(sfen).legal_moves()]
    assert depths == sorted(depths)
    assert depths[-1] >= 3


def test_values_behind_a_search_are_those_computed_afresh(network: NnueNetwork) -> None:
    batch = batch_of(*(board.sfen() for board in walk(12, 1)))
    leaf = make_leaf_scratch(network)
    arguments = batch, network, leaf, make_settings(500, 600.0, 1.0, 0.0)
    search_rows.bind(*arguments).run(1)
    scratch = make_scratch(network, 1)
    for ply in range(3):  # the line that was searched last
        static_rows.bind(*arguments).run(ply)
        alone = np.array([leaf.positions[ply]], POSITION_DTYPE)
        begin(network, scratch, alone[0])
        assert batch.values[0, 0] == value_of(network, scratch, alone, 0)
    assert PLIES > 3


def test_values_are_mixed_and_the_best_move_is_raised(network: NnueNetwork) -> None:
    batch = batch_of(HANGING, MATE_IN_ONE)
    calls = [
        bound.bind(batch, network, make_leaf_scratch(network), make_settings(300, 600.0, weight, 2.0))
        for bound, weight in ((clear_rows, 1.0), (evaluate_leaves, 1.0), (evaluate_leaves, 0.5))
    ]
    batch.values[:] = np.nan
    calls[0].run(2)
    calls[1].run(2)
    whole = batch.values[:, VALUE].copy()
    assert 0.5 < whole[0] < SURE
    assert whole[1] == pytest.approx(SURE)
    moves = [format_usi(int(move)) for move in batch.moves[0, : batch.move_count[0]]]
    raised = [move for move, logit in zip(moves, batch.logits[0], strict=False) if logit == 2.0]
    assert raised == ["5h5e"]
    calls[0].run(2)
    batch.values[:, VALUE] = -1.0
    calls[2].run(2)
    assert batch.values[:, VALUE] == pytest.approx(0.5 * whole - 0.5, abs=1e-6)
