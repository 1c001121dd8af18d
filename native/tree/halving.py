"""The root of Gumbel search: the improved policy, and the order of the moves that sequential halving compares.

Source: Danihelka et al., Policy improvement by planning with Gumbel (ICLR 2022).
"""

import math

from yomi.native.bits import U
from yomi.native.jit import kernel

PROVEN = 1e6  # added to the logit of a proven win, subtracted for a proven loss: outweighs everything else
# mctx also stretches each position's values to [0, 1], but early values are noise. On 15,000 rows of Othello 6x6
# from nothing, stretching scored 0.36 against one network, the paper's scale of 1 for Go and chess 0.47, and a scale
# of 0.1 0.67 (one run each). docs/how-to/learning.md has the runs on 7x7 that chose the default.


@kernel
def rank_moves(children, logits, drawn, own_value, scale, base, left, improved):  # type: ignore[no-untyped-def]
    """Write the improved policy, and sort the compared moves, best first.

    Args:
        children: CHILD_DTYPE[n], all moves of the root.
        logits: float64[moves], of the network's policy, by move.
        drawn: float64[moves], the logits with Gumbel noise.
        own_value: the root's own value, in [-1, 1]. It counts as one visit in the value of the moves without a visit.
        scale: a move's value in [-1, 1] adds scale * (base + most visits) * (value + 1) / 2 to its logit.
        base: see `scale`; in visits.
        left: int64[m], the moves that are compared; sorted in place.
        improved: float64[moves], receives the logits of the improved policy.
    """
    total, most, weighted, prior_sum = 0.0, 0.0, 0.0, 0.0
    for i in range(U(len(children))):
        child = children[i]
        if child.visits > 0:
            prior = math.exp(logits[child.move])
            weighted += prior * child.utility
            prior_sum += prior
            total += float(child.visits)
            most = max(most, float(child.visits))
    average = (own_value + total * weighted / prior_sum) / (1.0 + total) if total > 0.0 else own_value
    for i in range(U(len(children))):
        child = children[i]
        value = float(child.utility) if child.visits > 0 else average
        bonus = scale * (base + most) * (value + 1.0) / 2.0 + PROVEN * float(child.proven)
        improved[child.move] = logits[child.move] + bonus
    for i in range(1, len(left)):
        move = left[i]
        worth = drawn[move] + improved[move] - logits[move]
        place = i
        while place > 0 and drawn[left[place - 1]] + improved[left[place - 1]] - logits[left[place - 1]] < worth:
            left[place] = left[place - 1]
            place -= 1
        left[place] = move
