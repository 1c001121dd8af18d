"""Othello's descriptor: what the shared parts of the engine know of the game."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.games.othello.game import MOVES, OthelloGame, OthelloReferee
from tests.games.othello.kernels import SIZES, othello_spec, write_bits, write_planes
from tests.games.othello.learning import LearnableOthello
from tests.games.othello.network import FORMATS
from tests.games.othello.player import OthelloPlayer, make_queue, search_settings
from yomi.engine.game import BenchmarkPositions, Game, Say
from yomi.engine.options import Options, Value
from yomi.engine.play import Ended
from yomi.engine.players.request import Decision
from yomi.engine.records import Score
from yomi.settings import number

if TYPE_CHECKING:
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.search.types import SearchSettings


class OthelloRecorder:
    """See yomi.engine.game.Recorder: the moves on one line, the result on another."""

    def __init__(self, size: int) -> None:
        """Record games on a board of this size."""
        self.size = size
        self.row_bytes: Mapping[str, int] = {}

    def begin(self, number: int) -> OthelloGame:
        """Return the usual beginning."""
        return OthelloGame(self.size)

    def record(self, game: OthelloGame, decision: Decision, seconds: float) -> None:
        """Keep nothing: the moves are the game's."""

    def files(self, game: OthelloGame, ended: Ended, name: str) -> dict[str, bytes]:
        """Return the text."""
        return {".txt": f"{GAME.format_opening(game)}\n{ended.winner} {ended.ending} {ended.detail}\n".encode()}


@dataclass(frozen=True)
class BoardSettings:
    """The size, which is an option of Go only."""

    size: int = number(8, min(SIZES), max(SIZES), "set the board size")


class Othello(Game[OthelloGame, OthelloPlayer]):
    """Othello on 4×4, 6×6 and 8×8."""

    name = "othello"
    title = "Othello"
    networks = ".onnx"
    formats = FORMATS
    default_evaluator = "rollouts"
    score = Score("discs", 0, "Black's lead (discs)")
    commands = ("selfplay", "learn", "duel", "tune")
    settings: Mapping[str, type] = dict.fromkeys(("selfplay", "learn", "duel"), BoardSettings)
    defaults: Mapping[str, Mapping[str, Value]] = {
        "selfplay": {"size": 8, "temperature_moves": 8},
        "learn": {"size": 8, "precision": "fp32"},
        "duel": {"size": 8, "precision": "fp32"},
    }

    def compile(self, say: Say, *, everything: bool = True, learning: bool = False, alpha_beta: bool = False) -> None:
        """Do nothing: a few seconds are spent when a kernel is first called."""

    def board_size(self, options: Options) -> int:
        """Return that of the options."""
        return options.size

    def new_game(self, options: Options) -> OthelloGame:
        """Return the usual four discs."""
        return OthelloGame(options.size)

    def make_player(self, options: Options) -> OthelloPlayer:
        """Return a player of Othello."""
        return OthelloPlayer(options)

    def referee(self, player: OthelloPlayer) -> OthelloReferee:
        """Return a referee, who needs no player's verdict."""
        return OthelloReferee()

    def format_opening(self, game: OthelloGame) -> str:
        """Return the moves."""
        return " ".join(MOVES[move] for _, move in game.moves)

    def recorder(self, settings: object, options: Options) -> OthelloRecorder:
        """Return what writes the moves."""
        return OthelloRecorder(options.size)

    def learnable(self, options: Options) -> LearnableOthello:
        """Return what the learning loop knows of it."""
        return LearnableOthello(options.size)

    @contextlib.contextmanager
    def benchmark_setup(self, options: Options) -> Iterator[tuple[BenchmarkPositions, EvaluationQueue, SearchSettings]]:
        """See yomi.engine.game.Game."""
        with contextlib.closing(make_queue(options, options.size)) as queue:
            game = OthelloGame(options.size)
            name, spec = f"Othello {game.size}x{game.size}", othello_spec(game.size)
            yield (
                BenchmarkPositions(name, spec, (game,), write_planes, write_bits),
                queue,
                search_settings(options, queue),
            )


GAME = Othello()
