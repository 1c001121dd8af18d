"""The moves that a search of shogi tries, found slowly: see yomi.native.shogi.waivers."""

from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import (
    Placement,
    drop,
    dropped_type,
    format_sfen,
    in_zone,
    promotes,
    source_of,
    target_of,
    type_of,
)
from yomi.native.shogi.pieces import BISHOP, LANCE, PAWN, ROOK

PROMOTES = parse_usi("8h2b+") ^ parse_usi("8h2b")


def searched_moves(sfen: str) -> list[int]:
    """Return the legal moves without those that waive a promotion to no purpose."""
    game = ShogiGame(sfen)
    return [move for move in game.legal_moves() if not waives(game.placement, move) or decides(game, move)]


def waives(placement: Placement, move: int) -> bool:
    """Whether a legal move waives a promotion that could only gain attacks."""
    source, target, side = source_of(move), target_of(move), placement.side
    if source is None or promotes(move) or not (in_zone(source, side) or in_zone(target, side)):
        return False
    kind = type_of(placement.board[source])
    rank = target % 9 if side == 1 else 8 - target % 9
    return kind in (PAWN, BISHOP, ROOK) or (kind == LANCE and rank == 1)


def decides(game: ShogiGame, move: int) -> bool:
    """Whether waiving decides about the drop of a pawn that mates."""
    before = game.placement
    promoted, waived = before.after(move | PROMOTES), before.after(move)
    if _drop(waived) == "mates" and _drop(promoted) == "legal":
        return True
    after = ShogiGame(format_sfen(promoted))
    if not after.in_check:
        pairs = [(_passed(promoted), _passed(waived))]
    else:
        pairs = [(promoted.after(reply), waived.after(reply)) for reply in after.legal_moves()]
    has_pawn = before.hands[before.side - 1][0] > 0 or type_of(before.board[target_of(move)]) % 8 == PAWN
    return has_pawn and any(_drop(one) == "mates" and _drop(other) == "legal" for one, other in pairs)


def _passed(placement: Placement) -> Placement:
    return Placement(placement.board, placement.hands, 3 - placement.side, placement.number)


def _drop(placement: Placement) -> str:
    """Say what dropping a pawn before the other king would be: nothing, legal, or a mate."""
    king = placement.king_square(3 - placement.side)
    if king is None or placement.is_check(placement.side):
        return ""
    rank = king % 9 + (1 if placement.side == 1 else -1)
    if not 0 <= rank < 9:
        return ""
    move = drop(PAWN, king - king % 9 + rank)
    assert dropped_type(move) == PAWN
    if placement.why_not(move) is not None:
        return ""
    return "mates" if placement.is_drop_pawn_mate(move) else "legal"
