"""The rules of shogi against cshogi and a slow twin: moves, checks, repetition, declaration and hashes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import cshogi
import numpy as np
import pytest

from tests.naive.shogi_rules import SlowShogi
from tests.naive.shogi_rules import repetition as slow_repetition
from yomi.native.shogi import rules
from yomi.native.shogi.movegen import has_legal_move, is_legal, legal_moves
from yomi.native.shogi.position import (
    ENTERING_KING_24,
    ENTERING_KING_24H,
    ENTERING_KING_27,
    ENTERING_KING_27H,
    ENTERING_KING_NONE,
    ENTERING_KING_TRY,
    MAX_HISTORY,
    MAX_MOVES,
    POSITION_DTYPE,
    gives_check,
    play,
    set_position,
)
from yomi.native.shogi.squares import NO_SQUARE

KINDS = {
    cshogi.NOT_REPETITION: rules.NONE,
    cshogi.REPETITION_DRAW: rules.DRAW,
    cshogi.REPETITION_WIN: rules.WIN,
    cshogi.REPETITION_LOSE: rules.LOSE,
    cshogi.REPETITION_SUPERIOR: rules.SUPERIOR,
    cshogi.REPETITION_INFERIOR: rules.INFERIOR,
}


class Native:
    """A native position with its history."""

    def __init__(self) -> None:
        self.records = np.zeros(1, POSITION_DTYPE)
        self.pos: Any = self.records[0]
        self.history = np.zeros(MAX_HISTORY, np.uint64)

    def set(self, pieces: list[int], hands: Any, side: int, ply: int = 0) -> Native:
        """Set up a position."""
        set_position(self.pos, self.history, np.array(pieces, np.uint8), np.array(hands, np.uint8), side, ply)
        return self

    def set_like(self, board: cshogi.Board) -> Native:
        """Set up the position of a cshogi board, without its moves."""
        return self.set(board.pieces, board.pieces_in_hand, board.turn + 1, board.move_number - 1)

    def moves(self) -> list[int]:
        """Return the legal moves."""
        found = np.zeros(MAX_MOVES, np.uint16)
        return found[: legal_moves(self.pos, self.history, found)].tolist()

    def play(self, *moves: int) -> None:
        """Play moves."""
        for move in moves:
            assert is_legal(self.pos, self.history, move)
            play(self.pos, self.history, move)

    def repetition(self) -> int:
        """Return what kind of repetition the position is."""
        return int(rules.repetition(self.pos, self.history, 0))


def check_same(board: cshogi.Board, own: Native, fresh: Native) -> None:
    """Compare all that can be seen of a position with cshogi, and its record with one made from scratch."""
    pos = own.pos
    moves = own.moves()
    assert sorted(moves) == sorted(cshogi.move16(move) for move in board.legal_moves)
    assert bool(has_legal_move(pos)) == bool(moves)
    assert bool(pos["in_check"]) == board.is_check()
    assert own.repetition() == KINDS[board.is_draw()]
    length = int(pos["history_length"])
    fresh.set_like(board)
    assert (own.history[length - 2 : length] == fresh.history[:2]).all()
    fresh.pos["history_length"] = length
    assert fresh.records.tobytes() == own.records.tobytes()


def walk(rng: random.Random, board: cshogi.Board, plies: int, back: float) -> Iterator[int]:
    """Play random moves on a cshogi board and yield them; with probability `back` one's last move is taken back."""
    for _ in range(plies):
        moves = list(board.legal_moves)
        if not moves:
            return
        lively = [move for move in moves if cshogi.move_is_drop(move) or board.piece(cshogi.move_to(move))]
        move = rng.choice(lively if lively and rng.random() < 0.3 else moves)
        if len(board.history) >= 2 and rng.random() < back:
            to, origin = cshogi.move_to(board.history[-2]), cshogi.move_from(board.history[-2])
            turned = [each for each in moves if (cshogi.move_from(each), cshogi.move_to(each)) == (to, origin)]
            move = turned[0] if turned else move
        board.push(move)
        yield cshogi.move16(move)


@pytest.mark.parametrize(("back", "seeds"), [(0.0, range(35)), (0.6, range(100, 115))])
def test_random_games_are_those_of_cshogi(back: float, seeds: range) -> None:
    """Some 10,000 positions."""
    fresh = Native()
    for seed in seeds:
        board = cshogi.Board()
        own = Native().set_like(board)
        for move in walk(random.Random(seed), board, 300, back):
            checks = gives_check(own.pos, move)
            play(own.pos, own.history, move)
            assert bool(checks) == board.is_check()
            check_same(board, own, fresh)


