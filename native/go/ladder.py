"""Ladders: chains that an unbroken sequence of ataris captures, exactly as in KataGo's network inputs.

The rules of the game tree: the attacker plays a liberty of a chain with two; the defender extends, or captures a
neighboring chain in atari. A chain with one liberty on the attacker's turn is captured, with three it has escaped. With
one liberty at the root the defender moves first. A simple ko left by the attacker is an escape, except at the
defender's first move. A search that reaches NODE_LIMIT may end otherwise than KataGo's, whose order of moves differs.
"""

import numpy as np

from yomi.native.bits import U, lowest_bit, popcount
from yomi.native.go.board import (
    BLACK,
    BORDER,
    EMPTY,
    MAX_CHAINS,
    MAX_POINTS,
    NO_POINT,
    WHITE,
    WORDS,
    add_liberty,
    clear,
    copy,
    drop_liberty,
    first_liberty,
    is_suicide,
    new_slot,
    place_stone,
    second_liberty,
)
from yomi.native.go.scratch import LADDER_MOVES
from yomi.native.jit import kernel

# Shortcuts below never change the result.
#
# Stones are played on a position record, of which only color, chain, next_stone, slots, liberties, stones, liberty_bits
# and simple_ko are updated, and undone in reverse order. A joined or captured chain keeps its slot until then.

# Maximum number of moves of a search. Beyond it the chain counts as not captured (KataGo's number).
NODE_LIMIT = 25000


@kernel
def load_colors(b, pos, ago):  # type: ignore[no-untyped-def]
    """Make the record `b` the board `ago` (1 or 2) moves before position `pos`."""
    color = pos.previous_color
    offset = U(ago - 1) * U(MAX_POINTS)
    clear(b, pos.size, pos.height)
    for p in range(U((pos.height + 1) * pos.stride)):
        c = color[offset + p]
        if c in (BLACK, WHITE):
            # Captures nothing: an incomplete chain has a liberty where a stone is missing.
            place_stone(b, np.int64(p), c)
    b.simple_ko = pos.previous_ko[U(ago - 1)]


@kernel
def _label(chain, next_stone, stone, slot):  # type: ignore[no-untyped-def]
    p = stone
    while True:
        chain[p] = slot
        p = U(next_stone[p])
        if p == stone:
            break


@kernel
def _join(b, s, p, own, depth):  # type: ignore[no-untyped-def]
    """Make the new stone on `p` part of its chain, joining the chains that it touches; return the chain's slot."""
    i = np.int64(p)
    stride = np.int64(b.stride)
    words = U(b.words)
    chain = b.chain
    next_stone = b.next_stone
    liberty_bits = b.liberty_bits
    joined_slot = s.undo_joined_slot
    base = depth * U(4)
    joined = U(0)
    target = U(0)
    largest = np.int64(0)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if b.color[q] == own:
            slot = U(chain[q])
            new = True
            for k in range(joined):
                if joined_slot[base + k] == slot:
                    new = False
            if new:
                joined_slot[base + joined] = slot
                s.undo_joined_stone[base + joined] = q
                joined += U(1)
                if np.int64(b.stones[slot]) > largest:
                    largest = np.int64(b.stones[slot])
                    target = slot
    s.undo_joined[depth] = joined
    # Merge the other chains into the largest one, which is restored from a copy later.
    next_stone[p] = p
    if joined == U(0):
        target = new_slot(b)
        b.stones[target] = 1
    else:
        s.undo_liberties[depth] = b.liberties[target]
        s.undo_stones[depth] = b.stones[target]
        for w in range(words):
            s.undo_bits[depth * U(WORDS) + w] = liberty_bits[target * words + w]
        for k in range(joined):
            slot = U(joined_slot[base + k])
            q = U(s.undo_joined_stone[base + k])
            if slot != target:
                b.stones[target] += b.stones[slot]
                _label(chain, next_stone, q, target)
                count = U(0)
                for w in range(words):
                    union = liberty_bits[target * words + w] | liberty_bits[slot * words + w]
                    liberty_bits[target * words + w] = union
                    count += popcount(union)
                b.liberties[target] = count
            ring = next_stone[p]
            next_stone[p] = next_stone[q]
            next_stone[q] = ring
        b.stones[target] += 1
        drop_liberty(b, target, p)
    chain[p] = target
    s.undo_target[depth] = target
    return target


@kernel
def _recolor(b, stone, color, enemy):  # type: ignore[no-untyped-def]
    """Take the chain of `stone` off the board (`color` EMPTY) or put it back; update liberties of `enemy` chains."""
    stride = np.int64(b.stride)
    p = U(stone)
    while True:
        b.color[p] = color
        i = np.int64(p)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if b.color[q] == enemy:
                if color == EMPTY:
                    add_liberty(b, U(b.chain[q]), p)
                else:
                    drop_liberty(b, U(b.chain[q]), p)
        p = U(b.next_stone[p])
        if p == U(stone):
            break


