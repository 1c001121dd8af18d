"""Compiling all kernels before they are needed, with progress, in several processes.

numba compiles a kernel when it is first called. A first start would so spend a minute in the middle of a move, without
a word; `compile_all` does it beforehand. Later starts find a mark in the cache directory and return at once.
"""

import contextlib
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numba.core import event

from native import jit
from native.cache_folder import COMPLETE, locked, write_json
from native.compile_progress import CHECK, Display, Progress, time_text
from native.errors import CompileError
from native.jit import CACHE_DIRECTORY, IS_PLAIN, kernel_facts, kernel_key
from native.spec import Inputs

if TYPE_CHECKING:
    from native.spec import GameSpec
    from native.tree.arrays import Tree

ROOT = Path(__file__).resolve().parent.parent
MISTAKE = "a mistake in a kernel: "
"""What a compiling process writes before the message that is for whoever edited a kernel."""
WHEN_AGAIN = (
    "This happens again after an update or edit of yomi, after an update of numba or Python, and on another processor"
)
SHARED_PACKAGES = ("tree", "datasets", "sparse", "forward", "bits")
"""Packages of kernels that belong to no game."""
SIZE = 9
"""Board that the kernels are called on; they are compiled for all sizes at once."""


def _position() -> tuple["np.ndarray[tuple[int], np.dtype[np.void]]", "np.ndarray[tuple[int], np.dtype[np.uint64]]"]:
    from native.go.board import POSITION_DTYPE, clear
    from native.go.rules import MAX_HISTORY, begin

    positions = np.zeros(2, POSITION_DTYPE)
    history = np.zeros(MAX_HISTORY, np.uint64)
    clear(positions[0], SIZE)
    begin(positions[0], history)
    return positions, history


def compile_rules() -> None:
    """Compile what a game of Go calls: the board, legality, area."""
    from native.go import area, board, rules
    from native.go.scratch import SCRATCH_DTYPE

    positions, history = _position()
    pos = positions[0]
    move = 3 * int(pos["stride"]) + 3
    rules.legality(pos, history, move, 1)
    board.is_suicide(pos, move, 1)
    board.is_single_stone_suicide(pos, move, 1)
    rules.legal_moves(pos, history, np.zeros(SIZE * SIZE + 1, np.uint16))
    rules.turn_to(pos, 1)
    rules.play(pos, history, move)
    board.place_stone(pos, move + 2, 1)
    board.copy(positions[1], pos)
    rules.is_third_repetition(pos, history)
    rules.area_points(pos)
    area.pass_alive(pos, np.zeros(1, SCRATCH_DTYPE)[0], 1, np.zeros(board.MAX_POINTS, np.uint8))


def compile_planes() -> None:
    """Compile the network's inputs and outputs."""
    from native.go.outputs import decode
    from native.go.planes import policy_index, write_planes
    from native.go.scratch import SCRATCH_DTYPE

    positions, history = _position()
    spatial = np.zeros((22, SIZE, SIZE), np.float32)
    write_planes(positions[0], history, 0, np.zeros(1, SCRATCH_DTYPE)[0], spatial, np.zeros(19, np.float32))
    policy_index(SIZE, 30, 0)
    area = SIZE * SIZE
    matrix = np.zeros((1, area + 1), np.float32)
    numbers = np.zeros(3, np.float32)
    is_root = np.zeros(1, np.uint8)
    cube = matrix.reshape(1, 1, -1)
    decode.bind(cube, matrix, matrix, matrix, numbers, numbers, is_root, False, matrix, matrix, matrix)


def compile_tree() -> None:
    """Compile the search of Go."""
    from native.go.spec import go_spec

    positions, history = _position()
    _compile_search(go_spec(SIZE), positions[0], history)


def _compile_search(spec: "GameSpec", position: Any, history: Any) -> None:
    """Compile what a search of a game calls."""
    from native.calls import NO_CALLS
    from native.tree import arrays, expansion, memory, report, search
    from native.tree.buffers import make_batch, make_worker

    tree = arrays.make_tree(2**20, spec.mean_edges, 2**16, spec.policy_size, spec.cached_moves)
    batch = make_batch(spec, 8, Inputs.NUMBERS)
    worker = make_worker(spec, 1)
    length = int(position["history_length"])
    worker.history[:length] = history[:length]
    _begin(tree, 20)
    roots = spec.positions(1)
    roots[0] = position
    rows = 0
    while rows := search.advance(tree, roots, worker, batch, rows, NO_CALLS.table, 1):
        pass
    children = np.zeros(spec.max_moves, report.CHILD_DTYPE)
    report.root_children(tree, children)
    report.most_visited_path(tree, int(children[0]["node"]), np.zeros(8, np.uint16), *np.zeros((2, 8), np.uint32))
    report.restore_root_order(tree)
    report.find_child(tree, int(children[0]["move"]))
    memory.compact(tree, tree.counters[0].root, 0)
    expansion.complete_root(tree, roots[0], worker.history, worker.moves)
    search.dynamic_utility(tree, 1.0, 0.0, 0.0)
    search.recenter(tree, 1.0)


