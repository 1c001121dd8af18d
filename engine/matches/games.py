"""Games between two engines, with this program as the referee."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from yomi.engine.clients.client import RESIGN, TIMEOUT, EngineClient, EngineError, Evaluation, OnStart, RefusedError
from yomi.engine.clock import TimeSettings
from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.matches.results import GameLog, GameResult, MatchError, PlayedGame, UnscoredError
from yomi.engine.options import Options
from yomi.engine.play import ADJUDICATION, FAILURE, ILLEGAL, NO_RESULT, TIME, Ended, G, Referee, play_game
from yomi.engine.players.request import Decision
from yomi.engine.records import Note


class MatchGame(abc.ABC, Generic[G]):
    """The interface between a game and matches. `rules` is the result of the method `rules`."""

    client: type[EngineClient]  # class of the clients of its engines
    suffixes: tuple[str, ...]  # file name extensions of its records

    @abc.abstractmethod
    def rules(self, options: Options, scorer: str | None, max_moves: int) -> dict[str, Any]:
        """Return the complete rules of a match, as JSON for its journal.

        Args:
            options: the game's rules.
            scorer: scores finished games; None selects the default for the rules.
            max_moves: limit of a game; 0 selects the default.

        Raises:
            ValueError: the options contradict each other.
        """

    @abc.abstractmethod
    def referee(self, rules: Mapping[str, Any], on_start: OnStart | None) -> Referee[G]:
        """Return the referee of games between engines. `on_start` is called with an engine that scores, see
        EngineClient.

        The referee raises MatchError if that engine does not start, and UnscoredError if it fails.
        """

    @abc.abstractmethod
    def begin(self, rules: Mapping[str, Any], opening: str) -> G:
        """Return a game after an opening in the form of `format_opening`; an empty text is no opening.

        Raises:
            ValueError: a move is illegal.
        """

    @abc.abstractmethod
    def set_up(self, client: Any, game: G, clock: TimeSettings) -> None:
        """Start a new game on an engine, by `new_game` of its client.

        Raises:
            EngineError: the engine fails; RefusedError if it cannot play such a game.
        """

    def start_of(self, game: G) -> str:
        """Return the initial position in the protocol's form; empty if the protocol has none."""
        return ""

    def decide(self, game: G, text: str) -> Decision:
        """Parse an engine's answer, which may resign. Raises what `read_answer` raises."""
        return Decision(None, resign=True) if text.lower() == RESIGN else self.read_answer(game, text)

    @abc.abstractmethod
    def read_answer(self, game: G, text: str) -> Decision:
        """Parse an engine's answer: a legal move, or a declaration of a win.

        Raises:
            ValueError: it is neither. The message is for the result of the game.
        """

    @abc.abstractmethod
    def records(self, log: GameLog[G], ended: Ended, event: str) -> dict[str, bytes]:
        """Return the contents of a game's records by file name extension."""

    @abc.abstractmethod
    def load_records(self, path: Path) -> list[Any]:
        """Return the games of a file.

        Raises:
            ValueError: the file cannot be read.
        """

    def notes_of(self, records: Sequence[Any]) -> list[Note]:
        """Return the faults in records that did not stop the reader."""
        return [note for record in records for note in getattr(record, "notes", ())]

    @abc.abstractmethod
    def opening_of(self, record: Any, moves: int | None, rules: Mapping[str, Any]) -> str:
        """Return the first `moves` moves of a recorded game, or all if None, in the form of `format_opening`.

        Raises:
            ValueError: a match with these rules cannot begin with this game.
        """

    @abc.abstractmethod
    def result_of(self, record: Any) -> GameResult | None:
        """Return the result of a recorded game, or None if the record does not contain one."""

    @abc.abstractmethod
    def format_move(self, game: G, move: int) -> str:
        """Return a move in the protocol's form."""


@dataclass(frozen=True, slots=True)
class RefereeSettings:
    """Settings of the referee in all games."""

    margin: float = 0.0  # seconds that a move may take beyond its time
    timeout: float = TIMEOUT  # seconds beyond its time after which a silent engine counts as hanging
    resign_below: float | None = None  # winrate below which a side counts as lost; None: only players resign
    resign_moves: int = 3  # moves of each side in a row for which both engines must agree


class Adjudicator(Referee[G]):
    """A referee that also ends a game if both engines agree that one side is lost. For a single game."""

    def __init__(self, referee: Referee[G], threshold: float | None, moves: int) -> None:
        """Wrap the `referee`, which ends all other games.

        A side is lost below the winrate `threshold`, if both engines agree for `moves` moves of each side in a row.
        None disables adjudication.
        """
        self._referee, self._threshold, self._moves = referee, threshold, moves
        self._in_a_row = {BLACK: 0, WHITE: 0}  # plies in a row for which a color has been lost
        self._ended: Ended | None = None

    def add_evaluation(self, color: int, evaluation: Evaluation | None) -> None:
        """Add an engine's evaluation of the move that it chose; None if it did not report one."""
        if self._threshold is None:
            return
        winrate = None if evaluation is None else evaluation.winrate
        for side in (BLACK, WHITE):
            seen = winrate if color == side or winrate is None else 1.0 - winrate
            self._in_a_row[side] = self._in_a_row[side] + 1 if seen is not None and seen < self._threshold else 0
        if self._in_a_row[opponent(color)] >= 2 * self._moves:
            self._ended = Ended(color, ADJUDICATION, f"both below {self._threshold:g}")

    def judge(self, game: G) -> Ended | None:
        return self._ended or self._referee.judge(game)


