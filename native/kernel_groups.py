"""Groups of kernels that are compiled together: functions that call each kernel once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from yomi.native.spec import Inputs

if TYPE_CHECKING:
    from yomi.native.spec import GameSpec

    Example = tuple[GameSpec, np.ndarray[Any, Any], np.ndarray[Any, Any]]

# yomi.native.precompile runs the groups in processes. A kernel that Python calls is compiled with the code of all
# kernels that it contains, so that groups do not depend on each other.

SIZE = 9  # Board size of the calls. One compilation serves all sizes.


def _go() -> "Example":
    """Return an example of Go: its spec, two positions (the second is empty), and a history."""
    from yomi.native.go.board import clear
    from yomi.native.go.rules import begin
    from yomi.native.go.spec import go_spec

    spec = go_spec(SIZE)
    positions, history = spec.positions(2), np.zeros(spec.max_history, np.uint64)
    clear(positions[0], SIZE, SIZE)
    begin(positions[0], history)
    return spec, positions, history


def _shogi() -> "Example":
    """Return an example of shogi: its spec, a position twice, and its history."""
    from yomi.native.shogi.position import set_position
    from yomi.native.shogi.spec import shogi_spec

    spec = shogi_spec()
    positions, history = spec.positions(2), np.zeros(spec.max_history, np.uint64)
    board = np.zeros(81, np.uint8)
    board[[4 * 9 + 8, 4 * 9]] = 8, 24  # two kings are a position
    board[[7 * 9 + 7, 7 * 9 + 1]] = 6, 22  # and rooks have moves
    set_position(positions[0], history, board, np.ones((2, 7), np.uint8), 1, 0)
    positions[1] = positions[0]
    return spec, positions, history


def compile_rules() -> None:
    from yomi.native.go import area, board, rules
    from yomi.native.go.scratch import SCRATCH_DTYPE

    _, positions, history = _go()
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


def compile_gather() -> None:
    from yomi.native.tree.search import gather

    _ = gather.address


def compile_tree() -> None:
    """Compile all kernels of the search tree except `gather`. All games share them."""
    from yomi.native.bound_kernels import NO_CALLS, store
    from yomi.native.tree import evaluation, expansion, halving, memory, report, search, searcher
    from yomi.native.tree.buffers import example_arguments

    tree, worker, batch, calls = example_arguments()
    memory.clear_tree(tree)
    stored = store(search.ARGUMENTS, tree, worker, batch, calls)
    scatter = search.scatter.address  # stands for gather, too: it also returns 0 if there is nothing to do
    task = np.array([stored.address, scatter, scatter, search.good_rows.address, search.are_numbers.address], np.int64)
    searcher.advance(task, 0, 1, NO_CALLS.table, 1)
    owners, flags = np.zeros(1, np.int64), np.zeros(1, np.bool_)
    searcher.advance_all(task[None], owners, 0, 1, flags, flags, NO_CALLS.table, 1)
    children, by_move = np.zeros(1, report.CHILD_DTYPE), np.zeros((3, 1))
    report.root_children(tree, children)
    halving.rank_moves(children, by_move[0], by_move[1], 0.0, 0.1, 50.0, np.zeros(1, np.int64), by_move[2])
    report.most_visited_path(tree, 0, np.zeros(8, np.uint16), *np.zeros((2, 8), np.uint32))
    report.restore_root_order(tree)
    report.find_child(tree, 0)
    report.root_exploration(tree, 4.0)
    memory.compact(tree, tree.counters[0].root, 0)
    expansion.complete_root(tree, worker.moves, 0)
    search.dynamic_utility(tree, 1.0, 0.0, 0.0)
    search.recenter(tree, 1.0)
    rows, nothing, matrix = NO_CALLS.table, np.zeros(0, np.uint64), np.zeros((0, 1), np.float32)
    numbers = np.zeros((0, 1), np.uint8)
    position = (calls.board, rows, np.zeros(0, np.uint8), nothing, worker.facts, worker.moves, worker.indices)
    given = (numbers, nothing, np.zeros(1, np.int64))
    evaluation.fill(*position, *given, 0, 0, batch)
    evaluation.read(batch, 0, 0, matrix, matrix, matrix)
    evaluation.evaluate(*position, *given, 0, 0, batch, rows, matrix, matrix, matrix)


def _compile_board(example: "Example", *evaluators: Inputs) -> None:
    """Compile the kernels of a game's side of the search, for evaluators that read these inputs."""
    from yomi.native.game_calls import BoundBoard
    from yomi.native.tree.buffers import make_batch, make_board

    spec, positions, history = example
    for inputs in evaluators:
        board = BoundBoard(make_board(spec, positions[:1].copy(), history.copy()))
        board.count_moves()
        board.with_batch(make_batch(spec, 1, inputs))