def _begin(tree: "Tree", playouts: int) -> None:
    """Empty a tree, and set what a search of a few playouts reads of its parameters."""
    from native.tree.memory import clear_tree

    p = tree.parameters[0]
    p.rows_per_leaf = 1
    p.policy_temperature = p.root_policy_temperature = 1.0
    p.c_puct = p.c_puct_base = p.root_c_puct = p.root_c_puct_base = 1.0
    clear_tree(tree)
    tree.counters[0].claim_limit = playouts


def compile_forest() -> None:
    """Compile what learning Go calls besides."""
    from native.go.spec import go_spec

    _compile_learning(go_spec(SIZE), *_position())


def compile_shogi_forest() -> None:
    """Compile what learning shogi calls besides."""
    from native.shogi.spec import shogi_spec

    position, history = _shogi_position()
    positions = shogi_spec().positions(2)
    positions[:] = position
    _compile_learning(shogi_spec(), positions, history)


def _compile_learning(spec: "GameSpec", positions: Any, history: Any) -> None:
    """Compile searches side by side, and rows."""
    from native.calls import NO_CALLS
    from native.datasets.positions import index_moves, show_positions
    from native.tree import arrays, report
    from native.tree.buffers import make_batch, make_worker
    from native.tree.forest import advance_all, make_forest

    forest = make_forest(spec, 2, 16)
    for number in range(2):
        tree = arrays.Tree(*(array[number] for array in forest))
        _begin(tree, 4)
    histories = np.zeros((2, spec.max_history), np.uint64)
    histories[:, : len(history)] = history
    rngs = np.ones((2, 1), np.uint64)
    batch, worker = make_batch(spec, 2, Inputs.NUMBERS), make_worker(spec, 1)
    owners, wanted, idle = np.zeros(2, np.int64), np.ones(2, np.bool_), np.zeros(2, np.bool_)
    rows = 0
    while rows := advance_all(
        forest, positions[:2], histories, rngs, worker, batch, owners, rows, wanted, idle, NO_CALLS.table, 1
    ):
        pass
    report.root_exploration(tree, 4.0)
    planes = np.zeros((2, *spec.planes_shape), np.float32)
    extras = np.zeros((2, *spec.extras_shape), np.float32)
    show_positions(positions[:2], history, np.zeros(1, spec.scratch_dtype), planes, extras)
    moves = np.zeros((2, 1), np.uint16)
    index_moves(positions[:2], moves, np.zeros(2, np.int64), moves)


def compile_rollouts() -> None:
    """Compile rollouts and the evaluation of leaves by them."""
    from native.go.ownership import rollout_ownership
    from native.go.rollout_evaluator import mix_rollouts, write_priors
    from native.go.spec import go_spec
    from native.tree.buffers import make_batch

    positions, _ = _position()
    rng = np.ones(1, np.uint64)
    batch = make_batch(go_spec(SIZE), 1, Inputs.POSITIONS)
    batch.positions[0] = positions[0]
    owners = np.zeros((1, SIZE * SIZE), np.float32)
    whole = np.float32(1.0)
    mixing = mix_rollouts.bind(batch, 1, whole, whole, rng, positions[1], np.zeros(2, np.float32), owners)
    (write_priors.bind(batch) + mixing).run(1)
    rollout_ownership(positions[0], positions[1], rng, 1, np.zeros(SIZE * SIZE, np.int32))


def compile_partial() -> None:
    """Compile the planes and outputs of networks that say only a part."""
    from native.go.aya import AYA_SCRATCH_DTYPE, show_aya
    from native.go.partial import decode
    from native.go.spec import go_spec
    from native.go.stones import show_stones
    from native.tree.buffers import make_batch

    batch = make_batch(go_spec(SIZE), 1, Inputs.POSITIONS)
    planes, nothing = np.zeros((1, 49, SIZE, SIZE), np.float32), np.zeros((1, 0), np.float32)
    show_aya.bind(batch, np.zeros(1, AYA_SCRATCH_DTYPE)[0], planes)
    show_stones.bind(batch, planes)
    decode.bind(nothing, nothing, nothing, True, batch)


