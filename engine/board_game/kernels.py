"""The functions that the search needs of a game (yomi.native.game), made of the functions of a BoardGame.

They call the author's functions by the names of globals, as in yomi.native.game_calls.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaError

from yomi.engine.board_game.definition import FUNCTIONS, BoardGame, BoardGameError, fault_of
from yomi.native import game as interface
from yomi.native.bits import U, mixed, random_below
from yomi.native.bound_kernels import ROWS_ENTRY, Calls, Entry, load, types_of
from yomi.native.game import ONGOING, OVER
from yomi.native.jit import CACHE_DIRECTORY, kernel, machine_code, mark_kernel
from yomi.native.spec import GameSpec
from yomi.native.tree.arrays import VALUE, Batch
from yomi.nets.files import write_atomically

ROLLOUTS = 4  # random games for each leaf
CHECKED_GAMES, MAX_PLIES = 8, 10_000  # random games that check the functions
# Names that `Rules` replaces: the author's functions, kernels of the functions below, and two sizes and types.
begin: Any = None
legal: Any = None
play: Any = None
result: Any = None
encode: Any = None
copy: Any = None
advance: Any = None
legal_moves: Any = None
position_key: Any = None
rollout: Any = None
KIND: Any = None
WORDS = 0  # of a record
SCRATCH_DTYPE = np.dtype([("unused", np.uint8)])


@machine_code(lambda target, source: target.assign(source))
def copy_record(typing_context: Any, target: Any, source: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        cgutils.raw_memcpy(builder, args[0], args[1], ir.Constant(ir.IntType(64), target.size), 1)
        return context.get_dummy_value()

    return types.none(target, source), codegen


@machine_code(lambda record, index: np.frombuffer(record.void.tobytes(), np.uint64)[int(index)])
def word_of(typing_context: Any, record: Any, index: Any) -> Any:
    """Return the bytes 8 * index to 8 * index + 7 of a record."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = builder.bitcast(args[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(words, [args[1]]))

    return types.uint64(record, types.uint64), codegen


def _copy(target, source):  # type: ignore[no-untyped-def]
    copy_record(target, source)


def _start(pos, history):  # type: ignore[no-untyped-def]
    pos.side_to_move = 1
    begin(pos)


def _play(pos, history, move):  # type: ignore[no-untyped-def]
    play(pos, np.int64(move))
    pos.side_to_move = 3 - pos.side_to_move
    pos.ply += 1


def _legal_moves(pos, history, moves):  # type: ignore[no-untyped-def]
    for i in range(U(moves.size)):
        moves[i] = 0
    legal(pos, moves)
    count = 0
    for i in range(U(moves.size)):  # marks become a list in place: it never overtakes them
        if moves[i] != 0:
            moves[U(count)] = i
            count += 1
    return count


def _outcome(pos, history):  # type: ignore[no-untyped-def]
    over, value = result(pos)
    return (OVER if over else ONGOING), float(value), 0.0


def _position_key(pos, history, moves, count):  # type: ignore[no-untyped-def]
    key = U(0)
    for i in range(U(WORDS)):
        key = mixed(key + word_of(pos, i) + U(0x9E3779B97F4A7C15))
    return key


def _graph_key(pos, history, move, above, scratch):  # type: ignore[no-untyped-def]
    # The record has all that decides the rest of the game, and the number of moves.
    return position_key(pos, history, history, 0)


def _pattern_key(pos, history, move):  # type: ignore[no-untyped-def]
    return U(move)


def _write_planes(pos, history, symmetry, scratch, planes, extras):  # type: ignore[no-untyped-def]
    planes[:, :, :] = np.float32(0.0)
    encode(pos, planes)


def _policy_index(pos, move, symmetry):  # type: ignore[no-untyped-def]
    return np.int64(move)


def _add_ownership(pos, ownership, symmetry, sign, total):  # type: ignore[no-untyped-def]
    pass


