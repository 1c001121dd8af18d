"""The incremental board and the rules against boards that are flooded from scratch."""

import itertools
from typing import Any

import numpy as np
import pytest

from tests.naive.go_board import PASS, SIMPLE, SlowGame, chain_at, liberties, place
from tests.unit.go_twins import bits, board_points, point, random_game
from yomi.native.go.board import (
    EMPTY,
    NOT_FINISHED,
    POSITION_DTYPE,
    REPEATED_PASS,
    THIRD_REPETITION,
    TWO_PASSES,
    ZOBRIST,
    copy,
)
from yomi.native.go.board import PASS as NATIVE_PASS
from yomi.native.go.rules import hash_after, is_legal, legal_moves, play
from yomi.native.go.spec import position_key

RULES = list(itertools.product((0, 1, 2), (False, True)))
ENDS = {"": NOT_FINISHED, "passes": TWO_PASSES, "repeated pass": REPEATED_PASS, "no result": THIRD_REPETITION}


def check_board(pos: Any, game: SlowGame) -> None:
    """Compare stones, chains, liberties, empty points, hash, prisoners and ko."""
    size, board = game.size, game.board
    points = board_points(size)
    assert tuple(pos["color"][points].tolist()) == board
    slots = {}
    for p, color in enumerate(board):
        if color == EMPTY:
            continue
        slot = int(pos["chain"][points[p]])
        chain = chain_at(board, p)
        slots[slot] = chain
        words = int(pos["words"])
        assert bits(pos["liberty_bits"][slot * words : (slot + 1) * words], size) == liberties(board, chain)
        assert pos["liberties"][slot] == len(liberties(board, chain))
        assert pos["stones"][slot] == len(chain)
        ring, q = [], points[p]
        while q not in ring:
            ring.append(q)
            q = int(pos["next_stone"][q])
        assert sorted(ring) == sorted(points[stone] for stone in chain)
    assert len(set(slots.values())) == len(slots)
    assert {w * 64 + b for w in range(6) for b in range(64) if int(pos["slots"][w]) >> b & 1} == set(slots)
    empties = pos["empties"][: pos["empty_count"]].tolist()
    assert sorted(empties) == [points[p] for p, color in enumerate(board) if color == EMPTY]
    assert pos["empty_index"][empties].tolist() == list(range(len(empties)))
    key = np.bitwise_xor.reduce([ZOBRIST[c, points[p]] for p, c in enumerate(board) if c] or [np.uint64(0)])
    assert pos["hash"] == key
    assert pos["prisoners"][1:3].tolist() == [game.prisoners[1], game.prisoners[2]]
    assert int(pos["simple_ko"]) == (0 if game.simple_ko is None else points[game.simple_ko])
    assert int(pos["side_to_move"]) == game.side


def check_legality(pos: Any, history: Any, game: SlowGame) -> None:
    """Compare the legal moves, and the hash that each would lead to."""
    moves = np.zeros(game.size**2 + 1, np.uint16)
    count = legal_moves(pos, history, moves)
    legal = [p for p in range(game.size**2) if game.is_legal(p)]
    assert sorted(moves[: count - 1].tolist()) == [point(game.size, p) for p in legal]
    assert moves[count - 1] == NATIVE_PASS
    points = board_points(game.size)
    for p in legal:
        assert is_legal(pos, history, points[p], game.side)
        after = place(game.board, p, game.side)[0]
        key = np.bitwise_xor.reduce([ZOBRIST[c, points[q]] for q, c in enumerate(after) if c] or [np.uint64(0)])
        assert hash_after(pos, points[p], game.side) == key


@pytest.mark.parametrize(("ko_rule", "suicide"), RULES)
def test_random_games(ko_rule: int, suicide: bool) -> None:
    for seed, (size, plies) in enumerate([(2, 60), (3, 90), (4, 110), (5, 80), (2, 40), (3, 40), (7, 60)]):
        for pos, history, game in random_game(size, ko_rule, suicide, seed, plies):
            check_board(pos, game)
            assert int(pos["finished"]) == ENDS[game.finish()]
            if not game.finish():
                check_legality(pos, history, game)


@pytest.mark.parametrize("size", [8, 9, 11, 13, 16, 19])
def test_larger_boards(size: int) -> None:
    for ply, (pos, history, game) in enumerate(random_game(size, size % 3, size % 2 == 0, size, size * size + 40, 0.0)):
        if ply % 41 == 40:
            check_board(pos, game)
        if ply % 163 == 162:
            check_legality(pos, history, game)


def test_both_endings_of_the_simple_ko_rule_occur() -> None:
    ends = set()
    for seed in range(60):
        for pos, _, game in random_game(2, SIMPLE, False, seed, 80, passing=0.15):
            assert int(pos["finished"]) == ENDS[game.finish()]
            ends.add(game.finish())
    assert ends == set(ENDS)


@pytest.mark.parametrize(("ko_rule", "suicide"), RULES)
def test_equal_keys_are_of_equal_positions(ko_rule: int, suicide: bool) -> None:
    """The same stones, side, passes and ko point, the same legal moves, and the same effect of a pass."""
    keys: dict[object, dict[object, set[int]]] = {}
    moves = np.zeros(5, np.uint16)
    for seed in range(60):
        for pos, history, game in random_game(2, ko_rule, suicide, seed, 80, passing=0.15):
            board = (game.board, game.side, int(pos["passes"]), game.simple_ko)
            passed_on = [entry for entry, move in zip(game.boards, game.moves, strict=False) if move == PASS]
            ends = ko_rule == SIMPLE and game.boards[-1] in passed_on
            legal = frozenset(p for p in range(4) if game.is_legal(p))
            key = position_key(pos, history, moves, legal_moves(pos, history, moves))
            keys.setdefault(board, {}).setdefault((legal, ends), set()).add(int(key))
    found = [key for pasts in keys.values() for each in pasts.values() for key in each]
    assert len(set(found)) == len(found) == sum(len(pasts) for pasts in keys.values())
    assert max(len(pasts) for pasts in keys.values()) > 1


def test_a_copy_is_equal_and_independent() -> None:
    for seed in range(4):
        target = np.zeros(1, POSITION_DTYPE)[0]
        for pos, history, game in random_game(5, 1, True, seed, 50, 0.0):
            copy(target, pos)
            check_board(target, game)
            before = pos.tobytes()
            rest = np.zeros(26, np.uint16)
            branch = history.copy()
            for _ in range(3):
                legal_moves(target, branch, rest)
                play(target, branch, int(rest[0]))
            assert pos.tobytes() == before
