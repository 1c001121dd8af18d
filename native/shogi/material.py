"""Evaluates shogi positions without a network: material, exchanges, king safety. Features of moves give priors."""

import math

import numpy as np

from yomi.native.bits import U, lowest_bit
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.effects import (
    CAPTURE,
    CAPTURE_BY_RANK,
    DISTANCE,
    EFFECTS_DTYPE,
    HAND_VALUE,
    JUMP,
    KING_RANK,
    NEXT,
    RANK,
    SLIDES,
    STEPS,
    VALUE,
    exchange,
    find_attacks,
    find_losses,
)
from yomi.native.shogi.pieces import BISHOP, GOLD, KING, KNIGHT, LANCE, PAWN, PROMOTION, ROOK, SILVER
from yomi.native.shogi.spec import shogi_spec
from yomi.native.shogi.squares import NO_SQUARE
from yomi.native.shogi.tables import HAND_TYPE
from yomi.native.spec import Inputs
from yomi.native.tree import arrays
from yomi.native.tree.buffers import make_batch

# Weights are hand-made. Scores are in hundredths of a pawn. The side to move is assumed to take the best capture or to
# save its most valuable piece; the rest is left to the search.
# value = tanh(score * SQUASH): a score of 600 is a winning probability of 73%, as usual in shogi engines.
SQUASH = 1.0 / 1200.0
TEMPO = 40
# Value of a gold or silver by its distance from its king.
SHELTER = np.array([0, 45, 25, 8, 0, 0, 0, 0, 0], np.int32)
PRIZE_UNIT = 1.0 / 170.0  # logits per unit of gain


@inlined
def king_danger(pos, effects, color):  # type: ignore[no-untyped-def]
    """Return the danger to the king of `color` (index): attacks, open squares, and the enemy's pieces in hand."""
    enemy = 1 - color
    king = np.int64(pos.king[U(color)])
    forward = -1 if color == 0 else 1
    attacked = np.int64(0)
    open_squares = np.int64(0)
    for direction in range(U(8)):
        square = np.int64(NEXT[direction, U(king)])
        if square == NO_SQUARE:
            continue
        theirs = effects.attackers[U(enemy), U(square)]
        own = effects.attackers[U(color), U(square)] - (U(1) << U(4 * KING_RANK))
        if theirs != 0:
            attacked += 2 if own == 0 else 1
            if (theirs & (theirs - U(1))) != 0:
                attacked += 1
        elif own == 0:
            open_squares += 1
    hand = pos.hand[U(enemy)]
    arms = np.int64(0)
    for i in range(U(1), U(7)):
        arms += min(np.int64(hand[i]), 2)
    danger = attacked * (14 + 5 * arms) + attacked * attacked * 4 + open_squares * arms * 3
    rank = king % 9 if forward == -1 else 8 - king % 9
    if rank < 6 and rank > 2:
        danger += 60
    return danger


@inlined
def balance(pos, effects):  # type: ignore[no-untyped-def]
    """Return Black's score minus White's, for either side to move."""
    score = np.int64(0)
    for square in range(81):
        code = np.int64(pos.board[U(square)])
        if code == 0:
            continue
        kind = code & 15
        color = code >> 4
        worth = np.int64(VALUE[U(kind)])
        if kind == SILVER or kind == GOLD:
            worth += np.int64(SHELTER[U(DISTANCE[U(pos.king[U(color)]), U(square)])])
        elif kind == PAWN:
            worth += 2 * (8 - square % 9 if color == 0 else square % 9)
        score += worth if color == 0 else -worth
    for i in range(U(7)):
        worth = np.int64(HAND_VALUE[U(HAND_TYPE[i])])
        score += worth * (np.int64(pos.hand[U(0), i]) - np.int64(pos.hand[U(1), i]))
    score += king_danger(pos, effects, 1) - king_danger(pos, effects, 0)
    return score + np.int64(effects.influence[U(0)] - effects.influence[U(1)])


