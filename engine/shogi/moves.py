"""A move as a number, as in cshogi and dlshogi: target | source << 7 | promotion << 14.

The source of a drop is 80 + the piece type.
"""

from yomi.engine.shogi.pieces import GOLD, PAWN

DROP = 80  # source of a drop minus its piece type

PROMOTES = 1 << 14


def board_move(source: int, target: int, promotes: bool = False) -> int:
    return target | source << 7 | (PROMOTES if promotes else 0)


def drop(piece_type: int, target: int) -> int:
    return target | (DROP + piece_type) << 7


def target_of(move: int) -> int:
    return move & 127


def source_of(move: int) -> int | None:
    """Return the start square, or None for a drop."""
    source = move >> 7 & 127
    return None if source > DROP else source


def dropped_type(move: int) -> int | None:
    """Return the dropped piece type, or None for a move on the board."""
    source = move >> 7 & 127
    return source - DROP if source > DROP else None


def promotes(move: int) -> bool:
    return bool(move & PROMOTES)


def is_move(move: int) -> bool:
    """Whether a number encodes a move: two different squares, or the drop of a piece that can be in hand."""
    source, target = move >> 7 & 127, move & 127
    if not 0 <= move < 1 << 15 or target > 80:
        return False
    if source <= DROP:
        return source != target
    return PAWN <= source - DROP <= GOLD and not promotes(move)


def turned(move: int) -> int:
    """Return the move on the board turned by 180 degrees."""
    source = source_of(move)
    target = 80 - target_of(move)
    return drop(dropped_type(move) or 0, target) if source is None else board_move(80 - source, target, promotes(move))
