"""The rules of Go on a position and its history: legality, ko and superko, passing, the end of the game.

Entry i of a history (uint64) is the `board_key` after i moves, for i < pos.history_length.
"""

import numpy as np

from yomi.native.bits import U
from yomi.native.go.board import (
    BLACK,
    BORDER,
    EMPTY,
    KO_POSITIONAL,
    KO_SIMPLE,
    MAX_POINTS,
    NO_POINT,
    NOT_FINISHED,
    PASS,
    RECENT,
    REPEATED_PASS,
    SCORING_TERRITORY,
    THIRD_REPETITION,
    TWO_PASSES,
    WHITE,
    ZOBRIST,
    is_single_stone_suicide,
    is_suicide,
    place_stone,
)
from yomi.native.jit import allocating_kernel, kernel

# Results of `legality`. BANNED: only superko forbids the point.
ALLOWED, FORBIDDEN, BANNED = 0, 1, 2
# Lines share a node only if a position cannot repeat within this many plies (KataGo's value).
REPETITION_PLIES = 11
MAX_HISTORY = 4096  # Size of a history. A game is over when it is full.


@kernel
def board_key(stones, side_to_move):  # type: ignore[no-untyped-def]
    """Return the hash of the stones with the side to move (1 = White) in the lowest bit."""
    return (U(stones) & ~U(1)) | (U(1) if side_to_move == WHITE else U(0))


@kernel
def begin(pos, history):  # type: ignore[no-untyped-def]
    history[0] = board_key(pos.hash, pos.side_to_move)
    pos.history_length = 1
    pos.phase_start = 0


@kernel
def hash_after(pos, point, color):  # type: ignore[no-untyped-def]
    """Return the hash of the stones after a stone of `color` on `point`, with captures or suicide."""
    i = np.int64(point)
    stride = np.int64(pos.stride)
    own = U(color)
    enemy = U(3) - own
    result = pos.hash ^ ZOBRIST[own, U(point)]
    captures = False
    done = (U(MAX_POINTS), U(MAX_POINTS), U(MAX_POINTS))
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if pos.color[q] == enemy:
            slot = U(pos.chain[q])
            # A chain with one liberty is captured; it may touch the point more than once.
            if pos.liberties[slot] == 1 and slot != done[0] and slot != done[1] and slot != done[2]:
                captures = True
                done = (slot, done[0], done[1])
                s = q
                while True:
                    result ^= ZOBRIST[enemy, s]
                    s = U(pos.next_stone[s])
                    if s == q:
                        break
    # Suicide: the new stone and its chains vanish.
    if not captures and is_suicide(pos, point, color):
        result ^= ZOBRIST[own, U(point)]
        done = (U(MAX_POINTS), U(MAX_POINTS), U(MAX_POINTS))
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if pos.color[q] == own:
                slot = U(pos.chain[q])
                if slot != done[0] and slot != done[1] and slot != done[2]:
                    done = (slot, done[0], done[1])
                    s = q
                    while True:
                        result ^= ZOBRIST[own, s]
                        s = U(pos.next_stone[s])
                        if s == q:
                            break
    return result


@kernel
def repeats_board(pos, history, point, color):  # type: ignore[no-untyped-def]
    """Return whether a stone of `color` on the empty `point` repeats a board, under superko rules."""
    key = board_key(hash_after(pos, point, color), 3 - color)
    shift = U(1) if pos.ko_rule == KO_POSITIONAL else U(0)
    key >>= shift
    for i in range(U(pos.history_length)):
        if history[i] >> shift == key:
            return True
    return False


@kernel
def legality(pos, history, point, color):  # type: ignore[no-untyped-def]
    """Return whether `color` may play on the empty `point`: ALLOWED, FORBIDDEN (simple ko or
    suicide), or BANNED (superko).
    """
    if point == pos.simple_ko:
        return FORBIDDEN
    suicide = is_suicide(pos, point, color)
    if suicide and (pos.suicide == 0 or is_single_stone_suicide(pos, point, color)):
        return FORBIDDEN
    if pos.ko_rule != KO_SIMPLE and (suicide or was_occupied(pos, point)) and repeats_board(pos, history, point, color):
        return BANNED
    return ALLOWED