CYCLES = {
    "draw": ("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", "2h3h 8b7b 3h2h 7b8b 2h1h", "...D."),
    # after four plies the first position is there again; every Black move since has given check
    "perpetual check": ("k8/9/9/1R7/9/9/9/9/K8 b - 1", "8d9d 9a8a 9d8d 8a9a 8d9d 9a8a 9d8d 8a9a", "...LWLWL"),
    # one move of the cycle gives no check
    "almost perpetual check": ("k8/9/9/1R7/9/9/9/9/K8 b - 1", "8d9d 9a8a 9d7d 8a9a 7d6d 9a9b 6d8d 9b9a", ".......D"),
    # a pawn is dropped, taken, and both sides come back: the board is the same, the pawn has changed hands
    "a pawn is lost": ("4k4/9/9/9/9/7R1/9/9/4K4 w 2p 1", "P*2e 2f2e 5a4a 2e2f 4a4b 5i5h 4b5a 5h5i P*2e", ".......IS"),
}
LETTERS = {".": rules.NONE, "D": rules.DRAW, "W": rules.WIN, "L": rules.LOSE, "S": rules.SUPERIOR, "I": rules.INFERIOR}


@pytest.mark.parametrize("name", CYCLES)
def test_repetitions_have_their_kinds(name: str) -> None:
    sfen, moves, expected = CYCLES[name]
    board = cshogi.Board(sfen)
    own, fresh = Native().set_like(board), Native()
    kinds = []
    for usi in moves.split():
        own.play(cshogi.move16(board.push_usi(usi)))
        check_same(board, own, fresh)
        kinds.append(own.repetition())
    assert kinds == [LETTERS[letter] for letter in expected]


