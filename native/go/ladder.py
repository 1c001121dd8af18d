"""Ladders: which chains can be captured by an unbroken row of ataris, exactly as KataGo's network inputs define it.

The truth of a ladder is that of the game tree with these rules. The attacker plays a liberty of a chain that has two;
the defender, whose chain then has one, extends or captures an adjacent chain in atari. A chain left with one liberty on
the attacker's turn is captured, one with three has escaped. A chain with one liberty at the root moves first. A simple
ko that the attacker leaves counts as an escape, except at the root, where the ban of the position is ignored. Quick
answers below never change that truth; they spare stones. Not reproduced is the order in which KataGo tries the moves,
so a search that runs into the limit of nodes may in theory end differently.
"""

import numpy as np

from native.bits import U, lowest_bit, popcount
from native.go.board import BORDER, EMPTY, MAX_POINTS, NO_POINT, WORDS
from native.go.scratch import LADDER_MOVES, LADDER_TABLE
from native.jit import kernel

NODE_LIMIT = 25000
"""Moves that one search may make; beyond it the chain counts as not captured (KataGo's number)."""


@kernel
def load_position(b, pos):  # type: ignore[no-untyped-def]
    """Copy the board of position `pos` to the board of scratch `b`."""
    b.size = pos.size
    b.stride = pos.stride
    b.words = pos.words
    b.ko = pos.simple_ko
    b.depth = 0
    points = U((pos.size + 2) * pos.stride + 1)
    for i in range(points):
        b.color[i] = pos.color[i]
        b.chain[i] = pos.chain[i]
        b.next_stone[i] = pos.next_stone[i]
    words = U(pos.words)
    top = U(0)
    for w in range(U(6)):
        bits = pos.slots[w]
        while bits != U(0):
            slot = w * U(64) + lowest_bit(bits)
            bits &= bits - U(1)
            b.liberties[slot] = pos.liberties[slot]
            b.stones[slot] = pos.stones[slot]
            for i in range(words):
                b.liberty_bits[slot * U(WORDS) + i] = pos.liberty_bits[slot * words + i]
            top = slot + U(1)
    b.next_slot = top


@kernel
def load_colors(b, pos, ago):  # type: ignore[no-untyped-def]
    """Build the board of scratch `b` from the colors of the board `ago` (1 or 2) moves before position `pos`."""
    b.size = pos.size
    b.stride = pos.stride
    b.words = pos.words
    b.ko = pos.previous_ko[U(ago - 1)]
    b.depth = 0
    stride = np.int64(pos.stride)
    points = U((pos.size + 2) * pos.stride + 1)
    offset = U(ago - 1) * U(MAX_POINTS)
    for i in range(points):
        b.color[i] = pos.previous_color[offset + i]
        b.next_stone[i] = 0
    words = U(pos.words)
    slot = U(0)
    for first in range(points):
        own = b.color[first]
        if own in (EMPTY, BORDER) or b.next_stone[first] != 0:
            continue
        base = slot * U(WORDS)
        for i in range(words):
            b.liberty_bits[base + i] = U(0)
        # the ring serves as the queue: stones found are put in before the first, and visited in the ring's order
        b.next_stone[first] = first
        b.chain[first] = slot
        last = first
        p = first
        stones = 1
        while True:
            i = np.int64(p)
            for neighbor in (i - 1, i + 1, i - stride, i + stride):
                q = U(neighbor)
                c = b.color[q]
                if c == EMPTY:
                    b.liberty_bits[base + (q >> U(6))] |= U(1) << (q & U(63))
                elif c == own and b.next_stone[q] == 0:
                    b.next_stone[last] = q
                    b.next_stone[q] = first
                    b.chain[q] = slot
                    last = q
                    stones += 1
            p = U(b.next_stone[p])
            if p == first:
                break
        count = U(0)
        for i in range(words):
            count += popcount(b.liberty_bits[base + i])
        b.liberties[slot] = count
        b.stones[slot] = stones
        slot += U(1)
    b.next_slot = slot


