"""Statistics of the success of moves in the search. The order of moves, pruning and reductions follow them.

A bonus raises a statistic and a malus lowers it. The change shrinks as the statistic nears its limit.
"""

import numpy as np

from yomi.native.alphabeta.thread import (
    BEFORE,
    CAPTURE_LIMIT,
    FOLLOW_LIMIT,
    MOVE_LIMIT,
    NEAR_ROOT,
    PAWN_LIMIT,
    PIECE_SQUARES,
    is_quiet,
    piece_square,
)
from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.effects import VALUE

# Weights of a move after the move 1 to 6 plies before it, in 1/1024.
WEIGHTS = np.array([1157, 648, 288, 576, 140, 441], np.int64)


@inlined
def adjust(statistics, place, bonus, limit):  # type: ignore[no-untyped-def]
    bonus = min(max(np.int64(bonus), -limit), limit)
    old = np.int64(statistics[place])
    statistics[place] = old + bonus - old * abs(bonus) // limit


@inlined
def _side_move(side, move):  # type: ignore[no-untyped-def]
    return (side << U(14)) | (U(move) & U(0x3FFF))


@inlined
def _capture_place(pos, move):  # type: ignore[no-untyped-def]
    return piece_square(pos, move) * U(16) + (U(pos.board[U(move) & U(127)]) & U(15))


@inlined
def victim_value(pos, move):  # type: ignore[no-untyped-def]
    """Return the value of the captured piece on the board, in the network's unit; 0 if nothing is captured."""
    return np.int64(VALUE[U(pos.board[U(move) & U(127)]) & U(15)]) * 9 // 10


@inlined
def _after(thread, ply, place):  # type: ignore[no-untyped-def]
    """Return the success of a quiet move (`place`: its piece_square) as an answer to the move that led to a ply."""
    return np.int64(thread.follows[U(thread.frames[U(ply + BEFORE)].played) * U(PIECE_SQUARES) + place])


@inlined
def capture_score(thread, pos, move):  # type: ignore[no-untyped-def]
    """Return the score by which a capture or a pawn's promotion is ordered."""
    return 7 * victim_value(pos, move) + capture_statistics(thread, pos, move)


@inlined
def capture_statistics(thread, pos, move):  # type: ignore[no-untyped-def]
    return np.int64(thread.captures[_capture_place(pos, move)])


@inlined
def follow_rows(thread, ply):  # type: ignore[no-untyped-def]
    """Return the indices in `follows` of the moves 1, 2, 3, 4 and 6 plies before the position at a ply."""
    frames = thread.frames
    return (
        U(frames[U(ply + BEFORE)].played) * U(PIECE_SQUARES),
        U(frames[U(ply + BEFORE - 1)].played) * U(PIECE_SQUARES),
        U(frames[U(ply + BEFORE - 2)].played) * U(PIECE_SQUARES),
        U(frames[U(ply + BEFORE - 3)].played) * U(PIECE_SQUARES),
        U(frames[U(ply + BEFORE - 5)].played) * U(PIECE_SQUARES),
    )


@inlined
def quiet_score(thread, pos, ply, rows, move):  # type: ignore[no-untyped-def]
    """Return the score by which a quiet move is ordered. `rows`: result of `follow_rows`."""
    place = piece_square(pos, move)
    side = U(pos.side_to_move) - U(1)
    pawns = U(thread.frames[U(ply + BEFORE)].pawns)
    score = 2 * np.int64(thread.by_move[_side_move(side, move)])
    score += 2 * np.int64(thread.with_pawns[pawns, place])
    follows = thread.follows
    score += np.int64(follows[rows[0] + place]) + np.int64(follows[rows[1] + place])
    score += np.int64(follows[rows[2] + place]) + np.int64(follows[rows[3] + place])
    score += np.int64(follows[rows[4] + place])
    if ply < NEAR_ROOT:
        score += 8 * np.int64(thread.near_root[U(ply), U(move) & U(0x3FFF)]) // (1 + ply)
    return score


@inlined
def evasion_score(thread, pos, ply, move):  # type: ignore[no-untyped-def]
    """Return the score by which a quiet move out of check is ordered."""
    side = U(pos.side_to_move) - U(1)
    return np.int64(thread.by_move[_side_move(side, move)]) + _after(thread, ply, piece_square(pos, move))


@inlined
def pruning_statistics(thread, pos, ply, move):  # type: ignore[no-untyped-def]
    """Return two statistics of a quiet move: its success in this context (earlier moves, pawns), and in general."""
    place = piece_square(pos, move)
    side = U(pos.side_to_move) - U(1)
    history = _after(thread, ply, place) + _after(thread, ply - 1, place)
    history += np.int64(thread.with_pawns[U(thread.frames[U(ply + BEFORE)].pawns), place])
    return history, np.int64(thread.by_move[_side_move(side, move)])


@inlined
def reduction_statistics(thread, pos, ply, move, quiet):  # type: ignore[no-untyped-def]
    if not quiet:
        return 863 * victim_value(pos, move) // 128 + capture_statistics(thread, pos, move)
    place = piece_square(pos, move)
    side = U(pos.side_to_move) - U(1)
    return (
        2 * np.int64(thread.by_move[_side_move(side, move)])
        + _after(thread, ply, place)
        + _after(thread, ply - 1, place)
    )


