"""Shogi's GameSpec. Importing this module registers shogi's kernels."""

import yomi.native.shogi.game  # noqa: F401  (registers shogi's kernels)
from yomi.native.shogi.planes import SCRATCH_DTYPE
from yomi.native.shogi.position import FORM_ALPHAZERO, FORM_DLSHOGI, MAX_HISTORY, MAX_MOVES, POSITION_DTYPE
from yomi.native.shogi.tables import SQUARES
from yomi.native.spec import GameSpec

# By network form: planes, allowed numbers of scalar inputs, length of the policy.
SHAPES = {FORM_DLSHOGI: (62, (57, 119), 27 * 81), FORM_ALPHAZERO: (45, (0, 1), 139 * 81)}
# Form and number of scalar inputs of dlshogi's usual network.
DLSHOGI_FEATURES = (FORM_DLSHOGI, 57)
# Positions with more legal moves, which are rare, are not cached. The whole policy would take ten times as much memory.
CACHED_MOVES = 224


def shogi_spec(form: int = DLSHOGI_FEATURES[0], extras: int = DLSHOGI_FEATURES[1]) -> GameSpec:
    """Return the GameSpec of shogi for networks of a form.

    Args:
        form: FORM_DLSHOGI or FORM_ALPHAZERO.
        extras: number of scalar inputs: 57 or 119 in dlshogi's form, 0 or 1 in AlphaZero's.

    Raises:
        ValueError: no network of this form has this number of scalar inputs.
    """
    planes, allowed, policy_size = SHAPES[form]
    if extras not in allowed:
        raise ValueError(f"found {extras} scalar inputs, expected one of {allowed}")
    return GameSpec(
        name="shogi",
        position_dtype=POSITION_DTYPE,
        scratch_dtype=SCRATCH_DTYPE,
        max_moves=MAX_MOVES,
        max_history=MAX_HISTORY,
        policy_size=policy_size,
        area=0,
        planes_shape=(planes, 9, 9),
        extras_shape=(extras,),
        bits=(planes * SQUARES, extras) if form == FORM_DLSHOGI else (),
        cached_moves=CACHED_MOVES,
        mean_moves=100.0,
        mean_edges=30.0,
        score_unit=1.0,
        position_flags=(("form", form),),
    )
