"""Decisions of a player of Go beside the search: the time for a move, resignation, and moves that need no search."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from yomi.engine.clock import MAX_RESERVE_SHARE, Budget, Clock, TimeSystem, lag_reserve
from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.go.game import GoGame
from yomi.engine.go.handicap import handicap_stones
from yomi.engine.go.vertex import board_points, column_and_row
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.native.go.area import pass_alive
from yomi.native.go.board import MAX_POINTS, NO_POINT, PASS
from yomi.native.go.planes import symmetry_table
from yomi.native.go.scratch import SCRATCH_DTYPE

# -- time --------------------------------------------------------------------------------------------------------------


def moves_left(area: int, ply: int) -> float:
    """Return an estimate of the moves that one side still has to play."""
    # Games end (mostly by resignation) after about 0.6 moves for each point. The floor keeps time for the endgame and
    # for clean-up, and makes the time decay geometrically, so that it never runs out.
    return max(10 + area / 12, (0.6 * area + 10 - ply) / 2)


def find_budget(clock: Clock, moves: float, lag: float, lateness: float = 0.0) -> Budget:
    """Return the time for a move from the start of its clock.

    Args:
        clock: the limited clock of the side to move. In an inexact Canadian period each move gets an equal share.
        moves: estimate of the moves still to play.
        lag: possible loss on each move.
        lateness: further reserve for this move, on a loaded machine.
    """
    settings, left = clock.settings, clock
    reserve = lag_reserve(lag, moves) + lateness
    system = settings.system
    # Fischer: as sudden death, plus the increment less the lag. Lateness and lag stay on the clock.
    if system is TimeSystem.FISCHER:
        usable = max(left.main - lag - lateness, 0.0)
        spare = max(left.main - reserve, 0.0)
        soft = min(spare / moves + max(settings.increment - lag, 0.0), usable)
        hard = min(max(3 * spare / moves + max(settings.increment - lag, 0.0), soft), usable)
        limit = max(settings.move_limit - lag - lateness, 0.0)
        return Budget(min(soft, limit), min(hard, limit))
    spare = max(left.main - reserve, 0.0)
    # sudden death: an equal share of the time, at most three times as much
    if system is TimeSystem.ABSOLUTE:
        return Budget(spare / moves, min(3 * spare / moves, spare))
    first = settings.period / max(settings.count, 1) if system is TimeSystem.CANADIAN else settings.period
    # Byo-yomi: one period less lag and lateness; periods are kept. Canadian: an equal share of the period.
    kept = lag + min(lateness, max(MAX_RESERVE_SHARE * first - lag, 0.0))
    if system is TimeSystem.CANADIAN and not clock.is_exact:
        overtime = overtime_hard = max(first - kept, 0.0)
    elif system is TimeSystem.BYOYOMI:
        overtime = overtime_hard = max((left.period if left.count else 0.0) - kept, 0.0)
    else:
        stones = max(left.count, 1)
        overtime = max(left.period / stones - kept, 0.0)
        overtime_hard = max(min(3 * overtime, left.period / 2 - lag * (stones - 1) - kept), overtime)
    if left.main <= 0:
        return Budget(overtime, overtime_hard)
    # If the main time runs out during the move, the rest of the move is charged to the first period.
    in_overtime = max(first - kept, 0.0)
    soft = max(left.main / moves, min(in_overtime, left.main + in_overtime))
    hard = max(soft, min(3 * soft, left.main + in_overtime))
    return Budget(soft, hard)


# -- resignation -------------------------------------------------------------------------------------------------------

STONE_POINTS = {"AREA": 15.0, "TERRITORY": 14.0}  # points that a handicap stone is worth, by scoring
FAIR_KOMI = 7.0
MIN_ADVANTAGE = 0.9  # Black's advantage (points) above which a game is not even
PATIENT_SHARE = 0.2  # moves for each point of the board before White may resign
LEVEL_SHARE = 0.6  # moves for each point of the board until White should have caught up
BUFFER, BUFFER_SHARE = 5.0, 0.15  # White resigns this far behind the schedule: points, and share of the advantage


def black_advantage(game: GoGame) -> float:
    """Return Black's advantage in points at the start, from handicap stones and komi."""
    stones = handicap_stones(game.setup, game.moves)
    extra = STONE_POINTS[game.rules.scoring] * max(stones - 1, 0)
    return extra + FAIR_KOMI - float(game.position["komi"])


