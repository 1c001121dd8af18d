"""Slow twin of the rules on boards of any shape: stones are a dictionary, and everything is found by flood fill."""

BLACK, WHITE = 1, 2
Point = tuple[int, int]  # (x, y) from the top left corner
Stones = dict[Point, int]


class Rectangle:
    """A game under positional superko, with suicide of several stones if `suicide` is set."""

    def __init__(self, width: int, height: int, *, suicide: bool) -> None:
        self.width, self.height, self.suicide = width, height, suicide
        self.stones: Stones = {}
        self.seen = {frozenset(self.stones.items())}

    def points(self) -> list[Point]:
        return [(x, y) for y in range(self.height) for x in range(self.width)]

    def beside(self, point: Point) -> list[Point]:
        x, y = point
        around = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
        return [(x, y) for x, y in around if 0 <= x < self.width and 0 <= y < self.height]

    def chain(self, stones: Stones, point: Point) -> tuple[set[Point], set[Point]]:
        """Return the stones and the liberties of a chain."""
        found, liberties, left = {point}, set(), [point]
        while left:
            for other in self.beside(left.pop()):
                if other not in stones:
                    liberties.add(other)
                elif stones[other] == stones[point] and other not in found:
                    found.add(other)
                    left.append(other)
        return found, liberties

    def after(self, color: int, point: Point) -> Stones | None:
        """Return the stones after a move, or None if it is illegal."""
        if point in self.stones:
            return None
        stones = {**self.stones, point: color}
        for other in self.beside(point):
            if stones.get(other) == 3 - color:
                chain, liberties = self.chain(stones, other)
                if not liberties:
                    stones = {place: stone for place, stone in stones.items() if place not in chain}
        chain, liberties = self.chain(stones, point)
        if not liberties:
            if not self.suicide or len(chain) == 1:
                return None
            stones = {place: stone for place, stone in stones.items() if place not in chain}
        return None if frozenset(stones.items()) in self.seen else stones

    def play(self, color: int, point: Point) -> None:
        stones = self.after(color, point)
        assert stones is not None
        self.stones = stones
        self.seen.add(frozenset(stones.items()))
