"""Games of Go: `Game`, and records in SGF, GIB, NGF and UGF."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.go.game import GoGame, score_text
from yomi.engine.go.points import Board, HandicapError, VertexError
from yomi.engine.go.record_files import each_record, load_records
from yomi.engine.go.rules import Rules
from yomi.engine.go.scoring import final_score
from yomi.engine.go.sgf import GameRecord, SgfError, record_of
from yomi.engine.go.svg import goban
from yomi.engine.options import MAX_KOMI
from yomi.engine.pictures import Grid, rows_of
from yomi.errors import Error, IllegalMove, reraised
from yomi.library import arguments
from yomi.library.position import FileRecord, Position, Result, move_text, place_of, with_info
from yomi.library.values import Names
from yomi.native.go.board import MAX_SIZE, MIN_SIZE, PASS
from yomi.nets.files import write_atomically

__all__ = ["Game", "Record", "parse", "read"]


class Game(Position[GoGame]):
    """A game of Go.

    Moves are "D4" or "pass". As integers they are row * width + column from the top left, and width * height for a
    pass.
    """

    game = "go"

    def __init__(
        self,
        size: int = 19,
        *,
        height: int | None = None,
        rules: str = "tromp-taylor",
        komi: float | None = None,
        handicap: Iterable[str] = (),
    ) -> None:
        """Begin a game.

        Args:
            size: columns, 2 to 19.
            height: rows; None for a square board.
            rules: a name such as "japanese" (`yomi help options`), or KataGo's JSON.
            komi: None for the komi of the rules.
            handicap: points of handicap stones; White moves first then.

        Raises:
            Error: size, rules, komi or handicap cannot be.
        """
        width = arguments.whole("size", size, MIN_SIZE, MAX_SIZE)
        board = Board(width, width if height is None else arguments.whole("height", height, MIN_SIZE, MAX_SIZE))
        if komi is not None and not arguments.is_number(komi, -MAX_KOMI, MAX_KOMI):
            raise arguments.wrong("komi", komi, f"a number from -{MAX_KOMI:g} to {MAX_KOMI:g}")
        self._raw = GoGame(board, _rules(rules), komi)
        points = self._points("handicap", handicap)
        if points:
            with reraised(HandicapError, IllegalMove):
                self._raw.place_handicap(points)

    @property
    def size(self) -> int:
        """Length of a square board's side. Raises Error on other boards, which have `width` and `height`."""
        return self._raw.board.side

    @property
    def width(self) -> int:
        return self._raw.board.width

    @property
    def height(self) -> int:
        return self._raw.board.height

    @property
    def rules(self) -> str:
        """Name of the rules, or KataGo's JSON for rules without a name."""
        return self._raw.rules.name or str(self._raw.rules)

    @property
    def komi(self) -> float:
        """Komi without compensation for handicap stones."""
        return self._raw.komi

    @property
    def board(self) -> list[list[int]]:
        """The stones as a list of rows, top row first. Each point is 0 (empty), BLACK or WHITE."""
        colors = self._raw.position["color"].tolist()
        return [[colors[point] for point in row] for row in self._raw.board.rows(self._raw.board.points)]

    @property
    def key(self) -> int:
        """A hash of stones, side to move and ko."""
        position = self._raw.position
        return hash((self._raw.board, int(position["hash"]), self.side_to_move, int(position["simple_ko"])))

    def play(self, move: str | int, color: int | None = None) -> Game:
        """Play a move and return this game.

        Args:
            move: the move.
            color: BLACK or WHITE, also out of turn; None for the side to move.

        Raises:
            IllegalMove: the move cannot be read or is illegal; the game has not changed.
        """
        code = self._code(move)
        player = self.side_to_move if color is None else arguments.side("color", color)
        self._raw.play(player, code)
        return self

    def result(self, dead: Iterable[str] = ()) -> Result | None:
        """Return how the game ended; None if it is not over.

        Args:
            dead: stones to remove before counting. `Engine.dead_stones` finds them.
        """
        if not self.is_over:
            return None
        if self._raw.is_no_result:
            return Result(DRAW, "Void")
        lead = self.lead(dead)
        return Result(BLACK if lead > 0 else WHITE if lead < 0 else DRAW, score_text(lead))

    def lead(self, dead: Iterable[str] = ()) -> float:
        """Return Black's points minus White's on the current board, with komi and without the `dead` stones."""
        return final_score(self._raw, self._points("dead", dead))

    def move_index(self, move: str) -> int:
        """Return the index of a move in a policy: row * width + column, or width * height for a pass."""
        return self._raw.board.index(self._parse(move))

    def move_at(self, index: int) -> str:
        """Return the move with an index in a policy."""
        board, index = self._raw.board, place_of(index)
        if not 0 <= index <= board.area:
            raise IllegalMove(f"move {index} found, expected 0 to {board.area}")
        return board.vertex(board.move_at(index))

    def _parse(self, text: str) -> int:
        with reraised(VertexError, IllegalMove):
            return self._raw.board.parse_vertex(move_text(text))

    def _points(self, name: str, moves: Iterable[str]) -> list[int]:
        """Return an argument that lists stones as points. `name` is the argument's name for the error message."""
        return [self._parse(move) for move in arguments.items(name, moves, 'a list of points such as ["D4"]')]

    def _text(self, code: int) -> str:
        return self._raw.board.vertex(code)

    def _is_legal(self, code: int) -> bool:
        return self._raw.is_legal(self.side_to_move, code)

    @property
    def _names(self) -> Names:
        return Names(self._text, True, (self._raw.board.height, self._raw.board.width))

    # -- records -------------------------------------------------------------------------------------------------------

    def to_sgf(self, comments: Sequence[str] = (), **info: Any) -> str:
        """Return the game as SGF.

        Args:
            comments: one for the initial position, then one for each move; may be shorter.
            info: black, white, result, date: text.
        """
        return self._record(comments, info).to_sgf()

    def write(self, path: str | PathLike[str], comments: Sequence[str] = (), **info: Any) -> None:
        """Write the game to a file in SGF; the arguments are those of `to_sgf`.

        Raises:
            Error: the file cannot be written.
        """
        file, text = arguments.path("path", path), self.to_sgf(comments, **info)
        with reraised(OSError, Error, f"cannot write {file}: "):
            write_atomically(file, text.encode())

    def _record(self, comments: Sequence[str], info: Mapping[str, Any]) -> GameRecord:
        expected = "a list of texts"
        texts = [arguments.text("comments", each, expected) for each in arguments.items("comments", comments, expected)]
        return with_info(record_of(self._raw, texts), info, "black", "white", "result", "date")

    # -- to look at ----------------------------------------------------------------------------------------------------

    def svg(
        self,
        *,
        heat: Grid | None = None,
        ownership: Grid | None = None,
        labels: Mapping[str, str] | None = None,
        numbers: Mapping[str, int] | None = None,
        coordinates: bool = True,
    ) -> str:
        """Return the board as SVG.

        Args:
            heat: a value from -1 to 1 for each point, such as a policy: rows from the top.
            ownership: from -1 (White) to 1 (Black) for each point.
            labels: short texts by move, such as {"D4": "A"}.
            numbers: move numbers by move.
            coordinates: draw letters and numbers beside the board.
        """
        last = self._raw.last_move
        return goban(
            self.board,
            self._raw.board,
            last=None if last is None or last[1] == PASS else self._raw.board.coordinates(last[1]),
            labels={place: str(label) for place, label in self._marks("labels", labels)},
            numbers=dict(self._marks("numbers", numbers)),
            heat=self._grid("heat", heat),
            ownership=self._grid("ownership", ownership),
            coordinates=coordinates,
        )

    def _marks(self, name: str, marks: Any) -> Iterator[tuple[tuple[int, int], Any]]:
        """Yield (column, row) and the mark of each move in an argument such as `labels`."""
        if not isinstance(marks, Mapping | None):
            raise arguments.wrong(name, marks, 'a mapping such as {"D4": ...}')
        for move, mark in (marks or {}).items():
            code = self._parse(move)
            if code == PASS:
                raise IllegalMove(f"{name}: {move} found, expected points")
            yield self._raw.board.coordinates(code), mark

    def _grid(self, name: str, grid: Grid | None) -> Grid | None:
        board = self._raw.board
        try:
            return None if grid is None else rows_of(grid, board.width, board.height, name)
        except (TypeError, ValueError):
            raise arguments.wrong(name, grid, f"{board.height} rows of {board.width} numbers") from None


