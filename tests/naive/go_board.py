"""Slow twins of Go's rules: a board is a tuple of colors, every question is answered by flood fill from scratch.

Points are numbered row by row without a border. Written from the rules (KATAGO.md for areas), not from the kernels.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

EMPTY, BLACK, WHITE = 0, 1, 2
PASS = -1
SIMPLE, POSITIONAL, SITUATIONAL = 0, 1, 2
Board = tuple[int, ...]

# The same questions about the same board are asked many times: three quarters of the time of these tests.
remembered = functools.lru_cache(maxsize=1 << 14)


def size_of(board: Board) -> int:
    """Return the number of rows."""
    return int(len(board) ** 0.5 + 0.5)


@remembered
def neighbors(size: int, p: int) -> tuple[int, ...]:
    """Return the points next to `p`."""
    y, x = divmod(p, size)
    around = [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
    return tuple(r * size + c for r, c in around if 0 <= r < size and 0 <= c < size)


def flood(size: int, start: int, inside: Callable[[int], bool]) -> frozenset[int]:
    """Return the points connected to `start` for which `inside` holds."""
    found, todo = {start}, [start]
    while todo:
        for q in neighbors(size, todo.pop()):
            if q not in found and inside(q):
                found.add(q)
                todo.append(q)
    return frozenset(found)


@remembered
def chain_at(board: Board, p: int) -> frozenset[int]:
    """Return the stones of the chain of the stone on `p`."""
    return flood(size_of(board), p, lambda q: board[q] == board[p])


def chains(board: Board, color: int) -> list[frozenset[int]]:
    """Return all chains of a color."""
    return list({chain_at(board, p) for p, c in enumerate(board) if c == color})


@remembered
def liberties(board: Board, chain: frozenset[int]) -> frozenset[int]:
    """Return the empty points next to a chain."""
    size = size_of(board)
    return frozenset(q for p in chain for q in neighbors(size, p) if board[q] == EMPTY)


@remembered
def place(board: Board, p: int, color: int) -> tuple[Board, int, int]:
    """Return the board after a stone on an empty point, the enemy stones captured and the own stones lost."""
    assert board[p] == EMPTY
    cells = list(board)
    cells[p] = color
    captured = lost = 0
    for q in neighbors(size_of(board), p):
        if cells[q] == 3 - color and not liberties(tuple(cells), chain := chain_at(tuple(cells), q)):
            captured += len(chain)
            for stone in chain:
                cells[stone] = EMPTY
    if not liberties(tuple(cells), chain := chain_at(tuple(cells), p)):
        lost = len(chain)
        for stone in chain:
            cells[stone] = EMPTY
    return tuple(cells), captured, lost


@dataclass
class SlowGame:
    """A game: its boards with the side to move, and what the rules derive from them."""

    size: int
    ko_rule: int
    suicide: bool
    boards: list[tuple[Board, int]] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    prisoners: dict[int, int] = field(default_factory=lambda: {BLACK: 0, WHITE: 0})
    simple_ko: int | None = None

    def __post_init__(self) -> None:
        """Start with the empty board, Black to move."""
        self.boards.append(((EMPTY,) * self.size**2, BLACK))

    @property
    def board(self) -> Board:
        """The board as it stands."""
        return self.boards[-1][0]

    @property
    def side(self) -> int:
        """The side to move."""
        return self.boards[-1][1]

    def is_legal(self, p: int) -> bool:
        """Whether the side to move may play on `p`."""
        if self.board[p] != EMPTY or p == self.simple_ko:
            return False
        after, _, lost = place(self.board, p, self.side)
        if lost == 1 or (lost and not self.suicide):
            return False
        if self.ko_rule == POSITIONAL:
            return after not in [board for board, _ in self.boards]
        if self.ko_rule == SITUATIONAL:
            return (after, 3 - self.side) not in self.boards
        return True

    def finish(self) -> str:
        """Return how the game has ended: '', 'passes', 'repeated pass' or 'no result'."""
        if self.moves[-2:] == [PASS, PASS]:
            return "passes"
        if self.ko_rule != SIMPLE or not self.moves:
            return ""
        if self.moves[-1] == PASS:
            passed_on = [entry for entry, move in zip(self.boards, self.moves, strict=False) if move == PASS]
            return "repeated pass" if passed_on.count(passed_on[-1]) > 1 else ""
        since = max((i + 1 for i, move in enumerate(self.moves) if move == PASS), default=0)
        return "no result" if self.boards[since:].count(self.boards[-1]) >= 3 else ""

    def play(self, p: int) -> None:
        """Play a legal move or pass."""
        before, side = self.boards[-1]
        self.simple_ko = None
        board = before
        if p != PASS:
            board, captured, lost = place(before, p, side)
            self.prisoners[3 - side] += captured
            self.prisoners[side] += lost
            if captured == 1 and chain_at(board, p) == {p}:
                taken = [q for q in range(len(board)) if before[q] != EMPTY and board[q] == EMPTY]
                if liberties(board, frozenset({p})) == set(taken):
                    self.simple_ko = taken[0]
        self.moves.append(p)
        self.boards.append((board, 3 - side))


def _regions(board: Board, color: int) -> list[frozenset[int]]:
    """Return the connected sets of points without a stone of `color` that contain an empty point."""
    size = size_of(board)
    seeds = [p for p, c in enumerate(board) if c == EMPTY]
    return list({flood(size, p, lambda q: board[q] != color) for p in seeds})


def _touches(size: int, region: frozenset[int], chain: frozenset[int]) -> bool:
    return any(q in chain for p in region for q in neighbors(size, p))


def benson(board: Board, color: int, suicide: bool) -> tuple[set[frozenset[int]], list[frozenset[int]]]:
    """Return the pass-alive chains of `color` and its regions that border on such chains only."""
    size = size_of(board)
    alive = set(chains(board, color))
    regions = _regions(board, color)
    while True:
        vital = dict.fromkeys(alive, 0)
        for region in regions:
            must = [p for p in region if suicide or board[p] == EMPTY]
            for chain in alive:
                vital[chain] += all(any(q in chain for q in neighbors(size, p)) for p in must)
        still = {chain for chain in alive if vital[chain] >= 2}
        dead = [chain for chain in chains(board, color) if chain not in still]
        kept = [region for region in regions if not any(_touches(size, region, chain) for chain in dead)]
        if still == alive and kept == regions:
            return alive, regions
        alive, regions = still, kept


def pass_alive(board: Board, color: int, suicide: bool, large: bool = False) -> set[int]:
    """Return the pass-alive stones of `color` and their territory, with `large` big empty territory as well."""
    size = size_of(board)
    alive, regions = benson(board, color, suicide)
    points = {p for chain in alive for p in chain}
    for region in regions if alive else []:
        inside = [p for p in region if all(board[q] != color for q in neighbors(size, p))]
        if len(inside) <= 1 or (large and all(board[p] == EMPTY for p in region)):
            points |= region
    return points


def area(board: Board, suicide: bool, tax: bool) -> list[int]:
    """Return the owner of every point as KataGo's planes 18 and 19 show it under area scoring."""
    owner = [EMPTY] * len(board)
    for color in (BLACK, WHITE):
        if color not in board:
            continue
        for p in pass_alive(board, color, suicide, large=True):
            owner[p] = color
        for region in _regions(board, color):
            if all(board[p] == EMPTY for p in region):
                for p in region:
                    owner[p] = owner[p] or color
    owner = [mine or stone for mine, stone in zip(owner, board, strict=True)]
    return _without_seki(board, owner) if tax else owner


def _without_seki(board: Board, owner: list[int]) -> list[int]:
    """Take away all areas that touch dame or hold an own stone in atari, but for the stones that stand there."""
    size = size_of(board)
    result = list(owner)
    for region in chains(tuple(owner), BLACK) + chains(tuple(owner), WHITE):
        color = owner[min(region)]
        dame = any(owner[q] == EMPTY and board[q] == EMPTY for p in region for q in neighbors(size, p))
        own = [p for p in region if board[p] == color]
        if dame or any(len(liberties(board, chain_at(board, p))) == 1 for p in own):
            for p in region:
                result[p] = color if board[p] == color else EMPTY
    return result