@kernel
def _play_stone(b, s, p, own):  # type: ignore[no-untyped-def]
    """Play a legal move that is not suicide, with its captures."""
    i = np.int64(p)
    stride = np.int64(b.stride)
    depth = U(s.depth)
    enemy = U(3) - own
    s.undo_point[depth] = p
    s.undo_chain[depth] = b.chain[p]
    s.undo_next[depth] = b.next_stone[p]
    s.undo_ko[depth] = b.simple_ko
    b.color[p] = own
    # The liberties of the joined chain follow below.
    target = _join(b, s, p, own, depth)
    captured = U(0)
    captured_stones = np.int64(0)
    captured_point = U(NO_POINT)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = b.color[q]
        if c == EMPTY:
            add_liberty(b, target, q)
        elif c == enemy:
            slot = U(b.chain[q])
            drop_liberty(b, slot, p)
            if b.liberties[slot] == 0:
                s.undo_captured_stone[depth * U(4) + captured] = q
                captured += U(1)
                captured_point = q
                captured_stones += np.int64(b.stones[slot])
                _recolor(b, q, U(EMPTY), own)
    s.undo_captured[depth] = captured
    single = captured_stones == 1 and b.stones[target] == 1 and b.liberties[target] == 1
    b.simple_ko = captured_point if single else U(NO_POINT)
    s.depth += 1


@kernel
def _take_back(b, s):  # type: ignore[no-untyped-def]
    s.depth -= 1
    depth = U(s.depth)
    words = U(b.words)
    next_stone = b.next_stone
    base = depth * U(4)
    p = U(s.undo_point[depth])
    own = U(b.color[p])
    enemy = U(3) - own
    i = np.int64(p)
    stride = np.int64(b.stride)
    # In the reverse order of _play_stone: captures, the stone, its chains, the point.
    for k in range(U(s.undo_captured[depth])):
        _recolor(b, U(s.undo_captured_stone[base + k]), enemy, own)
    b.color[p] = EMPTY
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if b.color[q] == enemy:
            add_liberty(b, U(b.chain[q]), p)
    joined = U(s.undo_joined[depth])
    target = U(s.undo_target[depth])
    if joined == U(0):
        b.slots[target >> U(6)] &= ~(U(1) << (target & U(63)))
    else:
        # Split the rings in reverse order and give the chains their slots back.
        for j in range(joined):
            k = joined - U(1) - j
            q = U(s.undo_joined_stone[base + k])
            ring = next_stone[p]
            next_stone[p] = next_stone[q]
            next_stone[q] = ring
            slot = U(s.undo_joined_slot[base + k])
            if slot != target:
                _label(b.chain, next_stone, q, slot)
        b.liberties[target] = s.undo_liberties[depth]
        b.stones[target] = s.undo_stones[depth]
        for w in range(words):
            b.liberty_bits[target * words + w] = s.undo_bits[depth * U(WORDS) + w]
    b.chain[p] = s.undo_chain[depth]
    next_stone[p] = s.undo_next[depth]
    b.simple_ko = s.undo_ko[depth]


@kernel
def _union(bits, words, w, first, second, third):  # type: ignore[no-untyped-def]
    """Return word `w` of the union of three chains' liberties."""
    return bits[first * words + w] | bits[second * words + w] | bits[third * words + w]


@kernel
def escape_liberties(b, p, own, without, prey):  # type: ignore[no-untyped-def]
    """Return min(3, liberties of a stone of `own` on the empty `p`) except the point `without` and without captures."""
    # The chain in slot `prey` has no liberties except these two points.
    i = np.int64(p)
    stride = np.int64(b.stride)
    color = b.color
    count = np.int64(0)
    first = U(MAX_CHAINS)
    second = U(MAX_CHAINS)
    third = U(MAX_CHAINS)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = color[q]
        if c == EMPTY:
            count += q != without
        elif c == own:
            slot = U(b.chain[q])
            if slot != prey and slot != first and slot != second:
                if b.liberties[slot] >= 5:
                    return np.int64(3)
                third = second
                second = first
                first = slot
    if count >= 3 or first == U(MAX_CHAINS):
        return np.int64(3) if count > 3 else count
    if second == U(MAX_CHAINS):
        second = first
    if third == U(MAX_CHAINS):
        third = first
    # Empty neighbors of p may also be liberties of a chain: count the union.
    words = U(b.words)
    bits = b.liberty_bits
    count = np.int64(-1)  # p itself is in the union
    for w in range(words):
        count += np.int64(popcount(_union(bits, words, w, first, second, third)))
    count -= np.int64((_union(bits, words, without >> U(6), first, second, third) >> (without & U(63))) & U(1))
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if color[q] == EMPTY and q != without:
            inside = (_union(bits, words, q >> U(6), first, second, third) >> (q & U(63))) & U(1)
            count += inside == U(0)
    return np.int64(3) if count > 3 else count


