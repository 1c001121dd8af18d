"""A game of shogi: position, history, the operations that change it, and its referee.

The kernels (yomi.native.shogi) know rules, position and history. This module adds SFEN, undo, the end of the game (a
repetition ends it at the fourth occurrence), and the reasons why a move is illegal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yomi.engine import play
from yomi.engine.color import COLOR_NAMES, DRAW, opponent
from yomi.engine.play import Ended, Referee
from yomi.engine.shogi.diagram import draw
from yomi.engine.shogi.notation import format_usi, guilty_of, illegal_action, parse_usi
from yomi.engine.shogi.placement import (
    DROP_PAWN_MATE,
    START_WORD,
    STARTPOS,
    Placement,
    format_sfen,
    is_move,
    parse_sfen,
    target_of,
)
from yomi.errors import IllegalMove, reraised
from yomi.language import tr
from yomi.native.shogi import movegen, rules, waivers
from yomi.native.shogi import position as layout
from yomi.settings import OptionError

if TYPE_CHECKING:
    from yomi.engine.options import Options
    from yomi.engine.shogi.records.record import GameRecord

# Rules of entering kings. Numbers are points to declare (h: in handicap games White's missing pieces count for White).
# try: a king that reaches the other king's initial square wins.
ENTERING_KING = {
    "none": layout.ENTERING_KING_NONE,
    "24": layout.ENTERING_KING_24,
    "24h": layout.ENTERING_KING_24H,
    "27": layout.ENTERING_KING_27,
    "27h": layout.ENTERING_KING_27H,
    "try": layout.ENTERING_KING_TRY,
}

# Fields of the position record that are settings; `undo` keeps them.
SETTINGS = ("max_moves", "entering_king", "mate_depth", "all_moves", "draw_value", "form")

MAX_GAME = 10_000  # limit of `continued`: more moves would take seconds
MAX_PLY = 64_000  # limit of plies: kernels count them in 16 bits, and a search adds more
# A history longer than ROOM positions is cut to the last KEPT. The rest of the array belongs to the search.
KEPT, ROOM = 768, 1024


class ShogiGame:
    """An initial position and the moves played since.

    Treat the attributes as read-only. `position` (a record of POSITION_DTYPE) and `history` (uint64[MAX_HISTORY])
    remain the same objects for the life of the game; copy them to keep a state. After 1,024 moves `history` contains
    only the later part, but repetitions of the whole game are found.
    """

    initial_sfen: str
    entering_king: str  # a key of ENTERING_KING
    max_moves: int  # the game is drawn after this many plies, moves before the initial position included; 0: no limit
    moves: list[tuple[int, int]]  # (color, move) since the initial position
    position: Any
    history: np.ndarray[tuple[int], np.dtype[np.uint64]]

    def __init__(self, sfen: str = STARTPOS, *, entering_king: str = "27", max_moves: int = 0) -> None:
        """Start a game. Raises SfenError for a bad position, OptionError for invalid rules."""
        initial = parse_sfen(sfen)
        self.initial_sfen = format_sfen(initial)
        self.moves = []
        self._record = np.zeros(1, layout.POSITION_DTYPE)
        self.position = self._record[0]
        self.history = np.zeros(layout.MAX_HISTORY, np.uint64)
        board = np.array(initial.board, np.uint8)
        hands = np.array(initial.hands, np.uint8)
        layout.set_position(self.position, self.history, board, hands, initial.side, initial.number - 1)
        # Undo restores whole records: kernels have no inverse of play.
        self.position["root_length"] = self.position["history_length"]
        self._snapshots = [self._record.copy()]
        self._entries = [self._last_entry()]
        self._seen = {self._entries[0]: [0]}
        self.set_rules(entering_king=entering_king, max_moves=max_moves)

    # -- what stands on the board ------------------------------------------------------------------------------

    @property
    def side_to_move(self) -> int:
        return int(self.position["side_to_move"])

    @property
    def ply(self) -> int:
        """Number of moves since the start of the game, including those before the initial position."""
        return int(self.position["ply"])

    @property
    def in_check(self) -> bool:
        return bool(self.position["in_check"])

    @property
    def last_target(self) -> int | None:
        """Target of the last move since the initial position, or None."""
        return target_of(self.moves[-1][1]) if self.moves else None

    @property
    def placement(self) -> Placement:
        hand = self.position["hand"].tolist()
        board = tuple(self.position["board"].tolist())
        return Placement(board, (tuple(hand[0]), tuple(hand[1])), self.side_to_move, self.ply + 1)

    @property
    def search_key(self) -> object:
        """Games with equal keys differ only in their moves: they can share a search tree."""
        return (self.initial_sfen, self.entering_king, self.max_moves)

    def sfen(self) -> str:
        return format_sfen(self.placement)

    # -- playing -------------------------------------------------------------------------------------------------

    def is_legal(self, move: int) -> bool:
        return is_move(move) and bool(movegen.is_legal(self.position, self.history, move))

    def check(self, move: int) -> None:
        """Raise IllegalMove with the reason if the side to move may not play a move."""
        if self.ply >= MAX_PLY:
            raise IllegalMove(f"move {self.ply + 1}: expected at most {MAX_PLY} moves in a game")
        if not self.is_legal(move):
            text = format_usi(move) if is_move(move) else str(move)
            raise IllegalMove(tr("illegal move {move}: {why}", move=text, why=self.why_not(move)))

    def why_not(self, move: int) -> str:
        """Return the reason why a move is illegal, in a few words."""
        return self.placement.why_not(move) or tr(DROP_PAWN_MATE)

    def legal_moves(self) -> list[int]:
        """Return all legal moves, including pointless waivers of promotion."""
        return self._moves(movegen.legal_moves)

    def searched_moves(self) -> list[int]:
        """Return the moves that a search tries: all legal moves except pointless ones (yomi.native.shogi.waivers)."""
        return self._moves(waivers.searched_moves)

    def _moves(self, find: Callable[..., int]) -> list[int]:
        moves = np.zeros(layout.MAX_MOVES, np.uint16)
        count = find(self.position, self.history, moves)
        return [int(move) for move in moves[:count]]

    def play(self, move: int) -> None:
        """Play a move, also after the end of the game. Raises IllegalMove if the rules forbid it."""
        self.check(move)
        color = self.side_to_move
        layout.play(self.position, self.history, move)
        self.position["root_length"] = self.position["history_length"]
        self.moves.append((color, move))
        self._snapshots.append(self._record.copy())
        self._entries.append(self._last_entry())
        self._seen.setdefault(self._entries[-1], []).append(len(self._entries) - 1)
        # An entry has two words: board key, and hands with flags.
        if int(self.position["history_length"]) > 2 * ROOM:
            self._rewrite_history()

    push = play  # the name that all games share

    def continued(self, sfen: str, moves: Sequence[str]) -> ShogiGame:
        """Return the game that USI's `position` describes. If it continues this game, this is a copy with further
        moves.

        Raises ValueError for a bad position, an illegal move, or more than MAX_GAME moves.
        """
        if len(moves) > MAX_GAME:
            raise ValueError(f"{len(moves)} moves: expected at most {MAX_GAME}")
        initial = STARTPOS if sfen == START_WORD else sfen
        known = [format_usi(move) for _, move in self.moves]
        if format_sfen(parse_sfen(initial)) == self.initial_sfen and list(moves[: len(known)]) == known:
            # Repeating the moves of a long game would cost more than the search of a fast one.
            game = self.copy()
        else:
            game = ShogiGame(initial, entering_king=self.entering_king, max_moves=self.max_moves)
        for number, text in enumerate(moves[len(game.moves) :], len(game.moves) + 1):
            with reraised(ValueError, ValueError, f"move {number}: "):
                game.play(parse_usi(text))
        return game

    def undo(self) -> None:
        """Take back the last move. Rules that were changed since then stay. Raises IllegalMove if there is no move."""
        if not self.moves:
            raise IllegalMove(tr("cannot undo: no move has been played"))
        self.moves.pop()
        self._snapshots.pop()
        self._seen[self._entries.pop()].pop()
        # Rules and search settings may have changed since the snapshot.
        kept = {name: self.position[name].copy() for name in SETTINGS}
        self._record[...] = self._snapshots[-1]
        for name, value in kept.items():
            self.position[name] = value
        if len(self._entries) >= KEPT:
            self._rewrite_history()

    def set_rules(self, *, entering_king: str | None = None, max_moves: int | None = None) -> None:
        """Change rules, also in the middle of a game. None keeps the current value. Raises OptionError."""
        if entering_king is not None:
            if entering_king not in ENTERING_KING:
                raise OptionError(f"entering king rule '{entering_king}': expected {', '.join(ENTERING_KING)}")
            self.entering_king = entering_king
            self.position["entering_king"] = ENTERING_KING[entering_king]
        if max_moves is not None:
            if not 0 <= max_moves <= 0xFFFF:
                raise OptionError(f"limit of {max_moves} moves: expected 0 (none) to 65535")
            self.max_moves = max_moves
            self.position["max_moves"] = max_moves

    def copy(self) -> ShogiGame:
        # __init__ would set up a position only to overwrite it.
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
        """Whether the side to move wins at once by the entering king rule: by declaration, or by `try_move`."""
        return bool(rules.declaration(self.position))

    @property
    def can_declare_draw(self) -> bool:
        """Whether the side to move may declare a draw, with 24 to 30 points by the 24-point rules."""
        return bool(rules.draw_declaration(self.position))

    @property
    def try_move(self) -> int | None:
        """The move that wins at once by the try rule; None if there is none or under other rules."""
        return (int(rules.try_move(self.position)) or None) if self.entering_king == "try" else None

    @property
    def repetitions(self) -> int:
        """Number of times that this position with this side to move has occurred in the game, now included."""
        return len(self._seen[self._entries[-1]])

    def outcome(self) -> Ended | None:
        """Return the end of the game by its rules, or None. Players declare and resign by decisions of their own."""
        side = self.side_to_move
        if not movegen.has_legal_move(self.position):
            return Ended(opponent(side), play.MATE)
        if rules.tried(self.position):
            return Ended(opponent(side), play.TRY)
        if self.repetitions >= rules.OCCURRENCES:
            return self._repetition()
        if self.max_moves and self.ply >= self.max_moves:
            return Ended(DRAW, play.MAX_MOVES)
        return None

    @property
    def is_over(self) -> bool:
        return self.outcome() is not None

    def _repetition(self) -> Ended:
        # The side that gave check with every move since the first occurrence loses.
        side = self.side_to_move
        first = self._seen[self._entries[-1]][0]
        # Entries alternate: the first move after that position was made by the side that is to move again.
        checks = [bool(hands & layout.CHECK_BIT) for _, hands in self._entries[first + 1 :]]
        for loser, given in ((side, checks[0::2]), (opponent(side), checks[1::2])):
            if all(given):
                return Ended(opponent(loser), play.PERPETUAL_CHECK)
        return Ended(DRAW, play.REPETITION)

    def __str__(self) -> str:
        return draw(self)

    # -- inside --------------------------------------------------------------------------------------------------

    def _last_entry(self) -> tuple[int, int]:
        """Return the last entry of the history: the board key, and a word of hands, side to move and check flag."""
        length = int(self.position["history_length"])
        return int(self.history[length - 2]), int(self.history[length - 1])

    def _rewrite_history(self) -> None:
        # The array gets the last KEPT positions, so that the search has room behind them.
        last = self._entries[-KEPT:]
        self.history[: 2 * len(last)] = np.array(last, np.uint64).reshape(-1)
        self.position["history_length"] = self.position["root_length"] = 2 * len(last)


def rules_of(options: Options) -> dict[str, Any]:
    """Return the rules that options name, for `ShogiGame` and its `set_rules`."""
    return {"entering_king": options.entering_king, "max_moves": options.max_moves or 0}


def new_game(options: Options, sfen: str = STARTPOS) -> ShogiGame:
    return ShogiGame(sfen, **rules_of(options))


def format_opening(game: ShogiGame) -> str:
    return f"{START_WORD} moves {' '.join(format_usi(move) for _, move in game.moves)}"


# -- the referee -------------------------------------------------------------------------------------------------------

# CSA names of endings, except of perpetual check. A failed engine counts as out of time.
CSA_ENDINGS = {
    play.ADJUDICATION: "TORYO",
    play.TRY: "TORYO",  # CSA has no word: the side to move has lost
    play.FAILURE: "TIME_UP",
    play.RESIGNATION: "TORYO",
    play.TIME: "TIME_UP",
    play.ILLEGAL: "ILLEGAL_MOVE",
    play.DECLARATION: "KACHI",
    play.IMPASSE: "JISHOGI",
    play.MATE: "TSUMI",
    play.REPETITION: "SENNICHITE",
    play.MAX_MOVES: "MAX_MOVES",
}


def ending_of(record: GameRecord) -> str:
    """Return the ending of a recorded game as a word of yomi.engine.play.

    Records use ILLEGAL_ACTION or ILLEGAL_MOVE for every foul. It was perpetual check if the last position occurred four
    times, otherwise an illegal move (recorded or not).
    """
    if record.ending != "ILLEGAL_MOVE" and guilty_of(record.ending) is None:
        # The later of two endings with one name is meant.
        return {name: ending for ending, name in CSA_ENDINGS.items()}.get(record.ending, record.ending)
    positions = [(placement.board, placement.hands, placement.side) for placement in record.placements()]
    return play.PERPETUAL_CHECK if positions.count(positions[-1]) >= rules.OCCURRENCES else play.ILLEGAL


# Ends of games by the rules, in English and Japanese.
REASONS = {
    play.MATE: ("{loser} is mated", "詰み"),
    play.REPETITION: ("the position stands for the fourth time", "千日手"),
    play.MAX_MOVES: ("the limit of moves is reached", "手数制限"),
    play.PERPETUAL_CHECK: ("{loser} gave perpetual check", "連続王手の千日手"),
    play.TRY: ("the king has reached the start of the other king", "トライ"),
}


def describe(ended: Ended) -> str:
    """Return a sentence about a game that ended by the rules, such as by mate or repetition."""
    reason = REASONS[ended.ending][0].format(loser=COLOR_NAMES.get(opponent(ended.winner), ""))
    return f"draw: {reason}" if ended.winner == DRAW else f"{COLOR_NAMES[ended.winner]} wins: {reason}"


def describe_japanese(ended: Ended, sides: Mapping[int, str]) -> str:
    """Return a Japanese sentence about a game that ended by the rules. `sides` are the sides' names."""
    reason = REASONS[ended.ending][1]
    return f"{reason}（引き分け）" if ended.winner == DRAW else f"{sides[ended.winner]}の勝ち（{reason}）"


def csa_ending(ended: Ended, game: ShogiGame) -> str:
    if ended.ending == play.PERPETUAL_CHECK:
        return illegal_action(opponent(ended.winner))
    name = CSA_ENDINGS[ended.ending]
    if name in ("TORYO", "TIME_UP", "ILLEGAL_MOVE") and ended.winner == game.side_to_move:
        return "CHUDAN"  # the side that was not to move has lost: no record has a word for it
    return name


class ShogiReferee(Referee[ShogiGame]):
    """Ends games by mate, a try, a fourth repetition, or the move limit."""

    def judge(self, game: ShogiGame) -> Ended | None:
        return game.outcome()


def open_referee(player: object) -> ShogiReferee:
    return ShogiReferee()
