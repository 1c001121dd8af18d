"""Games of Go between two GTP engines, with this program as the referee."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.clients.client import EngineClient, OnStart
from engine.clients.gtp import GtpClient
from engine.clients.limits import GameClock, SpecError
from engine.clients.process import EngineError, RefusedError
from engine.clients.spec import parse_spec
from engine.clock import TimeSettings
from engine.color import BLACK, DRAW, WHITE, opponent
from engine.go.game import GoGame, score_text
from engine.go.referee import MOVES_PER_POINT, sgf_result
from engine.go.rules import Rules
from engine.go.scoring import dead_stones, ownership_by_rollouts
from engine.go.sgf import record_of
from engine.go.vertex import VertexError, format_color, format_vertex, parse_vertex
from engine.matches.adjudicate import RefereeSettings
from engine.matches.results import Blame, Forfeit, MatchError, PlayedGame, UnscoredError
from engine.play import ADJUDICATION, ILLEGAL, MAX_MOVES, NO_RESULT, RESIGNATION, SCORE, TIME, Ended
from native.go.board import EMPTY, PASS

if TYPE_CHECKING:
    from engine.clients.answers import EngineMove

SCORER_TIMEOUT = 300.0
AREA, OWNERSHIP = "area", "ownership"


@dataclass(frozen=True, slots=True)
class GoSettings:
    """What all games of a match have in common."""

    size: int = 19
    komi: float = 7.5
    rules: Rules = field(default_factory=lambda: Rules.parse("tromp-taylor"))
    scorer: str = AREA
    """`area`: all stones are alive; `ownership`: our verdict by rollouts; else a GTP engine's command line."""
    max_moves: int = 0
    """0 for MOVES_PER_POINT times the points."""
    referee: RefereeSettings = field(default_factory=RefereeSettings)


class Scorer:
    """Judges finished games; one for each thread."""

    def __init__(self, kind: str, on_start: OnStart | None = None) -> None:
        """Make it; see GoSettings.scorer for its kinds, EngineClient for `on_start`."""
        self.kind, self._on_start = kind, on_start
        self._client: GtpClient | None = None

    def start(self, game: GoGame) -> None:
        """Start the engine that scores, where there is one and it does not run, before a game is played in vain.

        Args:
            game: of the kind that is to be scored.

        Raises:
            MatchError: it does not start, or cannot score such games.
        """
        if self.kind in (AREA, OWNERSHIP) or (self._client is not None and self._client.process.is_running):
            return
        self.close()
        try:
            spec = parse_spec(self.kind, "go")
            self._client = GtpClient(spec, timeout=SCORER_TIMEOUT, on_start=self._on_start)
            if not self._client.knows("final_score"):
                raise RefusedError("knows no command final_score")
            self._set_up(self._client, game)
        except (SpecError, EngineError) as error:
            raise self._fault(error) from None

    def score(self, game: GoGame) -> float:
        """Return Black's points minus White's, once it has started.

        Raises:
            MatchError: the engine that scores fails.
        """
        if self.kind == AREA:
            return game.final_score()
        if self.kind == OWNERSHIP:
            return game.final_score(dead_stones(game, ownership_by_rollouts(game)))
        assert self._client is not None
        try:
            return self._ask(self._client, game)
        except EngineError as error:
            raise self._fault(error) from None

    def _fault(self, error: Exception) -> MatchError:
        return MatchError(f"--scorer {self.kind}: {error}")

    def _set_up(self, client: GtpClient, game: GoGame) -> None:
        client.new_game(game.size, game.komi, str(game.rules), TimeSettings())

    def _ask(self, client: GtpClient, game: GoGame) -> float:
        self._set_up(client, game)
        for color, move in game.moves:
            client.play(format_color(color), format_vertex(move, game.size))
        text = client.ask("final_score", SCORER_TIMEOUT).strip()
        if text == "0":
            return 0.0
        match = re.fullmatch(r"([BbWw])\+([0-9.]+)", text.split()[0] if text else "")
        if match is None:
            raise EngineError(f"final_score was '{text[:80]}': expected B+3.5, W+0.5 or 0")
        return float(match[2]) * (1 if match[1] in "Bb" else -1)

    def close(self) -> None:
        """End the engine."""
        if self._client is not None:
            self._client.close()
            self._client = None


