"""Formats analyses as KataGo's JSON: one line each, keys in alphabetical order, numbers with eight digits."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import Board, format_color
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.native.go.board import PASS
from yomi.native.go.planes import SYMMETRIES, symmetry_table

if TYPE_CHECKING:  # the analysts load in the background
    from yomi.engine.go.analysis.query import Turn
    from yomi.engine.go.players.setup import Analysis, RawEvaluation

DIGITS = 8


@dataclass(frozen=True, slots=True)
class ResponseParts:
    perspective: int | None = BLACK
    ownership: bool = False
    ownership_stdev: bool = False
    moves_ownership: bool = False
    moves_ownership_stdev: bool = False
    no_result: bool = False
    policy: bool = False
    pv_visits: bool = False
    policy_power: float = 1.0

    @property
    def needs_owners(self) -> bool:
        return self.moves_ownership or self.moves_ownership_stdev or self.no_result


@dataclass(frozen=True, slots=True)
class View:
    """Converts values for the side to move into the point of view of the response."""

    is_own: bool

    def signed(self, value: float) -> float:
        return rounded(value if self.is_own else -value)

    def share(self, value: float) -> float:
        return rounded(value if self.is_own else 1.0 - value)


def to_line(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def rounded(value: float) -> float:
    """Return a number with DIGITS significant digits; 0 if it is not finite."""
    return float(f"{value:.{DIGITS}g}") + 0.0 if math.isfinite(value) else 0.0  # + 0.0: no "-0.0"


def response(turn: Turn, analysis: Analysis, *, is_during_search: bool) -> dict[str, Any]:
    report, parts, game = analysis.report, turn.parts, turn.request.game
    view = View(parts.perspective in (None, report.side_to_move))
    # The first move has the best bound among well-visited moves. The others are sorted by weight.
    moves = sorted(report.moves, key=lambda move: (move.order != 0, -move.wanted))
    infos = [_move_info(move, game.board, view, parts) for move in moves]
    if analysis.human is not None:
        places = {point: place for place, point in enumerate((*game.board.points, PASS))}
        for info, move in zip(infos, moves, strict=True):
            info["humanPrior"] = rounded(float(np.nan_to_num(analysis.human.policy[places[move.move]])))
    most = max((move.wanted for move in moves), default=0.0)
    for order, (info, move) in enumerate(zip(infos, moves, strict=True)):
        info["order"] = order
        info["playSelectionValue"] = rounded(most if order == 0 else move.wanted)
    fields: dict[str, Any] = {
        "id": turn.identity,
        "turnNumber": turn.number,
        "isDuringSearch": is_during_search,
        "moveInfos": infos,
        "rootInfo": _root_info(report, analysis, game, view),
    }
    if parts.policy:
        fields["policy"] = _policy(_raised(analysis.policy, parts.policy_power))
        if analysis.human is not None:
            fields["humanPolicy"] = _policy(analysis.human.policy)
    if parts.ownership and report.ownership is not None:
        fields["ownership"] = _numbers(report.ownership, view)
    if parts.ownership_stdev and report.ownership_stdev is not None:
        fields["ownershipStdev"] = _sizes(report.ownership_stdev)
    return fields


def no_results(turn: Turn) -> dict[str, Any]:
    """Return the response for a position whose search never started."""
    return {"id": turn.identity, "turnNumber": turn.number, "isDuringSearch": False, "noResults": True}


def _raised(policy: npt.NDArray[np.float32], power: float) -> npt.NDArray[Any]:
    if power == 1.0:
        return policy
    raised = (policy / np.nanmax(policy, initial=0.0)).astype(np.float64) ** power
    return raised / np.nansum(raised)


def _policy(values: npt.NDArray[Any]) -> list[float]:
    return [-1.0 if math.isnan(value) else rounded(value) for value in map(float, values)]


def _numbers(values: Iterable[float], view: View) -> list[float]:
    return [view.signed(value) for value in map(float, values)]


def _sizes(values: Iterable[float]) -> list[float]:
    return [rounded(value) for value in map(float, values)]


def _move_info(move: MoveReport, board: Board, view: View, parts: ResponseParts) -> dict[str, Any]:
    info: dict[str, Any] = {
        "move": board.vertex(move.move),
        "visits": move.node_visits,
        "edgeVisits": move.visits,
        "weight": rounded(move.node_weight),
        "edgeWeight": rounded(move.weight),
        "utility": view.signed(move.utility),
        "winrate": view.share(move.winrate),
        "prior": rounded(move.prior),
        "scoreMean": view.signed(move.score_lead),
        "scoreSelfplay": view.signed(move.score_lead),
        "scoreLead": view.signed(move.score_lead),
        "scoreStdev": rounded(move.score_stdev),
        "lcb": view.share(move.lcb),
        "utilityLcb": view.signed(move.utility_lcb),
        "pv": [board.vertex(later) for later in move.pv],
    }
    if move.symmetry_of is not None:
        info["isSymmetryOf"] = board.vertex(move.symmetry_of)
    if parts.pv_visits:
        info["pvVisits"], info["pvEdgeVisits"] = list(move.pv_node_visits), list(move.pv_visits)
    if move.owners is not None:
        if parts.moves_ownership:
            info["ownership"] = _numbers(move.owners.mean, view)
        if parts.moves_ownership_stdev:
            info["ownershipStdev"] = _sizes(move.owners.stdev)
        if parts.no_result:
            info["noResultValue"] = rounded(move.owners.no_result)
    return info


def _root_info(report: SearchReport, analysis: Analysis, game: GoGame, view: View) -> dict[str, Any]:
    this, symmetric = position_hashes(game)
    info: dict[str, Any] = {
        "visits": report.visits,
        "weight": rounded(report.weight),
        "winrate": view.share(report.winrate),
        "scoreSelfplay": view.signed(report.score_lead),
        "scoreLead": view.signed(report.score_lead),
        "scoreStdev": rounded(report.score_stdev),
        "utility": view.signed(report.utility),
        "currentPlayer": format_color(report.side_to_move),
        "thisHash": this,
        "symHash": symmetric,
    }
    for_white = View(view.is_own == (report.side_to_move == WHITE))
    if analysis.raw is not None:
        info |= _raw_info(analysis.raw, for_white)
    if analysis.human is not None:
        info |= _human_info(analysis.human, for_white)
    return info


def _raw_info(raw: RawEvaluation, view: View) -> dict[str, Any]:
    """Return the network's raw outputs for a response. `view` converts values that are White's."""
    info = {
        "rawWinrate": view.share(0.5 + 0.5 * (raw.white_win - raw.white_loss)),
        "rawLead": view.signed(raw.white_lead),
        "rawScoreSelfplay": view.signed(raw.white_score_selfplay),
        "rawScoreSelfplayStdev": rounded(_score_stdev(raw)),
        "rawNoResultProb": rounded(raw.no_result),
        "rawVarTimeLeft": rounded(raw.extra.get("varTimeLeft", -1.0)),  # so KataGo, for networks before version 9
    }
    if "shorttermWinlossError" in raw.extra:
        info["rawStWrError"] = rounded(0.5 * raw.extra["shorttermWinlossError"])
    if "shorttermScoreError" in raw.extra:
        info["rawStScoreError"] = rounded(raw.extra["shorttermScoreError"])
    return info


def _score_stdev(raw: RawEvaluation) -> float:
    # KataGo reports the deviation with games without result as 0, not the network's own output.
    return math.sqrt(max(0.0, raw.white_score_mean_square - raw.white_score_selfplay**2))


def _human_info(raw: RawEvaluation, view: View) -> dict[str, Any]:
    """Return the raw outputs of the network of --human-net for a response. `view` converts values that are White's."""
    return {
        "humanWinrate": view.share(0.5 + 0.5 * (raw.white_win - raw.white_loss)),
        "humanScoreMean": view.signed(raw.white_score_selfplay),
        "humanScoreStdev": rounded(_score_stdev(raw)),
        "humanStWrError": rounded(0.5 * raw.extra.get("shorttermWinlossError", -1.0)),
        "humanStScoreError": rounded(raw.extra.get("shorttermScoreError", -1.0)),
    }


def position_hashes(game: GoGame) -> tuple[str, str]:
    """Return a hash of board, side to move and simple ko, and a hash that is equal for all symmetric positions."""
    points = game.board.points
    colors = np.array([game.color_at(point) for point in points], np.uint8)
    ko = int(game.position["simple_ko"])
    if ko in points:
        colors[points.index(ko)] = 3
    board = game.board
    sides = (board.width,) if board.is_square else (board.width, board.height)
    head = bytes((*sides, game.side_to_move))
    turned = [colors[symmetry_table(board.width, board.height, symmetry)[:-1]] for symmetry in range(SYMMETRIES)]
    hashes = [hashlib.blake2b(head + turn.tobytes(), digest_size=16).hexdigest().upper() for turn in turned]
    return hashes[0], min(hashes)
