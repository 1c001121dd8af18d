"""`yomi dataset openings`: openings of shogi after which games were balanced, by the players' own evaluations."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from yomi.engine.color import DRAW
from yomi.engine.records import LeftOut, read_record_bytes
from yomi.engine.shogi.datasets.rows import ratings_of
from yomi.engine.shogi.placement import Placement
from yomi.engine.shogi.records.files import load_records
from yomi.engine.shogi.records.packed import read_hcpe
from yomi.engine.shogi.records.record import START, GameRecord, RecordedMove, RecordError, format_usi_line
from yomi.errors import fault_of
from yomi.nets.errors import NetworkError

OPENING_SUFFIXES = (".csa", ".kif", ".kifu", ".ki2", ".ki2u", ".jkf", ".usi", ".sfen", ".hcpe")
# Endings by the rules. Losses on time or by a foul say little about an opening.
FAIR_ENDINGS = ("TORYO", "TSUMI", "SENNICHITE", "KACHI", "JISHOGI", "HIKIWAKE", "MAX_MOVES")


# The rules follow Tayayan's set as widened by dlshogi's author: strong players, evaluations near zero along the line
# and nearer at two plies, and a game that continued and ended by the rules.
@dataclass(frozen=True)
class BalanceLimits:
    rating: float = 0.0  # minimum rating of both players; 0: no limit
    evaluation: float = 170.0  # maximum absolute evaluation along the line in centipawns
    narrow: float = 100.0  # maximum after each of the two `plies`, whose evaluations must be known
    plies: tuple[int, int] = (24, 36)  # openings differ after the first ply and end after the second
    min_moves: int = 50


def balanced_openings(
    files: Sequence[Path], limits: BalanceLimits, left_out: LeftOut | None = None
) -> tuple[list[str], Counter[str]]:
    """Return openings as lines `startpos moves ...`, and the number of excluded games by reason.

    `left_out` collects files that cannot be read. Without it the first such file raises NetworkError.
    """
    lines: dict[Placement, str] = {}
    refused = Counter[str]()
    for path in files:
        try:
            records = list(_records(path))
        except NetworkError as error:
            if left_out is None:
                raise
            left_out.add(path, error)
            continue
        if left_out is not None:
            left_out.report_notes(path, [note for record in records for note in record.notes])
        for record in records:
            why = why_unbalanced(record, limits)
            if why:
                refused[why] += 1
                continue
            unique, last = limits.plies
            # Transpositions count as one opening.
            key = record.placements()[unique]
            if key in lines:
                refused[f"the same position after {unique} moves"] += 1
                continue
            lines[key] = format_usi_line(GameRecord(START, record.moves[:last]))
    return list(lines.values()), refused


def why_unbalanced(record: GameRecord, limits: BalanceLimits) -> str:
    """Return why a game gives no opening; empty if it gives one."""
    first, last = limits.plies
    # The evaluation of a move is that of the position before it; the first moves often come from a book without one.
    scores = [recorded.score for recorded in record.moves]
    if record.initial != START:
        return "another first position"
    if record.ending not in FAIR_ENDINGS:
        return "no end by the rules"
    if len(record.moves) < max(limits.min_moves, last + 1):
        return "too short"
    if limits.rating and min(ratings_of(record), default=0.0) < limits.rating:
        return "a rating too low, or unknown"
    known = [(ply, abs(score)) for ply, score in enumerate(scores) if score is not None]
    plies = {ply for ply, _ in known}
    if not plies.issuperset(limits.plies) or len({ply % 2 for ply in plies}) < 2:
        return "evaluations unknown"
    if any(score > limits.evaluation for ply, score in known if ply <= last):
        return f"an evaluation beyond {limits.evaluation:g}"
    if any(score > limits.narrow for ply, score in known if ply in limits.plies):
        return f"an evaluation beyond {limits.narrow:g} after {first} or {last} moves"
    return ""


def _records(path: Path) -> Iterator[GameRecord]:
    try:
        if path.suffix.lower() == ".hcpe":
            yield from _games_of_hcpe(path)
        else:
            yield from load_records(path)
    except RecordError as error:
        raise NetworkError(fault_of(path, error)) from None
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}") from None


def _games_of_hcpe(path: Path) -> Iterator[GameRecord]:
    """Yield games: consecutive rows in which each move leads to the next position.

    hcpe contains no endings except the winner: wins count as resignations.
    """
    record, following = GameRecord(), START
    for position in read_hcpe(read_record_bytes(path, None)):
        if position.placement != following and record.moves:
            yield record
            record = GameRecord()
        if not record.moves:
            record.initial = position.placement
        record.moves.append(RecordedMove(position.move, score=position.score))
        record.ending = "HIKIWAKE" if position.winner == DRAW else "TORYO"
        # hcpe has no move numbers: all positions have number 1.
        following = dataclasses.replace(position.placement.after(position.move), number=1)
    if record.moves:
        yield record