class _Forfeit(Exception):  # noqa: N818  (a result, not a fault of the program)
    # A player loses at once.

    def __init__(self, color: int, ending: str, detail: str) -> None:
        super().__init__(detail)
        self.ended = Ended(opponent(color), ending, detail)


@contextlib.contextmanager
def _blame(color: int) -> Iterator[None]:
    # Turns an engine's failures into a loss of its color.
    try:
        yield
    except EngineError as error:
        raise _Forfeit(color, FAILURE, str(error)) from None


class GameRunner(Generic[G]):
    """Plays games of a match, one after the other, in one thread."""

    def __init__(
        self, kind: MatchGame[G], rules: Mapping[str, Any], settings: RefereeSettings, on_start: OnStart | None = None
    ) -> None:
        self.kind, self.rules, self.settings = kind, rules, settings
        self.referee = kind.referee(rules, on_start)

    def play(self, clients: Mapping[int, EngineClient], opening: str, event: str) -> PlayedGame:
        """Play a game between the clients of BLACK and WHITE.

        Raises:
            MatchError: the match cannot continue: the opening is illegal, an engine refuses the game, or the scoring
                engine does not start. UnscoredError if the game ended without a result because of it.
        """
        try:
            game = self.kind.begin(self.rules, opening)
        except ValueError as error:
            raise MatchError(f"opening '{opening[:80]}': {error}") from None
        self.referee.start(game)
        sides = EngineSides(self, game, clients)
        try:
            sides.begin()
            ended = play_game(game, {BLACK: sides, WHITE: sides}, sides.referee)
        except _Forfeit as forfeit:
            ended = forfeit.ended
        except UnscoredError as error:
            error.played = sides.finish(Ended(DRAW, NO_RESULT, "not scored"), event)
            raise
        for color, client in clients.items():
            result = "draw" if not ended.winner else "win" if ended.winner == color else "lose"
            with contextlib.suppress(EngineError):  # one that has gone meanwhile is noticed in the next game
                client.game_over(result)
        return sides.finish(ended, event)

    def close(self) -> None:
        self.referee.close()


class EngineSides(Generic[G]):
    """The engines of one game, as its two sides, with their clocks and answers."""

    def __init__(self, runner: GameRunner[G], game: G, clients: Mapping[int, EngineClient]) -> None:
        settings = runner.settings
        self.kind, self.game, self.clients = runner.kind, game, clients
        self.clocks = {color: client.clock(settings.margin) for color, client in clients.items()}
        self.referee = Adjudicator(runner.referee, settings.resign_below, settings.resign_moves)
        self.moves = [self.kind.format_move(game, move) for _, move in game.moves]
        self.log = GameLog(game, clients, [None] * len(game.moves))
        self.chosen = {BLACK: 0, WHITE: 0}

    def begin(self) -> None:
        for color, client in self.clients.items():
            with _blame(color):
                try:
                    self.kind.set_up(client, self.game, self.clocks[color].settings)
                except RefusedError as error:  # no loss: the engine does not support this match
                    raise MatchError(f"player {client.spec.name}: {error}") from None

    def choose(self, game: G) -> Decision:
        """Return the answer of the engine to move. A fault of the engine raises a forfeit."""
        color = game.side_to_move
        client, clock = self.clients[color], self.clocks[color]
        with _blame(color):
            answer = client.choose(self.kind.start_of(game), self.moves, color, self.clocks)
        self.chosen[color] += 1
        limit = clock.allowed()
        if not clock.spend(answer.seconds):
            taken, left = (f"{seconds:.{client.decimals}f} s" for seconds in (answer.seconds, limit))
            raise _Forfeit(color, TIME, f"{answer.move} after {taken}, {left} were left")
        self.log.last = answer
        try:
            decision = self.kind.decide(game, answer.move)
        except ValueError as error:
            raise _Forfeit(color, ILLEGAL, str(error)[:200]) from None
        if decision.move is not None:
            self.moves.append(self.kind.format_move(game, decision.move))
            self.log.answers.append(answer)
            self.log.last = None
            self.referee.add_evaluation(color, answer.evaluation)
        return decision

    def finish(self, ended: Ended, event: str) -> PlayedGame:
        return PlayedGame(
            ended,
            tuple(self.moves),
            (self.clocks[BLACK].used, self.clocks[WHITE].used),
            (self.chosen[BLACK], self.chosen[WHITE]),
            self.kind.records(self.log, ended, event),
        )
