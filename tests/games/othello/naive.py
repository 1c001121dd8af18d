"""Othello's rules and an exact solver, slow and obvious: the twins of the kernels and of the search."""

from __future__ import annotations

Board = tuple[str, ...]
"""Rows of X, O and dots, as a game prints them."""
OTHER = {"X": "O", "O": "X"}
DIRECTIONS = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy]


def moves(board: Board, disc: str) -> dict[int, Board]:
    """Return the boards after each move to a square, by 8 * y + x."""
    found = {}
    squares = {(x, y): char for y, row in enumerate(board) for x, char in enumerate(row)}
    for (x, y), char in squares.items():
        turned = [(x, y)]
        for dx, dy in DIRECTIONS:
            row = []
            at = x + dx, y + dy
            while squares.get(at) == OTHER[disc]:
                row.append(at)
                at = at[0] + dx, at[1] + dy
            if squares.get(at) == disc:
                turned += row
        if char == "." and len(turned) > 1:
            after = squares | dict.fromkeys(turned, disc)
            found[8 * y + x] = tuple("".join(after[i, j] for i in range(len(board))) for j in range(len(board)))
    return found


def solve(board: Board, disc: str) -> tuple[int, dict[int, int]]:
    """Return the discs by which the side to move wins at best, and by which it wins after each move to a square."""
    scores = {move: -solve(after, OTHER[disc])[0] for move, after in moves(board, disc).items()}
    if scores:
        return max(scores.values()), scores
    if moves(board, OTHER[disc]):
        return -solve(board, OTHER[disc])[0], {}
    text = "".join(board)
    return text.count(disc) - text.count(OTHER[disc]), {}
