"""Area of a Go position as it stands, by flood fill."""

from typing import Any

from yomi.native.go.board import BLACK, EMPTY, WHITE


def area_balance(pos: Any) -> int:
    """Return Black's area minus White's: stones, and empty regions that touch one color only."""
    stride = int(pos["stride"])
    points = {(y + 1) * stride + x + 1 for y in range(int(pos["height"])) for x in range(int(pos["size"]))}
    color = {p: int(pos["color"][p]) for p in points}
    balance = sum({BLACK: 1, WHITE: -1, EMPTY: 0}[c] for c in color.values())
    left = {p for p in points if color[p] == EMPTY}
    while left:
        region, touched = [left.pop()], set()
        for p in region:
            for q in (p - 1, p + 1, p - stride, p + stride):
                if q in left:
                    left.remove(q)
                    region.append(q)
                elif color.get(q, EMPTY) != EMPTY:
                    touched.add(color[q])
        if len(touched) == 1:
            balance += len(region) if BLACK in touched else -len(region)
    return balance
