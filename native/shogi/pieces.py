"""Numbers and steps of shogi's pieces, for kernels and for the engine's plain rules. Without numba and numpy."""

PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD, KING = range(1, 9)
PROM_PAWN, PROM_LANCE, PROM_KNIGHT, PROM_SILVER, HORSE, DRAGON = range(9, 15)
PROMOTION = 8  # difference between a piece type and its promoted form
WHITE_PIECE = 16  # difference between the codes of a White and a Black piece
HAND_TYPES = (PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK)  # piece type of each index into a hand

Steps = tuple[tuple[int, int], ...]

_GOLD: Steps = ((0, -1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1))
_DIAGONAL: Steps = ((1, -1), (-1, -1), (1, 1), (-1, 1))
_STRAIGHT: Steps = ((0, -1), (0, 1), (1, 0), (-1, 0))

# Single steps of a type as (files, ranks) for Black: a higher file is to the left, a lower rank is forward.
STEPS: dict[int, Steps] = {
    PAWN: ((0, -1),),
    KNIGHT: ((1, -2), (-1, -2)),
    SILVER: ((0, -1), *_DIAGONAL),
    GOLD: _GOLD,
    KING: _DIAGONAL + _STRAIGHT,
    **dict.fromkeys((PROM_PAWN, PROM_LANCE, PROM_KNIGHT, PROM_SILVER), _GOLD),
    HORSE: _STRAIGHT,
    DRAGON: _DIAGONAL,
}
# Directions in which a type goes any distance.
SLIDES: dict[int, Steps] = {LANCE: ((0, -1),), BISHOP: _DIAGONAL, HORSE: _DIAGONAL, ROOK: _STRAIGHT, DRAGON: _STRAIGHT}
