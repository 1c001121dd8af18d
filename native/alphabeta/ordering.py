"""The order in which a node's moves are tried. Moves are made in stages, since most nodes end before the last stage.

    table's move -> captures that lose little -> quiet moves by their statistics -> other captures -> worst quiet moves

In check: table's move -> all evasions.
"""

import numpy as np

from yomi.native.alphabeta import parameters
from yomi.native.alphabeta.statistics import capture_score, evasion_score, follow_rows, quiet_score
from yomi.native.alphabeta.thread import ARGUMENTS, SQUARES, piece_square
from yomi.native.bits import U
from yomi.native.bound_kernels import load
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.effects import CAPTURE, gains
from yomi.native.shogi.mate import write_check_squares
from yomi.native.shogi.movegen import generate, generate_captures, generate_quiets
from yomi.native.shogi.squares import has

# Indices in `Thread.stages`.
STAGE, TABLE_MOVE, NEXT, END, LOSING, SKIPS_QUIETS, ONLY_CAPTURES, FIRST_QUIET, SORT_FROM = range(9)
# Stages.
TABLE, MAKE_CAPTURES, GOOD_CAPTURES, MAKE_QUIETS, QUIETS, OTHER_CAPTURES, BAD_QUIETS = range(7)
MAKE_EVASIONS, EVASIONS, DONE = range(7, 10)
SEE_UNIT = 21  # tenths of a unit of exchanges (effects.CAPTURE) in a unit of the network


@kernel
def begin_moves(address, ply, table_move, only_captures, depth):  # type: ignore[no-untyped-def]
    """Prepare `next_move` for the position at a ply.

    Args:
        address: address of network, thread and table.
        ply: ply of the position.
        table_move: a legal move, or 0.
        only_captures: 1 to omit quiet moves, except in check.
        depth: depth of the search. At a small depth only quiet moves with good scores are sorted.
    """
    _, thread, _ = load(address, ARGUMENTS)
    stages = thread.stages[U(ply)]
    stages[U(STAGE)] = TABLE if table_move != 0 else _after_table(thread.positions[U(ply)])
    stages[U(TABLE_MOVE)] = table_move
    stages[U(SKIPS_QUIETS)] = 0
    stages[U(ONLY_CAPTURES)] = only_captures
    stages[U(SORT_FROM)] = -parameters.SORT_DEPTH * depth


@inlined
def _after_table(pos):  # type: ignore[no-untyped-def]
    return MAKE_EVASIONS if pos.in_check != 0 else MAKE_CAPTURES


@kernel
def after_table_move(address, ply, table_move, depth):  # type: ignore[no-untyped-def]
    """Prepare `next_move` again, if a search of the same position after the table's move has overwritten its memory."""
    _, thread, _ = load(address, ARGUMENTS)
    begin_moves(address, ply, table_move, 0, depth)
    thread.stages[U(ply), U(STAGE)] = _after_table(thread.positions[U(ply)])


@kernel
def skip_quiets(address, ply):  # type: ignore[no-untyped-def]
    _, thread, _ = load(address, ARGUMENTS)
    thread.stages[U(ply), U(SKIPS_QUIETS)] = 1


