"""Move priors without a network, from a linear policy: the logit of a move is the sum of its features' weights.

A move has at most FEATURES_PER_MOVE features; feature 0 means none and has weight 0.
"""

import base64
import zlib

import numpy as np
import numpy.typing as npt

from yomi.native.bits import U
from yomi.native.go.board import EMPTY, NO_POINT, PASS, is_eye, row_of
from yomi.native.go.tactics import (
    PATTERN_CLASSES,
    liberties_after,
    pattern_class,
    pattern_code,
    self_atari_stones,
)
from yomi.native.jit import inlined, kernel

DISTANCES = 18
NONE = 0
OWN_EYE = 1
PASSES = 2  # 12: + 6 if the last move was a pass; + sixth of the board that is empty
# 8: + 4 if the chain made the last move; + min(stones, 4) - 1, as in the next four.
CAPTURE = PASSES + 12
ESCAPE = CAPTURE + 8  # 8: + 4 if the chain then has three liberties or more; + stones
# 12: + 4 if the chain made the last move, or + 8 if the move is a self-atari; + stones.
ATARI = ESCAPE + 8
# 8: an enemy chain goes from three liberties to two; + 4 if it made the last move; + stones.
PRESS = ATARI + 12
# 12: an own chain with two liberties then has 2 or fewer, 3 (+ 4), 4 or more (+ 8); + stones.
EXTEND = PRESS + 8
# 3: an own chain with three liberties then has 3 or fewer, 4, 5 or more.
EXTEND_THREE = EXTEND + 12
SELF_ATARI = EXTEND_THREE + 3  # 6: 1 to 6 or more stones in atari
NEAR_LAST = SELF_ATARI + 6
NEAR_SECOND = NEAR_LAST + DISTANCES
# 20: + 10 on a large board; + 5 without a stone within two steps; + line 0 to 4.
LINE = NEAR_SECOND + DISTANCES
FIRST_PATTERN = LINE + 20
FEATURES = FIRST_PATTERN + PATTERN_CLASSES
FEATURES_PER_MOVE = 9
LARGE_BOARD = 12


@kernel
def _distance(stride, a, b):  # type: ignore[no-untyped-def]
    """Return min(dx + dy + max(dx, dy), DISTANCES - 1) between two points; 0 if `b` is NO_POINT or PASS."""
    if b in (NO_POINT, PASS):
        return np.int64(0)
    row_a = row_of(stride, a)
    row_b = row_of(stride, b)
    dx = abs((a - row_a * stride) - (b - row_b * stride))
    dy = abs(row_a - row_b)
    return min(dx + dy + max(dx, dy), np.int64(DISTANCES - 1))


@kernel
def _is_lonely(pos, i):  # type: ignore[no-untyped-def]
    """Return whether no stone is within two rows and columns of a point."""
    stride = np.int64(pos.stride)
    size = np.int64(pos.size)
    row = row_of(stride, i)
    x0 = i - row * stride - 1
    y0 = row - 1
    for y in range(max(0, y0 - 2), min(np.int64(pos.height), y0 + 3)):
        for x in range(max(0, x0 - 2), min(size, x0 + 3)):
            if pos.color[U((y + 1) * stride + x + 1)] != EMPTY:
                return False
    return True


@kernel
def _neighbor_feature(pos, q, own, last, danger, after):  # type: ignore[no-untyped-def]
    """Return a move's feature for the chain on its neighbor `q`. `after`: liberties of the new chain; 0: unknown."""
    c = U(pos.color[q])
    if c == own:
        slot = U(pos.chain[q])
        n = np.int64(pos.liberties[slot])
        stones = np.int64(min(pos.stones[slot], 4)) - 1
        if danger > 0 or n > 3:
            return np.int64(NONE)
        if n == 1:
            return ESCAPE + stones + (4 if after > 2 else 0)
        if n == 2:
            return EXTEND + stones + 4 * np.int64(min(max(after - 2, 0), 2))
        return EXTEND_THREE + np.int64(min(max(after - 3, 0), 2))
    if c == U(3) - own:
        slot = U(pos.chain[q])
        n = np.int64(pos.liberties[slot])
        stones = np.int64(min(pos.stones[slot], 4)) - 1
        if n > 3:
            return np.int64(NONE)
        fresh = last != NO_POINT and last != PASS and U(pos.chain[U(last)]) == slot and pos.color[U(last)] == c
        if n == 1:
            return CAPTURE + stones + (4 if fresh else 0)
        if n == 2:
            return ATARI + stones + (8 if danger > 0 else (4 if fresh else 0))
        return PRESS + stones + (4 if fresh else 0)
    return np.int64(NONE)


