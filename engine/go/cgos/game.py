"""One game on CGOS: moves, clocks and the record."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.go.cgos.codec import Setup
from yomi.engine.go.cgos.seats import RULES, GoReply, GoStart
from yomi.engine.go.game import GoGame, IllegalMove
from yomi.engine.go.record_files import load_record
from yomi.engine.go.sgf import GameRecord, Node, SgfError
from yomi.engine.go.vertex import VertexError, parse_vertex
from yomi.engine.servers.connection import OutOfStepError
from yomi.engine.servers.reporter import RecordFile

log = logging.getLogger("yomi.servers")

TIME_LEFT = {BLACK: "BL", WHITE: "WL"}  # SGF properties
SERVER_RESULTS = {"Draw": "0", "Abort": "Void"}


@dataclass(slots=True)
class Move:
    color: int
    vertex: str
    left: float | None = None  # seconds on the player's clock after the move; None until the server has reported it
    comment: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class MoveSearch:
    """A search in progress for our move."""

    ply: int


class CgosGame:
    def __init__(self, setup: Setup, color: int, records: Path) -> None:
        """Begin a game, or continue one that the server has resumed.

        Raises:
            OSError: the folder for records cannot be created.
            OutOfStepError: the server sent an illegal move.
        """
        self.setup = setup
        self.id = setup.game_id
        self.color = color
        self.moves = _moves_of(setup)
        self.board = _board_of(setup)
        self.left = {BLACK: setup.seconds, WHITE: setup.seconds}
        self.turn: MoveSearch | None = None
        self.decided: tuple[int, GoReply] | None = None  # (ply, our decision for it)
        # When the server asked for our pending move (time.monotonic()); None if no move is pending.
        self.due: float | None = None
        # (seconds on our clock before our last move, seconds that the move took here).
        self.sent: tuple[float, float] | None = None
        self.max_seconds = 0.0  # longest time of one of our moves
        self.resumed_at = 0  # number of moves in the setup that last resumed the game
        self.result = ""
        self._date = time.strftime("%Y-%m-%d")
        name = f"{time.strftime('%Y%m%d')}-{setup.game_id}-{setup.names[WHITE]}-{setup.names[BLACK]}"
        self.file = RecordFile(records, name, ".sgf")
        if self.moves:
            self._take_up_record()

    @property
    def ply(self) -> int:
        return len(self.moves)

    @property
    def opponent(self) -> str:
        return self.setup.names[opponent(self.color)]

    @property
    def side_to_move(self) -> int:
        return BLACK if self.ply % 2 == 0 else WHITE

    def is_resumed_by(self, setup: Setup) -> bool:
        """Whether a setup continues this game: id, size, komi and players are equal."""
        ours, theirs = ((one.game_id, one.size, one.komi, one.names) for one in (self.setup, setup))
        return ours == theirs

    def start(self, is_new: bool) -> GoStart:
        """Return the game's state for the engine."""
        setup = self.setup
        moves = tuple((move.color, move.vertex) for move in self.moves)
        rating = setup.ratings[opponent(self.color)]
        return GoStart(setup.size, setup.komi, setup.seconds, self.opponent, rating, moves, is_new)

    def resume(self, setup: Setup) -> bool:
        """Adopt the server's moves. Return whether the engine's game is still valid.

        It is valid if the server has all moves, or lacks only our last one.

        Raises:
            OutOfStepError: the server sent an illegal move; nothing has changed.
        """
        self.board = _board_of(setup)
        ours = [(move.color, move.vertex) for move in self.moves]
        server = _moves_of(setup)
        theirs = [(move.color, move.vertex) for move in server]
        self.due = self.sent = None
        is_lost = bool(self.moves) and self.moves[-1].color == self.color and theirs == ours[:-1]
        for old, new in zip(self.moves, server, strict=False):
            if (old.color, old.vertex) == (new.color, new.vertex):
                new.comment = old.comment
        self.moves = server
        if theirs == ours or is_lost:
            return True
        self.decided = self.turn = None
        return False

    def _take_up_record(self) -> None:
        """Continue the record that an earlier run wrote, and keep its comments."""
        for path in self.file.of_all_days():
            try:
                record = load_record(path)
            except SgfError as error:
                log.warning("an earlier record of this game is ignored: %s", error)
                continue
            nodes = [node for node in record.line() if node.move is not None]
            if not self._is_ours(record, [node.move for node in nodes]):
                continue
            for node, move in zip(nodes, self.moves, strict=False):
                move.comment = node.comment
            self.file.path, self._date = path, record.date
            return

    def _is_ours(self, record: GameRecord, played: Sequence[tuple[int, int] | None]) -> bool:
        """Whether a record is of this game and unfinished. The server may lack our last move."""
        setup = self.setup
        try:
            known = [(move.color, parse_vertex(move.vertex, setup.size)) for move in self.moves]
        except VertexError:  # `to_sgf` writes a comment about it
            return False
        is_same = (record.size, record.black, record.white) == (setup.size, setup.names[BLACK], setup.names[WHITE])
        count = min(len(known), len(played))
        return is_same and not record.result and len(played) <= len(known) + 1 and played[:count] == known[:count]

    def play(self, color: int, vertex: str, left: float | None = None, comment: str = "") -> None:
        """Add a move of either side. Raises OutOfStepError and changes nothing if it is illegal."""
        _play(self.board, color, vertex)
        self.moves.append(Move(color, vertex, left, comment))
        if left is not None:
            self.left[color] = left

    def note_left(self, color: int, left: float) -> None:
        """Set our clock, and the time left after our last move."""
        self.left[color] = left
        for move in reversed(self.moves):
            if move.color == color:
                move.left = left
                return

    def finish(self, result: str) -> int | None:
        """Set the result. Return +1 for a win, -1 for a loss, 0 for a draw, None without a result."""
        self.result = result
        if result[:2] in ("B+", "W+"):
            winner = BLACK if result[0] == "B" else WHITE
            return 1 if winner == self.color else -1
        return 0 if result in ("Draw", "0") else None

    def to_sgf(self) -> str:
        """Return the record. It ends before a move that is not on the board."""
        setup = self.setup
        result = SERVER_RESULTS.get(self.result, self.result.replace("Resign", "R").replace("Time", "T"))
        record = GameRecord(setup.size, setup.komi, RULES, black=setup.names[BLACK], white=setup.names[WHITE])
        record.result, record.date, record.seconds = result, self._date, setup.seconds
        node = record.root = Node()
        ratings = {key: setup.ratings[color] for key, color in (("BR", BLACK), ("WR", WHITE))}
        node.other = {key: [re.sub(r"([]\\])", r"\\\1", text)] for key, text in ratings.items() if text}
        for move in self.moves:
            try:
                point = parse_vertex(move.vertex, setup.size)
            except VertexError as error:
                node.comment = f"{node.comment}\n{error}".strip()
                break
            node = node.add(move.color, point, move.comment)
            if move.left is not None:
                node.other[TIME_LEFT[move.color]] = [f"{move.left:.3f}"]
        return record.to_sgf()

    def save(self) -> None:
        """Write the record. Raises OSError."""
        self.file.write(self.to_sgf().encode("utf-8"))


def _moves_of(setup: Setup) -> list[Move]:
    return [Move(BLACK if i % 2 == 0 else WHITE, vertex, left) for i, (vertex, left) in enumerate(setup.moves)]


def _board_of(setup: Setup) -> GoGame:
    board = GoGame(setup.size, RULES, setup.komi)
    for move in _moves_of(setup):
        _play(board, move.color, move.vertex)
    return board


def _play(board: GoGame, color: int, vertex: str) -> None:
    """Play a move. The server enforces ko."""
    try:
        board.play(color, parse_vertex(vertex, board.size), strict=False)
    except (VertexError, IllegalMove) as error:
        raise OutOfStepError(f"move {board.ply + 1}: {error}") from None