def compile_forward() -> None:
    """Compile the networks' forward pass; a program without operations holds all of its code."""
    from native.forward.builder import ProgramBuilder
    from native.forward.squash import TANH

    program = replace(ProgramBuilder(SIZE, 22, 19).build(), squash=TANH)
    area = SIZE * SIZE
    program.run(
        program.make_scratch(),
        np.zeros((1, 22, SIZE, SIZE), np.float32),
        np.zeros((1, 19), np.float32),
        np.zeros((1, 1, area + 1), np.float32),
        np.zeros((1, 3), np.float32),
        np.zeros((1, 4), np.float32),
        np.zeros((1, area), np.float32),
    )


def _shogi_position() -> tuple[Any, Any]:
    """Return the start position's record and history."""
    from native.shogi.position import MAX_HISTORY, POSITION_DTYPE, set_position

    board = np.zeros(81, np.uint8)
    board[[4 * 9 + 8, 4 * 9]] = 8, 24  # two kings are a position
    board[[7 * 9 + 7, 7 * 9 + 1]] = 6, 22  # and rooks have moves
    records = np.zeros(1, POSITION_DTYPE)
    history = np.zeros(MAX_HISTORY, np.uint64)
    set_position(records[0], history, board, np.ones((2, 7), np.uint8), 1, 0)
    return records[0], history


def compile_shogi_rules() -> None:
    """Compile what a game of shogi calls."""
    from native.shogi import rules, waivers
    from native.shogi.position import MAX_MOVES

    position, history = _shogi_position()
    moves = np.zeros(MAX_MOVES, np.uint16)
    rules.legal_moves(position, history, moves)
    waivers.searched_moves(position, history, moves)
    rules.is_legal(position, history, int(moves[0]))
    rules.has_legal_move(position)
    rules.declaration(position)
    rules.play(position, history, int(moves[0]))


def compile_shogi_tree() -> None:
    """Compile the search of shogi."""
    from native.shogi.spec import shogi_spec

    position, history = _shogi_position()
    _compile_search(shogi_spec(), position, history)


def compile_material() -> None:
    """Compile the evaluation of shogi positions without a network."""
    from native.forward.policy_value import decode
    from native.shogi.effects import EFFECTS_DTYPE
    from native.shogi.material import evaluate_rows
    from native.shogi.spec import shogi_spec
    from native.tree.buffers import make_batch

    position, _ = _shogi_position()
    batch = make_batch(shogi_spec(), 1, Inputs.POSITIONS)
    batch.positions[0] = position
    evaluate_rows.bind(batch, np.zeros(1, EFFECTS_DTYPE)[0]).run(1)
    decode.bind(batch.logits, np.zeros((1, 1), np.float32), True, batch.logits, batch.values)


def compile_sparse() -> None:
    """Compile the evaluation of shogi positions by a sparse network."""
    from native.shogi.sparse import SCRATCH_DTYPE
    from native.shogi.spec import shogi_spec
    from native.sparse.network import make_scratch
    from native.sparse.shogi import EXAMPLE, evaluate_rows
    from native.tree.buffers import make_batch

    batch = make_batch(shogi_spec(), 1, Inputs.POSITIONS)
    evaluate_rows.bind(batch, EXAMPLE, make_scratch(EXAMPLE, 1), np.zeros(1, SCRATCH_DTYPE)[0])


def compile_nnue() -> None:
    """Compile the search at leaves by an NNUE evaluation."""
    from native.shogi.spec import shogi_spec
    from native.sparse.nnue_leaf import EXAMPLE, make_leaf_scratch, make_settings
    from native.sparse.nnue_shogi import clear_rows, evaluate_leaves
    from native.tree.buffers import make_batch

    batch = make_batch(shogi_spec(), 1, Inputs.POSITIONS)
    arguments = batch, EXAMPLE, make_leaf_scratch(EXAMPLE), make_settings(1, 1.0, 1.0, 0.0)
    for bound in (clear_rows, evaluate_leaves):
        bound.bind(*arguments)