@pytest.mark.parametrize("sfen", [sfen for sfen, _, _ in CYCLES.values()])
def test_repetitions_of_a_line_are_those_of_the_slow_twin(sfen: str) -> None:
    """Positions up to the root count only with the fourth occurrence."""
    rng, kinds = random.Random(2), set()
    for _ in range(6):
        board = cshogi.Board(sfen)
        own = Native().set_like(board)
        line = [SlowShogi(board.pieces, [list(hand) for hand in board.pieces_in_hand], board.turn + 1)]
        for move in walk(rng, board, 40, 0.9):
            own.play(move)
            line.append(line[-1].after(move))
            for root in (-1, len(line) // 2, max(len(line) - 7, -1), len(line) - 2):
                expected = slow_repetition(line, root)
                assert rules.repetition(own.pos, own.history, 2 * (root + 1)) == LETTERS[expected]
                kinds.add((root >= len(line) - 2, expected))
    assert (False, "D") in kinds
    assert (True, ".") in kinds


def random_placement(rng: random.Random, pieces: int, far: float) -> cshogi.Board | None:
    """Return a board with random pieces, Black to move; None where Black could take the king.

    Args:
        rng: source of chance.
        pieces: how many besides the kings.
        far: share of the pieces that are Black's in the far three ranks, the king among them.
    """
    board = [0] * 81
    stock = {1: 18, 2: 4, 3: 4, 4: 4, 5: 2, 6: 2, 7: 4}
    empty = rng.sample(range(81), 81)

    def take(entered: bool) -> int:
        return empty.pop(next(i for i, square in enumerate(empty) if not entered or square % 9 < 3))

    board[take(far > 0)] = 8
    board[take(False)] = 24
    for _ in range(pieces):
        entered = rng.random() < far and any(square % 9 < 3 for square in empty)
        square = take(entered)
        white = not entered and rng.random() < 0.5
        kind = rng.choice([kind for kind, count in stock.items() for _ in range(count)])
        rank = 8 - square % 9 if white else square % 9
        code = kind + 16 * white
        if kind != 7 and (rank < {1: 1, 2: 1, 3: 2}.get(kind, 0) or rng.random() < 0.3):
            code += 8
        if code % 16 == 1 and code in board[square // 9 * 9 : square // 9 * 9 + 9]:
            code += 8
        board[square] = code
        stock[kind] -= 1
    hands: list[list[int]] = [[], []]
    for kind in (1, 2, 3, 4, 7, 5, 6):
        black = rng.randint(0, stock[kind])
        hands[0].append(black)
        hands[1].append(rng.randint(0, stock[kind] - black))
    if SlowShogi(board, hands, 1).in_check(2):
        return None
    found = cshogi.Board()
    found.set_pieces(board, (hands[0], hands[1]))
    return found


def random_placements(
    seed: int, count: int, least: int, far: float
) -> Iterator[tuple[cshogi.Board, Native, SlowShogi]]:
    """Yield random positions, each also with the colors changed, as a cshogi board, a native one and a slow twin."""
    rng, own = random.Random(seed), Native()
    for _ in range(count):
        board = random_placement(rng, rng.randint(least, 34), far)
        for each in (board, cshogi.Board(cshogi.rotate_sfen(board.sfen()))) if board else ():
            slow = SlowShogi(list(each.pieces), [list(hand) for hand in each.pieces_in_hand], each.turn + 1)
            yield each, own.set_like(each), slow


def test_random_placements_are_those_of_cshogi_and_the_slow_twin() -> None:
    fresh = Native()
    for board, own, slow in random_placements(3, 40, 2, 0.0):
        check_same(board, own, fresh)
        assert sorted(own.moves()) == sorted(slow.legal_moves())
        for move in own.moves():
            then = slow.after(move)
            assert bool(gives_check(own.pos, move)) == then.in_check(then.side)


def test_declarations_are_those_of_cshogi_and_in_handicap_games_white_needs_less() -> None:
    plain = eased = draws = 0
    for board, own, slow in random_placements(9, 1500, 14, 0.6):
        own.pos["entering_king"] = ENTERING_KING_NONE
        assert not rules.declaration(own.pos)
        for law, rules_of_law, points in (
            (cshogi.LAW_24, (ENTERING_KING_24, ENTERING_KING_24H), (31, 31)),
            (cshogi.LAW_27, (ENTERING_KING_27, ENTERING_KING_27H), (28, 27)),
        ):
            found = []
            for rule, given in zip(rules_of_law, (0, slow.points_given()), strict=True):
                own.pos["entering_king"] = rule
                found.append(bool(rules.declaration(own.pos)))
                assert found[-1] == slow.can_declare(points[0], points[1] - given)
                may_draw = law == cshogi.LAW_24 and slow.can_declare(24, 24 - given) and not found[-1]
                assert bool(rules.draw_declaration(own.pos)) == may_draw
                draws += may_draw
            assert found[0] == board.is_nyugyoku(law)
            plain += found[0]
            eased += found[1] and not found[0]
    assert min(plain, eased, draws) > 30


def test_a_king_tries_where_the_other_king_starts() -> None:
    found = refused = 0
    for _, own, slow in random_placements(11, 500, 14, 0.6):
        king, target = (8, 36) if slow.side == 1 else (24, 44)
        tries = [move for move in slow.legal_moves()
                 if move & 127 == target and move >> 7 < 81 and slow.board[move >> 7] == king]  # fmt: skip
        assert [rules.try_move(own.pos)] == (tries or [0])
        own.pos["entering_king"] = ENTERING_KING_TRY
        assert bool(rules.declaration(own.pos)) == bool(tries)
        found += bool(tries)
        refused += not tries and target in slow.reach(slow.board.index(king))
    assert min(found, refused) > 10


def test_a_side_without_a_king_is_never_in_check() -> None:
    """Problems of mate have one king."""
    board = [0] * 81
    board[44], board[1], board[10] = 24, 1, 6
    own = Native().set(board, np.zeros((2, 7), np.uint8), 1)
    assert own.pos["king"].tolist() == [NO_SQUARE, 44]
    assert not own.pos["in_check"]
    board[80] = 8  # the twin wants a king; this one stands in nobody's way and its moves are left out
    expected = [move for move in SlowShogi(board, [[0] * 7, [0] * 7], 1).legal_moves() if move >> 7 & 127 != 80]
    assert sorted(own.moves()) == sorted(expected)


def test_moves_that_are_not_there_are_illegal() -> None:
    own = Native().set_like(cshogi.Board())
    moves = set(own.moves())
    for move in range(1 << 15):
        assert bool(is_legal(own.pos, own.history, move)) == (move in moves)
