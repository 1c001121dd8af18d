"""Go's GameSpec. Importing this module registers Go's kernels."""

import yomi.native.go.game  # noqa: F401  (registers Go's kernels)
from yomi.native.go.board import POSITION_DTYPE
from yomi.native.go.rules import MAX_HISTORY
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.native.spec import GameSpec

SPATIAL_PLANES = 22
GLOBAL_FEATURES = 19


def go_spec(size: int, *, suicide_areas: bool = False, judges_agreement: bool = False) -> GameSpec:
    """Return the GameSpec of Go on a `size` × `size` board.

    Args:
        size: of the board.
        suicide_areas: encode areas as if suicide of several stones were legal.
        judges_agreement: the evaluator scores games that end by agreement under area rules. Otherwise the board counts
            as it is.
    """
    area = size * size
    return GameSpec(
        name="go",
        position_dtype=POSITION_DTYPE,
        scratch_dtype=SCRATCH_DTYPE,
        max_moves=area + 1,
        max_history=MAX_HISTORY,
        policy_size=area + 1,
        area=area,
        planes_shape=(SPATIAL_PLANES, size, size),
        extras_shape=(GLOBAL_FEATURES,),
        bits=(SPATIAL_PLANES * area,),
        cached_moves=0,
        mean_moves=area * 0.97 + 1.0,
        mean_edges=area * 0.15 + 2.0,
        score_unit=float(size),
        position_flags=(("suicide_areas", int(suicide_areas)), ("judges_agreement", int(judges_agreement))),
    )