@kernel
def move_features(pos, move):  # type: ignore[no-untyped-def]
    """Return the FEATURES_PER_MOVE features (int64) of a legal move of the side to move."""
    n = np.int64(NONE)
    last = np.int64(pos.recent_move[0])
    size = np.int64(pos.size)
    if move == PASS:
        f = PASSES + (6 if last == PASS else 0) + np.int64(pos.empty_count) * 6 // (size * np.int64(pos.height) + 1)
        return (f, n, n, n, n, n, n, n, n)
    i = np.int64(move)
    stride = np.int64(pos.stride)
    own = U(pos.side_to_move)
    pattern = FIRST_PATTERN + pattern_class(pos, move, own)
    if is_eye(pos, move, own):
        return (np.int64(OWN_EYE), n, n, n, n, n, n, n, n)
    danger = np.int64(self_atari_stones(pos, move, own))
    weak = False
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if pos.color[q] == own and pos.liberties[U(pos.chain[q])] <= 3:
            weak = True
    after = liberties_after(pos, move, own) if weak and danger == 0 else np.int64(0)
    row = row_of(stride, i)
    x = i - row * stride - 1
    y = row - 1
    height = np.int64(pos.height)
    line = np.int64(min(x, y, size - 1 - x, height - 1 - y, np.int64(4)))
    place = LINE + line + (10 if min(size, height) >= LARGE_BOARD else 0)
    code = pattern_code(pos, move)
    if (code ^ (code >> U(1))) & U(0x5555) == U(0) and _is_lonely(pos, i):
        place += 5
    return (
        _neighbor_feature(pos, U(i - 1), own, last, danger, after),
        _neighbor_feature(pos, U(i + 1), own, last, danger, after),
        _neighbor_feature(pos, U(i - stride), own, last, danger, after),
        _neighbor_feature(pos, U(i + stride), own, last, danger, after),
        SELF_ATARI + min(danger, np.int64(6)) - 1 if danger > 0 else n,
        NEAR_LAST + _distance(stride, i, last),
        NEAR_SECOND + _distance(stride, i, np.int64(pos.recent_move[1])),
        place,
        pattern,
    )


UNIT = 1 / 16

# The weights, packed: sixteenths as int8 by feature, zlib, base 85. They imitate the policy of g170-b6c96 on its own
# positions on 9x9 and 19x19 (moves drawn from the policy, one in eight at random): softmax regression
# (bench/prior_weights.py, in the history up to 2ed74224). Only the weight of filling an own eye is set by hand.
PACKED = (
    "c-kG3*>2lL7={1gkQ@#dkrX9S)Mi_8oV3nOQK0A}^s#&00!4uUZeyfLY-"
    "^(_k>WPohgEwX;NUDD{5nvphd+O_bxZ&dl2s8DUC|ust(FUsYE;r>RhCsv5DCGGEVgYgfToE=RTU6~&o7((ep`b^6<I(%=WW|IZByr<5GrBeB7_h"
    "i=zDcAP#=FMKmWpHZ>s<E(WB3h1lb>tM(REt@P^&d+IfEX_)VPH&gZT1c~job*1=);^)TT=vHxT}N@IpaB)tiWiT`$KeL`PO4`12y_U|dNHmBVl>"
    "9#_WgzhTN%JpjrVVpM7bzw}q<#;Si4#k(j_RV5aLA%8EY%OdCTw`JFA0pea>qHa_J0jaK*q!CE?r#M@HZEmigM#xNQCH)m=R3Q@-"
    "j89Jox<ofm8>R_`(xj`RdIOP`A-T$uYS1So?3#AQNP`HjR3_J^a`<E&KC?}Of+M4O-<?;P>wQz-"
    "XxYU=(RNT21S~yQ6HnKjdQc;N@l0bbd*u~lAa@yL^1!NST4Rtw|weN-"
    "_INRffQHAxnR^TETuu=SZaX%!?{^g1M%nd+bP;UG4;J3oU??>i^@i|<SL7f>Blpf-OK|!N?Nc)ySKu?y~Vnih3PpN2I)(YXQ29MmEMg=^d@WzJld"
    "gyXGj*ERasO@L9}HK$|P)B!gX1JGAAd5IGn3W^)&}~Mvod*)#yqN;Dsv&7s2{#6Us+6!Sd*M5^ZC!K8@&wJ?PTRKLWH(a;_jlMH^OGQp^&!wGmWm"
    ")_e17I?BNitRHy?f#SdJa-65R4_%pF3`$nS4M3ii7|5U+)Ky>0dabn>V!>eJnRD^hvQWxZ&eMvfSRhhfvbIQ)e(B*!47WeI&XNvR=X-"
    "3FW;B5|qg~x?Um9nI6hx5&Q1zB!_M?&D3C(E?rK+pY5w(>}LA>gk%#yK}x<l(u5yW@NtvQb6WC#?-"
    "hKEgj2?!SHkq1Zv=s}m)BOJ*Z*A@uR?kb8WBp<_MI5!OqT(~*=wXBdK*tI-@|CGf0Owt(~`}2X)9F--jTc|F8sdDKC!6x8cRiIkTB_uOd;Qe)D!)"
    "?EYcMRY|%cYZ@w}9nFEB8Vc6qL8c*=u+eC!#jh+e<K>rws<|qh1I(*rS_n4<`#$uwl};9gIzb&W3OIV{;;TF=IB?hxxU$);xE9c>s9G0JEy=XE_m"
    "x+~rE{rlf#Fh9ps~H8A^o<}!#Bs}*Q^5Bwf_?f@N|ilTaR=gL~Wa`Fyavt>7#wJd0%(8CNs8Ab%?M#9dP8q+?s?19=*K9HKFw$vQZ_5VkLe*q0f4"
    ";l"
)


def unpack() -> npt.NDArray[np.float32]:
    return np.frombuffer(zlib.decompress(base64.b85decode(PACKED)), np.int8).astype(np.float32) * np.float32(UNIT)


WEIGHTS = unpack()  # float32[FEATURES]


@kernel
def prior_logit(pos, move):  # type: ignore[no-untyped-def]
    """Return the logit of a legal move of the side to move: the sum of its features' weights."""
    logit = np.float32(0.0)
    for feature in move_features(pos, move):
        logit += WEIGHTS[U(feature)]
    return logit


@inlined
def write_prior_logits(batch, row):  # type: ignore[no-untyped-def]
    """Write the logits of the legal moves in one row of a Batch with positions."""
    for i in range(U(batch.move_count[row])):
        batch.logits[row, U(batch.indices[row, i])] = prior_logit(batch.positions[row], batch.moves[row, i])
