"""A game of Othello as it stands, and its moves as text."""

from __future__ import annotations

import numpy as np

from tests.games.othello import kernels
from tests.games.othello.kernels import PASS, POSITION_DTYPE, SIZES
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.options import OptionError
from yomi.engine.play import SCORE, Ended, Referee

MOVES = [f"{column}{row}" for row in range(1, 9) for column in "abcdefgh"] + ["pass"]
"""By their numbers; a1 is the upper left square."""


class OthelloGame:
    """One game, a PlayableGame; its attributes are to be read, not written."""

    def __init__(self, size: int = 8, diagram: str = "", side: int = BLACK) -> None:
        """Begin a game, with `side` to move, from a diagram as `str` of a game has it; empty: the usual four discs.

        Raises:
            OptionError: no size of Othello's.
        """
        if size not in SIZES:
            raise OptionError(f"board size {size}: expected one of {', '.join(map(str, SIZES))}")
        self.size, self.initial = size, (diagram, side)
        self.moves: list[tuple[int, int]] = []
        self.record = np.zeros(1, POSITION_DTYPE)
        self.position, self.history = self.record[0], np.zeros(1, np.uint64)
        self.position["size"], self.position["side_to_move"] = size, side
        middle = size // 2 - 1
        rows = diagram.split() or ["." * size] * middle + ["." * middle + pair for pair in ("OX", "XO")]
        for y, row in enumerate(rows):
            for x, disc in enumerate(row):
                if disc in "XO":
                    self.position["own" if disc == "XO"[side - 1] else "other"] |= np.uint64(1 << 8 * y + x)

    @property
    def side_to_move(self) -> int:
        """BLACK or WHITE."""
        return int(self.position["side_to_move"])

    @property
    def ply(self) -> int:
        """Moves since the initial position."""
        return len(self.moves)

    @property
    def search_key(self) -> object:
        """Equal keys: equal games but for the moves."""
        return self.size, self.initial

    @property
    def is_over(self) -> bool:
        """Whether neither side has a move."""
        return bool(kernels.is_over(self.position))

    @property
    def score(self) -> int:
        """Black's discs minus White's."""
        balance = int(kernels.balance(self.position))
        return balance if self.side_to_move == BLACK else -balance

    def legal_moves(self) -> list[int]:
        """Return the legal moves of the side to move: squares, or PASS alone; none when the game is over."""
        moves = np.zeros(PASS, np.uint16)
        count = 0 if self.is_over else kernels.legal_moves(self.position, self.history, moves)
        return [int(move) for move in moves[:count]]

    def push(self, move: int) -> None:
        """Play a move of the side to move; ValueError if the rules forbid it."""
        if move not in self.legal_moves():
            raise ValueError(f"illegal move {MOVES[move]}")
        self.moves.append((self.side_to_move, move))
        kernels.play(self.position, self.history, move)

    def undo(self) -> None:
        """Take the last move back; ValueError if there is none."""
        if not self.moves:
            raise ValueError("cannot undo: no move has been played")
        before = OthelloGame(self.size, *self.initial)
        for _, move in self.moves[:-1]:
            before.push(move)
        self.moves, self.record[0] = before.moves, before.record[0]

    def copy(self) -> OthelloGame:
        """Return an independent copy."""
        other = OthelloGame(self.size, *self.initial)
        other.moves, other.record[0] = list(self.moves), self.record[0]
        return other

    def __str__(self) -> str:
        """Return rows of X (Black), O (White) and dots."""
        board = [["."] * self.size for _ in range(self.size)]
        for disc, name in zip("XO" if self.side_to_move == BLACK else "OX", ("own", "other"), strict=True):
            for square in range(64):
                if int(self.position[name]) >> square & 1:
                    board[square >> 3][square & 7] = disc
        return "\n".join(map("".join, board))


class OthelloReferee(Referee[OthelloGame]):
    """Ends games in which neither side has a move; more discs win."""

    def judge(self, game: OthelloGame) -> Ended | None:
        """Return how a game has ended; None while it goes on."""
        winner = BLACK if game.score > 0 else WHITE if game.score < 0 else DRAW
        return Ended(winner, SCORE, f"{game.score:+d}") if game.is_over else None
