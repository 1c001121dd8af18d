"""Rollouts, their policy and what the search gets from them, against slow twins and on boards with a known result."""

from typing import Any

import numpy as np
import pytest

from tests.naive.go_rollouts import SlowBoard, matches
from yomi.native.go.board import BLACK, EMPTY, MAX_AREA, NO_POINT, POSITION_DTYPE, WHITE, clear, place_stone
from yomi.native.go.priors import prior_logit
from yomi.native.go.rollout import area_balance, capture_move, rollout_leaves, rollout_move, rollouts
from yomi.native.go.rules import MAX_HISTORY, begin, is_legal, legal_moves, play
from yomi.native.go.tactics import DRAWINGS, is_pattern_move, liberties_after, self_atari_stones


def empty_board(size: int, komi: float = 7.5) -> np.void:
    pos: np.void = np.zeros(1, POSITION_DTYPE)[0]
    clear(pos, size, size)
    pos["komi"] = komi
    return pos


def drawn_board(drawing: str, side: int = BLACK, komi: float = 0.0) -> np.void:
    rows = [line.split() for line in drawing.strip().splitlines()]
    pos = empty_board(len(rows), komi)
    for y, row in enumerate(rows):
        for x, symbol in enumerate(row):
            if symbol != ".":
                place_stone(pos, (y + 1) * (len(rows) + 1) + x + 1, BLACK if symbol == "X" else WHITE)
    pos["side_to_move"] = side
    pos["simple_ko"] = NO_POINT
    return pos


def random_boards(size: int, count: int, seed: int) -> list[np.void]:
    """Return positions from `count` games of random moves, one at a random length of each."""
    rng = np.random.default_rng(seed)
    boards = []
    for _ in range(count):
        pos = empty_board(size)
        history = np.zeros(MAX_HISTORY, np.uint64)
        begin(pos, history)
        moves = np.zeros(size * size + 1, np.uint16)
        for _ in range(int(rng.integers(1, size * size))):
            count = legal_moves(pos, history, moves)
            play(pos, history, moves[rng.integers(max(1, count - 1))])
        boards.append(pos)
    return boards


def empty_points(pos: np.void) -> list[int]:
    return [int(p) for p in pos["empties"][: pos["empty_count"]]]


@pytest.mark.parametrize("size", [3, 7])
def test_pattern_moves_are_those_drawn(size: int) -> None:
    seen = 0
    for pos in random_boards(size, 40, seed=size):
        board = SlowBoard(pos)
        for point in empty_points(pos):
            for color in (BLACK, WHITE):
                expected = any(matches(board, board.square(point), color, drawing) for drawing in DRAWINGS)
                assert is_pattern_move(pos, point, color) == expected
                seen += expected
    assert seen > 20


def test_tactics_against_playing_the_move() -> None:
    captures = self_ataris = 0
    for pos in random_boards(6, 80, seed=1):
        for point in empty_points(pos):
            for color in (BLACK, WHITE):
                board = SlowBoard(pos)
                square = board.square(point)
                captured = board.play(square, color)
                liberties = len(board.liberties(square))
                stones = self_atari_stones(pos, point, color)
                if captured:
                    captures += 1
                    assert stones == 0
                    assert 1 <= liberties_after(pos, point, color) <= liberties
                else:
                    self_ataris += liberties < 2
                    assert stones == (len(board.chain(square)) if liberties < 2 else 0)
                    assert liberties_after(pos, point, color) == liberties
    assert captures > 20
    assert self_ataris > 20


@pytest.mark.parametrize("size", [2, 5, 9])
def test_every_move_of_a_rollout_is_legal_and_fills_an_own_eye_only_to_save_a_chain(size: int) -> None:
    rng = np.array([size], np.uint64)
    history = np.zeros(MAX_HISTORY, np.uint64)
    pos = empty_board(size)
    begin(pos, history)
    color, last, passes = BLACK, NO_POINT, 0
    for _ in range(3 * size * size):
        move = int(rollout_move(pos, color, np.uint64(last), rng))
        if move == NO_POINT:
            passes += 1
            pos["simple_ko"] = NO_POINT
            if passes == 2:
                break
        else:
            passes = 0
            board = SlowBoard(pos)
            square = board.square(move)
            assert is_legal(pos, history, move, color)
            saves = any(len(board.liberties(near)) == 1 for near in board.neighbors(square) if board.at(near) != EMPTY)
            assert saves or not board.is_own_eye(square, color)
            board.play(square, color)
            place_stone(pos, move, color)
            assert SlowBoard(pos).rows == board.rows
        color, last = 3 - color, move
    assert passes == 2