def may_resign(game: GoGame, color: int, lead: float) -> bool:
    """Whether `color`, the side to move in a lost position with this `lead` in points, may resign."""
    # In a handicap game White starts behind and catches up over many moves. It does not resign early, and later only if
    # it is well behind a schedule by which Black's advantage shrinks evenly to zero. The numbers are KataGo's
    # (`shouldResign` and `initialBlackAdvantage` in cpp/command/gtp.cpp).
    advantage = black_advantage(game)
    if color != WHITE or advantage <= MIN_ADVANTAGE:
        return True
    area, ply = game.size**2, len(game.moves)
    first = 1 + int(PATIENT_SHARE * area)
    if ply < first:
        return False
    caught_up = min((ply - first) / max(LEVEL_SHARE * area - first, 1.0), 1.0)
    schedule = advantage * (1.0 - caught_up)
    return lead <= -(schedule + BUFFER + BUFFER_SHARE * advantage)


# -- moves of the root that need no search -----------------------------------------------------------------------------

SYMMETRIES = 8

# Move -> (symmetric move that is searched instead, symmetry from that move as point -> point).
Twins = Mapping[int, tuple[int, Mapping[int, int]]]


@functools.cache
def board_symmetries(size: int) -> list[dict[int, int]]:
    """Return the seven symmetries of a board except the identity, each as point -> point."""
    points = board_points(size)
    tables = (symmetry_table(size, symmetry)[:-1].tolist() for symmetry in range(1, SYMMETRIES))
    return [{point: points[to] for point, to in zip(points, table, strict=True)} for table in tables]


def twins(game: GoGame) -> Twins:
    """Return the moves that are symmetric to another move. The other move is not among them."""
    points = board_points(game.size)
    legal = [move for move in game.legal_moves() if move != PASS]
    board = {point: (game.color_at(point), point in legal) for point in points}
    symmetries = board_symmetries(game.size)
    images = [image for image in symmetries if all(board[image[point]] == board[point] for point in points)]
    # As usual in diagrams, Black's first move is in the upper right and White's in the lower left.
    legal.sort(key=lambda move: (-column_and_row(move, game.size)[0], move), reverse=game.side_to_move != BLACK)
    found: dict[int, tuple[int, Mapping[int, int]]] = {}
    for move in legal if images else ():
        if move not in found:
            found |= {image[move]: (move, image) for image in images if image[move] != move}
    return found


def with_twins(report: SearchReport, twins: Twins) -> SearchReport:
    """Return a report in which each searched move is followed by its symmetric moves."""
    moves: list[MoveReport] = []
    for move in report.moves:
        moves.append(replace(move, order=len(moves)))
        for twin, (searched, image) in twins.items():
            if searched == move.move:
                pv = tuple(image.get(point, PASS) for point in move.pv)
                moves.append(replace(move, move=twin, pv=pv, symmetry_of=searched, order=len(moves)))
    return replace(report, moves=tuple(moves))


def useless_moves(game: GoGame, *, counts_dead: bool) -> set[int]:
    """Return moves that are no better than a pass, inside unconditionally safe territory.

    Args:
        game: the position.
        counts_dead: dead stones count as alive unless they are captured. Then moves inside the opponent's territory are
            threats, and captures inside one's own territory may be needed.
    """
    # KataGo's rootPruneUselessMoves waits for four passes of the opponent. Here useless moves are pruned from the
    # start, but only if they cannot matter: during a ko they are threats.
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