def _compile_learning(spec: "GameSpec", positions: Any, history: Any) -> None:
    """Compile the kernels that make rows of data."""
    from yomi.native.game_calls import encode_positions, index_moves

    planes = np.zeros((2, *spec.planes_shape), np.float32)
    extras = np.zeros((2, *spec.extras_shape), np.float32)
    encode_positions(positions, history, np.zeros(1, spec.scratch_dtype), planes, extras)
    moves = np.zeros((2, 1), np.uint16)
    index_moves(positions, moves, np.zeros(2, np.int64), moves)


def compile_go_planes() -> None:
    from yomi.native.go.outputs import decode, decode_rows
    from yomi.native.go.planes import symmetry_steps

    _compile_board(_go(), Inputs.NUMBERS)
    area = SIZE * SIZE
    matrix = np.zeros((1, area + 1), np.float32)
    numbers = np.zeros(3, np.float32)
    is_root = np.zeros(1, np.uint8)
    cube = matrix.reshape(1, 1, -1)
    outputs = cube, matrix, matrix, matrix, numbers, numbers, is_root, False, matrix, matrix, matrix
    decode.bind(*outputs)
    decode_rows(0, *outputs)
    symmetry_steps(SIZE, SIZE, 0)


def compile_go_inputs() -> None:
    from yomi.native.go.planes import policy_index, write_planes
    from yomi.native.go.scratch import SCRATCH_DTYPE

    _, positions, history = example = _go()
    _compile_board(example, Inputs.BITS | Inputs.POSITIONS)
    spatial = np.zeros((22, SIZE, SIZE), np.float32)
    write_planes(positions[0], history, 0, np.zeros(1, SCRATCH_DTYPE)[0], spatial, np.zeros(19, np.float32))
    policy_index(SIZE, SIZE, 30, 0)


def compile_rollouts() -> None:
    from yomi.native.go.rollout import mix_rollouts, rollout_ownership, write_priors
    from yomi.native.tree.buffers import make_batch

    spec, positions, _ = _go()
    rng = np.ones(1, np.uint64)
    batch = make_batch(spec, 1, Inputs.POSITIONS)
    batch.positions[0] = positions[0]
    owners = np.zeros((1, SIZE * SIZE), np.float32)
    whole = np.float32(1.0)
    mixing = mix_rollouts.bind(batch, 1, whole, whole, rng, positions[1], np.zeros(2, np.float32), owners)
    (write_priors.bind(batch) + mixing).run(1)
    rollout_ownership(positions[0], positions[1], rng, 1, np.zeros(SIZE * SIZE, np.int32))


def compile_partial() -> None:
    from yomi.native.go.aya import AYA_SCRATCH_DTYPE, encode_aya
    from yomi.native.go.outputs import decode_partial, encode_stones
    from yomi.native.go.spec import go_spec
    from yomi.native.tree.buffers import make_batch

    batch = make_batch(go_spec(SIZE), 1, Inputs.POSITIONS)
    planes, nothing = np.zeros((1, 49, SIZE, SIZE), np.float32), np.zeros((1, 0), np.float32)
    encode_aya.bind(batch, np.zeros(1, AYA_SCRATCH_DTYPE)[0], planes)
    encode_stones.bind(batch, planes)
    decode_partial.bind(nothing, nothing, nothing, True, batch)


def compile_forward() -> None:
    """Compile the networks' forward pass. A program without operations contains all of its code."""
    from yomi.native.forward.builder import ProgramBuilder
    from yomi.native.forward.entry import TANH

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


def compile_shogi_rules() -> None:
    from yomi.native.shogi import movegen, rules, waivers
    from yomi.native.shogi.position import MAX_MOVES, play

    _, positions, history = _shogi()
    position, moves = positions[0], np.zeros(MAX_MOVES, np.uint16)
    movegen.legal_moves(position, history, moves)
    waivers.searched_moves(position, history, moves)
    movegen.is_legal(position, history, int(moves[0]))
    movegen.has_legal_move(position)
    rules.declaration(position)
    rules.draw_declaration(position)
    rules.try_move(position)
    rules.tried(position)
    play(position, history, int(moves[0]))