def _rollout(pos, history, moves, rng):  # type: ignore[no-untyped-def]
    """Play a position to its end with random moves. Return the value for the side that was to move."""
    side = pos.side_to_move
    over, value = result(pos)
    while not over:
        count = legal_moves(pos, history, moves)
        advance(pos, history, moves[random_below(rng, U(count))])
        over, value = result(pos)
    return float(value) if pos.side_to_move == side else -float(value)


def _evaluate(address, rows):  # type: ignore[no-untyped-def]
    """Evaluate a batch's first rows by random games; all moves get the same prior."""
    batch, history, moves, rng, scratch = load(address, KIND)
    for row in range(U(rows)):
        batch.logits[row] = np.float32(0.0)
        batch.values[row] = np.float32(0.0)
        total = 0.0
        for _ in range(ROLLOUTS):
            copy(scratch, batch.positions[row])
            total += rollout(scratch, history, moves, rng)
        batch.values[row, U(VALUE)] = np.float32(total / ROLLOUTS)


KERNELS = {
    "copy": _copy,
    "play": _play,
    "legal_moves": _legal_moves,
    "outcome": _outcome,
    "position_key": _position_key,
    "graph_key": _graph_key,
    "pattern_key": _pattern_key,
    "write_planes": _write_planes,
    "policy_index": _policy_index,
    "add_ownership": _add_ownership,
}


class Rules:
    """The kernels of a game, its sizes, and its evaluator by random games."""

    def __init__(self, game: BoardGame) -> None:
        """Compile the functions, and check them in random games. Raises BoardGameError."""
        self.game = game
        # Kernels are cached by a file, and named after its folder (yomi.native.game_calls): each game has its own.
        self._home = home_of(game)
        if not self._home.exists():
            self._home.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._home, f"{game.digest}\n".encode())
        self._globals = {name: _compiled(getattr(game, name)) for name in FUNCTIONS}
        self._globals["WORDS"] = game.dtype.itemsize // 8
        self.start = self._kernel(_start)
        interface.HOMES[game.dtype] = self._home
        for name, function in KERNELS.items():
            made = self._kernel(function)
            interface.implement(getattr(interface, name), game.dtype, made)
            self._globals[CALLED.get(name, name)] = made
        names = "advance", "legal_moves", "outcome", "write_planes"
        self.play, self.legal_moves, self.outcome, self.write_planes = (self._globals[name] for name in names)
        self._globals["rollout"] = self._kernel(_rollout)
        try:
            mean_moves = self._check()
        except NumbaError as error:
            raise BoardGameError(_reason(str(error), game.file)) from None
        except KeyError as error:  # numba's, for a record
            raise BoardGameError(f"{game.file}: state has no field {error}") from None
        except BoardGameError:
            raise
        except Exception as error:  # of the author; an index out of bounds with NUMBA_BOUNDSCHECK
            raise BoardGameError(fault_of(error, game.file)) from None
        size, moves = game.size, game.policy_size
        self.spec = GameSpec(
            name=game.name,
            position_dtype=game.dtype,
            scratch_dtype=SCRATCH_DTYPE,
            max_moves=moves,
            max_history=1,
            policy_size=moves,
            area=0,
            planes_shape=(game.planes, size, size),
            extras_shape=(0,),
            bits=(),
            cached_moves=0,
            mean_moves=mean_moves,
            mean_edges=mean_moves,
            score_unit=1.0,
        )

    def bind_rollouts(self, batch: Batch, seed: np.random.SeedSequence) -> Calls:
        """Return the call that evaluates a batch by random games."""
        arguments = (
            np.zeros(1, np.uint64),
            np.zeros(self.spec.max_moves, np.uint16),
            seed.generate_state(1, np.uint64) | np.uint64(1),
            self.spec.positions(1)[0],
        )
        kind = types_of(batch, *arguments)
        if self._entry is None or self._entry.kind != kind:
            self._entry = Entry(self._form(_evaluate, KIND=kind), kind, ROWS_ENTRY)
        return self._entry.bind(batch, *arguments)

    _entry: Entry | None = None

    def _form(self, function: Any, **more: Any) -> Callable[..., Any]:
        """Return a function of this module that calls this game's kernels."""
        made = FunctionType(function.__code__, {**function.__globals__, **self._globals, **more})
        made.__qualname__ = made.__name__ = f"{self._home.parent.name}{function.__name__}"
        mark_kernel(made, self._home)
        return made

    def _kernel(self, function: Any) -> Any:
        return kernel(self._form(function))

    def _check(self) -> float:
        """Play random games. Return the mean number of legal moves, or raise BoardGameError."""
        game, rng, counts = self.game, np.random.default_rng(1), []
        history, moves = np.zeros(1, np.uint64), np.zeros(2 * game.policy_size, np.uint16)
        planes, encode = np.zeros((game.planes, game.size, game.size), np.float32), self.write_planes
        scratch = np.zeros(1, SCRATCH_DTYPE)[0]
        for _ in range(CHECKED_GAMES):
            pos = np.zeros(1, game.dtype)[0]
            self.start(pos, history)
            while not (ended := self.outcome(pos, history))[0]:
                count = self.legal_moves(pos, history, moves)
                if not count or pos["ply"] >= MAX_PLIES:
                    fault = "no legal move" if not count else "no end"
                    raise BoardGameError(f"{game.title}: {fault} found after {pos['ply']} moves, expected a result")
                if moves[count - 1] >= game.policy_size:
                    expected = f"expected less than {game.policy_size}"
                    raise BoardGameError(f"{game.title}: move {moves[count - 1]} found, {expected}")
                encode(pos, history, 0, scratch, planes, np.zeros(0, np.float32))
                if not np.isin(planes, (0.0, 1.0)).all():
                    raise BoardGameError(f"{game.title}: encode wrote {planes.max():g}, expected zeros and ones")
                counts.append(int(count))
                move = int(rng.choice(moves[:count]))
                for name, shown in (("move_text", move), ("board_text", pos)):  # records and pages need them later
                    if not isinstance(text := getattr(game, name)(shown), str):
                        raise BoardGameError(f"{game.title}: {name} returned {text!r}, expected text")
                self.play(pos, history, move)
            if not -1.0 <= ended[1] <= 1.0:
                raise BoardGameError(f"{game.title}: result {ended[1]:g} found, expected a value from -1 to 1")
        if not counts:
            raise BoardGameError(f"{game.title}: a result found at the start, expected a move")
        return max(2.0, float(np.mean(counts)))


