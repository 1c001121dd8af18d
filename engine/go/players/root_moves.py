"""Moves of the root that are not worth a search: mirror images of others, and those that only prolong a game.

Source of the rules: KataGo's rootSymmetryPruning and rootPruneUselessMoves (cpp/search/searchhelpers.cpp).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from engine.color import BLACK, WHITE, opponent
from engine.go.vertex import board_points, column_and_row
from native.go.area import pass_alive
from native.go.board import MAX_POINTS, PASS
from native.go.planes import symmetry_table
from native.go.scratch import SCRATCH_DTYPE

if TYPE_CHECKING:
    from engine.go.game import GoGame
    from engine.search.report import MoveReport, SearchReport

SYMMETRIES = 8
PASSES = 4
"""Passes of the opponent in a row after which moves inside living territory are useless."""

Twins = Mapping[int, tuple[int, Mapping[int, int]]]
"""By move: the move that is searched in its place, and the symmetry that leads from that to it, by point."""


def twins(game: GoGame) -> Twins:
    """Return the moves that are the same as another by a symmetry of the board; that other is none of them.

    A board is not symmetric if what ko and superko forbid is not. For Black the first in the upper right stays, for
    White the first in the lower left, as games are shown.
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
    """Return a report in which twins stand behind the move that was searched, with what was found of it."""
    moves: list[MoveReport] = []
    for each in report.moves:
        moves.append(replace(each, order=len(moves)))
        for twin, (searched, image) in twins.items():
            if searched == each.move:
                pv = tuple(image.get(move, PASS) for move in each.pv)
                moves.append(replace(each, move=twin, pv=pv, symmetry_of=searched, order=len(moves)))
    return replace(report, moves=tuple(moves))


def useless_moves(game: GoGame) -> set[int]:
    """Return the moves inside living territory of either side, once the opponent has passed again and again."""
    last = game.moves[-2 * PASSES + 1 :: 2]
    if len(game.moves) < 2 * PASSES - 1 or any(each != (opponent(game.side_to_move), PASS) for each in last):
        return set()
    scratch, marks = np.zeros(1, SCRATCH_DTYPE)[0], np.zeros((2, MAX_POINTS), np.uint8)
    for color, inside in zip((BLACK, WHITE), marks, strict=True):
        pass_alive(game.position, scratch, color, inside)
    return {move for move in game.legal_moves() if move != PASS and marks[:, move].any()}
