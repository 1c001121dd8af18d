"""Slow twin of the ladder reader: the game tree of KATAGO.md, section 3, with every move played on a fresh board."""

from tests.naive.go_board import EMPTY, Board, chain_at, liberties, neighbors, place, size_of


class TooLongError(Exception):
    """The tree is larger than a test should read."""


class SlowLadder:
    """Reads one ladder."""

    def __init__(self, nodes: int = 1500) -> None:
        """Give up after so many boards."""
        self.nodes = nodes

    def play(self, board: Board, p: int, color: int) -> tuple[Board, int | None] | None:
        """Return the board and the simple ko point after a move; None for suicide."""
        self.nodes -= 1
        if self.nodes < 0:
            raise TooLongError
        after, captured, lost = place(board, p, color)
        if lost:
            return None
        taken = [q for q in range(len(board)) if board[q] != EMPTY and after[q] == EMPTY]
        lone = captured == 1 and chain_at(after, p) == {p} and liberties(after, frozenset({p})) == set(taken)
        return after, taken[0] if lone else None

    def capture_moves(self, board: Board, stone: int) -> set[int]:
        """Return the moves that capture a chain next to the chain of `stone`."""
        size = size_of(board)
        own = board[stone]
        around = {q for p in chain_at(board, stone) for q in neighbors(size, p) if board[q] == 3 - own}
        free = (liberties(board, chain_at(board, q)) for q in around)
        return {next(iter(points)) for points in free if len(points) == 1}

    def defend(self, board: Board, stone: int, ko: int | None, depth: int) -> bool:
        """Whether the chain is captured with its owner to move; at depth 0 the ko is ignored."""
        free = liberties(board, chain_at(board, stone))
        if len(free) >= 2 or (depth > 0 and ko is not None):
            return False
        for move in sorted(self.capture_moves(board, stone) | free):
            result = self.play(board, move, board[stone])
            if result and not self.attack(result[0], stone, result[1], depth + 1):
                return False
        return True

    def attack(self, board: Board, stone: int, ko: int | None, depth: int) -> bool:
        """Whether the chain is captured with the attacker to move."""
        free = liberties(board, chain_at(board, stone))
        if len(free) <= 1:
            return True
        if len(free) >= 3:
            return False
        if self.is_double_ko_death(board, stone, free):
            return True
        return any(self.attack_works(board, stone, move, ko, depth) for move in sorted(free))

    def attack_works(self, board: Board, stone: int, move: int, ko: int | None, depth: int) -> bool:
        """Whether one move of the attacker captures the chain."""
        result = self.play(board, move, 3 - board[stone]) if move != ko else None
        return result is not None and self.defend(result[0], stone, result[1], depth + 1)

    def is_double_ko_death(self, board: Board, stone: int, free: frozenset[int]) -> bool:
        """Whether both liberties are ko captures for the attacker that the defender cannot use to get out."""
        own = board[stone]
        for p in free:
            around = neighbors(size_of(board), p)
            if any(board[q] != own for q in around):
                return False
            taken = {chain_at(board, q) for q in around if len(liberties(board, chain_at(board, q))) == 1}
            if [len(chain) for chain in taken] != [1]:
                return False
            connected, _, _ = place(board, p, own)
            if connected[p] == EMPTY or len(liberties(connected, chain_at(connected, p))) > 2:
                return False
        return not self.capture_moves(board, stone)


def ladders(board: Board, ko: int | None, prey: int) -> tuple[set[int], set[int]]:
    """Return the stones that a ladder captures and the moves that start one on a chain of `prey` with two liberties."""
    laddered: set[int] = set()
    working: set[int] = set()
    for chain in {chain_at(board, p) for p, c in enumerate(board) if c}:
        stone = min(chain)
        free = liberties(board, chain)
        if len(free) == 1 and SlowLadder().defend(board, stone, None, 0):
            laddered |= chain
        if len(free) == 2:
            # the ladder's first defense is a root as well: the ko that the attack leaves is ignored there
            moves = {move for move in sorted(free) if SlowLadder().attack_works(board, stone, move, ko, -1)}
            laddered |= chain if moves else set()
            working |= moves if board[stone] == prey else set()
    return laddered, working