@kernel
def next_move(address, ply):  # type: ignore[no-untyped-def]
    """Return the next move of the position at a ply, or 0 after the last one."""
    _, thread, _ = load(address, ARGUMENTS)
    stages, moves, scores = thread.stages[U(ply)], thread.moves[U(ply)], thread.scores[U(ply)]
    pos = thread.positions[U(ply)]
    stage = stages[U(STAGE)]
    table_move = stages[U(TABLE_MOVE)]
    if stage == TABLE:
        stages[U(STAGE)] = _after_table(pos)
        return table_move
    if stage == MAKE_CAPTURES:
        stages[U(END)] = generate_captures(pos, moves)
        stages[U(NEXT)] = 0
        stages[U(LOSING)] = 0
        for i in range(U(stages[U(END)])):
            scores[i] = capture_score(thread, pos, moves[i])
        stage = GOOD_CAPTURES
    if stage == GOOD_CAPTURES:
        while stages[U(NEXT)] < stages[U(END)]:
            move = take_best(moves, scores, stages[U(NEXT)], stages[U(END)])
            score = np.int64(scores[U(stages[U(NEXT)])])
            stages[U(NEXT)] += 1
            if move == table_move:
                continue
            if stages[U(ONLY_CAPTURES)] == 0 and not gains(pos, move, -(score * SEE_UNIT // 180)):
                moves[U(stages[U(LOSING)])] = move
                stages[U(LOSING)] += 1
                continue
            stages[U(STAGE)] = GOOD_CAPTURES
            return move
        stage = DONE if stages[U(ONLY_CAPTURES)] != 0 else MAKE_QUIETS
    if stage == MAKE_QUIETS:
        stage = OTHER_CAPTURES
        if stages[U(SKIPS_QUIETS)] == 0:
            first = stages[U(LOSING)]
            stages[U(FIRST_QUIET)] = first
            stages[U(NEXT)] = first
            stages[U(END)] = first + np.int64(generate_quiets(pos, moves[U(first) :]))
            write_check_squares(pos, thread.checks)
            rows = follow_rows(thread, ply)
            for i in range(U(first), U(stages[U(END)])):
                scores[i] = quiet_score(thread, pos, ply, rows, moves[i]) + _check_bonus(thread, pos, moves[i])
            sort_from(moves, scores, first, stages[U(END)], stages[U(SORT_FROM)])
            stage = QUIETS
    if stage == QUIETS:
        move = _next_quiet(stages, moves, scores, True)
        if move != 0:
            stages[U(STAGE)] = QUIETS
            return move
        stage = OTHER_CAPTURES
    if stage == OTHER_CAPTURES:
        if stages[U(STAGE)] != OTHER_CAPTURES:
            stages[U(STAGE)] = OTHER_CAPTURES
            stages[U(NEXT)] = 0
        if stages[U(NEXT)] < stages[U(LOSING)]:
            stages[U(NEXT)] += 1
            return np.int64(moves[U(stages[U(NEXT)] - 1)])
        stage = BAD_QUIETS
        stages[U(NEXT)] = stages[U(FIRST_QUIET)]
    if stage == BAD_QUIETS:
        move = _next_quiet(stages, moves, scores, False)
        if move != 0:
            stages[U(STAGE)] = BAD_QUIETS
            return move
        stage = DONE
    if stage == MAKE_EVASIONS:
        stages[U(END)] = generate(pos, moves)
        stages[U(NEXT)] = 0
        for i in range(U(stages[U(END)])):
            if pos.board[U(moves[i]) & U(127)] != 0:
                scores[i] = (1 << 28) + CAPTURE[U(pos.board[U(moves[i]) & U(127)]) & U(15)]
            else:
                scores[i] = evasion_score(thread, pos, ply, moves[i])
        stage = EVASIONS
    if stage == EVASIONS:
        while stages[U(NEXT)] < stages[U(END)]:
            move = take_best(moves, scores, stages[U(NEXT)], stages[U(END)])
            stages[U(NEXT)] += 1
            if move != table_move:
                stages[U(STAGE)] = EVASIONS
                return move
    stages[U(STAGE)] = DONE
    return np.int64(0)


@inlined
def _next_quiet(stages, moves, scores, is_good):  # type: ignore[no-untyped-def]
    """Return the next good (or else the next bad) quiet move, without the table's move; 0 if none is left."""
    if stages[U(SKIPS_QUIETS)] == 0:
        for i in range(U(stages[U(NEXT)]), U(stages[U(END)])):
            if (scores[i] > -parameters.GOOD_QUIET) == is_good and moves[i] != stages[U(TABLE_MOVE)]:
                stages[U(NEXT)] = np.int64(i) + 1
                return np.int64(moves[i])
    return np.int64(0)


@inlined
def sort_from(moves, scores, first, end, least):  # type: ignore[no-untyped-def]
    """Sort the moves with a score of at least `least`, best first; put the other moves after them in any order."""
    last = U(first)
    for i in range(U(first) + U(1), U(end)):
        score = scores[i]
        if score >= least:
            move = moves[i]
            last += U(1)
            moves[i], scores[i] = moves[last], scores[last]
            k = last
            while k != U(first) and scores[k - U(1)] < score:
                moves[k], scores[k] = moves[k - U(1)], scores[k - U(1)]
                k -= U(1)
            moves[k], scores[k] = move, score


@inlined
def take_best(moves, scores, i, count):  # type: ignore[no-untyped-def]
    """Swap the best move from index `i` on to index `i`, and return it."""
    best = U(i)
    for k in range(U(i) + U(1), U(count)):
        if scores[k] > scores[best]:
            best = k
    move, score = moves[best], scores[best]
    moves[best], scores[best] = moves[U(i)], scores[U(i)]
    moves[U(i)], scores[U(i)] = move, score
    return np.int64(move)


@inlined
def _check_bonus(thread, pos, move):  # type: ignore[no-untyped-def]
    """Return the bonus of a quiet move that gives check without losing much, otherwise 0."""
    kind = (piece_square(pos, move) // U(SQUARES)) & U(15)
    if has(thread.checks, kind, U(move) & U(127)) != U(0) and gains(pos, move, -160):
        return parameters.CHECK_BONUS
    return 0
