"""One game on CGOS: the engine that plays it, the moves, the clocks and the record."""

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.engine.clients.client import EngineError, Evaluation
from yomi.engine.clients.gtp import GtpClient
from yomi.engine.clock import Clock, Clocks, TimeSettings, TimeSystem
from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.cgos.codec import Setup, cgos_json
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.player import GoPlayer
from yomi.engine.go.points import VertexError
from yomi.engine.go.record_files import load_record
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.scoring import read_result
from yomi.engine.go.sgf import GameRecord, Node, escaped
from yomi.engine.players.request import Request
from yomi.engine.servers.connection import OutOfStepError
from yomi.engine.servers.game import EngineSeat, GaveUpError, MoveTask, ServerGame, YomiSeat
from yomi.engine.servers.settings import Account
from yomi.errors import IllegalMove, reraised
from yomi.nets.files import write_atomically

# CGOS's rules: area, positional superko, no suicide, all stones alive at the end.
RULES = PRESETS["tromp-taylor"].with_rule("suicide", "false")
WAIT_SECONDS = 60.0  # between two looks whether pondering shall end; its end comes at once


@dataclass(frozen=True, slots=True)
class GoReply:
    vertex: str  # a point, `pass` or `resign`
    analysis: str = ""  # JSON in CGOS's form; empty if there is none
    comment: str = ""  # the evaluation for the record


class YomiGoSeat(YomiSeat[GoPlayer]):
    def begin(self, setup: Setup, them: int) -> None:
        """Set up a game against color `them`, and load everything for its board before a clock runs."""
        self._setup = setup
        self._player.new_game(GoGame(setup.board, RULES, setup.komi))

    def think(self, turn: MoveTask) -> GoReply:
        player, board, request = self._player, self._setup.board, turn.request
        game = request.game = GoGame(board, RULES, self._setup.komi)
        for ply, vertex in enumerate(turn.moves):  # legality is not checked, because the server's ko rule may differ
            game.play(color_at(ply), board.parse_vertex(vertex), strict=False)
        request.hide_history = player.options.ignore_pre_root_history
        if request.is_pondering:
            player.start(request)  # `decide` would obey limits of visits, and spend a second on dead stones
            while not request.wait(WAIT_SECONDS):
                pass
            player.stop()
            return GoReply("pass")
        decision = player.decide(request)
        report = decision.report
        analysis = cgos_json(report, board) if report.moves else ""
        comment = str(Evaluation(report.winrate, report.score_lead, report.visits)) if analysis else ""
        if decision.resign or decision.move is None:
            return GoReply("resign", analysis, comment)
        return GoReply(board.vertex(decision.move).lower(), analysis, comment)


NEEDED = ("boardsize", "clear_board", "komi", "play", "genmove", "quit")


class GtpSeat(EngineSeat[GtpClient]):
    ponders = False  # the engine decides by itself whether it ponders

    def __init__(self, account: Account) -> None:
        """Start the engine. Raises GaveUpError if it does not start, or lacks a command."""
        super().__init__(account, GtpClient)
        missing = [command for command in NEEDED if not self._client.knows(command)]
        if missing:
            self._client.close()
            raise GaveUpError(f"{account.name}: {self.name} has no command {missing[0]}: expected {', '.join(NEEDED)}")

    def begin(self, setup: Setup, them: int) -> None:
        client = self._client
        client.new_game(setup.board.side, setup.komi, str(RULES), TimeSettings(TimeSystem.ABSOLUTE, setup.seconds))
        for command, texts in (("cgos-opponent_name", setup.names), ("cgos-opponent_rating", setup.ratings)):
            if texts[them] and client.knows(command):
                client.ask(f"{command} {texts[them]}")
        self._setup, self._them, self._moves = setup, them, list[str]()

    def think(self, turn: MoveTask) -> GoReply:
        if list(turn.moves[: len(self._moves)]) != self._moves:  # the server lacks a move
            self.begin(self._setup, self._them)
        color, spent = color_at(len(turn.moves)), time.monotonic() - turn.request.start
        assert turn.request.clocks is not None
        clocks = {
            side: Clock(clock.settings, max(clock.main - spent, 0.0)) for side, clock in turn.request.clocks.items()
        }
        found = self._client.choose("", turn.moves, color, clocks)
        vertex = found.move.lower()
        self._moves = [*turn.moves, vertex]
        if not re.fullmatch(r"[a-z][0-9]{1,2}|pass|resign", vertex):
            raise EngineError(f"answered '{found.move[:80]}' to genmove: expected a move")
        raw = found.report if found.report.startswith("{") else ""
        return GoReply(vertex, raw or analysis_of(vertex, found.evaluation), str(found.evaluation or ""))

    def end(self, result: str) -> None:
        if self._client.knows("cgos-gameover"):
            self._client.ask(f"cgos-gameover {result}")