@kernel
def is_legal(pos, history, move, color):  # type: ignore[no-untyped-def]
    """Return whether `color` may play `move` (a point or PASS) in an unfinished game."""
    return move == PASS or (pos.color[U(move)] == EMPTY and legality(pos, history, move, color) == ALLOWED)


@kernel
def legal_moves(pos, history, moves):  # type: ignore[no-untyped-def]
    """Write the legal moves of the side to move into `moves` (uint16[>= area + 1]), PASS last; return their number."""
    count = U(0)
    color = pos.side_to_move
    for i in range(U(pos.empty_count)):
        point = pos.empties[i]
        if is_legal(pos, history, point, color):
            moves[count] = point
            count += U(1)
    moves[count] = PASS
    return np.int64(count + U(1))


@kernel
def turn_to(pos, color):  # type: ignore[no-untyped-def]
    # The simple ko forbade a move of the other side, and two passes of one side end no game.
    if color != pos.side_to_move:
        pos.side_to_move = color
        pos.simple_ko = NO_POINT
        pos.passes = 0


@kernel
def play(pos, history, move):  # type: ignore[no-untyped-def]
    """Play a legal `move` of the side to move and append the board to `history`."""
    color = pos.side_to_move
    points = U((pos.height + 2) * pos.stride + 1)
    # Keep the last two boards for the network's ladder planes.
    if pos.previous_count > 0:
        for p in range(points):
            pos.previous_color[U(MAX_POINTS) + p] = pos.previous_color[p]
        pos.previous_ko[1] = pos.previous_ko[0]
    for p in range(points):
        pos.previous_color[p] = pos.color[p]
    pos.previous_ko[0] = pos.simple_ko
    if pos.previous_count < 2:
        pos.previous_count += 1

    # Moves before the end of a game are not encoded, except the last.
    if pos.finished != NOT_FINISHED:
        pos.recent_valid = min(pos.recent_valid, 1)
    pos.recent_valid = min(pos.recent_valid + 1, RECENT)
    may_repeat = False
    if move == PASS:
        pos.finished = _end_by_pass(pos, history)
        pos.simple_ko = NO_POINT
        pos.passes += 1
    else:
        may_repeat = pos.ko_rule == KO_SIMPLE and was_occupied(pos, move)
        pos.finished = NOT_FINISHED
        place_stone(pos, move, color)
        may_repeat |= pos.color[U(move)] == EMPTY
        pos.passes = 0
        if pos.scoring == SCORING_TERRITORY:
            pos.white_bonus += np.float32(1.0) if color == BLACK else np.float32(-1.0)
    for k in range(RECENT - 1, 0, -1):
        pos.recent_move[k] = pos.recent_move[k - 1]
        pos.recent_color[k] = pos.recent_color[k - 1]
    pos.recent_move[0] = move
    pos.recent_color[0] = color
    pos.side_to_move = 3 - color
    pos.ply += 1
    if move == PASS:
        pos.phase_start = pos.history_length
    # The history counts every board, also after passes.
    history[U(pos.history_length)] = board_key(pos.hash, pos.side_to_move)
    pos.history_length += 1
    if may_repeat and pos.ko_rule == KO_SIMPLE and is_third_repetition(pos, history):
        pos.finished = THIRD_REPETITION


@kernel
def was_occupied(pos, point):  # type: ignore[no-untyped-def]
    """Return whether a stone was ever on `point`."""
    # A stone on another point makes a new board, except by suicide.
    return (pos.occupied[U(point) >> U(6)] >> (U(point) & U(63))) & U(1) != U(0)


@kernel
def repeats_pass(pos, history):  # type: ignore[no-untyped-def]
    """Return whether, under the simple ko rule, the side to move has passed on this board before."""
    if pos.ko_rule != KO_SIMPLE or pos.phase_start == 0:
        return False
    key = board_key(pos.hash, pos.side_to_move)
    for i in range(U(pos.history_length - 1)):
        # Equal stones and the other side to move: a pass.
        if history[i] == key and history[i + U(1)] == key ^ U(1):
            return True
    return False


@kernel
def _end_by_pass(pos, history):  # type: ignore[no-untyped-def]
    """Return how a pass of the side to move ends the game, or NOT_FINISHED."""
    if pos.passes >= 1:
        return TWO_PASSES
    return REPEATED_PASS if repeats_pass(pos, history) else NOT_FINISHED