@kernel
def evaluate(pos, effects):  # type: ignore[no-untyped-def]
    """Return the value of a position in [-1, 1] for the side to move; leaves the attacks in `effects`."""
    find_attacks(pos.board, np.int64(pos.king[U(0)]), np.int64(pos.king[U(1)]), effects)
    find_losses(pos.board, effects)
    side = np.int64(pos.side_to_move) - 1
    best, second, threat, next_threat = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for square in range(81):
        loss = np.int64(effects.loss[U(square)])
        if loss == 0:
            continue
        if np.int64(pos.board[U(square)]) >> 4 != side:
            if loss > best:
                best, second = loss, best
            elif loss > second:
                second = loss
        elif loss > threat:
            threat, next_threat = loss, threat
        elif loss > next_threat:
            next_threat = loss
    score = balance(pos, effects)
    if side == 1:
        score = -score
    if effects.attackers[U(1 - side), U(pos.king[U(side)])] != 0:
        score -= 60 + threat // 2  # the check must be answered first
    else:
        # Capture and let the enemy capture, or save the most valuable piece.
        score += max(best - (threat * 3) // 4, -next_threat // 2) + second // 6 + TEMPO
    return np.float32(math.tanh(score * SQUASH))


@inlined
def aims(pos, effects, square, kind, side, rank):  # type: ignore[no-untyped-def]
    """Return whether a piece on `square` gives check, its best threat, and how many squares near the king it covers."""
    enemy = 1 - side
    enemy_king = np.int64(pos.king[U(enemy)])
    check = False
    prize = np.int64(0)
    cover = np.int64(0)
    own_cost = np.int64(CAPTURE_BY_RANK[U(rank)])
    directions = U(STEPS[U(kind)]) | (U(SLIDES[U(kind)]) << U(8))
    if kind == KNIGHT:
        directions = U(0b11)
    while directions != 0:
        bit = np.int64(lowest_bit(directions))
        directions &= directions - U(1)
        direction = U(bit + 4 * side) & U(7)
        if kind == KNIGHT:
            target = np.int64(JUMP[U(side), U(square), U(bit)])
        else:
            target = np.int64(NEXT[direction, U(square)])
        while target != NO_SQUARE:
            if DISTANCE[U(enemy_king), U(target)] <= 1:
                cover += 1
            code = np.int64(pos.board[U(target)])
            if code != 0:
                victim = U(code & 15)
                if code >> 4 == enemy:
                    if victim == KING:
                        check = True
                    else:
                        hurt = np.int64(CAPTURE[victim])
                        if effects.attackers[U(enemy), U(target)] != 0:
                            hurt -= own_cost
                        if hurt > prize:
                            prize = hurt
                break
            if bit < 8:
                break
            target = np.int64(NEXT[direction, U(target)])
    return check, prize, cover


@inlined
def quiet_logit(pos, kind, origin, target, side):  # type: ignore[no-untyped-def]
    """Return the part of a board move's logit for shape and approach to the kings."""
    own_king = U(pos.king[U(side)])
    enemy_king = U(pos.king[U(1 - side)])
    advance = (origin % 9 - target % 9) * (1 if side == 0 else -1)
    logit = np.float32(0.0)
    if kind == KING:
        home = target % 9 if side == 1 else 8 - target % 9
        centre = abs(target // 9 - 4) - abs(origin // 9 - 4)
        logit += 0.3 * centre - 0.5 * max(advance, 0) - (0.8 if home > 1 else 0.0)
    elif kind == PAWN:
        file = target // 9
        rank = target % 9 if side == 0 else 8 - target % 9
        if rank >= 4:
            logit += 0.5
            # Pawns that open lines for the bishop and the rook.
            if file == (6 if side == 0 else 2) or file == (1 if side == 0 else 7):
                logit += 0.6
        else:
            logit += 0.2
        if file == 0 or file == 8:
            logit -= 0.3
    elif kind == GOLD or kind == SILVER:
        nearer = np.int64(DISTANCE[own_king, U(origin)]) - np.int64(DISTANCE[own_king, U(target)])
        closer = np.int64(DISTANCE[enemy_king, U(origin)]) - np.int64(DISTANCE[enemy_king, U(target)])
        logit += 0.25 * max(nearer, closer)
        if kind == SILVER:
            logit += 0.2 * advance
        if kind == GOLD and advance > 0 and closer <= 0:
            logit -= 0.3
    elif kind == LANCE:
        logit -= 0.8
    elif kind == KNIGHT:
        logit -= 0.3
    elif kind > PROMOTION:
        logit += 0.3 * (np.int64(DISTANCE[enemy_king, U(origin)]) - np.int64(DISTANCE[enemy_king, U(target)]))
    else:
        logit -= 0.2
    return logit


@inlined
def drop_logit(pos, effects, kind, target, side):  # type: ignore[no-untyped-def]
    """Return the part of a drop's logit for its place."""
    own_king = U(pos.king[U(side)])
    enemy_king = U(pos.king[U(1 - side)])
    far_from_enemy = np.int64(DISTANCE[enemy_king, U(target)])
    far_from_own = np.int64(DISTANCE[own_king, U(target)])
    logit = np.float32(-0.8)
    if far_from_enemy <= 2 and effects.attackers[U(side), U(target)] != 0:
        logit += 0.7
    if far_from_own <= 1 and effects.attackers[U(1 - side), U(target)] != 0:
        logit += 0.6
    if min(far_from_enemy, far_from_own) >= 4 and kind != BISHOP and kind != ROOK:
        logit -= 0.7
    if kind == ROOK or kind == BISHOP:
        home = 8 - target % 9 if side == 0 else target % 9
        logit += 0.5 if home >= 6 else -0.3
    return logit


@kernel
def prior_logit(pos, effects, move):  # type: ignore[no-untyped-def]
    """Return the logit of a legal move, with `effects` from `evaluate`."""
    move = np.int64(move)
    side = np.int64(pos.side_to_move) - 1
    target = move & 127
    origin = (move >> 7) & 127
    promotes = (move >> 14) & 1
    mine = effects.attackers[U(side), U(target)]
    theirs = effects.attackers[U(1 - side), U(target)]
    in_check = effects.attackers[U(1 - side), U(pos.king[U(side)])] != 0
    prize = np.int64(CAPTURE[U(np.int64(pos.board[U(target)]) & 15)])
    logit = np.float32(0.0)
    saved = np.int64(0)
    if origin > 80:
        kind = origin - 80
        logit = np.float32(drop_logit(pos, effects, kind, target, side))
        after = kind
    else:
        kind = np.int64(pos.board[U(origin)]) & 15
        after = kind + PROMOTION * promotes
        mine -= U(1) << U(4 * np.int64(RANK[U(kind)]))
        saved = np.int64(effects.loss[U(origin)])
        prize += np.int64(VALUE[U(after)]) - np.int64(VALUE[U(kind)])
        if promotes == 0:
            near = min(origin % 9, target % 9) if side == 0 else 8 - max(origin % 9, target % 9)
            if near < 3 and (kind == PAWN or kind == BISHOP or kind == ROOK):
                logit -= 5.0  # never better than the promotion, except to avoid a pawn-drop mate
        if not in_check:
            logit += quiet_logit(pos, kind, origin, target, side)
    rank = np.int64(RANK[U(after)])
    gain = np.int64(0) if kind == KING and theirs != 0 else exchange(effects.gains, mine, theirs, prize, rank)
    if kind == KING:
        gain = prize
    check, attacked, cover = aims(pos, effects, target, after, side, rank)
    if check:
        logit += 1.2 if gain >= 0 else 0.4
    if gain >= 0:
        logit += min(attacked, 1200) * (0.25 * PRIZE_UNIT) + 0.12 * min(cover, 4)
    worth = gain + (saved if gain >= 0 else 0)
    if prize > 0 and gain > 0:
        logit += 0.4
    return logit + np.float32(min(max(worth * PRIZE_UNIT, -4.0), 6.0))


_ARGUMENTS = types_of(make_batch(shogi_spec(), 1, Inputs.POSITIONS), np.zeros(1, EFFECTS_DTYPE)[0])


@entry(_ARGUMENTS)
def evaluate_rows(address, rows):  # type: ignore[no-untyped-def]
    """Write logits and values of a batch; scores are zero.

    Args:
        address: of a Batch with positions, and an EFFECTS_DTYPE record.
        rows: number of rows.
    """
    batch, effects = load(address, _ARGUMENTS)
    for row in range(U(rows)):
        pos = batch.positions[row]
        for i in range(U(arrays.VALUES)):
            batch.values[row, i] = 0.0
        batch.values[row, U(arrays.VALUE)] = evaluate(pos, effects)
        for i in range(U(batch.move_count[row])):
            batch.logits[row, U(batch.indices[row, i])] = prior_logit(pos, effects, batch.moves[row, i])
