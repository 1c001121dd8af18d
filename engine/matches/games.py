"""Games between two engines, with this program as the referee."""

import abc
import contextlib
from collections.abc import Callable, Mapping, Sequence
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
from yomi.errors import reraised


class MatchGame(abc.ABC, Generic[G]):
    """The part of a game that matches need. `rules` is the result of the method `rules`."""

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
        """Return the referee of games between engines. For `on_start`, called with an engine that scores, see
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
        """Parse an engine's answer, which may be to resign. Errors: see `read_answer`."""
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
    def moves_of(self, record: Any) -> list[str]:
        """Return the moves of a recorded game in the protocol's form."""

    @abc.abstractmethod
    def format_move(self, game: G, move: int) -> str:
        """Return a move in the protocol's form."""


@dataclass(frozen=True, slots=True)
class RefereeSettings:
    """Settings of the referee for all games."""

    margin: float = 0.0  # seconds that a move may take beyond its time
    timeout: float = TIMEOUT  # seconds beyond its time after which a silent engine counts as hanging
    resign_below: float | None = None  # winrate below which a side counts as lost; None: only players resign
    resign_moves: int = 3  # moves of each side in a row for which both engines must agree


class Adjudicator(Referee[G]):
    """A referee for one game, which also ends it if both engines agree that one side is lost."""

    def __init__(self, referee: Referee[G], threshold: float | None, moves: int) -> None:
        """Wrap the `referee`, which ends the game for all other reasons.

        A side is lost if its winrate is below `threshold` in the opinion of both engines, for `moves` moves of each
        side in a row. A `threshold` of None disables this.
        """
        self._referee, self._threshold, self._moves = referee, threshold, moves
        self._in_a_row = {BLACK: 0, WHITE: 0}  # plies in a row for which a color has been lost
        self._ended: Ended | None = None

    def add_evaluation(self, color: int, evaluation: Evaluation | None) -> None:
        """Add the evaluation that an engine reported for its move; None if it reported none."""
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


class FaultError(EngineError):
    """An engine's answer is too late or illegal, so it loses the game."""

    def __init__(self, ending: str, detail: str) -> None:
        super().__init__(detail)
        self.ending = ending


class EngineSides(Generic[G]):
    """The engines of one game as its sides, with their clocks. A color without an engine is played by another side."""

    def __init__(
        self,
        kind: MatchGame[G],
        game: G,
        clients: Mapping[int, EngineClient],
        margin: float = 0.0,
        note: Callable[[int, Evaluation | None], None] = lambda color, evaluation: None,
    ) -> None:
        """Begin a game. `margin` is as in RefereeSettings. `note` receives the evaluation of each chosen move."""
        some = next(iter(clients.values()))
        self.kind, self.game, self.clients, self._margin, self._note = kind, game, clients, margin, note
        self.clocks = {color: clients.get(color, some).clock() for color in (BLACK, WHITE)}
        self.log = GameLog(game, clients, [None] * len(game.moves))
        self.used, self.chosen = {BLACK: 0.0, WHITE: 0.0}, {BLACK: 0, WHITE: 0}  # seconds, and moves

    def set_up(self, color: int) -> None:
        """Start the game on the engine of `color`. Errors: see MatchGame.set_up."""
        self.kind.set_up(self.clients[color], self.game, self.clocks[color].settings)

    def choose(self, game: G) -> Decision:
        """Return the answer of the engine to move.

        Raises:
            EngineError: the engine fails; FaultError if its answer is too late or illegal.
        """
        color = game.side_to_move
        client, clock = self.clients[color], self.clocks[color]
        moves = [self.kind.format_move(game, move) for _, move in game.moves]
        answer = client.choose(self.kind.start_of(game), moves, color, self.clocks)
        self.used[color] += answer.seconds
        self.chosen[color] += 1
        self.clocks[color] = clock.after(answer.seconds)
        if answer.seconds > clock.allowed + self._margin:
            taken, left = (f"{seconds:.{client.decimals}f} s" for seconds in (answer.seconds, clock.allowed))
            raise FaultError(TIME, f"{answer.move} after {taken}, {left} were left")
        self.log.last = answer
        try:
            decision = self.kind.decide(game, answer.move)
        except ValueError as error:
            raise FaultError(ILLEGAL, str(error)[:200]) from None
        if decision.move is not None:
            self.log.answers.append(answer)
            self.log.last = None
            self._note(color, answer.evaluation)
        return decision


class GameRunner(Generic[G]):
    """Plays games of a match, one after the other, in one thread."""

    def __init__(
        self, kind: MatchGame[G], rules: Mapping[str, Any], settings: RefereeSettings, on_start: OnStart | None = None
    ) -> None:
        self.kind, self.rules, self.settings = kind, rules, settings
        self._referee = kind.referee(rules, on_start)

    def play(self, clients: Mapping[int, EngineClient], opening: str, event: str) -> PlayedGame:
        """Play a game between the clients of BLACK and WHITE.

        Raises:
            MatchError: the match cannot continue: the opening is illegal, an engine refuses the game, or the scoring
                engine does not start. UnscoredError if the game ended without a result because of it.
        """
        with reraised(ValueError, MatchError, f"opening '{opening[:80]}': "):
            game = self.kind.begin(self.rules, opening)
        self._referee.start(game)
        settings = self.settings
        referee = Adjudicator(self._referee, settings.resign_below, settings.resign_moves)
        sides = EngineSides(self.kind, game, clients, settings.margin, referee.add_evaluation)
        try:
            ended = _play(sides, referee)
        except UnscoredError as error:
            error.played = self._played(sides, Ended(DRAW, NO_RESULT, "not scored"), event)
            raise
        for color, client in clients.items():
            result = "draw" if not ended.winner else "win" if ended.winner == color else "lose"
            with contextlib.suppress(EngineError):  # an engine that has ended by then is noticed in the next game
                client.game_over(result)
        return self._played(sides, ended, event)

    def close(self) -> None:
        self._referee.close()

    def _played(self, sides: EngineSides[G], ended: Ended, event: str) -> PlayedGame:
        moves = tuple(self.kind.format_move(sides.game, move) for _, move in sides.game.moves)
        return PlayedGame(
            ended,
            moves,
            (sides.used[BLACK], sides.used[WHITE]),
            (sides.chosen[BLACK], sides.chosen[WHITE]),
            self.kind.records(sides.log, ended, event),
        )


def _play(sides: EngineSides[G], referee: Referee[G]) -> Ended:
    """Play a game to its end. An engine's fault loses the game."""
    game = sides.game
    for color, client in sides.clients.items():
        try:
            sides.set_up(color)
        except RefusedError as error:  # no loss: the engine does not support this match
            raise MatchError(f"player {client.spec.name}: {error}") from None
        except EngineError as error:
            return Ended(opponent(color), FAILURE, str(error))
    try:
        return play_game(game, {BLACK: sides, WHITE: sides}, referee)
    except EngineError as error:
        ending = error.ending if isinstance(error, FaultError) else FAILURE
        return Ended(opponent(game.side_to_move), ending, str(error))
