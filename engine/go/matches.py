"""Matches of Go: set-up, scoring and records of games."""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yomi.engine.clients.client import EngineError, OnStart, RefusedError
from yomi.engine.clients.gtp import GtpClient
from yomi.engine.clients.spec import SpecError, parse_spec
from yomi.engine.clock import TimeSettings
from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.descriptor import GAME
from yomi.engine.go.game import GoGame, format_opening, new_game
from yomi.engine.go.points import VertexError, format_color, square
from yomi.engine.go.record_files import load_records
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.go.scoring import (
    MOVES_PER_POINT,
    GoReferee,
    dead_stones,
    final_score,
    ownership_by_rollouts,
    read_result,
    sgf_result,
)
from yomi.engine.go.sgf import GameRecord, SgfError, escaped, record_of
from yomi.engine.matches.games import MatchGame
from yomi.engine.matches.results import GameLog, GameResult, MatchError, UnscoredError, key_of
from yomi.engine.options import Options
from yomi.engine.play import Ended
from yomi.engine.players.request import Decision
from yomi.native.go.board import EMPTY, PASS

SCORER_TIMEOUT = 300.0
# Scorers: all stones are alive; rollouts find dead stones. Any other scorer is a GTP engine's command line.
AREA, OWNERSHIP = "area", "ownership"


class GoMatches(MatchGame[GoGame]):
    client = GtpClient
    suffixes = GAME.suffixes

    def rules(self, options: Options, scorer: str | None, max_moves: int) -> dict[str, Any]:
        """Return board, komi and rules of a match. For `scorer` see ScoringReferee."""
        game = new_game(options)
        return {
            "size": game.board.side,
            "komi": game.komi,
            "rules": str(game.rules),
            "scorer": scorer or (OWNERSHIP if game.rules.has_agreement else AREA),
            "max_moves": max_moves or MOVES_PER_POINT * game.board.area,
        }

    def referee(self, rules: Mapping[str, Any], on_start: OnStart | None) -> "ScoringReferee":
        return ScoringReferee(rules["scorer"], rules["max_moves"], on_start)

    def begin(self, rules: Mapping[str, Any], opening: str) -> GoGame:
        """Return a game after the moves of an opening. Black plays the first of them."""
        game = GoGame(square(rules["size"]), Rules.parse(rules["rules"]), rules["komi"])
        for text in opening.split():
            game.push(game.board.parse_vertex(text))
        return game

    def set_up(self, client: GtpClient, game: GoGame, clock: TimeSettings) -> None:
        """Send board, komi, rules, clock and handicap stones to an engine."""
        stones = [self.format_move(game, point) for _, point in game.setup] if game.handicap else []
        client.new_game(game.board.side, game.komi, str(game.rules), clock, stones)

    def read_answer(self, game: GoGame, text: str) -> Decision:
        try:
            move = game.board.parse_vertex(text)
        except VertexError:
            raise ValueError(f"'{text[:40]}' found, expected a vertex") from None
        if not game.is_legal(game.side_to_move, move):
            taken = move != PASS and game.color_at(move) != EMPTY
            why = "the point is taken" if taken else "ko, superko or suicide"
            raise ValueError(f"{game.board.vertex(move)} at move {len(game.moves) + 1}: {why}")
        return Decision(move)

    def records(self, sheet: GameLog[GoGame], ended: Ended, event: str) -> dict[str, bytes]:
        comments = [f"{event}: {ended.ending} {ended.detail}".strip()]
        for answer in sheet.answers:
            said = "opening" if answer is None else f"{answer.seconds:.2f} s {answer.evaluation or ''}"
            comments.append(said.strip())
        record = record_of(sheet.game, comments)
        record.black, record.white = (sheet.clients[color].spec.name for color in (BLACK, WHITE))
        record.date = time.strftime("%Y-%m-%d")
        record.result = sgf_result(ended)
        record.root.other["AP"] = ["yomi"]
        for key, color in (("BT", BLACK), ("WT", WHITE)):
            record.root.other[key] = [escaped(sheet.clients[color].title)]
        return {".sgf": record.to_sgf().encode("utf-8")}

    def load_records(self, path: Path) -> list[GameRecord]:
        return load_records(path)

    def opening_of(self, record: GameRecord, moves: int | None, rules: Mapping[str, Any]) -> str:
        """Return the vertices of a record's moves. They must alternate, on an empty board of the match's size."""
        size = rules["size"]
        if record.board != square(size):
            raise SgfError(f"a board of {record.board}, expected {size}x{size} (--size)")
        game = record.game(moves, rules=PRESETS["chinese"])
        if game.setup or any(color != 1 + number % 2 for number, (color, _) in enumerate(game.moves)):
            raise SgfError("stones set up, or two moves in a row: expected moves in turn from an empty board")
        return format_opening(game)

    def result_of(self, record: GameRecord) -> GameResult | None:
        """Return the result of a recorded game, without times; None if it has none."""
        winner, ending, _ = read_result(record.result)
        if winner is None:
            return None
        moves = [node.move for node in record.line() if node.move]
        key = key_of(f"{record.board.width} {moves}")
        return GameResult(
            0, record.black, record.white, winner, ending, detail=record.result, plies=len(moves), key=key
        )

    def moves_of(self, record: GameRecord) -> list[str]:
        return [record.board.vertex(node.move[1]) for node in record.line() if node.move]

    def format_move(self, game: GoGame, move: int) -> str:
        return game.board.vertex(move)


