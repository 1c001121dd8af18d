"""Games between two engines, with this program as the referee, and what only one game knows of them."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from yomi.engine.clients.client import RESIGN, TIMEOUT, EngineClient, EngineError, Evaluation, OnStart, RefusedError
from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.matches.results import MatchError, PlayedGame, Sheet, UnscoredError
from yomi.engine.play import ADJUDICATION, FAILURE, ILLEGAL, NO_RESULT, TIME, Ended, G, Referee, play_game
from yomi.engine.players.request import Decision

if TYPE_CHECKING:
    from yomi.engine.clock import TimeSettings
    from yomi.engine.matches.results import GameResult
    from yomi.engine.options import Options
    from yomi.engine.records import Note


class MatchGame(abc.ABC, Generic[G]):
    """What matches know of a game. `rules` are those that its method of this name returns."""

    client: type[EngineClient]
    """Of the engines that play it."""
    suffixes: tuple[str, ...]
    """Endings of the names of records that are looked for in a folder."""

    @abc.abstractmethod
    def rules(self, options: Options, scorer: str | None, max_moves: int) -> dict[str, Any]:
        """Return the rules of a match with all that was left open filled in, as JSON: its journal keeps them.

        Args:
            options: of the game's rules.
            scorer: what scores games; None for what suits the rules.
            max_moves: after which a game ends; 0 for what is usual.

        Raises:
            ValueError: they do not go together; one line that says what was expected.
        """

    @abc.abstractmethod
    def referee(self, rules: Mapping[str, Any], on_start: OnStart | None) -> Referee[G]:
        """Return what ends games between engines; `on_start` (see EngineClient) is for an engine that scores.

        The referee raises MatchError if that engine does not start, and UnscoredError if it fails.
        """

    @abc.abstractmethod
    def begin(self, rules: Mapping[str, Any], opening: str) -> G:
        """Return a game after an opening as `format_opening` writes it; empty for none.

        Raises:
            ValueError: a move is not legal; one line that says which.
        """

    @abc.abstractmethod
    def set_up(self, client: Any, game: G, clock: TimeSettings) -> None:
        """Tell an engine of a game that begins, by `new_game` of its client.

        Raises:
            EngineError: the engine fails; RefusedError if it cannot play such a game.
        """

    def start_of(self, game: G) -> str:
        """Return the initial position as the protocol writes it; empty if it has no words for it."""
        return ""

    @abc.abstractmethod
    def read_answer(self, game: G, text: str) -> Decision:
        """Return the legal move, or the declaration of a win, that an engine answered with.

        Raises:
            ValueError: it is none; one line for the result of the game.
        """

    @abc.abstractmethod
    def records(self, sheet: Sheet[G], ended: Ended, event: str) -> dict[str, bytes]:
        """Return the records of a game of a match: the content by ending of the file's name."""

    @abc.abstractmethod
    def load_records(self, path: Path) -> list[Any]:
        """Return the games of a file.

        Raises:
            ValueError: it cannot be read.
        """

    def notes_of(self, records: Sequence[Any]) -> list[Note]:
        """Return the faults that did not stop the reader of some records."""
        return [note for record in records for note in getattr(record, "notes", ())]

    @abc.abstractmethod
    def opening_of(self, record: Any, moves: int | None, rules: Mapping[str, Any]) -> str:
        """Return the first moves of a recorded game, all of them for None, as `format_opening` writes them.

        Raises:
            ValueError: a game that a match of these rules cannot begin with.
        """

    @abc.abstractmethod
    def result_of(self, record: Any) -> GameResult | None:
        """Return the result of a recorded game; None if the record tells none."""

    @abc.abstractmethod
    def format_move(self, game: G, move: int) -> str:
        """Return a move as the protocol writes it."""


@dataclass(frozen=True, slots=True)
class RefereeSettings:
    """What the referees of all games have in common."""

    margin: float = 0.0
    """Seconds that a move may take beyond its time."""
    timeout: float = TIMEOUT
    """Seconds beyond its time after which a silent engine counts as hanging."""
    resign_below: float | None = None
    """Winrate below which a side counts as lost; None: only players resign."""
    resign_moves: int = 3
    """Moves of each side for which both engines must agree."""


class Adjudicator(Referee[G]):
    """A referee who also ends one game by the evaluations of both engines."""

    def __init__(self, referee: Referee[G], threshold: float | None, moves: int) -> None:
        """Judge as `referee` does, and listen.

        Args:
            referee: judges games that the evaluations do not end.
            threshold: winrate in (0, 0.5) below which a side counts as lost; None never ends a game.
            moves: moves of each side, one after the other, for which both engines must agree.
        """
        self._referee, self._threshold, self._moves = referee, threshold, moves
        self._in_a_row = {BLACK: 0, WHITE: 0}
        """Plies for which a color has been lost, as both say."""
        self._ended: Ended | None = None

    def hear(self, color: int, evaluation: Evaluation | None) -> None:
        """Take note of what an engine says of the move that it chooses; the side to move after it may have lost.

        Args:
            color: of the engine.
            evaluation: None for nothing.
        """
        if self._threshold is None:
            return
        winrate = None if evaluation is None else evaluation.winrate
        for side in (BLACK, WHITE):
            seen = winrate if color == side or winrate is None else 1.0 - winrate
            self._in_a_row[side] = self._in_a_row[side] + 1 if seen is not None and seen < self._threshold else 0
        if self._in_a_row[opponent(color)] >= 2 * self._moves:
            self._ended = Ended(color, ADJUDICATION, f"both below {self._threshold:g}")

    def judge(self, game: G) -> Ended | None:
        """Return how the game has ended, by adjudication first; None while it goes on."""
        return self._ended or self._referee.judge(game)