@kernel
def _add_liberty(b, slot, p):  # type: ignore[no-untyped-def]
    index = U(slot) * U(WORDS) + (p >> U(6))
    old = b.liberty_bits[index]
    bit = U(1) << (p & U(63))
    b.liberty_bits[index] = old | bit
    if old & bit == U(0):
        b.liberties[U(slot)] += 1


@kernel
def _drop_liberty(b, slot, p):  # type: ignore[no-untyped-def]
    index = U(slot) * U(WORDS) + (p >> U(6))
    old = b.liberty_bits[index]
    bit = U(1) << (p & U(63))
    b.liberty_bits[index] = old & ~bit
    if old & bit != U(0):
        b.liberties[U(slot)] -= 1


@kernel
def _first_liberty(b, slot):  # type: ignore[no-untyped-def]
    """Return the lowest liberty of a chain that has one."""
    base = U(slot) * U(WORDS)
    w = U(0)
    while b.liberty_bits[base + w] == U(0):
        w += U(1)
    return w * U(64) + lowest_bit(b.liberty_bits[base + w])


@kernel
def _last_liberty(b, slot):  # type: ignore[no-untyped-def]
    """Return the highest liberty of a chain with one or two."""
    base = U(slot) * U(WORDS)
    w = U(b.words - 1)
    while b.liberty_bits[base + w] == U(0):
        w -= U(1)
    word = b.liberty_bits[base + w]
    rest = word & (word - U(1))
    return w * U(64) + lowest_bit(rest if rest != U(0) else word)


@kernel
def _join(b, p, own, depth):  # type: ignore[no-untyped-def]
    """Make the stone just put on `p` part of its chain, joining those it touches, and return the chain's slot."""
    i = np.int64(p)
    stride = np.int64(b.stride)
    base = depth * U(4)
    joined = U(0)
    target = U(0)
    largest = 0
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if b.color[q] == own:
            slot = U(b.chain[q])
            new = True
            for k in range(joined):
                if b.undo_joined_slot[base + k] == slot:
                    new = False
            if new:
                b.undo_joined_slot[base + joined] = slot
                b.undo_joined_stone[base + joined] = q
                joined += U(1)
                if b.stones[slot] > largest:
                    largest = b.stones[slot]
                    target = slot
    b.undo_joined[depth] = joined
    b.next_stone[p] = p
    words = U(b.words)
    if joined == U(0):
        target = U(b.next_slot)
        b.next_slot += 1
        b.liberties[target] = 0
        b.stones[target] = 1
        for w in range(words):
            b.liberty_bits[target * U(WORDS) + w] = U(0)
    else:
        b.undo_liberties[depth] = b.liberties[target]
        b.undo_stones[depth] = b.stones[target]
        for w in range(words):
            b.undo_bits[depth * U(WORDS) + w] = b.liberty_bits[target * U(WORDS) + w]
        for k in range(joined):
            slot = U(b.undo_joined_slot[base + k])
            q = U(b.undo_joined_stone[base + k])
            if slot != target:
                b.stones[target] += b.stones[slot]
                _label(b, q, target)
                count = U(0)
                for w in range(words):
                    union = b.liberty_bits[target * U(WORDS) + w] | b.liberty_bits[slot * U(WORDS) + w]
                    b.liberty_bits[target * U(WORDS) + w] = union
                    count += popcount(union)
                b.liberties[target] = count
            ring = b.next_stone[p]
            b.next_stone[p] = b.next_stone[q]
            b.next_stone[q] = ring
        b.stones[target] += 1
        _drop_liberty(b, target, p)
    b.chain[p] = target
    b.undo_target[depth] = target
    return target