@kernel
def _list_captures(b, s, stone, start):  # type: ignore[no-untyped-def]
    """Push the moves that capture a neighbor of the chain of `stone` on the move stack; return the new top."""
    stride = np.int64(b.stride)
    color = b.color
    chain = b.chain
    liberties = b.liberties
    moves = s.move
    enemy = U(3) - U(color[stone])
    top = start
    p = stone
    while True:
        i = np.int64(p)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if color[q] == enemy and liberties[U(chain[q])] == 1:
                move = first_liberty(b, U(chain[q]))
                new = top < U(LADDER_MOVES - 2)
                for k in range(start, top):
                    if moves[k] == move:
                        new = False
                if new:
                    moves[top] = move
                    top += U(1)
        p = U(b.next_stone[p])
        if p == stone:
            return top


@kernel
def _is_ko_capture(b, p, own):  # type: ignore[no-untyped-def]
    """Return whether a stone of `own` on `p`, with only enemies around, captures exactly one single stone."""
    i = np.int64(p)
    stride = np.int64(b.stride)
    capturable = 0
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = b.color[q]
        if c == EMPTY or c == own:
            return False
        if c != BORDER and b.liberties[U(b.chain[q])] == 1:
            if b.stones[U(b.chain[q])] != 1:
                return False
            capturable += 1
    return capturable == 1


@kernel
def _captures(b, p, own):  # type: ignore[no-untyped-def]
    i = np.int64(p)
    stride = np.int64(b.stride)
    enemy = U(3) - own
    found = False
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if b.color[q] == enemy and b.liberties[U(b.chain[q])] == 1:
            found = True
    return found


UNDECIDED, ESCAPED, CAPTURED = 0, 1, 2


@kernel
def _expand_defender(b, s, stone, ply, top):  # type: ignore[no-untyped-def]
    """Decide the node, or push the defender's moves on the stack from `top`."""
    slot = U(b.chain[stone])
    verdict = UNDECIDED
    if b.liberties[slot] >= 2 or b.simple_ko != NO_POINT:
        verdict = ESCAPED
    else:
        own = U(b.color[stone])
        extension = first_liberty(b, slot)
        gained = escape_liberties(b, extension, own, U(NO_POINT), slot)
        if gained >= 3:
            verdict = ESCAPED
        else:
            end = _list_captures(b, s, stone, top)
            # An extension that captures is worth trying even if no neighbor of this chain is in atari.
            if end == top and gained <= 1 and not _captures(b, extension, own):
                verdict = CAPTURED
            else:
                new = True
                for k in range(top, end):
                    if s.move[k] == extension:
                        new = False
                if new:
                    s.move[end] = extension
                    end += U(1)
                s.move_next[ply] = top
                s.move_end[ply] = end
    return verdict


@kernel
def _expand_attacker(b, s, stone, ply, top):  # type: ignore[no-untyped-def]
    """Decide the node, or push the attacker's moves on the stack from `top`."""
    slot = U(b.chain[stone])
    verdict = UNDECIDED
    if b.liberties[slot] <= 1:
        verdict = CAPTURED
    elif b.liberties[slot] >= 3:
        verdict = ESCAPED
    else:
        own = U(b.color[stone])
        first = first_liberty(b, slot)
        second = second_liberty(b, slot)
        # Liberties after the defender's answer on the other point. Three are an escape whatever the attacker does.
        after_first = escape_liberties(b, second, own, first, slot)
        after_second = escape_liberties(b, first, own, second, slot)
        # Both attacks only start a ko: captured if the defender has no other capture.
        no_help = after_first <= 1 and after_second <= 1
        if no_help and _is_ko_capture(b, first, U(3) - own) and _is_ko_capture(b, second, U(3) - own):
            no_help = _list_captures(b, s, stone, top) == top
        else:
            no_help = False
        end = top
        if no_help:
            verdict = CAPTURED
        elif after_first <= 2 and after_second <= 2:
            # Try the point first that leaves the defender fewer liberties.
            swap = after_first > after_second
            s.move[end] = second if swap else first
            s.move[end + U(1)] = first if swap else second
            end += U(2)
        elif after_first <= 2 or after_second <= 2:
            s.move[end] = first if after_first <= 2 else second
            end += U(1)
        else:
            verdict = ESCAPED
        s.move_next[ply] = top
        s.move_end[ply] = end
    return verdict