def compile_material() -> None:
    from yomi.native.forward.entry import decode
    from yomi.native.shogi.effects import EFFECTS_DTYPE
    from yomi.native.shogi.material import evaluate_rows
    from yomi.native.tree.buffers import make_batch

    spec, positions, _ = _shogi()
    batch = make_batch(spec, 1, Inputs.POSITIONS)
    batch.positions[0] = positions[0]
    evaluate_rows.bind(batch, np.zeros(1, EFFECTS_DTYPE)[0]).run(1)
    decode.bind(batch.logits, np.zeros((1, 1), np.float32), True, batch.logits, batch.values)


def compile_sparse() -> None:
    from yomi.native.shogi.spec import shogi_spec
    from yomi.native.sparse.network import make_scratch
    from yomi.native.sparse.shogi import EXAMPLE, SCRATCH_DTYPE, evaluate_rows
    from yomi.native.tree.buffers import make_batch

    batch = make_batch(shogi_spec(), 1, Inputs.POSITIONS)
    evaluate_rows.bind(batch, EXAMPLE, make_scratch(EXAMPLE, 1), np.zeros(1, SCRATCH_DTYPE)[0])


def compile_alphabeta() -> None:
    from yomi.native.alphabeta.root import begin_search, search_root

    _ = begin_search.address, search_root.address


def compile_mate() -> None:
    from yomi.native.shogi.dfpn import MAX_PLY, make_solver, prove

    solver = make_solver(2**16)
    solver.positions[0] = _shogi()[1][0]
    prove(solver, np.zeros(0, np.uint16), 1, 1, np.zeros(MAX_PLY + 1, np.uint16))


@dataclass(frozen=True)
class Group:
    compile: Callable[[], None]
    packages: tuple[str, ...]  # packages of native whose sources the kernels consist of
    # Seconds on one core of a Zen 4 with an empty cache. Only ratios matter: estimates adapt to the machine.
    seconds: float


GROUPS: dict[str, Group] = {
    "tree-gather": Group(compile_gather, ("tree",), 8.0),
    "tree": Group(compile_tree, ("tree",), 6.0),
    "forward": Group(compile_forward, ("forward",), 8.0),
    "go-planes": Group(compile_go_planes, ("go",), 7.0),
    "go-rules": Group(compile_rules, ("go",), 4.0),
    "go-inputs": Group(compile_go_inputs, ("go",), 8.0),
    "go-rollouts": Group(compile_rollouts, ("go",), 4.0),
    "go-partial": Group(compile_partial, ("go",), 4.0),
    "go-learning": Group(lambda: _compile_learning(*_go()), ("go",), 5.0),
    "shogi-board": Group(lambda: _compile_board(_shogi(), Inputs.POSITIONS), ("shogi",), 4.0),
    "shogi-rules": Group(compile_shogi_rules, ("shogi",), 4.0),
    "shogi-sparse": Group(compile_sparse, ("shogi", "sparse"), 3.0),
    "shogi-mate": Group(compile_mate, ("shogi",), 4.0),
    "shogi-inputs": Group(lambda: _compile_board(_shogi(), Inputs.NUMBERS, Inputs.BITS), ("shogi",), 4.0),
    "shogi-alphabeta": Group(compile_alphabeta, ("shogi", "alphabeta"), 12.0),
    "shogi-material": Group(compile_material, ("shogi", "forward"), 3.0),
    "shogi-learning": Group(lambda: _compile_learning(*_shogi()), ("shogi",), 3.0),
}
# Groups by purpose: a game with its default network; other networks and evaluators; learning. The slowest come first.
NAMES: dict[str, tuple[str, ...]] = {
    "go": ("tree-gather", "forward", "go-planes", "tree", "go-rules"),
    "go-more": ("go-inputs", "go-rollouts", "go-partial"),
    "go-learning": ("go-learning",),
    "shogi": ("tree-gather", "tree", "shogi-board", "shogi-rules", "shogi-mate", "shogi-sparse"),
    "shogi-alphabeta": ("shogi-alphabeta", "shogi-rules", "shogi-mate"),
    "shogi-more": ("forward", "shogi-alphabeta", "shogi-inputs", "shogi-material"),
    "shogi-learning": ("shogi-learning",),
}
