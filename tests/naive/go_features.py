"""Slow twins of the feature sets for data: COSUMI's planes and Aya's, a set of points for each plane."""

from collections.abc import Iterator

from tests.naive.go_board import (
    BLACK,
    EMPTY,
    PASS,
    WHITE,
    Board,
    SlowGame,
    area,
    chain_at,
    liberties,
    neighbors,
    pass_alive,
    place,
    size_of,
)
from tests.naive.go_ladder import SlowLadder


def liberty_counts(board: Board) -> list[int]:
    """Return the liberties of the chain on each point, 0 where there is none."""
    return [len(liberties(board, chain_at(board, p))) if color else 0 for p, color in enumerate(board)]


def _legal(board: Board, p: int, color: int, ko: int | None) -> bool:
    return p != ko and not place(board, p, color)[2]


def dies(board: Board, stone: int, p: int, ko: int | None) -> bool:
    """Whether the enemy's move on `p`, a liberty of a chain that has one or two, takes the chain."""
    if len(liberties(board, chain_at(board, stone))) == 1:
        return p != ko
    return _legal(board, p, 3 - board[stone], ko) and SlowLadder().attack_works(board, stone, p, ko, -1)


def saves(board: Board, stone: int, p: int, ko: int | None) -> bool:
    """Whether the owner's move on `p` leaves a chain that the enemy cannot take."""
    played = SlowLadder().play(board, p, board[stone]) if p != ko else None
    if played is None:
        return False
    after, new_ko = played
    free = liberties(after, chain_at(after, stone))
    return len(free) > 2 or (len(free) == 2 and not any(dies(after, stone, q, new_ko) for q in free))


def life_of(board: Board, color: int, ko: int | None) -> tuple[set[int], set[int], set[int], set[int]]:
    """Return the stones of dead chains and of those to be killed, the moves that kill, and those that save."""
    dead: set[int] = set()
    killable: set[int] = set()
    killing: set[int] = set()
    saving: set[int] = set()
    for chain in {chain_at(board, p) for p, c in enumerate(board) if c == color}:
        free = liberties(board, chain)
        stone = min(chain)
        if len(free) > 2:
            continue
        if len(free) == 1 and SlowLadder().defend(board, stone, None, 0):
            dead |= chain
            continue
        kills = {p for p in free if dies(board, stone, p, ko)}
        if kills:
            killable |= chain
            killing |= kills
            moves = free | SlowLadder().capture_moves(board, stone)
            saving |= {p for p in moves if saves(board, stone, p, ko)}
    return dead, killable, killing, saving


def distances(board: Board, move: int) -> dict[int, int]:
    """Return the distance of every point from a move, where a chain counts as one point."""
    size = size_of(board)

    def whole(p: int) -> frozenset[int]:
        return chain_at(board, p) if board[p] else frozenset({p})

    found = dict.fromkeys(whole(move), 0)
    edge = set(found)
    while edge:
        distance = found[min(edge)] + 1
        new = {r for p in edge for q in neighbors(size, p) if q not in found for r in whole(q)}
        found |= dict.fromkeys(new, distance)
        edge = new
    return found


def _diagonals(size: int, p: int) -> Iterator[int]:
    y, x = divmod(p, size)
    for r in (y - 1, y + 1):
        for c in (x - 1, x + 1):
            if 0 <= r < size and 0 <= c < size:
                yield r * size + c


def is_half_eye(board: Board, p: int, color: int) -> bool:
    """Whether one more move on a diagonal decides if an eye is real."""
    size = size_of(board)
    around = neighbors(size, p)
    if board[p] != EMPTY or any(board[q] != color for q in around):
        return False
    corners = [board[q] for q in _diagonals(size, p)]
    allowed = 2 if len(around) == 4 else 1
    return corners.count(3 - color) == allowed - 1 and corners.count(EMPTY) == 1


def is_recaptured(board: Board, p: int, color: int, ko: int | None) -> bool:
    """Whether a stone of a color on `p` would stand in atari, and not in a ko."""
    if board[p] != EMPTY or p == ko:
        return False
    played = SlowLadder().play(board, p, color)
    return played is not None and len(liberties(played[0], chain_at(played[0], p))) == 1 and played[1] is None


def aya(game: SlowGame, kos: list[int | None], planes: int) -> list[set[int]]:
    """Return the points of each of Aya's planes; `kos` are the ko points, the last one that of the board as it is."""
    board = game.board
    first = BLACK if planes == 50 else game.side
    colors = (first, 3 - first)
    counts = liberty_counts(board)
    found: list[set[int]] = []
    for measure in (lambda p: counts[p], lambda p: len(chain_at(board, p))):
        for color in colors:
            stones = [p for p, c in enumerate(board) if c == color]
            found += [{p for p in stones if min(measure(p), 4) == n} for n in (1, 2, 3, 4)]
    for ago in range(1, 6):
        found.append({p for p in game.moves[-ago:][:1] if p != PASS} if len(game.moves) >= ago else set())
    for ago in range(1, 4):
        found.append({kos[-ago]} - {None} if len(kos) >= ago else set())  # type: ignore[arg-type]
    last = game.moves[-1] if game.moves else PASS
    away = distances(board, last) if last != PASS else {}
    found += [{p for p, n in away.items() if min(n, 5) == d} for d in range(1, 6)]
    life = {color: life_of(board, color, game.simple_ko) for color in colors}
    for color in colors:
        found += life[color]
    alive = {color: pass_alive(board, color, game.suicide) for color in (BLACK, WHITE)}
    for color in colors:
        stones_of = {p for p, c in enumerate(board) if c == color}
        living = stones_of & alive[color]
        lost = (stones_of & (life[color][0] | alive[3 - color])) - living
        found += [living, stones_of - living - lost, lost]
    owner = area(board, game.suicide, False)
    for color in colors:
        found.append({p for p, c in enumerate(board) if c == EMPTY and owner[p] == color})
    for color in colors:
        found.append({p for p in range(len(board)) if is_half_eye(board, p, color)})
    for color in colors:
        found.append({p for p in range(len(board)) if is_recaptured(board, p, color, game.simple_ko)})
    if planes == 50:
        found.append(set(range(len(board))) if game.side == BLACK else set())
    return found
