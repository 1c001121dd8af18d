"""The descriptor of a BoardGame: the game `FILE.py:NAME` of commands."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from yomi.engine.board_game.definition import BoardGame, BoardGameError, load_board_game
from yomi.engine.board_game.kernels import home_of, rules_of
from yomi.engine.board_game.play import (
    BoardFormat,
    BoardPlayer,
    BoardRecorder,
    BoardReferee,
    BoardState,
    LearnableBoardGame,
    make_queue,
    search_settings,
)
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.game import BenchmarkPositions, Game, Say
from yomi.engine.options import Options, Value
from yomi.engine.records import Score
from yomi.engine.search.types import SearchSettings
from yomi.errors import CompileError, reraised
from yomi.native.game_calls import BoundBoard
from yomi.native.precompile import compile_names
from yomi.native.spec import Inputs
from yomi.native.tree.buffers import make_batch, make_board
from yomi.nets.metadata import FEATURE_SETS, FeatureSet
from yomi.nets.user_files import PythonFileError, read_source
from yomi.settings import OptionError


def game_of_file(name: str) -> "FileGame":
    """Return the game `FILE.py:NAME`. Raises OptionError, with one line, if the file has none."""
    name = os.path.abspath(name)
    with reraised((PythonFileError, UnicodeDecodeError), OptionError):
        return _game_of_source(name, read_source(name))


def _game_of_source(name: str, source: str) -> "FileGame":
    return FileGame(load_board_game(name, source), name, source)


class FileGame(Game[BoardState, BoardPlayer]):
    networks = ".onnx"
    protocol = ""
    suffixes = save_suffixes = ()
    default_evaluator = "rollouts"
    score = Score("points", 0, "Black's lead (points)")
    commands = ("selfplay", "learn", "duel", "tune")
    defaults: Mapping[str, Mapping[str, Value]] = {"selfplay": {"temperature_moves": 8}}

    def __init__(self, board_game: BoardGame, origin: str, source: str) -> None:
        """Describe a game. `origin` is FILE.py:NAME, `source` the text of the file: other processes make it of them."""
        self.board_game, self._origin = board_game, (origin, source)
        self.name, self.title = board_game.name, board_game.title
        self.formats = (type("Format", (BoardFormat,), {"game": board_game, "title": f"a network for {self.title}"}),)
        directions = board_game.move_planes if board_game.move_planes > 1 else 0
        FEATURE_SETS[board_game.features] = FeatureSet(
            board_game.features,
            self.name,
            board_game.planes,
            directions=directions,
            symmetric=board_game.symmetric,
        )

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return _game_of_source, self._origin

    def compile(self, say: Say, *, everything: bool = True, learning: bool = False, alpha_beta: bool = False) -> None:
        compile_names(["go"], say)  # the tree and the networks, which all games share
        if not home_of(self.board_game).exists():
            say(f"compiling {self.title}")
        with reraised(BoardGameError, CompileError):
            rules = rules_of(self.board_game)
        board = BoundBoard(make_board(rules.spec, BoardState(self.board_game).record))
        board.count_moves()
        board.with_batch(make_batch(rules.spec, 1, Inputs.NUMBERS))

    def board_size(self, options: Options) -> int:
        return self.board_game.size

    def new_game(self, options: Options) -> BoardState:
        return BoardState(self.board_game)

    def make_player(self, options: Options) -> BoardPlayer:
        return BoardPlayer(self.board_game, self.formats, options)

    def referee(self, player: BoardPlayer) -> BoardReferee:
        return BoardReferee()

    def format_opening(self, game: BoardState) -> str:
        return game.line()

    def recorder(self, settings: object, options: Options) -> BoardRecorder:
        return BoardRecorder(self.board_game)

    def learnable(self, options: Options) -> LearnableBoardGame:
        return LearnableBoardGame(self.board_game)

    @contextlib.contextmanager
    def benchmark_setup(self, options: Options) -> Iterator[tuple[BenchmarkPositions, EvaluationQueue, SearchSettings]]:
        game, rules = self.board_game, rules_of(self.board_game)
        with contextlib.closing(make_queue(options, game, self.formats)) as queue:
            start = BoardState(game)
            positions = BenchmarkPositions(self.title, rules.spec, (start,), rules.write_planes, rules.write_planes)
            yield positions, queue, search_settings(options, game, queue)
