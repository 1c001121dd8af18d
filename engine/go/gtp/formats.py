"""Search reports as the text of analysis commands: Leela Zero's, Sabaki's, KataGo's and CGOS's forms.

All values are for the side to move, as in the reports. Sources: KataGo's docs/GTP_Extensions.md, Sabaki's
docs/guides/engine-analysis-integration.md, and for CGOS the reference client (its JSON form is base-64 for ownership).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from yomi.engine.go.players.raw_evaluation import RawEvaluation
from yomi.engine.go.vertex import format_vertex
from yomi.engine.search.types import MoveReport, SearchReport

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

RAW_EXTRAS = ("varTimeLeft", "shorttermWinlossError", "shorttermScoreError")
"""Outputs that not all networks have, as kata-raw-nn prints them."""

LZ, SABAKI, KATA = "lz", "sabaki", "kata"


@dataclass(frozen=True, slots=True)
class Style:
    """What the lines of an analysis contain."""

    form: str = KATA
    """LZ, SABAKI or KATA."""
    max_moves: int | None = None
    ownership: bool = False
    root_info: bool = False
    pv_visits: bool = False
    pv_edge_visits: bool = False


def number(value: float) -> str:
    """Return a float with six digits and always a decimal point."""
    text = f"{value:.6g}"
    return text if any(c in text for c in ".en") else text + ".0"


def info_line(report: SearchReport, size: int, style: Style) -> str:
    """Return one line of an analysis; empty where there is nothing to say yet."""
    moves = report.moves[: style.max_moves]
    parts = [_move_info(move, size, style) for move in moves]
    if not parts:
        return ""
    if style.form == KATA and style.root_info:
        parts.append(_root_info(report))
    if style.form != LZ and style.ownership and report.ownership is not None:
        parts.append("ownership " + floats(report.ownership))
    return " ".join(parts)


def _move_info(move: MoveReport, size: int, style: Style) -> str:
    vertex = format_vertex(move.move, size)
    pv = " ".join(format_vertex(later, size) for later in move.pv)
    if style.form != KATA:
        lead = f" scoreLead {number(move.score_lead)}" if style.form == SABAKI else ""
        return (
            f"info move {vertex} visits {move.visits} winrate {_per_10000(move.winrate)}{lead}"
            f" prior {_per_10000(move.prior)} lcb {round(10000 * move.lcb)} order {move.order} pv {pv}"
        )
    twin = "" if move.symmetry_of is None else f" isSymmetryOf {format_vertex(move.symmetry_of, size)}"
    text = (
        f"info move {vertex} visits {move.node_visits} edgeVisits {move.visits} utility {number(move.utility)}"
        f" winrate {number(move.winrate)} scoreMean {number(move.score_lead)} scoreStdev {number(move.score_stdev)}"
        f" scoreLead {number(move.score_lead)} scoreSelfplay {number(move.score_lead)}"
        f" prior {number(move.prior)} lcb {number(move.lcb)} utilityLcb {number(move.utility_lcb)}"
        f" weight {number(move.node_weight)}{twin} order {move.order} pv {pv}"
    )
    if style.pv_visits:
        text += " pvVisits " + " ".join(map(str, move.pv_node_visits))
    if style.pv_edge_visits:
        text += " pvEdgeVisits " + " ".join(map(str, move.pv_visits))
    return text


def _root_info(report: SearchReport) -> str:
    return (
        f"rootInfo visits {report.visits} utility {number(report.utility)} winrate {number(report.winrate)}"
        f" scoreMean {number(report.score_lead)} scoreStdev {number(report.score_stdev)}"
        f" scoreLead {number(report.score_lead)} scoreSelfplay {number(report.score_lead)}"
        f" weight {number(report.weight)}"
    )


def _per_10000(value: float) -> int:
    return min(max(round(10000 * value), 0), 10000)


def floats(values: Iterable[float]) -> str:
    """Return numbers as KataGo prints ownership."""
    return " ".join(number(float(value)) for value in values)


def cgos_json(report: SearchReport, size: int, max_moves: int = 20) -> str:
    """Return a report as CGOS stores it with a move: one line of JSON (protocol notes, section 8)."""
    moves = [
        {
            "move": format_vertex(move.move, size).upper() if move.pv else "",
            "winrate": round(move.winrate, 4),
            "score": round(move.score_lead, 2),
            "prior": round(move.prior, 4),
            "visits": move.visits,
            "pv": " ".join(format_vertex(later, size).upper() for later in move.pv[1:]),
        }
        for move in report.moves[:max_moves]
    ]
    data: dict[str, object] = {
        "moves": moves,
        "winrate": round(report.winrate, 4),
        "score": round(report.score_lead, 2),
        "visits": report.visits,
    }
    if report.ownership is not None:
        data["ownership"] = "".join(BASE64[_level(value)] for value in report.ownership)
    return json.dumps(data, separators=(",", ":"))


def _level(ownership: float) -> int:
    return round(min(max((float(ownership) + 1) / 2, 0.0), 1.0) * 62)


def raw_evaluation(raw: RawEvaluation, size: int) -> str:
    """Return one evaluation in the form of KataGo's kata-raw-nn: -1 for what the network does not say."""
    extra = dict(raw.extra)
    lines = [
        f"symmetry {raw.symmetry}",
        f"whiteWin {raw.white_win:.6f}",
        f"whiteLoss {raw.white_loss:.6f}",
        f"noResult {raw.no_result:.6f}",
        f"whiteLead {raw.white_lead:.3f}",
        f"whiteScoreSelfplay {raw.white_score_selfplay:.3f}",
        f"whiteScoreSelfplaySq {raw.white_score_mean_square:.3f}",
        *(f"{name} {extra.get(name, -1.0):.3f}" for name in RAW_EXTRAS),
        "policy",
        board_of([_probability(value) for value in raw.policy[:-1]], size),
        f"policyPass {_probability(raw.policy[-1])}",
        "whiteOwnership",
        board_of([f"{float(value):9.7f}" for value in raw.white_ownership], size),
    ]
    return "\n".join(lines)


def _probability(value: float) -> str:
    return "     NAN" if np.isnan(value) else f"{float(value):8.6f}"


def board_of(cells: list[str], size: int) -> str:
    """Return [area] texts as rows of a board, the top row first."""
    return "\n".join(" ".join(cells[row * size : (row + 1) * size]) for row in range(size))


def dboard(values: npt.NDArray[np.float32], size: int) -> str:
    """Return [area] numbers in [-1, +1] as GoGui's dboard; NaN becomes 0."""
    return board_of([f"{float(value):.3f}" for value in np.nan_to_num(values)], size)
