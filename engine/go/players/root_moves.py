"""Moves of the root that need no search: symmetric moves, and moves that only prolong a game.

As KataGo's rootSymmetryPruning and rootPruneUselessMoves. KataGo prunes useless moves only after four passes of the
opponent; here they are pruned from the start, but only if they cannot matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from yomi.engine.color import BLACK, opponent
from yomi.engine.go.vertex import board_points, column_and_row
from yomi.native.go.area import pass_alive
from yomi.native.go.board import MAX_POINTS, NO_POINT, PASS
from yomi.native.go.planes import symmetry_table
from yomi.native.go.scratch import SCRATCH_DTYPE

if TYPE_CHECKING:
    from yomi.engine.go.game import GoGame
    from yomi.engine.search.report import MoveReport, SearchReport

SYMMETRIES = 8

# Move -> (symmetric move that is searched instead, symmetry from that move as point -> point).
Twins = Mapping[int, tuple[int, Mapping[int, int]]]


def twins(game: GoGame) -> Twins:
    """Return the moves that are symmetric to another move. The other move is not among them.

    The position with its ko and superko bans must be symmetric. The searched move is the first in the upper right for
    Black, and in the lower left for White, as is usual in diagrams.
    """
    points = board_points(game.size)
    legal = [move for move in game.legal_moves() if move != PASS]
    board = {point: (game.color_at(point), point in legal) for point in points}
    tables = (symmetry_table(game.size, each)[:-1].tolist() for each in range(1, SYMMETRIES))
    images = [{point: points[to] for point, to in zip(points, table, strict=True)} for table in tables]
    images = [image for image in images if all(board[image[point]] == board[point] for point in points)]
    legal.sort(key=lambda move: (-column_and_row(move, game.size)[0], move), reverse=game.side_to_move != BLACK)
    found: dict[int, tuple[int, Mapping[int, int]]] = {}
    for move in legal if images else ():
        if move not in found:
            found |= {image[move]: (move, image) for image in images if image[move] != move}
    return found


def with_twins(report: SearchReport, twins: Twins) -> SearchReport:
    """Return a report in which each searched move is followed by its symmetric moves."""
    moves: list[MoveReport] = []
    for each in report.moves:
        moves.append(replace(each, order=len(moves)))
        for twin, (searched, image) in twins.items():
            if searched == each.move:
                pv = tuple(image.get(move, PASS) for move in each.pv)
                moves.append(replace(each, move=twin, pv=pv, symmetry_of=searched, order=len(moves)))
    return replace(report, moves=tuple(moves))


def useless_moves(game: GoGame, *, counts_dead: bool) -> set[int]:
    """Return moves that are no better than a pass, inside unconditionally safe territory.

    The set is empty during a ko, because such moves are ko threats, and under a tax on groups.

    Args:
        game: the position.
        counts_dead: dead stones count as alive unless they are captured. Then moves inside the opponent's territory are
            threats, and captures inside one's own territory may be needed.
    """
    if game.rules.tax == "ALL" or int(game.position["simple_ko"]) != NO_POINT:
        return set()
    side = game.side_to_move
    own, theirs = (_territory(game, color) for color in (side, opponent(side)))
    if not counts_dead:
        return own | theirs
    return set() if any(game.color_at(point) == opponent(side) for point in own) else own


def _territory(game: GoGame, color: int) -> set[int]:
    """Return the pass-alive territory of a color (Benson)."""
    scratch, marks = np.zeros(1, SCRATCH_DTYPE)[0], np.zeros(MAX_POINTS, np.uint8)
    pass_alive(game.position, scratch, color, marks)
    return {point for point in board_points(game.size) if marks[point] and game.color_at(point) != color}