@kernel
def _label(b, stone, slot):  # type: ignore[no-untyped-def]
    """Give all stones of the ring of `stone` to the chain in `slot`."""
    p = U(stone)
    while True:
        b.chain[p] = slot
        p = U(b.next_stone[p])
        if p == U(stone):
            break


@kernel
def play_stone(b, p, own):  # type: ignore[no-untyped-def]
    """Put a stone on the empty point `p`, with its captures; a move that is legal and no suicide."""
    i = np.int64(p)
    stride = np.int64(b.stride)
    depth = U(b.depth)
    enemy = U(3) - own
    b.undo_point[depth] = p
    b.undo_chain[depth] = b.chain[p]
    b.undo_next[depth] = b.next_stone[p]
    b.undo_ko[depth] = b.ko
    b.color[p] = own
    target = _join(b, p, own, depth)
    captured = U(0)
    captured_stones = 0
    captured_point = U(NO_POINT)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = b.color[q]
        if c == EMPTY:
            _add_liberty(b, target, q)
        elif c == enemy:
            slot = U(b.chain[q])
            _drop_liberty(b, slot, p)
            if b.liberties[slot] == 0:
                b.undo_captured_stone[depth * U(4) + captured] = q
                captured += U(1)
                captured_point = q
                captured_stones += np.int64(b.stones[slot])
                _lift(b, q, own)
    b.undo_captured[depth] = captured
    single = captured_stones == 1 and b.stones[target] == 1 and b.liberties[target] == 1
    b.ko = captured_point if single else U(NO_POINT)
    b.depth += 1


@kernel
def _lift(b, stone, enemy):  # type: ignore[no-untyped-def]
    """Take the chain of `stone` off the board; the chains of `enemy` around it gain liberties."""
    stride = np.int64(b.stride)
    p = U(stone)
    while True:
        b.color[p] = EMPTY
        i = np.int64(p)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if b.color[q] == enemy:
                _add_liberty(b, b.chain[q], p)
        p = U(b.next_stone[p])
        if p == U(stone):
            break


@kernel
def _put_back(b, stone, color, enemy):  # type: ignore[no-untyped-def]
    """Undo `_lift`."""
    stride = np.int64(b.stride)
    p = U(stone)
    while True:
        b.color[p] = color
        i = np.int64(p)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if b.color[q] == enemy:
                _drop_liberty(b, b.chain[q], p)
        p = U(b.next_stone[p])
        if p == U(stone):
            break


@kernel
def take_back(b):  # type: ignore[no-untyped-def]
    """Undo the last `play_stone`."""
    b.depth -= 1
    depth = U(b.depth)
    base = depth * U(4)
    p = U(b.undo_point[depth])
    own = U(b.color[p])
    enemy = U(3) - own
    i = np.int64(p)
    stride = np.int64(b.stride)
    for k in range(U(b.undo_captured[depth])):
        _put_back(b, b.undo_captured_stone[base + k], enemy, own)
    b.color[p] = EMPTY
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if b.color[q] == enemy:
            _add_liberty(b, b.chain[q], p)
    joined = U(b.undo_joined[depth])
    target = U(b.undo_target[depth])
    if joined == U(0):
        b.next_slot -= 1
    else:
        for j in range(joined):
            k = joined - U(1) - j
            q = U(b.undo_joined_stone[base + k])
            ring = b.next_stone[p]
            b.next_stone[p] = b.next_stone[q]
            b.next_stone[q] = ring
            slot = U(b.undo_joined_slot[base + k])
            if slot != target:
                _label(b, q, slot)
        b.liberties[target] = b.undo_liberties[depth]
        b.stones[target] = b.undo_stones[depth]
        for w in range(U(b.words)):
            b.liberty_bits[target * U(WORDS) + w] = b.undo_bits[depth * U(WORDS) + w]
    b.chain[p] = b.undo_chain[depth]
    b.next_stone[p] = b.undo_next[depth]
    b.ko = b.undo_ko[depth]


