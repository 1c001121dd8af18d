"""A move as a number: cshogi's and dlshogi's 16 bits, target | source << 7 | promotion << 14.

The source of a drop is 80 + the piece type.
"""

from yomi.engine.shogi.pieces import GOLD, PAWN

DROP = 80
"""What is added to a piece type to make the source of a drop."""

PROMOTES = 1 << 14


def board_move(source: int, target: int, promotes: bool = False) -> int:
    """Return the move of a piece on the board."""
    return target | source << 7 | (PROMOTES if promotes else 0)


def drop(piece_type: int, target: int) -> int:
    """Return the move that drops a piece."""
    return target | (DROP + piece_type) << 7


def target_of(move: int) -> int:
    """Return the square where a move ends."""
    return move & 127


def source_of(move: int) -> int | None:
    """Return the square where a move starts; None for a drop."""
    source = move >> 7 & 127
    return None if source > DROP else source


def dropped_type(move: int) -> int | None:
    """Return the type of the piece that a move drops; None for a move on the board."""
    source = move >> 7 & 127
    return source - DROP if source > DROP else None


def promotes(move: int) -> bool:
    """Whether a move promotes the piece."""
    return bool(move & PROMOTES)


def is_move(move: int) -> bool:
    """Whether a number can be a move at all: squares of the board, a piece that can be dropped."""
    source, target = move >> 7 & 127, move & 127
    if not 0 <= move < 1 << 15 or target > 80:
        return False
    if source <= DROP:
        return source != target
    return PAWN <= source - DROP <= GOLD and not promotes(move)


def turned(move: int) -> int:
    """Return the move as the other side would see it: the board turned by 180 degrees."""
    source = source_of(move)
    target = 80 - target_of(move)
    return drop(dropped_type(move) or 0, target) if source is None else board_move(80 - source, target, promotes(move))
