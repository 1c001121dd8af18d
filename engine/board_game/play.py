"""Positions, players and records of a BoardGame."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from yomi.engine.board_game.definition import BoardGame
from yomi.engine.board_game.kernels import rules_of
from yomi.engine.clock import MAX_RESERVE_SHARE, Budget, Clock, lag_reserve
from yomi.engine.color import BLACK, DRAW, opponent
from yomi.engine.evaluators.base import Evaluator
from yomi.engine.evaluators.network import Feed, FileFormat, PolicyValueFormat
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.learning.rows import planes_of
from yomi.engine.learning.selfplay import FinishedGame, Learnable
from yomi.engine.options import Options, rows_for
from yomi.engine.play import SCORE, Ended, Referee
from yomi.engine.players.player import Player
from yomi.engine.players.request import Decision, Turn
from yomi.engine.players.setup import EvaluatorFactory, common_settings, tuned
from yomi.engine.search.base import PositionSearch
from yomi.engine.search.types import SearchSettings
from yomi.native.bound_kernels import Calls
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import Batch
from yomi.nets.data.shards import Arrays
from yomi.nets.errors import NetworkError
from yomi.nets.load import NetworkFile
from yomi.nets.metadata import BoardSize, feature_set
from yomi.nets.onnx_program import Ends

C_PUCT = 1.5
MOVES_LEFT = 20  # moves of a side for which its time must last


class BoardState:
    """A position of a game with the moves that led to it, a PlayableGame."""

    def __init__(self, game: BoardGame) -> None:
        self.game, self.rules = game, rules_of(game)
        self.moves: list[tuple[int, int]] = []  # (color, move)
        self.record, self.history = self.rules.spec.positions(1), np.zeros(1, np.uint64)
        self.position = self.record[0]
        self.rules.start(self.position, self.history)

    @property
    def side_to_move(self) -> int:
        return int(self.position["side_to_move"])

    @property
    def ply(self) -> int:
        return len(self.moves)

    @property
    def search_key(self) -> object:
        return self.game

    @property
    def winner(self) -> int | None:
        """BLACK, WHITE or DRAW at the end of the game; None before."""
        is_over, value, _ = self.rules.outcome(self.position, self.history)
        if not is_over:
            return None
        return DRAW if not value else self.side_to_move if value > 0.0 else opponent(self.side_to_move)

    @property
    def is_over(self) -> bool:
        return self.winner is not None

    def legal_moves(self) -> list[int]:
        """Return the legal moves; none when the game is over."""
        moves = np.zeros(self.game.policy_size, np.uint16)
        count = 0 if self.is_over else self.rules.legal_moves(self.position, self.history, moves)
        return [int(move) for move in moves[:count]]

    def push(self, move: int) -> None:
        if move not in self.legal_moves():
            raise ValueError(f"illegal move {self.game.move_text(move)}")
        self.moves.append((self.side_to_move, move))
        self.rules.play(self.position, self.history, move)

    def undo(self) -> None:
        if not self.moves:
            raise ValueError("cannot undo: no move has been played")
        before = BoardState(self.game)
        for _, move in self.moves[:-1]:
            before.push(move)
        self.moves, self.record[0] = before.moves, before.record[0]

    def copy(self) -> "BoardState":
        other = BoardState(self.game)
        other.moves, other.record[0] = list(self.moves), self.record[0]
        return other

    def line(self) -> str:
        return " ".join(self.game.move_text(move) for _, move in self.moves)

    def __str__(self) -> str:
        return self.game.board_text(self.position)


class BoardReferee(Referee[BoardState]):
    def judge(self, game: BoardState) -> Ended | None:
        return None if (winner := game.winner) is None else Ended(winner, SCORE)


class BoardRecorder:
    """See yomi.engine.game.Recorder: the moves on one line, the result on another."""

    row_bytes: Mapping[str, int] = {}

    def __init__(self, game: BoardGame) -> None:
        self._game = game

    def begin(self, number: int) -> BoardState:
        return BoardState(self._game)

    def record(self, game: BoardState, decision: Decision, seconds: float) -> None:
        """Keep nothing: the moves are the game's."""

    def files(self, game: BoardState, ended: Ended, name: str) -> dict[str, bytes]:
        return {".txt": text_of(game, ended).encode()}


def text_of(game: BoardState, ended: Ended) -> str:
    result = {BLACK: "1-0", DRAW: "1/2-1/2"}.get(ended.winner, "0-1")
    return f"{game.line()}\n{result} {ended.ending}\n"


# -- networks ----------------------------------------------------------------------------------------------------------


