"""A game of shogi as it stands: the position, how it came about, and the commands that change it.

Rules, position and history are the kernels' (yomi.native.shogi); this class adds what only a user needs: SFEN, undo,
what ends a game (a repetition only the fourth time), and reasons why a move is illegal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from yomi.engine.color import COLOR_NAMES, opponent
from yomi.engine.option_row import OptionError
from yomi.engine.shogi.diagram import draw
from yomi.engine.shogi.moves import is_move, target_of
from yomi.engine.shogi.notation import format_usi, illegal_action, parse_usi
from yomi.engine.shogi.placement import DROP_PAWN_MATE, Placement
from yomi.engine.shogi.sfen import START_WORD, STARTPOS, format_sfen, parse_sfen
from yomi.errors import Error
from yomi.native.shogi import rules, waivers
from yomi.native.shogi.position import (
    CHECK_BIT,
    ENTERING_KING_24,
    ENTERING_KING_24H,
    ENTERING_KING_27,
    ENTERING_KING_27H,
    ENTERING_KING_NONE,
    MAX_HISTORY,
    MAX_MOVES,
    POSITION_DTYPE,
)

if TYPE_CHECKING:
    from yomi.engine.options import Options

ENTERING_KING = {
    "none": ENTERING_KING_NONE,
    "24": ENTERING_KING_24,
    "24h": ENTERING_KING_24H,
    "27": ENTERING_KING_27,
    "27h": ENTERING_KING_27H,
}
"""Rules for declaring a win, by their points; h: in handicap games White needs less by what it has given."""

SETTINGS = ("max_moves", "entering_king", "mate_depth", "all_moves", "draw_value", "form")
"""Fields of the position record that belong to the game's rules and the search, not to the position."""

MAX_GAME = 10_000
"""Moves that `going_on` takes: more of them would take seconds."""
MAX_PLY = 64_000
"""Moves of a game, those before the initial position included. The kernels count plies in 16 bits, also in a search."""
KEPT, ROOM = 768, 1024
"""Positions whose history stays when there are more than ROOM of them; the rest of the array is the search's."""


class IllegalMove(Error, ValueError):  # noqa: N818  (the name that players use)
    """A move that the rules forbid; the message is one line."""


class SetupError(OptionError):
    """Rules that cannot be; the message is one line."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a game ended."""

    winner: int
    """BLACK, WHITE, or 0 for a draw."""
    ending: str
    """CSA's name of it: TSUMI, SENNICHITE, +ILLEGAL_ACTION or -ILLEGAL_ACTION (Black or White checked perpetually),
    MAX_MOVES."""

    def __str__(self) -> str:
        """Return it in words."""
        loser = COLOR_NAMES.get(opponent(self.winner), "")
        reasons = {
            "TSUMI": f"{loser} is mated",
            "SENNICHITE": "the position stands for the fourth time",
            "MAX_MOVES": "the limit of moves is reached",
        }
        reason = reasons.get(self.ending, f"{loser} gave perpetual check")
        return f"{COLOR_NAMES[self.winner]} wins: {reason}" if self.winner else f"draw: {reason}"