CALLED = {"play": "advance"}  # names of kernels in the functions above, if they differ


def home_of(game: BoardGame) -> Path:
    """Return the file by which the kernels of a game are cached. It exists if they were compiled before."""
    return CACHE_DIRECTORY / "games" / f"{game.name}-{game.digest}" / "game.txt"


@functools.cache
def rules_of(game: BoardGame) -> Rules:
    """Return the compiled rules of a game. Raises BoardGameError."""
    return Rules(game)


def _compiled(function: Any) -> Any:
    """Return a kernel of an author's function. Functions of its file that it calls become kernels, too."""
    if not isinstance(function, FunctionType):
        return function  # a kernel already
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, FunctionType) and called.__code__.co_filename == function.__code__.co_filename:
            function.__globals__[name] = kernel(called)  # first, as it may call itself
            _compiled(called)
    return kernel(function)


def _reason(text: str, file: str) -> str:
    """Return numba's message about an author's function as one line, with the line of the file."""
    if "_ol_array_allocate" in text or "NRT required" in text:  # it depends on what numba has compiled before
        text = "an array is created, expected only fields of the state and numbers\n" + text
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message = next((line for line in lines if not line.startswith(("Failed in", "-"))), "")
    places = re.findall(rf'{re.escape(Path(file).name)}(?:", line | \()(\d+)', text)
    return f"{file}{f', line {places[-1]}' if places else ''}: {message}"