def test_capture_move_takes_a_chain_in_atari() -> None:
    pos = drawn_board(
        """
        . . . . .
        . . O . .
        . O X O .
        . . . . .
        . . . . .
        """
    )
    rng = np.array([1], np.uint64)
    assert capture_move(pos, WHITE, rng) == 4 * 6 + 3
    assert capture_move(pos, BLACK, rng) == NO_POINT


DECIDED = """
. X . X O O .
X X X X O . O
. X . X O O .
X X X X O O O
X . X X O O O
. X . X O . O
X X X X O O .
"""
"""Both sides live; 28 points are Black's, 21 White's."""


@pytest.mark.parametrize("side", [BLACK, WHITE])
def test_rollouts_of_a_decided_board(side: int) -> None:
    positions = np.zeros(2, POSITION_DTYPE)
    positions[0] = drawn_board(DECIDED, side, komi=6.5)
    positions[1] = drawn_board(DECIDED, side, komi=7.5)
    values, scores = np.zeros(2, np.float32), np.zeros(2, np.float32)
    ownership = np.zeros((2, 49), np.float32)
    rng = np.array([7], np.uint64)
    rollout_leaves(positions, 2, 50, rng, np.zeros(1, POSITION_DTYPE)[0], values, scores, ownership)
    sign = 1 if side == BLACK else -1
    assert values.tolist() == [sign, -sign]
    np.testing.assert_allclose(scores, [0.5 * sign, -0.5 * sign])
    expected = np.where(np.arange(49) % 7 < 4, 1, -1) * sign
    np.testing.assert_array_equal(ownership, [expected, expected])


def test_territory_scoring_counts_the_moves_made() -> None:
    positions = np.zeros(1, POSITION_DTYPE)
    positions[0] = drawn_board(DECIDED, komi=6.5)
    positions[0]["scoring"] = 1
    positions[0]["white_bonus"] = 3.0
    values, scores = np.zeros(1, np.float32), np.zeros(1, np.float32)
    rng = np.array([7], np.uint64)
    scratch = np.zeros(1, POSITION_DTYPE)[0]
    rollout_leaves(positions, 1, 5, rng, scratch, values, scores, np.zeros((1, 49), np.float32))
    assert scores[0] == pytest.approx(7 - 6.5 - 3)


def test_rollouts_repeat_with_their_seed_and_leave_the_root() -> None:
    root = random_boards(9, 1, seed=4)[0]
    before = root.tobytes()
    results = []
    for _ in range(2):
        rng = np.array([99], np.uint64)
        scratch = np.zeros(1, POSITION_DTYPE)[0]
        played = [rollouts(root, scratch, rng, 20, is_patterned) for is_patterned in (True, False)]
        results.append((played, rng[0]))
    assert results[0] == results[1]
    assert root.tobytes() == before


def test_a_rollout_ends_with_every_point_owned_or_neutral() -> None:
    pos = empty_board(9)
    scratch = np.zeros(1, POSITION_DTYPE)[0]
    balance = rollouts(pos, scratch, np.array([3], np.uint64), 1, True)
    assert balance == area_balance(scratch)
    assert scratch["empty_count"] < 40


def logits_of(pos: Any) -> dict[int, float]:
    """Return the logit of every legal move."""
    history = np.zeros(MAX_HISTORY, np.uint64)
    begin(pos, history)
    moves = np.zeros(MAX_AREA + 1, np.uint16)
    return {int(move): float(prior_logit(pos, move)) for move in moves[: legal_moves(pos, history, moves)]}


@pytest.mark.parametrize("size", [2, 5, 9, 19])
def test_logits_are_finite(size: int) -> None:
    for pos in random_boards(size, 5, seed=size):
        assert np.isfinite(list(logits_of(pos).values())).all()


def test_logits_prefer_a_capture_and_shun_own_eyes() -> None:
    pos = drawn_board(
        """
        . X . . .
        X X X . .
        . O X . .
        O X . . .
        . . . . .
        """
    )
    logits = logits_of(pos)
    assert max(logits, key=lambda move: logits[move]) == 3 * 6 + 1
    assert logits[6 + 1] < np.median(list(logits.values())) - 1
    assert pos["color"][6 + 1] == EMPTY
