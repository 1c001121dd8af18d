"""Go's GameSpec, and the functions of yomi.native.game for Go: importing this module registers them."""

import math

import numpy as np

from yomi.native import game
from yomi.native.bits import U, mixed
from yomi.native.game import ONGOING, OVER, OVER_UNSCORED
from yomi.native.go import board, planes, rules
from yomi.native.go.board import BLACK, POSITION_DTYPE, REPEATED_PASS, SCORING_AREA, TAX_NONE, THIRD_REPETITION
from yomi.native.go.planes import METADATA
from yomi.native.go.rules import MAX_HISTORY
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.native.jit import kernel
from yomi.native.spec import GameSpec


@kernel
def outcome(pos, history):  # type: ignore[no-untyped-def]
    """Return the state of the game, its value and its score; see yomi.native.game.outcome."""
    # Two passes end the game. Under the simple ko rule two more things do: a pass on a board on which the side has
    # passed before, and a third repetition (no result).
    # Area counts the board as it is: a server that does so would not remove dead stones in pass-alive territory. The
    # evaluator decides if players agree on dead stones (territory scoring, or friendly passes with an evaluator that
    # can judge them, as in KataGo), if a tax depends on seki, and if the history is full.
    repeated = pos.passes == 1 and pos.finished == REPEATED_PASS
    if pos.passes >= 2 or repeated:
        is_agreed = pos.scoring != SCORING_AREA or (pos.friendly_pass & pos.judges_agreement != 0 and not repeated)
        if is_agreed or pos.tax != TAX_NONE:
            return OVER_UNSCORED, 0.0, 0.0
        score = float(rules.area_points(pos)) - float(pos.komi)
        if pos.side_to_move != BLACK:
            score = -score
        return OVER, (1.0 if score > 0.0 else (-1.0 if score < 0.0 else 0.0)), score
    if pos.finished == THIRD_REPETITION:
        return OVER, 0.0, 0.0
    if pos.history_length + 1 >= MAX_HISTORY:
        return OVER_UNSCORED, 0.0, 0.0
    return ONGOING, 0.0, 0.0


@kernel
def position_key(pos, history, moves, count):  # type: ignore[no-untyped-def]
    return rules.position_key(pos) ^ rules.past_key(pos, history, moves, count)


@kernel
def graph_key(pos, history, move, above, scratch):  # type: ignore[no-untyped-def]
    """Return a key of position and number of moves, and of the line (`above`) if its boards may repeat soon."""
    key = mixed(U(pos.ply) + (U(pos.phase_start) << U(20)) + (U(pos.finished) << U(40)))
    if rules.may_repeat_soon(pos, move, scratch.move):
        key ^= above
    return mixed(rules.position_key(pos) ^ key)


@kernel
def policy_index(pos, move, symmetry):  # type: ignore[no-untyped-def]
    return planes.policy_index(pos.size, pos.height, move, symmetry)


@kernel
def add_ownership(pos, ownership, symmetry, sign, total):  # type: ignore[no-untyped-def]
    """Add sign times the ownership, rotated back to the board, to `total`."""
    size = np.int64(pos.size)
    height = np.int64(pos.height)
    start, step_x, step_y = planes.symmetry_steps(size, height, symmetry)
    for y in range(height):
        for x in range(size):
            total[U(y * size + x)] += sign * ownership[U(start + x * step_x + y * step_y)]


game.implement(game.copy, POSITION_DTYPE, board.copy)
game.implement(game.play, POSITION_DTYPE, rules.play)
game.implement(game.graph_key, POSITION_DTYPE, graph_key)
game.implement(game.legal_moves, POSITION_DTYPE, rules.legal_moves)
game.implement(game.outcome, POSITION_DTYPE, outcome)
game.implement(game.pattern_key, POSITION_DTYPE, board.pattern_key)
game.implement(game.position_key, POSITION_DTYPE, position_key)
game.implement(game.write_planes, POSITION_DTYPE, planes.write_planes)
game.implement(game.write_bits, POSITION_DTYPE, planes.write_bits)
game.implement(game.policy_index, POSITION_DTYPE, policy_index)
game.implement(game.add_ownership, POSITION_DTYPE, add_ownership)


SPATIAL_PLANES = 22
GLOBAL_FEATURES = 19


def go_spec(
    size: int,
    height: int | None = None,
    *,
    suicide_areas: bool = False,
    judges_agreement: bool = False,
    metadata: bool = False,
) -> GameSpec:
    """Return the GameSpec of Go on a board of `size` columns and `height` rows.

    Args:
        size: columns.
        height: rows; None for a square board.
        suicide_areas: encode areas as if suicide of several stones were legal.
        judges_agreement: under area rules, the evaluator scores games that end by agreement. Otherwise the current
            board is counted.
        metadata: the globals are followed by the inputs of human-SL networks.
    """
    height = size if height is None else height
    area = size * height
    return GameSpec(
        name="go",
        position_dtype=POSITION_DTYPE,
        scratch_dtype=SCRATCH_DTYPE,
        max_moves=area + 1,
        max_history=MAX_HISTORY,
        policy_size=area + 1,
        area=area,
        planes_shape=(SPATIAL_PLANES, height, size),
        extras_shape=(GLOBAL_FEATURES + (METADATA if metadata else 0),),
        bits=(SPATIAL_PLANES * area,),
        cached_moves=0,
        mean_moves=area * 0.97 + 1.0,
        mean_edges=area * 0.15 + 2.0,
        score_unit=math.sqrt(area),
        position_flags=(("suicide_areas", int(suicide_areas)), ("judges_agreement", int(judges_agreement))),
    )