@kernel
def _is_suicide(b, p, own):  # type: ignore[no-untyped-def]
    i = np.int64(p)
    stride = np.int64(b.stride)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = b.color[q]
        if c == EMPTY:
            return False
        if c != BORDER:
            one = b.liberties[U(b.chain[q])] == 1
            if (c == own) != one:
                return False
    return True


@kernel
def liberties_after(b, p, own, without):  # type: ignore[no-untyped-def]
    """Return how many liberties a stone of `own` on the empty `p` gets, `without` and captures not counted."""
    i = np.int64(p)
    stride = np.int64(b.stride)
    empties = U(0)
    first = U(MAX_POINTS)
    second = U(MAX_POINTS)
    third = U(MAX_POINTS)
    fourth = U(MAX_POINTS)
    chains = 0
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = b.color[q]
        if c == EMPTY:
            if q != without:
                empties += U(1)
        elif c == own:
            slot = U(b.chain[q])
            if slot != first and slot != second and slot != third:
                fourth = third
                third = second
                second = first
                first = slot
                chains += 1
    if empties >= U(3) or chains == 0:
        return empties
    # points next to p that are liberties of a chain as well are to be counted once: take the union of the sets
    count = U(0)
    pw = p >> U(6)
    aw = without >> U(6)
    for w in range(U(b.words)):
        word = b.liberty_bits[first * U(WORDS) + w]
        if chains > 1:
            word |= b.liberty_bits[second * U(WORDS) + w]
            if chains > 2:
                word |= b.liberty_bits[third * U(WORDS) + w]
                if chains > 3:
                    word |= b.liberty_bits[fourth * U(WORDS) + w]
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if q >> U(6) == w and b.color[q] == EMPTY:
                word |= U(1) << (q & U(63))
        if w == pw:
            word &= ~(U(1) << (p & U(63)))
        if w == aw:
            word &= ~(U(1) << (without & U(63)))
        count += popcount(word)
    return count


@kernel
def _captures(b, p, own):  # type: ignore[no-untyped-def]
    """Whether a stone of `own` on the empty `p` captures something."""
    i = np.int64(p)
    stride = np.int64(b.stride)
    enemy = U(3) - own
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if b.color[q] == enemy and b.liberties[U(b.chain[q])] == 1:
            return True
    return False


@kernel
def _list_captures(b, stone, start):  # type: ignore[no-untyped-def]
    """Append the moves that capture a chain next to the chain of `stone` to the move stack; return its new top."""
    stride = np.int64(b.stride)
    enemy = U(3) - U(b.color[U(stone)])
    top = U(start)
    p = U(stone)
    while True:
        i = np.int64(p)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if b.color[q] == enemy:
                slot = U(b.chain[q])
                if b.liberties[slot] == 1:
                    move = _first_liberty(b, slot)
                    new = top < U(LADDER_MOVES - 2)
                    for k in range(U(start), top):
                        if b.move[k] == move:
                            new = False
                    if new:
                        b.move[top] = move
                        top += U(1)
        p = U(b.next_stone[p])
        if p == U(stone):
            return top


@kernel
def _is_ko_capture(b, p, own):  # type: ignore[no-untyped-def]
    """Whether a stone of `own` on the empty `p`, with only enemies around, captures exactly one lone stone."""
    i = np.int64(p)
    stride = np.int64(b.stride)
    enemy = U(3) - own
    capturable = 0
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = b.color[q]
        if c != BORDER and c != enemy:
            return False
        if c == enemy and b.liberties[U(b.chain[q])] == 1:
            if b.stones[U(b.chain[q])] != 1:
                return False
            capturable += 1
    return capturable == 1


