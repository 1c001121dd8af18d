"""Shogi's GameSpec, and the functions of yomi.native.game for shogi: importing this module registers them."""

from yomi.native import game
from yomi.native.bits import U, mixed
from yomi.native.game import ONGOING, OVER, OVER_UNSCORED
from yomi.native.jit import kernel
from yomi.native.shogi import mate, planes, position, rules, waivers
from yomi.native.shogi.movegen import has_legal_move
from yomi.native.shogi.planes import SCRATCH_DTYPE
from yomi.native.shogi.position import FORM_ALPHAZERO, FORM_DLSHOGI, MAX_HISTORY, MAX_MOVES, POSITION_DTYPE
from yomi.native.shogi.squares import SQUARES
from yomi.native.spec import GameSpec

# Maximum value of a repetition or a draw: almost a win, but not a proof.
UNPROVEN_WIN = 0.99


@kernel
def outcome(pos, history):  # type: ignore[no-untyped-def]
    """Return the state of a position in a search, its value and score; see yomi.native.game.outcome."""
    # A position of the searched line need not occur four times: it would be repeated again. A mate at the limit of
    # moves is a mate, and so is a try; a declaration is too late then.
    if not has_legal_move(pos) or rules.tried(pos):
        return OVER, -1.0, 0.0
    draw = min(max(float(pos.draw_value[U(pos.side_to_move) - U(1)]), -UNPROVEN_WIN), UNPROVEN_WIN)
    kind = rules.repetition(pos, history, pos.root_length)
    if kind == rules.DRAW:
        return OVER, draw, 0.0
    if kind != rules.NONE:
        return OVER, (UNPROVEN_WIN if kind == rules.WIN or kind == rules.SUPERIOR else -UNPROVEN_WIN), 0.0
    if pos.max_moves != 0 and pos.ply >= pos.max_moves:
        return OVER, draw, 0.0
    if rules.declaration(pos):
        return OVER, 1.0, 0.0
    if pos.history_length + 2 > MAX_HISTORY:
        return OVER_UNSCORED, 0.0, 0.0
    if mate.settles(pos, history):
        return OVER, 1.0, 0.0
    return ONGOING, 0.0, 0.0


@kernel
def position_key(pos, history, moves, count):  # type: ignore[no-untyped-def]
    """Return the position's key: board, hands and side to move, all that networks read."""
    return pos.key


@kernel
def graph_key(pos, history, move, above, scratch):  # type: ignore[no-untyped-def]
    """Return a key of position and number of moves, and of the line (`above`) if the last move can be undone."""
    key = mixed(U(pos.ply))
    if rules.may_be_undone(pos, history, move):
        key ^= above
    return mixed(pos.key ^ key)


@kernel
def pattern_key(pos, history, move):  # type: ignore[no-untyped-def]
    """Return a key of a legal move, its capture, and the move before (from the last two boards)."""
    key = U(0)
    if pos.history_length >= 4:
        key = history[U(pos.history_length) - U(2)] ^ history[U(pos.history_length) - U(4)]
    captured = U(pos.board[U(move) & U(127)])
    key = (key ^ U(move) ^ (captured << U(16)) ^ (U(pos.side_to_move) << U(24))) * U(0x9E3779B97F4A7C15)
    return key ^ (key >> U(32))


@kernel
def add_ownership(pos, ownership, symmetry, sign, total):  # type: ignore[no-untyped-def]
    """Do nothing: shogi has no ownership."""


game.implement(game.copy, POSITION_DTYPE, position.copy)
game.implement(game.play, POSITION_DTYPE, position.play)
game.implement(game.graph_key, POSITION_DTYPE, graph_key)
game.implement(game.legal_moves, POSITION_DTYPE, waivers.searched_moves)
game.implement(game.outcome, POSITION_DTYPE, outcome)
game.implement(game.pattern_key, POSITION_DTYPE, pattern_key)
game.implement(game.position_key, POSITION_DTYPE, position_key)
game.implement(game.write_planes, POSITION_DTYPE, planes.write_planes)
game.implement(game.write_bits, POSITION_DTYPE, planes.write_bits)
game.implement(game.policy_index, POSITION_DTYPE, planes.policy_index)
game.implement(game.add_ownership, POSITION_DTYPE, add_ownership)


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
        root_decides=True,
        position_flags=(("form", form),),
    )