@kernel
def reward_following(thread, ply, place, bonus):  # type: ignore[no-untyped-def]
    """Add a bonus to the statistics of a quiet move as an answer to the moves before it."""
    in_check = thread.frames[U(ply + BEFORE)].in_check != 0
    for i in range(6):
        if in_check and i > 1:
            break
        frame = thread.frames[U(ply + BEFORE - i)]
        if frame.move != 0:
            more = 88 if i == 0 else 0
            adjust(
                thread.follows,
                U(frame.played) * U(PIECE_SQUARES) + place,
                bonus * WEIGHTS[U(i)] // 1024 + more,
                FOLLOW_LIMIT,
            )


@kernel
def reward_quiet(thread, ply, move, bonus):  # type: ignore[no-untyped-def]
    """Add a bonus, or a malus, to all statistics of a quiet move at a ply."""
    pos = thread.positions[U(ply)]
    place = piece_square(pos, move)
    adjust(thread.by_move, _side_move(U(pos.side_to_move) - U(1), move), bonus, MOVE_LIMIT)
    if ply < NEAR_ROOT:
        adjust(thread.near_root[U(ply)], U(move) & U(0x3FFF), bonus * 761 // 1024, MOVE_LIMIT)
    reward_following(thread, ply, place, bonus * 955 // 1024)
    weight = 850 if bonus > 0 else 550
    adjust(thread.with_pawns[U(thread.frames[U(ply + BEFORE)].pawns)], place, bonus * weight // 1024, PAWN_LIMIT)


@kernel
def reward_capture(thread, ply, move, bonus):  # type: ignore[no-untyped-def]
    adjust(thread.captures, _capture_place(thread.positions[U(ply)], move), bonus, CAPTURE_LIMIT)


@kernel
def reward_best(thread, ply, move, depth, is_table_move, tried, count):  # type: ignore[no-untyped-def]
    """Reward the best move of a position, and penalise the moves that were tried before it.

    Args:
        thread: working memory.
        ply: ply of the position.
        move: the best move.
        depth: depth of the search.
        is_table_move: whether the best move came from the table.
        tried: uint16[>= count], moves searched before it.
        count: number of these moves.
    """
    pos = thread.positions[U(ply)]
    frame, last = thread.frames[U(ply + BEFORE)], thread.frames[U(ply + BEFORE - 1)]
    bonus = min(128 * depth - 77, 1529) + 353 * is_table_move + np.int64(last.statistics) // 32
    malus = min(882 * depth - 204, 2122)
    quiet = is_quiet(pos, move)
    if quiet:
        reward_quiet(thread, ply, move, bonus * 806 // 1024)
    else:
        reward_capture(thread, ply, move, bonus * 1286 // 1024)
    less = malus * 1113 // 1024
    for i in range(U(count)):
        if not is_quiet(pos, tried[i]):
            reward_capture(thread, ply, tried[i], -malus * 1559 // 1024)
        elif quiet:
            less = less * 977 // 1024
            reward_quiet(thread, ply, tried[i], -less)
    # The opponent's first move led here.
    if frame.move != 0 and frame.captured == 0 and last.count == 1 + last.is_known:
        reward_following(thread, ply - 1, U(frame.piece_square), -malus * 616 // 1024)


@kernel
def reward_last(thread, ply, depth, best, static):  # type: ignore[no-untyped-def]
    """Reward the opponent's last move, as all answers failed. `best`: best answer's value; `static`: static value."""
    frame, last = thread.frames[U(ply + BEFORE)], thread.frames[U(ply + BEFORE - 1)]
    if frame.move == 0:
        return
    if frame.captured != 0:
        adjust(thread.captures, U(frame.piece_square) * U(16) + U(frame.captured), 1018, CAPTURE_LIMIT)
        return
    scale = -232 - np.int64(last.statistics) // 108 + min(59 * depth, 454)
    if last.count > 8:
        scale += 169
    if frame.in_check == 0 and best <= static - 110:
        scale += 145
    if last.in_check == 0 and best <= -np.int64(last.static) - 73:
        scale += 154
    bonus = min(135 * depth - 80, 1400) * max(scale, 0)
    place = U(frame.piece_square)
    reward_following(thread, ply - 1, place, bonus * 221 // 16384)
    side = U(thread.positions[U(ply)].side_to_move) - U(1)
    adjust(thread.by_move, _side_move(side ^ U(1), frame.move), bonus * 235 // 32768, MOVE_LIMIT)
    if frame.is_pawn == 0:
        adjust(thread.with_pawns[U(frame.pawns)], place, bonus * 290 // 8192, PAWN_LIMIT)


@kernel
def compare_statics(thread, ply):  # type: ignore[no-untyped-def]
    """Adjust the statistics of the opponent's last quiet move by how it changed the static value."""
    frame, last = thread.frames[U(ply + BEFORE)], thread.frames[U(ply + BEFORE - 1)]
    if frame.move == 0 or frame.captured != 0 or last.in_check != 0:
        return
    change = min(max(-np.int64(last.static) - np.int64(frame.static), -214), 171) + 60
    side = U(thread.positions[U(ply)].side_to_move) - U(1)
    adjust(thread.by_move, _side_move(side ^ U(1), frame.move), change * 10, MOVE_LIMIT)
    if frame.is_known == 0 and frame.is_pawn == 0:
        adjust(thread.with_pawns[U(frame.pawns)], U(frame.piece_square), change * 12, PAWN_LIMIT)