class ShogiGame:
    """One game: an initial position, and the moves since.

    The attributes are to be read, not written. `position` (a record of POSITION_DTYPE) and `history`
    (uint64[MAX_HISTORY]) stay the same objects for the whole life of the game; copy what must not change. Of games
    longer than 1,024 moves `history` holds the later part; the fourth occurrence of a position is found all the same.
    """

    initial_sfen: str
    entering_king: str
    """The rule by which a win may be declared, of ENTERING_KING."""
    max_moves: int
    """Moves of the game (those before the initial position included) after which it is drawn; 0 for no limit."""
    moves: list[tuple[int, int]]
    """(color, move) since the initial position."""
    position: Any
    history: np.ndarray[tuple[int], np.dtype[np.uint64]]

    def __init__(self, sfen: str = STARTPOS, *, entering_king: str = "27", max_moves: int = 0) -> None:
        """Start a game.

        Raises:
            SfenError: no position, or one that cannot be.
            SetupError: rules that cannot be.
        """
        initial = parse_sfen(sfen)
        self.initial_sfen = format_sfen(initial)
        self.moves = []
        self._record = np.zeros(1, POSITION_DTYPE)
        self.position = self._record[0]
        self.history = np.zeros(MAX_HISTORY, np.uint64)
        board = np.array(initial.board, np.uint8)
        hands = np.array(initial.hands, np.uint8)
        rules.set_position(self.position, self.history, board, hands, initial.side, initial.number - 1)
        self._snapshots = [self._record.copy()]
        self._entries = [self._last_entry()]
        self._seen = {self._entries[0]: [0]}
        self.set_rules(entering_king=entering_king, max_moves=max_moves)

    # -- what stands on the board ------------------------------------------------------------------------------

    @property
    def side_to_move(self) -> int:
        """BLACK or WHITE."""
        return int(self.position["side_to_move"])

    @property
    def ply(self) -> int:
        """Moves made since the start of the game, those before the initial position included."""
        return int(self.position["ply"])

    @property
    def in_check(self) -> bool:
        """Whether the side to move is in check."""
        return bool(self.position["in_check"])

    @property
    def last_target(self) -> int | None:
        """The square where the last move since the initial position ended; None where there is none."""
        return target_of(self.moves[-1][1]) if self.moves else None

    @property
    def placement(self) -> Placement:
        """The position as notations want it."""
        hand = self.position["hand"].tolist()
        board = tuple(self.position["board"].tolist())
        return Placement(board, (tuple(hand[0]), tuple(hand[1])), self.side_to_move, self.ply + 1)

    @property
    def search_key(self) -> object:
        """Equal keys: the same game but for its moves, so that a search tree may be kept from one to the other."""
        return (self.initial_sfen, self.entering_king, self.max_moves)

    def sfen(self) -> str:
        """Return the position as SFEN, with the number of the next move."""
        return format_sfen(self.placement)

    # -- playing -------------------------------------------------------------------------------------------------

    def is_legal(self, move: int) -> bool:
        """Whether the side to move may play a move."""
        return is_move(move) and bool(rules.is_legal(self.position, self.history, move))

    def check(self, move: int) -> None:
        """Check that the side to move may play a move.

        Raises:
            IllegalMove: the rules forbid it; the message says why.
        """
        if self.ply >= MAX_PLY:
            raise IllegalMove(f"move {self.ply + 1}: expected at most {MAX_PLY} moves in a game")
        if not self.is_legal(move):
            why = self.placement.why_not(move) or DROP_PAWN_MATE
            raise IllegalMove(f"illegal move {format_usi(move) if is_move(move) else move}: {why}")

    def legal_moves(self) -> list[int]:
        """Return all legal moves of the side to move, also those that only a beginner would leave unpromoted."""
        moves = np.zeros(MAX_MOVES, np.uint16)
        count = rules.legal_moves(self.position, self.history, moves)
        return [int(move) for move in moves[:count]]

    def searched_moves(self) -> list[int]:
        """Return the moves that a search tries: see yomi.native.shogi.waivers."""
        moves = np.zeros(MAX_MOVES, np.uint16)
        count = waivers.searched_moves(self.position, self.history, moves)
        return [int(move) for move in moves[:count]]

    def play(self, move: int) -> None:
        """Play a move of the side to move; a game may go on after its end.

        Raises:
            IllegalMove: the rules forbid it; the message says why, and nothing has changed.
        """
        self.check(move)
        color = self.side_to_move
        rules.play(self.position, self.history, move)
        self.moves.append((color, move))
        self._snapshots.append(self._record.copy())
        self._entries.append(self._last_entry())
        self._seen.setdefault(self._entries[-1], []).append(len(self._entries) - 1)
        if int(self.position["history_length"]) > 2 * ROOM:
            self._rewrite_history()

    def push(self, move: int) -> None:
        """Play a move of the side to move, as all games do: see `play`."""
        self.play(move)

    def going_on(self, sfen: str, moves: Sequence[str]) -> ShogiGame:
        """Return the game that USI's `position` describes, played on from a copy of this one if that leads to it.

        Args:
            sfen: the initial position; `startpos` for the usual one.
            moves: the moves since, in USI.

        Raises:
            ValueError: no position, an illegal move or more than MAX_GAME moves; this game stays as it is.
        """
        if len(moves) > MAX_GAME:
            raise ValueError(f"{len(moves)} moves: expected at most {MAX_GAME}")
        initial = STARTPOS if sfen == START_WORD else sfen
        known = [format_usi(move) for _, move in self.moves]
        if format_sfen(parse_sfen(initial)) == self.initial_sfen and list(moves[: len(known)]) == known:
            game = self.copy()
        else:
            game = ShogiGame(initial, entering_king=self.entering_king, max_moves=self.max_moves)
        for number, text in enumerate(moves[len(game.moves) :], len(game.moves) + 1):
            try:
                game.play(parse_usi(text))
            except ValueError as error:
                raise ValueError(f"move {number}: {error}") from None
        return game

    def undo(self) -> None:
        """Take the last move back; everything is as it was before it, but for rules changed since.

        Raises:
            IllegalMove: no move has been played since the initial position.
        """
        if not self.moves:
            raise IllegalMove("cannot undo: no move has been played")
        self.moves.pop()
        self._snapshots.pop()
        self._seen[self._entries.pop()].pop()
        kept = {name: self.position[name].copy() for name in SETTINGS}
        self._record[...] = self._snapshots[-1]
        for name, value in kept.items():
            self.position[name] = value
        if len(self._entries) >= KEPT:
            self._rewrite_history()

    def set_rules(self, *, entering_king: str | None = None, max_moves: int | None = None) -> None:
        """Change rules, also in the middle of a game; None leaves one as it is.

        Raises:
            SetupError: an unknown rule, or a limit that is not from 0 to 65535.
        """
        if entering_king is not None:
            if entering_king not in ENTERING_KING:
                raise SetupError(f"entering king rule '{entering_king}': expected {', '.join(ENTERING_KING)}")
            self.entering_king = entering_king
            self.position["entering_king"] = ENTERING_KING[entering_king]
        if max_moves is not None:
            if not 0 <= max_moves <= 0xFFFF:
                raise SetupError(f"limit of {max_moves} moves: expected 0 (none) to 65535")
            self.max_moves = max_moves
            self.position["max_moves"] = max_moves

    def copy(self) -> ShogiGame:
        """Return an independent copy, undo included."""
        other = ShogiGame.__new__(ShogiGame)
        other.initial_sfen, other.entering_king, other.max_moves = self.initial_sfen, self.entering_king, self.max_moves
        other.moves, other._snapshots, other._entries = list(self.moves), list(self._snapshots), list(self._entries)
        other._seen = {entry: list(indices) for entry, indices in self._seen.items()}
        other._record = self._record.copy()
        other.position = other._record[0]
        other.history = self.history.copy()
        return other

    # -- the end -------------------------------------------------------------------------------------------------

    @property
    def can_declare(self) -> bool:
        """Whether the side to move may declare a win by the rule in force."""
        return bool(rules.declaration(self.position))

    @property
    def repetitions(self) -> int:
        """How often this position has stood in the game, now included, with the same side to move."""
        return len(self._seen[self._entries[-1]])

    def outcome(self) -> Outcome | None:
        """Return how the game has ended; None while it goes on. Declaring and resigning are up to the players."""
        side = self.side_to_move
        if not rules.has_legal_move(self.position):
            return Outcome(opponent(side), "TSUMI")
        if self.repetitions >= rules.OCCURRENCES:
            return self._repetition()
        if self.max_moves and self.ply >= self.max_moves:
            return Outcome(0, "MAX_MOVES")
        return None

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return self.outcome() is not None

    def _repetition(self) -> Outcome:
        """Judge a position's fourth occurrence: who gave check with each move since the first one loses."""
        side = self.side_to_move
        first = self._seen[self._entries[-1]][0]
        checks = [bool(hands & CHECK_BIT) for _, hands in self._entries[first + 1 :]]
        for loser, given in ((side, checks[0::2]), (opponent(side), checks[1::2])):
            if all(given):
                return Outcome(opponent(loser), illegal_action(loser))
        return Outcome(0, "SENNICHITE")

    def __str__(self) -> str:
        """Return the board with coordinates, the last move in brackets, hands and the side to move."""
        return draw(self)

    # -- inside --------------------------------------------------------------------------------------------------

    def _last_entry(self) -> tuple[int, int]:
        """Return the history's entry of the position: board key; hands, side and check flag."""
        length = int(self.position["history_length"])
        return int(self.history[length - 2]), int(self.history[length - 1])

    def _rewrite_history(self) -> None:
        """Fill the history array with the last positions of the game, so that the search has room behind them."""
        last = self._entries[-KEPT:]
        self.history[: 2 * len(last)] = np.array(last, np.uint64).reshape(-1)
        self.position["history_length"] = 2 * len(last)


def new_game(options: Options, sfen: str = STARTPOS) -> ShogiGame:
    """Return a position under the rules of the options.

    Raises:
        SfenError, SetupError: see ShogiGame.
    """
    return ShogiGame(sfen, entering_king=options.entering_king, max_moves=options.max_moves or 0)