class _Forfeit(Exception):  # noqa: N818  (a result, not a fault of the program)
    """A player loses on the spot."""

    def __init__(self, color: int, ending: str, detail: str) -> None:
        super().__init__(detail)
        self.ended = Ended(opponent(color), ending, detail)


@contextlib.contextmanager
def _blame(color: int) -> Iterator[None]:
    """Turn every failure of an engine into a loss of one color."""
    try:
        yield
    except EngineError as error:
        raise _Forfeit(color, FAILURE, str(error)) from None


class Host(Generic[G]):
    """Plays games of a match one after the other, in one thread."""

    def __init__(
        self, kind: MatchGame[G], rules: Mapping[str, Any], settings: RefereeSettings, on_start: OnStart | None = None
    ) -> None:
        """Play games of a kind under some rules.

        Args:
            kind: what is played.
            rules: those of the match, as the method `rules` of `kind` returns them.
            settings: of the referee.
            on_start: see EngineClient; for engines besides the players.
        """
        self.kind, self.rules, self.settings = kind, rules, settings
        self.referee = kind.referee(rules, on_start)

    def play(self, clients: Mapping[int, EngineClient], opening: str, event: str) -> PlayedGame:
        """Play a game between the clients of BLACK and WHITE.

        Raises:
            MatchError: the match cannot go on: the opening is not legal, an engine refuses the game, or the engine that
                scores does not start. UnscoredError if it has cost a game its result.
        """
        try:
            game = self.kind.begin(self.rules, opening)
        except ValueError as error:
            raise MatchError(f"opening '{opening[:80]}': {error}") from None
        self.referee.start(game)
        sides = _Engines(self, game, clients)
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
        """Release what is held besides the players."""
        self.referee.close()


class _Engines(Generic[G]):
    """The engines of one game, as its two sides, with their clocks and what they said."""

    def __init__(self, host: Host[G], game: G, clients: Mapping[int, EngineClient]) -> None:
        settings = host.settings
        self.kind, self.game, self.clients = host.kind, game, clients
        self.clocks = {color: client.clock(settings.margin) for color, client in clients.items()}
        self.referee = Adjudicator(host.referee, settings.resign_below, settings.resign_moves)
        self.moves = [self.kind.format_move(game, move) for _, move in game.moves]
        self.sheet = Sheet(game, clients, [None] * len(game.moves))
        self.chosen = {BLACK: 0, WHITE: 0}

    def begin(self) -> None:
        """Tell both engines of the game."""
        for color, client in self.clients.items():
            with _blame(color):
                try:
                    self.kind.set_up(client, self.game, self.clocks[color].settings)
                except RefusedError as error:  # nobody's loss: the match asks for what the engine cannot do
                    raise MatchError(f"player {client.spec.name}: {error}") from None

    def choose(self, game: G) -> Decision:
        """Return the answer of the engine to move; a fault of it is raised as a forfeit."""
        color = game.side_to_move
        client, clock = self.clients[color], self.clocks[color]
        with _blame(color):
            answer = client.choose(self.kind.start_of(game), self.moves, color, self.clocks)
        self.chosen[color] += 1
        limit = clock.allowed()
        if not clock.spend(answer.seconds):
            taken, left = (f"{seconds:.{client.decimals}f} s" for seconds in (answer.seconds, limit))
            raise _Forfeit(color, TIME, f"{answer.move} after {taken}, {left} were left")
        self.sheet.last = answer
        if answer.move.lower() == RESIGN:
            return Decision(None, resign=True)
        try:
            decision = self.kind.read_answer(game, answer.move)
        except ValueError as error:
            raise _Forfeit(color, ILLEGAL, str(error)[:200]) from None
        if decision.move is not None:
            self.moves.append(self.kind.format_move(game, decision.move))
            self.sheet.answers.append(answer)
            self.sheet.last = None
            self.referee.hear(color, answer.evaluation)
        return decision

    def finish(self, ended: Ended, event: str) -> PlayedGame:
        """Return the game with its records."""
        return PlayedGame(
            ended,
            tuple(self.moves),
            (self.clocks[BLACK].used, self.clocks[WHITE].used),
            (self.chosen[BLACK], self.chosen[WHITE]),
            self.kind.records(self.sheet, ended, event),
        )
