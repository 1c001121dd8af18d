"""The player of self-play in this process, and the interface of all workers."""

import dataclasses
import math
import time
from collections.abc import Mapping
from typing import Any, Protocol

from yomi.engine.color import BLACK, DRAW
from yomi.engine.game import Game
from yomi.engine.learning.opponents import DroppedGame
from yomi.engine.learning.rows import Targets, rows_of
from yomi.engine.learning.selfplay import FinishedGame, SelfPlay
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.engine.learning.spool import SelfPlayGame
from yomi.engine.options import Options
from yomi.nets.user_files import find_function

SHOWN_SECONDS = 30.0  # between two games that a worker sends for the page


@dataclasses.dataclass(frozen=True)
class Task:
    """The network with which workers play."""

    options: Options  # with the network, or an evaluator without one
    network: str  # its name, or that of the evaluator
    leads: Mapping[int, float]  # Black's mean score by board size (see Learnable.new_game)


@dataclasses.dataclass(frozen=True)
class Delivery:
    """Finished games and statistics from a worker."""

    games: list[SelfPlayGame]
    evaluations: int  # positions evaluated since the last delivery
    # For each game played on after a resignation: whether the resigning side did not lose.
    resigned_wrongly: list[bool] = dataclasses.field(default_factory=list)
    # The network's points in each game against an engine: 1, 0.5 or 0
    points: list[float] = dataclasses.field(default_factory=list)
    faults: list[str] = dataclasses.field(default_factory=list)  # the reason for each game dropped because of an engine
    shown: dict[str, Any] | None = None  # sometimes a game for the page, see read_games


class SelfPlayWorker:
    """Plays games in this process. Equal seeds give equal games."""

    def __init__(self, game: Game[Any, Any], settings: SelfPlaySettings, seed: int) -> None:
        self._game, self._settings, self._seed = game, settings, seed
        self._boards: list[SelfPlay[Any]] = []
        self._task: Task | None = None
        self._shown_at = -SHOWN_SECONDS
        self._targets: Targets | None = find_function(settings.targets) if settings.targets else None

    def use(self, task: Task) -> None:
        """Continue with another network.

        Raises:
            NetworkError, EvaluatorError: the network cannot be used.
        """
        if not self._boards:
            for board in self._game.learnable(task.options).boards:
                options = dataclasses.replace(task.options, **board)
                self._boards.append(SelfPlay(self._game, options, self._settings, self._seed + len(self._boards)))
        elif self._task is None or task.options != self._task.options:
            for selfplay in self._boards:
                selfplay.use(dataclasses.replace(task.options, **selfplay.learnable.boards[0]))
        self._task = task
        for selfplay in self._boards:
            selfplay.lead = task.leads.get(selfplay.searches.side, 0.0)

    def play(self, seconds: float = math.inf) -> Delivery:
        """Play until a game ends or the time is up, on the board with the fewest evaluations so far.

        Raises:
            EvaluatorError: from the evaluator.
        """
        begin = time.monotonic()
        selfplay = min(self._boards, key=lambda board: board.searches.evaluations)
        before = selfplay.searches.evaluations
        ended = selfplay.play(seconds)
        finished = [game for game in ended if isinstance(game, FinishedGame)]
        fresh = [game for game in finished if not game.reanalyzed]
        games = [self._played(selfplay, game) for game in finished]
        evaluated = selfplay.searches.evaluations
        wrong = [game.resigned_wrongly for game in finished if game.resigned_wrongly is not None]
        shown = None
        if fresh and begin - self._shown_at > SHOWN_SECONDS:
            self._shown_at, shown = begin, self._shown(selfplay, fresh[-1])
        points = [_points(game.outcome.winner, color) for game in fresh for color in game.engines]
        faults = [game.why for game in ended if isinstance(game, DroppedGame)]
        return Delivery(games, evaluated - before, wrong, points, faults, shown)

    def take(self, seconds: float) -> list[Delivery]:
        """Play until a game ends. `seconds` is ignored; `Workers` has this parameter."""
        return [self.play()]

    def close(self) -> None:
        for selfplay in self._boards:
            selfplay.close()

    def _shown(self, selfplay: SelfPlay[Any], finished: FinishedGame[Any]) -> dict[str, Any]:
        """Return a game for the page: its first position, or the board before each move and at the end."""
        learnable, game = selfplay.learnable, finished.game
        first, boards = learnable.first_position(game), []
        if not first:
            board = learnable.restart(game)
            boards.append(str(board))
            for _, move in game.moves[board.ply :]:
                board.push(move)
                boards.append(str(board))
        words = self._game.format_opening(game).split()
        moves = words[len(words) - len(game.moves) :]  # in shogi they follow the initial position
        values = [None] * finished.first + [
            None if ply.found is None else round(ply.found.value if side == BLACK else -ply.found.value, 3)
            for ply in finished.plies
            for side in ply.position["side_to_move"]
        ]
        ended = finished.ended
        result = f"{ended.ending} {ended.detail}".strip()
        title = f"{len(moves)} moves" + (f", komi {learnable.komi(game):g}" if learnable.has_score else "")
        for color, name in finished.engines.items():
            title += f", {name} has {'Black' if color == BLACK else 'White'}"
        return {
            "title": title,
            "result": result,
            "moves": moves,
            "first": first,
            "boards": boards,
            "values": values,
        }

    def _played(self, selfplay: SelfPlay[Any], finished: FinishedGame[Any]) -> SelfPlayGame:
        assert self._task is not None
        learnable, searches = selfplay.learnable, selfplay.searches
        rows = rows_of(finished, learnable, self._settings.surprise, selfplay.rng, self._targets)
        margin = finished.outcome.margin
        return SelfPlayGame(
            rows=rows,
            record=learnable.record(finished, self._task.network),
            winner=finished.outcome.winner,
            margin=float("nan") if margin is None else margin + learnable.komi(finished.game),
            moves=finished.game.ply,
            size=searches.side,
            network=self._task.network,
            reanalyzed=finished.reanalyzed,
        )


def _points(winner: int, engine: int) -> float:
    return 0.5 if winner == DRAW else float(winner != engine)


class Workers(Protocol):
    """The interface of the players of self-play."""

    def use(self, task: Task) -> None:
        """Continue with another network."""

    def take(self, seconds: float) -> list[Delivery]:
        """Return the finished games. Wait up to `seconds` for the first. Without such calls self-play stops soon."""

    def close(self) -> None:
        """End the workers. Unfinished games are lost."""
