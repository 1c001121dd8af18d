"""Moves of the root that are not worth a search: mirror images of others, and those that only prolong a game.

As KataGo's rootSymmetryPruning and rootPruneUselessMoves. The latter waits for four passes of the opponent, and counts
no dead stones inside living territory; here a move is left out from the first on, but only where it cannot count.
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
    from yomi.engine.search.types import MoveReport, SearchReport

SYMMETRIES = 8

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


def useless_moves(game: GoGame, *, counts_dead: bool) -> set[int]:
    """Return the moves that a pass is no worse than: those inside territory that is safe whatever its owner does.

    None while there is a ko, whose ban such a move could lift, or under a tax on the groups.

    Args:
        game: the position.
        counts_dead: dead stones count unless they are captured: moves inside the opponent's territory are a threat
            then, and so may be those that capture such stones inside one's own.
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
