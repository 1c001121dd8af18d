"""The two sides of both games. Black moves first; in shogi BLACK is sente. Boards contain the same numbers."""

BLACK, WHITE = 1, 2
DRAW = 0  # in place of the winner

COLOR_NAMES = {BLACK: "Black", WHITE: "White"}
COLORS = {"b": BLACK, "black": BLACK, "w": WHITE, "white": WHITE}  # in GTP and SGF
LETTERS = {BLACK: "b", WHITE: "w"}


def opponent(color: int) -> int:
    return BLACK + WHITE - color