@kernel
def is_captured(b, s, stone, attack):  # type: ignore[no-untyped-def]
    """Return whether the chain of `stone` is captured, by a depth-first search without recursion.

    Args:
        b: the board; left unchanged.
        s: the scratch record.
        stone: a stone of a chain with one liberty, whose owner moves first, or two.
        attack: the attacker's first move, legal and not suicide; NO_POINT for a chain with one liberty.
    """
    # The attacker moves at odd plies. The defender's first move is at ply 2, the only one that may retake a ko.
    start = U(1) if attack != NO_POINT else U(2)
    defender = U(b.color[stone])
    ko = b.simple_ko
    used = U(0)
    for w in range(U(6)):
        used += popcount(b.slots[w])
    # KataGo's limit. A stone may also need a slot; when none is left the ladder is hundreds of plies long.
    last_ply = min(U(b.size) * U(b.height) * U(3) // U(2), U(MAX_CHAINS) - used) + U(2)
    s.depth = 0
    moves = s.move
    nodes = 0
    captured = False  # value of the node that was decided last
    stopped = False  # by the limit of nodes
    returns = False  # from a child of the node at `ply`
    ply = start
    top = U(0)
    moves[top] = attack
    s.move_next[ply] = top
    s.move_end[ply] = U(1)
    while ply >= start:
        mover = defender if ply & U(1) == U(0) else U(3) - defender
        verdict = UNDECIDED
        if returns:
            _take_back(b, s)
            if stopped or captured == (mover != defender):  # the mover has reached its goal
                verdict = CAPTURED if captured else ESCAPED
        elif ply != U(1):
            if ply == U(2):
                b.simple_ko = NO_POINT
            if ply >= last_ply:
                verdict = CAPTURED
            elif mover == defender:
                verdict = _expand_defender(b, s, stone, ply, top)
            else:
                verdict = _expand_attacker(b, s, stone, ply, top)
        if verdict == UNDECIDED:
            k = s.move_next[ply]
            end = s.move_end[ply]
            while k < end and (moves[k] == b.simple_ko or is_suicide(b, np.int64(moves[k]), np.int64(mover))):
                k += U(1)
            if k == end:  # no move of the mover helps
                verdict = CAPTURED if mover == defender else ESCAPED
            elif nodes >= NODE_LIMIT:
                stopped = True
                verdict = ESCAPED
            else:
                s.move_next[ply] = k + U(1)
                _play_stone(b, s, U(moves[k]), mover)
                nodes += 1
                ply += U(1)
                top = end
                returns = False
                continue
        captured = verdict == CAPTURED
        returns = True
        ply -= U(1)
    b.simple_ko = ko
    return captured


@kernel
def read_ladders(pos, s, prey, borrowed):  # type: ignore[no-untyped-def]
    """Find the ladders on the board of `pos`.

    Sets `s.laddered` to the stones of all chains that a ladder captures, and `s.working` to the first moves of ladders
    against chains of color `prey` with two liberties.

    Args:
        pos: the position.
        s: the scratch record.
        prey: BLACK, WHITE, or 0 for no moves.
        borrowed: whether `pos` is the board of `s` itself.
    """
    b = s.board
    stride = np.int64(pos.stride)
    color = pos.color
    chain = pos.chain
    laddered = s.laddered
    working = s.working
    filled = borrowed
    for w in range(U(WORDS)):
        laddered[w] = U(0)
        working[w] = U(0)
    for v in range(U(6)):
        bits = pos.slots[v]
        while bits != U(0):
            slot = v * U(64) + lowest_bit(bits)
            bits &= bits - U(1)
            liberties = pos.liberties[slot]
            if liberties > 2:
                continue
            # Find a stone of the chain beside one of its liberties.
            first = first_liberty(pos, slot)
            stone = U(0)
            i = np.int64(first)
            for neighbor in (i - 1, i + 1, i - stride, i + stride):
                q = U(neighbor)
                if color[q] != EMPTY and color[q] != BORDER and chain[q] == slot:
                    stone = q
            own = U(color[stone])
            # With one liberty the defender moves first. With two the attacker tries both.
            attack = U(NO_POINT)
            extension = first
            hit = False
            for k in range(U(liberties)):
                if liberties == 2:
                    second = second_liberty(pos, slot)
                    attack = first if k == U(0) else second
                    extension = second if k == U(0) else first
                if (hit and own != prey) or escape_liberties(pos, extension, own, attack, slot) >= 3:
                    continue
                if liberties == 2 and (attack == pos.simple_ko or is_suicide(pos, np.int64(attack), 3 - np.int64(own))):
                    continue
                # The board is copied only if there is a ladder to read.
                if not filled:
                    copy(b, pos)
                    filled = True
                if is_captured(b, s, stone, attack):
                    hit = True
                    if own == prey and liberties == 2:
                        working[attack >> U(6)] |= U(1) << (attack & U(63))
            if hit:
                p = stone
                while True:
                    laddered[p >> U(6)] |= U(1) << (p & U(63))
                    p = U(pos.next_stone[p])
                    if p == stone:
                        break
