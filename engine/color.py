"""The two sides of both games: Black moves first (in shogi BLACK is sente). The numbers are those of the boards."""

BLACK, WHITE = 1, 2
DRAW = 0
"""Stands for the winner where nobody has won."""

COLOR_NAMES = {BLACK: "Black", WHITE: "White"}
COLORS = {"b": BLACK, "black": BLACK, "w": WHITE, "white": WHITE}
"""As GTP and SGF write them."""
LETTERS = {BLACK: "b", WHITE: "w"}


def opponent(color: int) -> int:
    """Return the other side."""
    return BLACK + WHITE - color