class ScoringReferee(GoReferee):
    """A GoReferee with a choice of scorers. Each thread needs its own."""

    def __init__(self, scorer: str, max_moves: int = 0, on_start: OnStart | None = None) -> None:
        """Score by `scorer`: AREA, OWNERSHIP, or the command line of an engine."""
        super().__init__(self.score, max_moves)
        self.scorer, self._on_start = scorer, on_start
        self._client: GtpClient | None = None

    def start(self, game: GoGame) -> None:
        """Start the scoring engine, if there is one and it is not running.

        Args:
            game: an example of the games to score.

        Raises:
            MatchError: the engine does not start, or cannot score such games.
        """
        if self.scorer in (AREA, OWNERSHIP) or (self._client is not None and self._client.process.is_running):
            return
        self.close()
        try:
            spec = parse_spec(self.scorer, GAME.name, GAME.protocol)
            self._client = GtpClient(spec, timeout=SCORER_TIMEOUT, on_start=self._on_start)
            if not self._client.knows("final_score"):
                raise RefusedError("knows no command final_score")
            self._client.new_game(game.board.side, game.komi, str(game.rules), TimeSettings())
        except (SpecError, EngineError) as error:
            raise MatchError(self._fault(error)) from None

    def score(self, game: GoGame) -> float:
        """Return Black's points minus White's. Call `start` first. Raises UnscoredError if the engine fails."""
        if self.scorer == AREA:
            return final_score(game)
        if self.scorer == OWNERSHIP:
            return final_score(game, dead_stones(game, ownership_by_rollouts(game)))
        assert self._client is not None
        try:
            return self._ask(self._client, game)
        except EngineError as error:
            raise UnscoredError(self._fault(error)) from None

    def _fault(self, error: Exception) -> str:
        return f"--scorer {self.scorer}: {error}"

    def _ask(self, client: GtpClient, game: GoGame) -> float:
        client.new_game(game.board.side, game.komi, str(game.rules), TimeSettings())
        for color, move in game.moves:
            client.play(format_color(color), game.board.vertex(move))
        text = client.ask("final_score", SCORER_TIMEOUT).strip()
        if text == "0":
            return 0.0
        match = re.fullmatch(r"([BbWw])\+([0-9.]+)", text.split()[0] if text else "")
        if match is None:
            raise EngineError(f"final_score was '{text[:80]}': expected B+3.5, W+0.5 or 0")
        return float(match[2]) * (1 if match[1] in "Bb" else -1)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
