"""Corrections of static values: the mean error of earlier searches with the same pawns, hands or castles."""

import numpy as np

from yomi.native.alphabeta.statistics import adjust
from yomi.native.alphabeta.thread import (
    BEFORE,
    CORRECTION_BITS,
    CORRECTION_LIMIT,
    CORRECTIONS,
    PIECE_SQUARES,
)
from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.position import GOLDS, KINGS, PAWNS, SILVERS

UNIT = 1 << 17  # of `correction`, in a unit of the network
# Weights of pawns, hands and castles, and of pairs of moves, in 1 / UNIT; speeds of learning, in 1 / 128.
WEIGHTS, PAIR_WEIGHT = np.array([12153, 8620, 12355, 12355], np.int64), 7982
RATES = np.array([128, 153, 187, 187], np.int64)


@inlined
def _hash_of(low, high):  # type: ignore[no-untyped-def]
    return (low * U(0x9E3779B97F4A7C15)) ^ ((high + U(0x1F)) * U(0xBF58476D1CE4E5B9))


@inlined
def hash_pawns(pos):  # type: ignore[no-untyped-def]
    """Return a hash of the squares and owners of all pawns. Only its highest bits are well mixed: use those."""
    bits, colors = pos.type_bits, pos.color_bits
    word = _hash_of(bits[U(2 * PAWNS)], bits[U(2 * PAWNS + 1)])
    return word ^ _hash_of(bits[U(2 * PAWNS)] & colors[U(0)], bits[U(2 * PAWNS + 1)] & colors[U(1)]) >> U(7)


@inlined
def _feature(pos, kind):  # type: ignore[no-untyped-def]
    """Return the index of a position in the table `kind`: pawns, hands, Black's castle, White's castle."""
    bits, colors = pos.type_bits, pos.color_bits
    if kind == U(0):
        word = hash_pawns(pos)
    elif kind == U(1):
        word = (pos.hands + U(1)) * U(0x94D049BB133111EB)
    else:
        side = (kind - U(2)) * U(2)
        low = (bits[U(2 * GOLDS)] | bits[U(2 * SILVERS)] | bits[U(2 * KINGS)]) & colors[side]
        high = (bits[U(2 * GOLDS + 1)] | bits[U(2 * SILVERS + 1)] | bits[U(2 * KINGS + 1)]) & colors[side + U(1)]
        word = _hash_of(low, high)
        word ^= U(pos.king[kind - U(2)]) * U(0x94D049BB133111EB)
    return word >> U(64 - CORRECTION_BITS)


@inlined
def _pair(thread, ply, distance):  # type: ignore[no-untyped-def]
    """Return the index in `errors` of two moves: the last move, and the move `distance` plies before it."""
    before = thread.frames[U(ply + BEFORE - distance)]
    return U(before.piece_square) * U(PIECE_SQUARES) + U(thread.frames[U(ply + BEFORE)].piece_square)


@kernel
def correction(thread, pos, ply):  # type: ignore[no-untyped-def]
    """Return the correction of the static value of the position at a ply, in 1 / UNIT."""
    us = U(pos.side_to_move) - U(1)
    total = 0
    for kind in range(U(CORRECTIONS)):
        total += WEIGHTS[kind] * np.int64(thread.corrections[kind, us, _feature(pos, kind)])
    if thread.frames[U(ply + BEFORE)].move != 0:
        pairs = np.int64(thread.errors[_pair(thread, ply, 1)]) + np.int64(thread.errors[_pair(thread, ply, 3)])
        total += PAIR_WEIGHT * pairs
    return total


@kernel
def learn_correction(thread, pos, ply, error, depth, has_best):  # type: ignore[no-untyped-def]
    """Record the error of the corrected static value at a ply, as a search of `depth` plies has shown it.

    `has_best`: whether a move exceeded alpha.
    """
    us = U(pos.side_to_move) - U(1)
    bonus = min(max(error * depth * (12 if has_best else 17) // 128, -CORRECTION_LIMIT // 4), CORRECTION_LIMIT // 4)
    for kind in range(U(CORRECTIONS)):
        adjust(thread.corrections[kind, us], _feature(pos, kind), bonus * RATES[kind] // 128, CORRECTION_LIMIT)
    if thread.frames[U(ply + BEFORE)].move != 0:
        adjust(thread.errors, _pair(thread, ply, 1), bonus, CORRECTION_LIMIT)
        adjust(thread.errors, _pair(thread, ply, 3), bonus // 2, CORRECTION_LIMIT)
