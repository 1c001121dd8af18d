"""Batches of games for reinforcement learning: `yomi.env`. Shapes and meanings are those of pgx."""

from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from yomi.engine.game import Game
from yomi.engine.options import Options
from yomi.engine.registry import GO, find_game
from yomi.errors import IllegalMove
from yomi.library import arguments
from yomi.library.analysis import keep_stderr_quiet, reported
from yomi.library.arguments import Progress, no_progress
from yomi.native.bits import U
from yomi.native.game import IMPLEMENTATIONS, ONGOING, OVER_UNSCORED
from yomi.native.game_calls import encode_positions
from yomi.native.jit import kernel
from yomi.settings import OptionError

BOARDS = 8  # boards in an observation of Go: the current one, and those before the last moves
NO_PASS, NO_LIMIT = -1, 2**16 - 2

# Names that `_bound` replaces by the kernels of a game
play: Any = None
outcome: Any = None
legal_moves: Any = None
policy_index: Any = None


def _list_moves(positions, histories, rows, moves, codes, mask):  # type: ignore[no-untyped-def]
    """Write the legal actions of some rows: mask bool[B, A], and the game's moves by action, codes uint16[B, A]."""
    for i in range(U(rows.size)):
        row = U(rows[i])
        mask[row] = False
        for k in range(U(legal_moves(positions[row], histories[row], moves))):
            action = U(policy_index(positions[row], moves[k], 0))
            mask[row, action] = True
            codes[row, action] = moves[k]


def _step(positions, histories, rows, actions, codes, most, pass_move, rewards, terminated):  # type: ignore[no-untyped-def]
    """Play an action of some rows. At `most` plies the game is passed to its end; without passes it is drawn."""
    for i in range(U(rows.size)):
        row = U(rows[i])
        pos = positions[row]
        play(pos, histories[row], np.int64(codes[row, U(actions[row])]))
        state, value, _ = outcome(pos, histories[row])
        if state == ONGOING and pos.ply >= most:
            if pass_move >= 0:
                play(pos, histories[row], pass_move)
                play(pos, histories[row], pass_move)
                state, value, _ = outcome(pos, histories[row])
            state = max(state, 1)
        if state != ONGOING:
            terminated[row] = True
            mover = U(pos.side_to_move - 1)
            rewards[row, mover] = np.float32(value)
            rewards[row, U(1) - mover] = np.float32(-value)


@kernel
def _observe_go(positions, points, rows, keeps, observation):  # type: ignore[no-untyped-def]
    """Write observations bool[B, N * N, 2 * BOARDS + 1] after a move; without `keeps` at the start of a game."""
    for i in range(U(rows.size)):
        row = U(rows[i])
        pos = positions[row]
        side = pos.side_to_move
        for p in range(U(points.size)):
            for k in range(2 * BOARDS - 1, 1, -1):  # earlier boards, now seen by the other side
                observation[row, p, k] = keeps and observation[row, p, (k - 2) ^ 1]
            color = pos.color[U(points[p])]
            observation[row, p, 0] = color == side
            observation[row, p, 1] = color == 3 - side
            observation[row, p, 2 * BOARDS] = side == 2


class EnvironmentState(NamedTuple):
    """The state of B games. The arrays belong to the caller."""

    observation: npt.NDArray[Any]
    """[B, N, N, C], seen by the side to move. Go: bool, C = 17; the stones of the side to move and of the opponent on
    the last 8 boards, in turn, and 1 everywhere if White is to move. Other games: the planes of `encode`."""
    legal_action_mask: npt.NDArray[np.bool_]
    """[B, A]. All actions of a terminated game, in which they have no effect."""
    rewards: npt.NDArray[np.float32]
    """[B, 2]: 1, -1 or 0 for both players in the step that ends the game, otherwise 0."""
    terminated: npt.NDArray[np.bool_]
    """[B]."""
    current_player: npt.NDArray[np.int32]
    """[B]: 0 (who moved first) or 1."""


