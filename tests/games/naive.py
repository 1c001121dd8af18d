"""Rules of docs/games and an exact solver of Othello, slow and obvious: twins of the kernels and of the search."""

Board = tuple[str, ...]
"""Rows of X, O and dots, as a game prints them."""
OTHER = {"X": "O", "O": "X"}
DIRECTIONS = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy]


def moves(board: Board, disc: str) -> dict[int, Board]:
    """Return the boards after each move to a square, by its number: row by row."""
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
            size = range(len(board))
            found[len(board) * y + x] = tuple("".join(after[i, j] for i in size) for j in size)
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


def has_four(board: Board, stone: str) -> bool:
    """Return whether there are four stones in a row, in any direction."""
    stones = {(x, y) for y, row in enumerate(board) for x, char in enumerate(row) if char == stone}
    return any({(x + i * dx, y + i * dy) for i in range(4)} <= stones for x, y in stones for dx, dy in DIRECTIONS)


def has_connected(board: Board, stone: str) -> bool:
    """Return whether a player of Hex has joined the two edges: X top and bottom, O left and right."""
    lines = board if stone == "X" else tuple(map("".join, zip(*board, strict=True)))
    stones = {(x, y) for y, row in enumerate(lines) for x, char in enumerate(row) if char == stone}
    reached: set[tuple[int, int]] = set()
    new = {(x, y) for x, y in stones if y == 0}
    while new:
        reached |= new
        near = {(x + dx, y + dy) for x, y in new for dx, dy in DIRECTIONS if dx * dy != 1}
        new = (near & stones) - reached
    return any(y == len(lines) - 1 for _, y in reached)