class Record(FileRecord[GameRecord]):
    """A game from a file: its moves, and the players, result and date that the file contains."""

    @property
    def result(self) -> str:
        """The result as in SGF: "B+3.5", "W+R", "0", or empty."""
        return self._raw.result

    @property
    def date(self) -> str:
        """The date as written in the record, in SGF usually YYYY-MM-DD; empty if there is none."""
        return self._raw.date

    def game(self, moves: int | None = None, *, rules: str | None = None) -> Game:
        """Return the game after a number of moves of the main line.

        Args:
            moves: number of moves; None for all.
            rules: rules for a record that names none. None guesses them, and adds a note to `notes`.

        Raises:
            Error: a move or the set-up cannot be played.
        """
        number = None if moves is None else arguments.whole("moves", moves, 0)
        return Game._of(self._raw.game(number, rules=_default(rules)))

    def positions(self, *, rules: str | None = None) -> list[Game]:
        """Return copies of the game before each move of the main line, and at its end."""
        return [Game._of(game.copy()) for game in self._raw.replay(rules=_default(rules))]

    @property
    def moves(self) -> list[str]:
        """The moves of the main line."""
        return [self._raw.board.vertex(node.move[1]) for node in self._raw.line() if node.move]


def _rules(text: str) -> Rules:
    return Rules.parse(arguments.text("rules", text, 'a name such as "japanese"'))


def _default(rules: str | None) -> Rules | None:
    return None if rules is None else _rules(rules)


def read(path: str | PathLike[str]) -> list[Record]:
    """Read the games of a file: SGF, GIB, NGF or UGF.

    Raises:
        Error: the file cannot be read, or has no game.
    """
    return [Record(found) for found in load_records(arguments.path("path", path))]


def parse(text: str | bytes) -> list[Record]:
    """Read the games of a text: SGF, GIB, NGF or UGF.

    Raises:
        Error: the text has no game.
    """
    text = arguments.text_or_bytes("text", text)
    found = list(each_record(text.encode() if isinstance(text, str) else text))
    records = [Record(record) for record in found if isinstance(record, GameRecord)]
    if not records:
        raise next(error for error in found if isinstance(error, SgfError))
    return records