@kernel
def _is_double_ko_death(b, stone, first, second, top):  # type: ignore[no-untyped-def]
    """Whether both liberties of the defender's chain are ko mouths that do not help it, with nothing to capture."""
    own = U(b.color[stone])
    enemy = U(3) - own
    if not _is_ko_capture(b, first, enemy) or not _is_ko_capture(b, second, enemy):
        return False
    # all neighbors of both mouths are the defender's, so connecting captures nothing
    if liberties_after(b, first, own, U(NO_POINT)) > U(2) or liberties_after(b, second, own, U(NO_POINT)) > U(2):
        return False
    return _list_captures(b, stone, top) == U(top)


UNDECIDED, ESCAPED, CAPTURED = 0, 1, 2


@kernel
def _expand_defender(b, stone, ply, top):  # type: ignore[no-untyped-def]
    """Decide the node, or list the defender's moves from `top` of the move stack."""
    slot = U(b.chain[stone])
    if b.liberties[slot] >= 2 or b.ko != NO_POINT:
        return ESCAPED
    own = U(b.color[stone])
    extension = _first_liberty(b, slot)
    gained = liberties_after(b, extension, own, U(NO_POINT))
    if gained >= U(3):
        return ESCAPED
    end = _list_captures(b, stone, top)
    if end == top and gained <= U(1) and not _captures(b, extension, own):
        return CAPTURED
    new = True
    for k in range(top, end):
        if b.move[k] == extension:
            new = False
    if new:
        b.move[end] = extension
        end += U(1)
    b.move_next[U(ply)] = top
    b.move_end[U(ply)] = end
    return UNDECIDED


@kernel
def _expand_attacker(b, stone, ply, top):  # type: ignore[no-untyped-def]
    """Decide the node, or list the attacker's moves from `top` of the move stack."""
    slot = U(b.chain[stone])
    if b.liberties[slot] <= 1:
        return CAPTURED
    if b.liberties[slot] >= 3:
        return ESCAPED
    own = U(b.color[stone])
    first = _first_liberty(b, slot)
    second = _last_liberty(b, slot)
    if _is_double_ko_death(b, stone, first, second, top):
        return CAPTURED
    # what the defender gets by answering on the other liberty; three is an escape whatever the attacker's stone does
    after_first = liberties_after(b, second, own, first)
    after_second = liberties_after(b, first, own, second)
    end = U(top)
    if after_first <= U(2) and (after_second > U(2) or after_first <= after_second):
        b.move[end] = first
        end += U(1)
    if after_second <= U(2):
        b.move[end] = second
        end += U(1)
        if after_first <= U(2) and after_first > after_second:
            b.move[end] = first
            end += U(1)
    b.move_next[U(ply)] = top
    b.move_end[U(ply)] = end
    return ESCAPED if end == U(top) else UNDECIDED


@kernel
def is_captured(b, stone):  # type: ignore[no-untyped-def]
    """Whether the chain of `stone`, which has one liberty, is captured though its owner moves first."""
    if b.liberties[U(b.chain[U(stone)])] > 1:
        return False
    stone = U(stone)
    defender = U(b.color[stone])
    attacker = U(3) - defender
    ko = b.ko
    b.ko = NO_POINT
    last_ply = np.int64(b.size) * np.int64(b.size) * 3 // 2
    start = np.int64(b.depth)
    nodes = 0
    ply = 0
    captured = False
    answered = False  # the node at `ply` has just learned the value `captured` of its child
    top = U(0)
    while True:
        if not answered:
            if ply >= last_ply:
                verdict = CAPTURED
            elif ply & 1:
                verdict = _expand_attacker(b, stone, ply, top)
            else:
                verdict = _expand_defender(b, stone, ply, top)
            if verdict != UNDECIDED:
                captured = verdict == CAPTURED
                ply -= 1
                if ply < 0:
                    break
                answered = True
                continue
        else:
            take_back(b)
            if captured == (ply & 1 == 1):
                ply -= 1
                if ply < 0:
                    break
                continue
        mover = attacker if ply & 1 else defender
        k = U(b.move_next[U(ply)])
        end = U(b.move_end[U(ply)])
        while k < end and (b.move[k] == b.ko or _is_suicide(b, U(b.move[k]), mover)):
            k += U(1)
        if k == end:
            captured = ply & 1 == 0
            ply -= 1
            if ply < 0:
                break
            answered = True
            continue
        if nodes >= NODE_LIMIT:
            captured = False
            break
        b.move_next[U(ply)] = k + U(1)
        play_stone(b, U(b.move[k]), mover)
        nodes += 1
        ply += 1
        top = end
        answered = False
    while b.depth > start:
        take_back(b)
    b.ko = ko
    return captured