def compile_mate() -> None:
    """Compile the search for a mate at the root."""
    from native.shogi.dfpn import MAX_PLY, make_solver, prove

    solver = make_solver(2**16)
    solver.positions[0] = _shogi_position()[0]
    prove(solver, np.zeros(0, np.uint16), 1, 1, np.zeros(MAX_PLY + 1, np.uint16))


GROUPS: dict[str, Callable[[], None]] = {
    "go-rules": compile_rules,
    "go-planes": compile_planes,
    "go-tree": compile_tree,
    "go-forest": compile_forest,
    "go-rollouts": compile_rollouts,
    "go-partial": compile_partial,
    "forward": compile_forward,
    "shogi-rules": compile_shogi_rules,
    "shogi-tree": compile_shogi_tree,
    "shogi-forest": compile_shogi_forest,
    "shogi-material": compile_material,
    "shogi-sparse": compile_sparse,
    "shogi-nnue": compile_nnue,
    "shogi-mate": compile_mate,
}
PROCESSES = {
    "go": (("go-planes", "go-tree"), ("go-rules", "go-rollouts", "forward", "go-partial")),
    "shogi": (("shogi-rules", "shogi-tree"), ("shogi-material", "shogi-sparse", "shogi-nnue", "forward", "shogi-mate")),
    "learning-go": (("go-forest",),),
    "learning-shogi": (("shogi-forest",),),
}
"""Groups by what needs them and process: a game, or learning it, which needs the game's too. The tree contains the
planes, so it comes after them and finds them in the cache."""


def is_compiled(game: str) -> bool:
    """Whether the kernels of a name of PROCESSES of this version, for this processor, are in the cache."""
    return mark_of(game).exists()


def compile_all(game: str, report: Callable[[str], None]) -> None:
    """Compile all kernels of a game that are not in the cache; see `compile_games`."""
    compile_games([game], report)


def compile_games(games: Iterable[str], report: Callable[[str], None]) -> None:
    """Compile all kernels of some games that are not in the cache, with a bar on a terminal.

    Args:
        games: names of PROCESSES.
        report: receives a line before and after, and every 15 seconds in between if stderr is no terminal.

    Raises:
        CompileError: a compiling process failed, or the kernels cannot be kept. The message is that of the mistake in a
            kernel, or the last line of the process.
    """
    missing = [game for game in PROCESSES if game in set(games) and not is_compiled(game)]
    if IS_PLAIN or not missing:
        return
    try:
        with contextlib.ExitStack() as stack:
            for game in missing:  # in the order of PROCESSES, so that two starts never wait for each other
                text = f"another start compiles the engine for {game}: waiting for it"
                stack.enter_context(locked(CACHE_DIRECTORY / f"{game}.lock", functools.partial(report, text)))
            if left := [game for game in missing if not is_compiled(game)]:
                _compile(left, report)
    except OSError as error:
        raise CompileError(f"compiling failed: {_no_room(f'{CACHE_DIRECTORY}: {error.strerror or error}')}") from None


def _no_room(fault: str) -> str:
    return f"{fault}: expected room for compiled kernels (some 100 MB), or YOMI_CACHE_DIR to name a folder with room"


def _compile(games: Sequence[str], report: Callable[[str], None]) -> None:
    """Compile all kernels of games whose locks this process has."""
    stages: list[tuple[str, bool]] = []
    for game in games:
        if (ROOT / "pyproject.toml").exists():  # a checkout, whose kernels may have been edited
            stages.append((game, True))
        stages.append((game, False))
    work = [[(CHECK, *words) if is_check else words for words in PROCESSES[game]] for game, is_check in stages]
    totals = [max((Progress(words, 0.0).total for words in processes), default=0.0) for processes in work]
    report(f"compiling the engine for {', '.join(games)}. {WHEN_AGAIN}")
    display = Display(report, totals)
    try:
        for (game, is_check), processes in zip(stages, work, strict=True):
            begin = time.monotonic()
            _run(processes, display)
            if not is_check:
                _write_mark(game, time.monotonic() - begin)
    finally:
        seconds = display.close()
    report(f"compiled in {time_text(seconds)}; kept in {CACHE_DIRECTORY}")