class Environment:
    """Many games of one kind, which are stepped together. One thread at a time may use it."""

    def __init__(self, game: Game[Any, Any], options: Options, count: int, max_steps: int) -> None:
        """Begin games. `env` makes environments."""
        start, spec = game.new_game(options), game.learnable(options).spec
        self._first, self._first_history = start.position.copy(), start.history.copy()
        self._spec, self._is_go = spec, game is GO
        self._pass = game.pass_moves[0] if game.pass_moves else NO_PASS
        self._most = max_steps or (2 * spec.area if self._is_go else NO_LIMIT)
        # Two passes more end a game that is too long.
        history = max(self._first_history.shape[0] if not self._is_go else 0, min(self._most + 4, spec.max_history))
        self._positions, self._histories = spec.positions(count), np.zeros((count, history), np.uint64)
        self._moves = np.zeros(spec.max_moves, np.uint16)
        self._codes = np.zeros((count, spec.policy_size), np.uint16)
        self._terminated = np.ones(count, np.bool_)
        self._list, self._play = (_bound(function, spec.position_dtype) for function in (_list_moves, _step))
        if self._is_go:
            self._points = np.array(start.board.points, np.int64)
            rules = start.rules
            for _ in range(2):
                start.push(self._pass)
            if IMPLEMENTATIONS[spec.position_dtype]["outcome"](start.position, start.history)[0] == OVER_UNSCORED:
                raise OptionError(f"rules {rules} found, expected rules that score the board, such as tromp-taylor")
            self._observation = np.zeros((count, spec.area, 2 * BOARDS + 1), np.bool_)
        else:
            self._scratch = np.zeros(1, spec.scratch_dtype)
        self.num_actions = spec.policy_size
        """Number of actions A. Go: row * size + column from the top left, then the pass."""
        self._state = self.reset()
        self._play_rows(np.zeros(0, np.int64), np.zeros(count, np.int64), self._state.rewards)  # compiles
        self.observation_shape = self._state.observation.shape[1:]
        """(N, N, C)."""

    def reset(self, where: npt.ArrayLike | None = None) -> EnvironmentState:
        """Begin games, and return the new state.

        Args:
            where: bool[B], the games to begin, such as `state.terminated`; None for all.
        """
        count = len(self._terminated)
        chosen = np.ones(count, np.bool_) if where is None else np.asarray(where)
        if chosen.shape != (count,) or chosen.dtype != np.bool_:
            raise arguments.wrong("where", where, f"{count} truth values")
        rows = np.flatnonzero(chosen)
        self._positions[rows] = self._first
        self._histories[rows] = self._first_history[: self._histories.shape[1]]
        self._terminated[rows] = False
        mask = np.ones((count, self.num_actions), np.bool_) if where is None else self._state.legal_action_mask.copy()
        self._list(self._positions, self._histories, rows, self._moves, self._codes, mask)
        if self._is_go:
            _observe_go(self._positions, self._points, rows, False, self._observation)
        return self._new_state(mask, np.zeros((count, 2), np.float32))

    def step(self, actions: npt.ArrayLike) -> EnvironmentState:
        """Play an action in each game, and return the new state. Terminated games stay as they are.

        Raises:
            IllegalMove: an action is illegal; no game has changed.
        """
        count, mask = len(self._terminated), self._state.legal_action_mask
        found = np.asarray(actions)
        if found.shape != (count,) or found.dtype.kind not in "iu":
            raise arguments.wrong("actions", actions, f"{count} integers")
        rows = np.flatnonzero(~self._terminated)
        legal = (found[rows] >= 0) & (found[rows] < self.num_actions)
        legal[legal] = mask[rows[legal], found[rows[legal]]]
        if not legal.all():
            row = rows[~legal][0]
            raise IllegalMove(f"action {found[row]} of game {row} found, expected one of its legal_action_mask")
        rewards, mask = np.zeros((count, 2), np.float32), np.ones_like(mask)
        self._play_rows(rows, found.astype(np.int64), rewards)
        going = rows[~self._terminated[rows]]
        self._list(self._positions, self._histories, going, self._moves, self._codes, mask)
        if self._is_go:
            _observe_go(self._positions, self._points, rows, True, self._observation)
        return self._new_state(mask, rewards)

    def _play_rows(
        self, rows: npt.NDArray[np.int64], actions: npt.NDArray[np.int64], rewards: npt.NDArray[np.float32]
    ) -> None:
        games = self._positions, self._histories
        self._play(*games, rows, actions, self._codes, self._most, self._pass, rewards, self._terminated)

    def _new_state(self, mask: npt.NDArray[np.bool_], rewards: npt.NDArray[np.float32]) -> EnvironmentState:
        if self._is_go:
            shape = len(mask), *self._spec.planes_shape[1:], 2 * BOARDS + 1
            observation: npt.NDArray[Any] = self._observation.reshape(shape).copy()
        else:
            planes = np.zeros((len(mask), *self._spec.planes_shape), np.float32)
            extras = np.zeros((len(mask), 0), np.float32)
            encode_positions(self._positions, self._first_history, self._scratch, planes, extras)
            observation = planes.transpose(0, 2, 3, 1)
        players = self._positions["side_to_move"].astype(np.int32) - 1
        self._state = EnvironmentState(observation, mask, rewards, self._terminated.copy(), players)
        return self._state

    def __repr__(self) -> str:
        return f"<yomi.Environment {self._spec.name}: {len(self._terminated)} games, {self.num_actions} actions>"


def env(
    game: str, count: int = 1, *, max_steps: int | None = None, progress: Progress = no_progress, **options: Any
) -> Environment:
    """Return `count` games that are stepped together, as pgx does it, but with arrays of numpy.

    Args:
        game: go, or `FILE.py:NAME` (docs/how-to/games.md).
        count: number of games B.
        max_steps: end games after this many moves. None: Go after twice the points, as in pgx; other games never. In Go
            the board is then scored, other games are drawn.
        progress: see `Engine`.
        options: Go: size, komi, rules. Rules must score the board as it is, such as tromp-taylor. If White
            passes at the start, that is no handicap, unlike in `yomi.go.Game`.

    Raises:
        Error: an argument is wrong, or the game cannot be compiled.
    """
    keep_stderr_quiet()
    descriptor = find_game(arguments.text("game", game))
    if descriptor.name == "shogi":
        raise OptionError("game 'shogi' found, expected go, or FILE.py:NAME")
    (given,) = arguments.divided(options, ("size", "komi", "rules") if descriptor is GO else ())
    made = Options.for_game(descriptor.name).with_values(given)
    count, most = arguments.whole("count", count, 1), 0
    if max_steps is not None:
        most = arguments.whole("max_steps", max_steps, 1, 1000 if descriptor is GO else NO_LIMIT)
    with reported(progress):
        descriptor.compile(progress, everything=False)
    return Environment(descriptor, made, count, most)


def _bound(function: Any, dtype: Any) -> Any:
    """Return a kernel of this module that calls the kernels of a game, given by its record type."""
    kernels = IMPLEMENTATIONS[dtype]
    names = {name: kernels[name] for name in ("play", "outcome", "legal_moves", "policy_index")}
    made = FunctionType(function.__code__, {**function.__globals__, **names})
    made.__module__ = __name__
    return kernel(made)