class GoHost:
    """Plays one game after the other, in one thread."""

    client: type[EngineClient] = GtpClient

    def __init__(self, settings: GoSettings, on_start: OnStart | None = None) -> None:
        """Play under these settings; for `on_start` see EngineClient."""
        self.settings, self.timeout = settings, settings.referee.timeout
        self.scorer = Scorer(settings.scorer, on_start)

    def play(self, clients: Mapping[int, GtpClient], opening: str, event: str) -> PlayedGame:
        """Play a game between the engines of both colors and score it.

        Raises:
            MatchError: the engine that scores does not start, or the opening is not legal.
            UnscoredError: the engine that scores fails.
        """
        played = _GoGame(self.settings, clients)
        self.scorer.start(played.game)
        try:
            played.begin(opening.split())
            ended = played.run()
        except Forfeit as forfeit:
            ended = Ended(opponent(forfeit.color), forfeit.ending, forfeit.detail)
        if ended.ending in (SCORE, MAX_MOVES):
            try:
                score = self.scorer.score(played.game)
            except MatchError as error:
                unscored = Ended(DRAW, NO_RESULT, "not scored")
                raise UnscoredError(str(error), played.finish(unscored, event)) from None
            ended = Ended(BLACK if score > 0 else WHITE if score < 0 else DRAW, ended.ending, score_text(score))
        return played.finish(ended, event)

    def close(self) -> None:
        """Release what is held besides the players."""
        self.scorer.close()


class _GoGame:
    """One game while it is played."""

    def __init__(self, settings: GoSettings, clients: Mapping[int, GtpClient]) -> None:
        self.settings, self.clients = settings, clients
        self.game = GoGame(settings.size, settings.rules, settings.komi)
        self.clocks = {c: GameClock(clients[c].spec.limits.clock(), settings.referee.margin) for c in (BLACK, WHITE)}
        self.adjudicator = settings.referee.adjudicator()
        self.comments: list[str] = []
        self.chosen = {BLACK: 0, WHITE: 0}
        self.max_moves = settings.max_moves or MOVES_PER_POINT * settings.size**2

    def begin(self, opening: Sequence[str]) -> None:
        """Set up both boards and play the opening's moves."""
        game = self.game
        for color, client in self.clients.items():
            with Blame(color):
                try:
                    client.new_game(game.size, game.komi, str(game.rules), self.clocks[color].settings)
                except RefusedError as error:  # nobody's loss: the match asks for what the engine cannot do
                    raise MatchError(f"player {client.spec.name}: {error}") from None
        for text in opening:
            color = game.side_to_move
            try:
                game.play(color, parse_vertex(text, game.size))
            except ValueError as error:
                raise MatchError(f"opening '{' '.join(opening)}': {error}") from None
            self.comments.append("opening")
            for other, client in self.clients.items():
                with Blame(other):
                    client.play(format_color(color), text)

    def run(self) -> Ended:
        """Play until the game ends."""
        game = self.game
        while not game.is_over:
            if len(game.moves) >= self.max_moves:
                return Ended(DRAW, MAX_MOVES)
            color = game.side_to_move
            with Blame(color):
                answer = self.clients[color].genmove(format_color(color), self.clocks[color])
            self.chosen[color] += 1
            limit = self.clocks[color].allowed()
            if not self.clocks[color].spend(answer.seconds):
                raise Forfeit(color, TIME, f"{answer.move} after {answer.seconds:.2f} s, {limit:.2f} s were left")
            if answer.move.lower() == "resign":
                return Ended(opponent(color), RESIGNATION)
            self._play(color, answer)
            if loser := self.adjudicator.loser(color, answer.evaluation):
                return Ended(opponent(loser), ADJUDICATION, f"both below {self.settings.referee.resign_below:g}")
        return Ended(DRAW, NO_RESULT, "third repetition") if game.is_no_result else Ended(DRAW, SCORE)

    def _play(self, color: int, answer: EngineMove) -> None:
        """Play the move of a player here and on the other's board."""
        game = self.game
        try:
            move = parse_vertex(answer.move, game.size)
        except VertexError:
            raise Forfeit(color, ILLEGAL, f"'{answer.move[:40]}' is no vertex") from None
        if not game.is_legal(color, move):
            taken = move != PASS and game.color_at(move) != EMPTY
            why = "the point is taken" if taken else "ko, superko or suicide"
            raise Forfeit(color, ILLEGAL, f"{format_vertex(move, game.size)} at move {len(game.moves) + 1}: {why}")
        game.play(color, move)
        self.comments.append(f"{answer.seconds:.2f} s {answer.evaluation or ''}".strip())
        with Blame(opponent(color)):
            self.clients[opponent(color)].play(format_color(color), format_vertex(move, game.size))

    def finish(self, ended: Ended, event: str) -> PlayedGame:
        """Return the game with its record."""
        game = self.game
        black, white = (self.clients[color] for color in (BLACK, WHITE))
        comment = f"{event}: {ended.ending} {ended.detail}".strip()
        record = record_of(game, [comment, *self.comments])
        record.black, record.white = black.spec.name, white.spec.name
        record.date = time.strftime("%Y-%m-%d")
        record.result = sgf_result(ended)
        record.root.other["AP"] = ["yomi"]
        record.root.other["BT"], record.root.other["WT"] = [_escape(black.title)], [_escape(white.title)]
        moves = tuple(format_vertex(move, game.size) for _, move in game.moves)
        seconds = (self.clocks[BLACK].used, self.clocks[WHITE].used)
        chosen = (self.chosen[BLACK], self.chosen[WHITE])
        return PlayedGame(ended, moves, seconds, chosen, {".sgf": record.to_sgf().encode("utf-8")})


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("]", "\\]")