def _run(processes: Sequence[tuple[str, ...]], display: Display) -> None:
    """Run processes of this module with arguments until all have ended, or one has failed, which ends the others.

    Raises:
        CompileError: one failed.
    """
    with contextlib.ExitStack() as stack:
        # Files, for a pipe that nobody reads holds a process up when it is full.
        errors = [stack.enter_context(tempfile.TemporaryFile()) for _ in processes]
        running = [stack.enter_context(_spawn(words, file)) for words, file in zip(processes, errors, strict=True)]
        speed = display.begin_stage()
        progress = [Progress(words, time.monotonic(), speed) for words in processes]
        for process, estimate in zip(running, progress, strict=True):
            thread = threading.Thread(target=_follow, args=(process, estimate), daemon=True)
            thread.start()
            stack.callback(thread.join)  # after the process has been ended, and before its pipe is closed
        for process in running:
            stack.callback(process.kill)  # before it is waited for; nothing happens to one that has ended
        while not all(process.poll() == 0 for process in running):
            for process, file in zip(running, errors, strict=True):
                if process.poll():
                    file.seek(0)
                    raise CompileError(f"compiling failed: {_reason(file.read().decode(errors='replace'))}")
            display.show(progress)
            time.sleep(0.1)


def _follow(process: "subprocess.Popen[bytes]", progress: Progress) -> None:
    """Read the names of the kernels and groups that a process has compiled."""
    if process.stdout is not None:
        for line in process.stdout:
            progress.finish(line.decode(errors="replace").strip(), time.monotonic())
    progress.end(time.monotonic())


def _reason(text: str) -> str:
    """Return what a failed process said of a mistake in a kernel, or else its last line."""
    _, is_known, mistake = text.rpartition(MISTAKE)
    return mistake.strip() if is_known else (text.strip().splitlines() or ["no message"])[-1]


def mark_of(game: str) -> Path:
    """Return the file that exists once the kernels of a name of PROCESSES are compiled."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for package in (game.rpartition("-")[2], "tree", "datasets", "forward"):
        digest.update(kernel_key(package).encode())
    return CACHE_DIRECTORY / f"{game}-{digest.hexdigest()[:16]}{COMPLETE}"


def _write_mark(game: str, seconds: float) -> None:
    """Note that the kernels of a game are compiled: by which facts, in which folders, and how long it took."""
    names = (f"{package}-{kernel_key(package)}" for package in (game.rpartition("-")[2], *SHARED_PACKAGES))
    folders = [name for name in names if (CACHE_DIRECTORY / name).exists()]
    write_json(mark_of(game), {**kernel_facts("tree"), "folders": folders, "seconds": round(seconds, 1)})


def _spawn(groups: tuple[str, ...], errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start a process that compiles some groups, in the folder that this one reads from; it writes to `errors`."""
    command = [sys.executable, "-m", "native.warmup", *groups]
    # The process ends itself when the pipe to its stdin is closed: also where this one is killed and can end nothing.
    environment = {**os.environ, "YOMI_CACHE_DIR": str(CACHE_DIRECTORY.parent)}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
    )


def end_with_stdin() -> None:
    """End this process when nobody holds the other end of stdin any more."""

    def watch() -> None:
        while os.read(0, 1):  # not sys.stdin, whose lock would be in the way of a regular end
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Reporter(event.Listener):
    """Prints the name of each kernel that numba has compiled, for the process that shows the progress."""

    def on_start(self, event: Any) -> None:
        """Do nothing."""

    def on_end(self, event: Any) -> None:
        """Print the name."""
        print(event.data["dispatcher"].py_func.__name__, flush=True)


def main(words: Sequence[str]) -> None:
    """Compile groups, or check their kernels if the first word is CHECK; print the place of a mistake on stderr.

    A kernel that cannot be kept ends the process with a line, since others would compile it again.
    """
    from native import typecheck

    is_check = words[0] == CHECK
    groups = [GROUPS[name] for name in words[is_check:]]
    try:
        if is_check:
            typecheck.check(reversed(groups))  # the tree first: it is what is edited most, and contains the planes
            return
        with event.install_listener("numba:compile", _Reporter()):
            for name, group in zip(words, groups, strict=True):
                group()
                print(name, flush=True)
                if jit.UNSAVED:
                    raise SystemExit(_no_room(jit.UNSAVED[0]))
    except OSError as error:  # the disk may also be too full to make a folder or a file
        raise SystemExit(_no_room(f"{CACHE_DIRECTORY}: {error.strerror or error}")) from None
    except Exception as error:
        if (text := typecheck.describe(error)) is None:
            raise
        raise SystemExit(f"{MISTAKE}{text}") from None


if __name__ == "__main__":
    end_with_stdin()
    main(sys.argv[1:])