class BoardFormat(PolicyValueFormat):
    """`planes` [B, C, N, N]; `policy` [B, moves] as logits, without the pass, and `value` [B, 1] in [-1, 1]."""

    game: BoardGame

    @classmethod
    def recognise(cls, file: NetworkFile, size: BoardSize) -> Self | None:
        game = cls.game
        if file.info is None or file.feature_set != game.features:
            return None
        info = file.describe()
        if info.board_size != game.size:
            raise NetworkError(f"{file.path}: made for boards of size {info.board_size}, expected size {game.size}")
        spec = rules_of(game).spec
        moves = game.move_planes * game.size**2
        ends = Ends(game.size, "planes", "policy", moves, "value", channels=game.planes)
        return cls(file.path, info, spec, ends, (Feed("planes", spec.planes_shape),))


class RolloutEvaluator(Evaluator):
    """Plays random games from each leaf."""

    inputs, batch_size, description = Inputs.POSITIONS, 4, "random games"

    def __init__(self, game: BoardGame, seed: int | None) -> None:
        """Equal seeds and batches bound in the same order give equal results."""
        self._rules, self._seeds = rules_of(game), np.random.SeedSequence(seed)

    def bind(self, batch: Batch) -> Calls:
        return self._rules.bind_rollouts(batch, self._seeds.spawn(1)[0])


def make_queue(options: Options, game: BoardGame, formats: Sequence[type[FileFormat]]) -> EvaluationQueue:
    """Return the evaluation queue of the options. Errors: see EvaluatorFactory.make_queue."""
    factory = EvaluatorFactory(
        game.name, game.title, "rollouts", lambda options: RolloutEvaluator(game, options.seed), formats
    )
    return factory.make_queue(options, game.size, lambda: BoardState(game))


def search_settings(options: Options, game: BoardGame, queue: EvaluationQueue) -> SearchSettings:
    has_network = bool(queue.evaluator.inputs & Inputs.NETWORK)
    # Positions have no score. Their patterns are unknown, so that errors of similar positions are, too.
    decided = {"score_utility": 0.0, "dynamic_score_utility": 0.0, "ownership": False, "bias_correction": 0.0}
    return common_settings(
        options, game.name, queue, C_PUCT, fpu_from_mean=not has_network, solver=True, symmetry="none", **decided
    )


class BoardPlayer(Player[BoardState]):
    def __init__(self, game: BoardGame, formats: Sequence[type[FileFormat]], options: Options) -> None:
        self._game, self._formats = game, formats
        self._loaded_options = (*(row.name for row in rows_for(game.name) if not row.live), "seed")
        super().__init__(options, BoardState(game))

    def _loading_key(self, game: BoardState) -> object:
        return tuple(self.options.get(name) for name in self._loaded_options)

    def _load(self, game: BoardState) -> PositionSearch:
        queue = make_queue(tuned(self.options, self._game.name, self._game.size), self._game, self._formats)
        return self._open_search(queue, game.rules.spec, BoardState(self._game))

    def _search_settings(self, options: Options, game: BoardState, queue: EvaluationQueue) -> SearchSettings:
        return search_settings(options, self._game, queue)

    def _budget(self, clock: Clock, game: BoardState, options: Options, lag: float, lateness: float) -> Budget:
        spare = max(clock.main - lag_reserve(lag, MOVES_LEFT) - lateness, 0.0)
        period = MAX_RESERVE_SHARE * max(clock.settings.increment + clock.period - lag - lateness, 0.0)
        return Budget(spare / MOVES_LEFT + period, min(3 * spare / MOVES_LEFT, spare) + period)

    def _without_search(self, turn: Turn[BoardState]) -> Decision | None:
        return Decision(None) if turn.root.is_over else None

    def _restrict(self, turn: Turn[BoardState], schedule: Budget | None) -> None:
        moves = turn.root.legal_moves()
        if len(moves) == 1 and not turn.request.infinite:
            turn.forced = moves[0]

    def _fallback_move(self, turn: Turn[BoardState]) -> int:
        move = self._search.first_move()
        return turn.root.legal_moves()[0] if move is None else move


class LearnableBoardGame(Learnable[BoardState]):
    suffix = ".txt"

    def __init__(self, game: BoardGame) -> None:
        super().__init__(BoardReferee())
        self._game, self.features, self.spec = game, game.features, rules_of(game).spec
        self.network: Mapping[str, Any] = {"kind": "board-resnet", "features": game.features, "board_size": game.size}
        self.fixed_settings: Mapping[str, Any] = {"game_file": hashlib.sha256(game.source).hexdigest()}

    def new_game(self, rng: np.random.Generator, lead: float) -> BoardState:
        return BoardState(self._game)

    def restart(self, game: BoardState) -> BoardState:
        return BoardState(self._game)

    def encode(self, positions: npt.NDArray[np.void], history: npt.NDArray[Any]) -> Arrays:
        return planes_of(positions, history, self.spec, feature_set(self.features))

    def record(self, finished: FinishedGame[BoardState], name: str) -> bytes:
        return text_of(finished.game, finished.ended).encode()