def analysis_of(vertex: str, evaluation: Evaluation | None) -> str:
    """Return the evaluation of a move in CGOS's form; empty if there is no evaluation."""
    if evaluation is None or evaluation.winrate is None:
        return ""
    data: dict[str, object] = {"winrate": float(f"{evaluation.winrate:.6g}")}
    if evaluation.score is not None:
        data["score"] = evaluation.score
    if evaluation.visits is not None:
        data["visits"] = evaluation.visits
    move = {"move": vertex.upper(), **data, "pv": " ".join(evaluation.pv[1:]).upper()}
    return json.dumps({"moves": [move], **data}, separators=(",", ":"))


GoSeat = YomiGoSeat | GtpSeat

TIME_LEFT = {BLACK: "BL", WHITE: "WL"}  # SGF properties
SERVER_RESULTS = {"Draw": "0", "Abort": "Void"}


@dataclass(slots=True)
class Move:
    color: int
    vertex: str
    left: float | None = None  # seconds on the player's clock after the move; None until the server has reported it
    comment: str = ""


def color_at(ply: int) -> int:
    return BLACK if ply % 2 == 0 else WHITE


class CgosGame(ServerGame[GoReply]):
    suffix = ".sgf"

    def __init__(self, setup: Setup, color: int, records: Path) -> None:
        """Begin a game, or continue one that the server has resumed. Raises OSError or OutOfStepError."""
        record_name = f"{setup.game_id}-{setup.names[WHITE]}-{setup.names[BLACK]}"
        super().__init__(setup.game_id, color, setup.names, records, record_name)
        self.setup = setup
        self.moves = _moves_of(setup)
        self.board = _board_of(setup)
        self.left = {BLACK: setup.seconds, WHITE: setup.seconds}
        # When the server asked for our pending move (time.monotonic()); None if no move is pending.
        self.due: float | None = None
        # (seconds on our clock before our last move, seconds that the move took here).
        self.sent: tuple[float, float] | None = None
        self.resumed_at = 0  # number of moves in the setup that last resumed the game
        self.result = ""
        self._date = time.strftime("%Y-%m-%d")
        record = self.find_record(load_record, self._is_ours, has_moves=bool(self.moves))
        if record is not None:
            self._date = record.date
            for node, move in zip(_moves_in(record), self.moves, strict=False):
                move.comment = node.comment

    @property
    def ply(self) -> int:
        return len(self.moves)

    @property
    def side_to_move(self) -> int:
        return color_at(self.ply)

    @property
    def asked_at(self) -> float | None:
        return self.due

    def task(self, request: Request[Any], *guess: str) -> MoveTask:
        return MoveTask("", (*(move.vertex for move in self.moves), *guess), request, self.ply + len(guess))

    def clocks(self, spent: float = 0.0) -> Clocks:
        settings = TimeSettings(TimeSystem.ABSOLUTE, self.setup.seconds)
        return {color: Clock(settings, left) for color, left in self.left.items()}

    def is_resumed_by(self, setup: Setup) -> bool:
        """Return whether a setup continues this game: it has the same id, size, komi and players."""
        ours, theirs = ((one.game_id, one.board, one.komi, one.names) for one in (self.setup, setup))
        return ours == theirs

    def resume(self, setup: Setup) -> bool:
        """Adopt the server's moves. Return whether our decision is still valid: at most our last move may be missing.

        Raises OutOfStepError and changes nothing if the server sent an illegal move.
        """
        self.board = _board_of(setup)
        server = _moves_of(setup)
        ours, theirs = ([(move.color, move.vertex) for move in moves] for moves in (self.moves, server))
        self.due = self.sent = None
        is_lost = bool(self.moves) and self.moves[-1].color == self.color and theirs == ours[:-1]
        for old, new in zip(self.moves, server, strict=False):
            if (old.color, old.vertex) == (new.color, new.vertex):
                new.comment = old.comment
        self.moves = server
        return theirs == ours or is_lost

    def _is_ours(self, record: GameRecord) -> bool:
        """Return whether a record is an unfinished record of this game. Our last move may be missing on the server."""
        played = [node.move for node in _moves_in(record)]
        setup = self.setup
        try:
            known = [(move.color, setup.board.parse_vertex(move.vertex)) for move in self.moves]
        except VertexError:  # `to_sgf` writes a comment about it
            return False
        names = setup.names[BLACK], setup.names[WHITE]
        is_same = (record.board, record.komi, record.black, record.white) == (setup.board, setup.komi, *names)
        count = min(len(known), len(played))
        return is_same and not record.result and len(played) <= len(known) + 1 and played[:count] == known[:count]

    def play(self, color: int, vertex: str, left: float | None = None, comment: str = "") -> None:
        """Add a move of either side. Raises OutOfStepError and changes nothing if it is illegal."""
        _play(self.board, color, vertex)
        self.moves.append(Move(color, vertex, left, comment))
        if left is not None:
            self.left[color] = left

    def note_left(self, color: int, left: float) -> None:
        """Set our clock, and store the time left after our last move."""
        self.left[color] = left
        for move in reversed(self.moves):
            if move.color == color:
                move.left = left
                return

    def finish(self, result: str) -> int | None:
        """Set the result. Return +1 for our win, -1 for a loss, 0 for a draw, or None without a result."""
        self.result = result
        winner, _, _ = read_result(result)
        return winner if not winner else 1 if winner == self.color else -1

    def to_sgf(self) -> str:
        """Return the record as SGF. It ends before a move that is not on the board."""
        setup = self.setup
        result = SERVER_RESULTS.get(self.result, self.result.replace("Resign", "R").replace("Time", "T"))
        record = GameRecord(setup.board, setup.komi, RULES, black=setup.names[BLACK], white=setup.names[WHITE])
        record.result, record.date, record.seconds = result, self._date, setup.seconds
        node = record.root = Node()
        ratings = {key: setup.ratings[color] for key, color in (("BR", BLACK), ("WR", WHITE))}
        node.other = {key: [escaped(text)] for key, text in ratings.items() if text}
        for move in self.moves:
            try:
                point = setup.board.parse_vertex(move.vertex)
            except VertexError as error:
                node.comment = f"{node.comment}\n{error}".strip()
                break
            node = node.add(move.color, point, move.comment)
            if move.left is not None:
                node.other[TIME_LEFT[move.color]] = [f"{move.left:.3f}"]
        return record.to_sgf()

    def save(self) -> None:
        write_atomically(self.path, self.to_sgf().encode("utf-8"))


def _moves_in(record: GameRecord) -> list[Node]:
    return [node for node in record.line() if node.move is not None]


def _moves_of(setup: Setup) -> list[Move]:
    return [Move(color_at(i), vertex, left) for i, (vertex, left) in enumerate(setup.moves)]


def _board_of(setup: Setup) -> GoGame:
    board = GoGame(setup.board, RULES, setup.komi)
    for move in _moves_of(setup):
        _play(board, move.color, move.vertex)
    return board


def _play(board: GoGame, color: int, vertex: str) -> None:
    """Play a move without a test for ko, which the server enforces."""
    with reraised((VertexError, IllegalMove), OutOfStepError, f"move {board.ply + 1}: "):
        board.play(color, board.board.parse_vertex(vertex), strict=False)
