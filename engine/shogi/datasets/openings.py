"""`yomi dataset openings`: finds openings of shogi after which games were balanced by the players' own evaluations."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from yomi.engine.records import LeftOut
from yomi.engine.shogi.datasets.rows import ratings_of, read_games
from yomi.engine.shogi.placement import Placement
from yomi.engine.shogi.records.record import START, GameRecord, format_usi_line
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
    files: Sequence[Path], limits: BalanceLimits, left_out: LeftOut
) -> tuple[list[str], Counter[str]]:
    """Return openings as lines `startpos moves ...`, and the number of excluded games by reason.

    `left_out` collects files that cannot be read.
    """
    lines: dict[Placement, str] = {}
    refused = Counter[str]()
    for path in files:
        try:
            records = read_games(path)
        except NetworkError as error:
            left_out.add(path, error)
            continue
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
    """Return the reason why a game gives no opening; an empty text if it gives one."""
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