@kernel
def _attack_works(b, stone, move, other):  # type: ignore[no-untyped-def]
    """Whether the attacker's `move` on one liberty of the chain of `stone` captures it; `other` is the other one."""
    own = U(b.color[stone])
    if liberties_after(b, other, own, move) >= U(3):
        return False
    attacker = U(3) - own
    if move == b.ko or _is_suicide(b, move, attacker):
        return False
    play_stone(b, move, attacker)
    result = is_captured(b, stone)
    take_back(b)
    return result


@kernel
def _mark_chain(b, stone, bits):  # type: ignore[no-untyped-def]
    p = U(stone)
    while True:
        bits[p >> U(6)] |= U(1) << (p & U(63))
        p = U(b.next_stone[p])
        if p == U(stone):
            break


@kernel
def read_ladders(b, prey):  # type: ignore[no-untyped-def]
    """Find the ladders on the board of scratch `b`.

    Sets `b.laddered` to the stones of all chains, of either color, that a ladder captures, and `b.working` to the moves
    that start one on a chain of color `prey` with two liberties (0: none are wanted).
    """
    for w in range(U(WORDS)):
        b.laddered[w] = U(0)
        b.working[w] = U(0)
    for slot in range(U(b.next_slot)):
        b.solved[slot] = 0
    points = U((b.size + 1) * b.stride)
    for p in range(U(b.stride + 1), points):
        c = b.color[p]
        if c in (EMPTY, BORDER):
            continue
        slot = U(b.chain[p])
        if b.liberties[slot] > 2 or b.solved[slot] != 0:
            continue
        b.solved[slot] = 1
        if b.liberties[slot] == 1:
            if is_captured(b, p):
                _mark_chain(b, p, b.laddered)
            continue
        first = _first_liberty(b, slot)
        second = _last_liberty(b, slot)
        one = _attack_works(b, p, first, second)
        if one and c != prey:
            _mark_chain(b, p, b.laddered)
            continue
        two = _attack_works(b, p, second, first)
        if one or two:
            _mark_chain(b, p, b.laddered)
        if c == prey:
            if one:
                b.working[first >> U(6)] |= U(1) << (first & U(63))
            if two:
                b.working[second >> U(6)] |= U(1) << (second & U(63))


@kernel
def ladder_key(stones, ko, size):  # type: ignore[no-untyped-def]
    """Return the key of a board in the table of ladders: what its ladders depend on. Never 0."""
    key = (U(stones) >> U(1)) ^ (U(ko) * U(0x9E3779B97F4A7C15)) ^ (U(size) * U(0xC2B2AE3D27D4EB4F))
    return key | (U(1) << U(63))


@kernel
def recall_ladders(b, key):  # type: ignore[no-untyped-def]
    """Set `b.laddered` from the table of ladders; return whether `key` was there."""
    base = (key & U(LADDER_TABLE - 1)) * U(8)
    if b.table[base] != key:
        return False
    for w in range(U(WORDS)):
        b.laddered[w] = b.table[base + U(1) + w]
    return True


@kernel
def remember_ladders(b, key):  # type: ignore[no-untyped-def]
    """Store `b.laddered` in the table of ladders under `key`."""
    base = (key & U(LADDER_TABLE - 1)) * U(8)
    b.table[base] = key
    for w in range(U(WORDS)):
        b.table[base + U(1) + w] = b.laddered[w]