@kernel
def is_third_repetition(pos, history):  # type: ignore[no-untyped-def]
    """Return whether this board with this side to move occurs for the third time since the last pass."""
    key = history[U(pos.history_length - 1)]
    seen = 0
    for i in range(U(pos.phase_start), U(pos.history_length)):
        if history[i] == key:
            seen += 1
    return seen >= 3


@kernel
def position_key(pos):  # type: ignore[no-untyped-def]
    """Return a hash of stones, side to move, ko point and last pass: all that decides the future except the past."""
    key = pos.hash
    if pos.side_to_move == WHITE:
        key ^= ZOBRIST[3, 1]
    if pos.passes > 0:
        key ^= ZOBRIST[3, 1 + min(U(pos.passes), U(2))]
    if pos.simple_ko != NO_POINT:
        key ^= ZOBRIST[3, U(pos.simple_ko)] * U(3)
    if pos.scoring == SCORING_TERRITORY:
        # Earlier moves count: equal stones may have different scores.
        key ^= ZOBRIST[3, U(np.int64(pos.white_bonus) & 255)] * U(5)
    return key


@kernel
def past_key(pos, history, moves, count):  # type: ignore[no-untyped-def]
    """Return a hash of the rules' effects that depend on the history: superko bans, and whether a pass is a repetition.

    Args:
        pos: the position.
        history: its history.
        moves: its legal moves as `legal_moves` writes them.
        count: number of these moves.
    """
    # Every empty point that is not legal enters the hash. Why it is illegal does not matter for equal position keys.
    key = ZOBRIST[3, 4] if repeats_pass(pos, history) else U(0)
    if pos.ko_rule != KO_SIMPLE and count <= pos.empty_count:
        k = U(0)
        for i in range(U(pos.empty_count)):
            if pos.empties[i] == moves[k]:
                k += U(1)
            else:
                key ^= ZOBRIST[3, U(pos.empties[i])] * U(7)
    return key


@kernel
def may_repeat_soon(pos, move, queue):  # type: ignore[no-untyped-def]
    """Return whether the board before the last move may occur again within about REPETITION_PLIES.

    Source: KataGo's bound for its graph search. `queue` is uint16[> REPETITION_PLIES], working memory.
    """
    if move == PASS or pos.color[U(move)] == EMPTY:  # suicide
        return True
    # The stone must be captured first, then its captor: all empty points around the chain are filled in between.
    color = pos.color[U(move)]
    stride = np.int64(pos.stride)
    queue[U(0)] = move
    head = U(0)
    tail = U(1)
    while head < tail:
        point = np.int64(queue[head])
        head += U(1)
        for neighbor in (point - 1, point + 1, point - stride, point + stride):
            c = pos.color[U(neighbor)]
            if c != EMPTY and c != color:
                continue
            is_new = True
            for i in range(tail):
                is_new &= np.int64(queue[i]) != neighbor
            if is_new:
                if tail == U(REPETITION_PLIES):
                    return False
                queue[tail] = neighbor
                tail += U(1)
    return True


@allocating_kernel
def area_points(pos):  # type: ignore[no-untyped-def]
    """Return Black's area minus White's of the current board: stones, and empty regions that touch one color only."""
    balance = 0
    owner = np.zeros(MAX_POINTS, np.uint8)
    stack = np.empty(MAX_POINTS, np.uint16)
    stride = np.int64(pos.stride)
    for k in range(U((pos.height + 2) * pos.stride)):
        c = pos.color[k]
        if c == BLACK:
            balance += 1
        elif c == WHITE:
            balance -= 1
        # Flood the empty region and collect the colors at its edge.
        elif c == EMPTY and owner[k] == 0:
            top = U(0)
            stack[top] = k
            top = U(1)
            owner[k] = 4
            seen = 0
            count = 0
            while top > U(0):
                top -= U(1)
                p = U(stack[top])
                count += 1
                i = np.int64(p)
                for neighbor in (i - 1, i + 1, i - stride, i + stride):
                    q = U(neighbor)
                    d = pos.color[q]
                    if d == EMPTY:
                        if owner[q] == 0:
                            owner[q] = 4
                            stack[top] = q
                            top += U(1)
                    elif d != BORDER:
                        seen |= np.int64(d)
            if seen == BLACK:
                balance += count
            elif seen == WHITE:
                balance -= count
    return balance
