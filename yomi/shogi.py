"""Games of shogi: `Game`, and records in CSA, KIF, KI2, JKF and USI."""

from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from yomi.engine.color import BLACK
from yomi.engine.shogi.diagram import shogi_board
from yomi.engine.shogi.game import ShogiGame, describe
from yomi.engine.shogi.notation import NotationError, format_usi, parse_any
from yomi.engine.shogi.placement import START_WORD, STARTPOS, source_of, target_of
from yomi.engine.shogi.records.files import load_records, read_records, save_records, to_bytes
from yomi.engine.shogi.records.record import ENDINGS, GameRecord, RecordError, record_of
from yomi.errors import IllegalMove, reraised
from yomi.library import arguments
from yomi.library.position import FileRecord, Position, Result, move_text, place_of, with_info
from yomi.library.values import Names
from yomi.native.shogi.planes import policy_index

__all__ = ["Game", "Record", "parse", "read"]

FORMATS = {"csa": ".csa", "kif": ".kifu", "usi": ".usi"}
LABELS = 27 * 81
"""Number of labels of dlshogi's policy."""
NAMES = Names(format_usi, False, None)


class Game(Position[ShogiGame]):
    """A game of shogi. Moves are USI, such as "7g7f" and "P*5e". As integers they are dlshogi's labels, 0 to 2186."""

    game = "shogi"

    def __init__(self, sfen: str = START_WORD, *, entering_king: str = "27", max_moves: int = 0) -> None:
        """Begin a game.

        Args:
            sfen: the initial position; "startpos" for the usual one.
            entering_king: rule of the declaration win: none, 24, 24h, 27, 27h or try.
            max_moves: number of moves after which the game is drawn; 0 for no limit.

        Raises:
            Error: the position is impossible, or a rule is unknown.
        """
        initial = STARTPOS if sfen == START_WORD else arguments.text("sfen", sfen, "a position as SFEN")
        rule = arguments.text("entering_king", entering_king)
        self._raw = ShogiGame(initial, entering_king=rule, max_moves=arguments.whole("max_moves", max_moves, 0, 65535))

    @property
    def sfen(self) -> str:
        """The position as SFEN."""
        return self._raw.sfen()

    @property
    def in_check(self) -> bool:
        """Whether the side to move is in check."""
        return self._raw.in_check

    @property
    def key(self) -> int:
        """A hash of board, hands and side to move."""
        return int(self._raw.position["key"])

    def result(self) -> Result | None:
        """Return how the game ended: mate, repetition or the limit of moves; None if it is not over."""
        outcome = self._raw.outcome()
        return None if outcome is None else Result(outcome.winner, describe(outcome))

    def move_index(self, move: str) -> int:
        """Return the index of a move in a policy."""
        return self._index(self._parse(move))

    def move_at(self, index: int) -> str:
        """Return the legal move with an index in a policy."""
        index = place_of(index)
        for code in self._raw.legal_moves():
            if self._index(code) == index:
                return format_usi(code)
        raise IllegalMove(f"move {index} found, expected the policy's place of a legal move")

    def _index(self, code: int) -> int:
        return int(policy_index(self._raw.position, code, 0))

    def _parse(self, text: str) -> int:
        with reraised(NotationError, IllegalMove):
            return parse_any(move_text(text), self._raw.placement, self._raw.last_target, self._raw.is_legal)

    def _text(self, code: int) -> str:
        return format_usi(code)

    @property
    def _names(self) -> Names:
        return NAMES

    # -- records -------------------------------------------------------------------------------------------------------

    def to_text(self, form: str = "csa", **info: str) -> str:
        """Return the game as a record.

        Args:
            form: csa, kif or usi.
            info: black, white: names; ending: CSA's word, such as TORYO.

        Raises:
            Error: the form or the ending is unknown.
        """
        if form not in FORMATS:
            raise RecordError(f"record format {form!r} found, expected one of {', '.join(FORMATS)}")
        return to_bytes([self._record(info, FORMATS[form])], FORMATS[form]).decode()

    def write(self, path: str | PathLike[str], **info: str) -> None:
        """Write the game to a file: .csa, .kif, .kifu, .usi; the other arguments are those of `to_text`.

        Raises:
            Error: another ending of the name, or the file cannot be written.
        """
        save_records(file := arguments.path("path", path), [self._record(info, file.suffix)])

    def _record(self, info: Mapping[str, str], suffix: str) -> GameRecord:
        if any(info.values()) and suffix.lower() in (".usi", ".sfen"):
            raise RecordError(f"{', '.join(info)} found, expected none for USI, which has moves only")
        if ending := info.get("ending"):
            arguments.one_of("ending", ending, ENDINGS)
        return with_info(record_of(self._raw), info, "black", "white", "ending")

    # -- to look at ----------------------------------------------------------------------------------------------------

    def svg(self, *, bottom: int = BLACK) -> str:
        """Return the board with both hands as SVG; `bottom` is the side at the bottom."""
        bottom = arguments.side("bottom", bottom)
        placement = self._raw.placement
        squares: tuple[int, ...] = ()
        if self._raw.moves:
            move = self._raw.moves[-1][1]
            source = source_of(move)
            squares = (target_of(move),) if source is None else (source, target_of(move))
        return shogi_board(
            placement.board, placement.hands, last=squares, side_to_move=self.side_to_move, bottom=bottom
        )


def relabelled(games: Sequence[ShogiGame], policy: NDArray[np.float32], form: int) -> NDArray[np.float32]:
    """Convert policies from the labels of a network's form to dlshogi's labels, which `Game` uses."""
    found = np.zeros((len(games), LABELS), np.float32)
    for row, game in enumerate(games):
        record = game.position.copy()
        record["form"] = form
        for code in game.legal_moves():
            found[row, policy_index(game.position, code, 0)] = policy[row, policy_index(record, code, 0)]
    return found


class Record(FileRecord[GameRecord]):
    """A game from a file: its moves, and the players, ending and headers that the file contains."""

    @property
    def ending(self) -> str:
        """How the game ended: a CSA keyword such as TORYO, or empty if unknown."""
        return self._raw.ending

    @property
    def winner(self) -> int | None:
        """BLACK, WHITE, 0 for a draw, None if unknown."""
        return self._raw.winner

    @property
    def info(self) -> dict[str, str]:
        """Further headers. The keys are CSA's names, such as EVENT."""
        return dict(self._raw.info)

    @property
    def moves(self) -> list[str]:
        """The moves of the game."""
        return [format_usi(move.move) for move in self._raw.moves]

    def game(self, moves: int | None = None) -> Game:
        """Return the game after the first `moves` moves; None for all.

        Raises:
            Error: the rules forbid a move.
        """
        return Game._of(self._raw.game(None if moves is None else arguments.whole("moves", moves, 0)))

    def positions(self) -> list[Game]:
        """Return copies of the game before each move, and at its end."""
        return [Game._of(game) for game in self._raw.games()]


def read(path: str | PathLike[str]) -> list[Record]:
    """Read the games of a file: CSA, KIF, KI2, JKF or lines of USI.

    Raises:
        Error: the file cannot be read.
    """
    return [Record(record) for record in load_records(arguments.path("path", path))]


def parse(text: str | bytes) -> list[Record]:
    """Read the games of a text: CSA, KIF, KI2, JKF or lines of USI.

    Raises:
        Error: the text cannot be read.
    """
    return [Record(record) for record in read_records(arguments.text_or_bytes("text", text))]
