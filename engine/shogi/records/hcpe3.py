"""hcpe3 files, whole games with the visits of their searches, as dlshogi trains on them.

A game is its first position in 32 bytes, the number of its moves, its result, and who was the opponent (0: none).
A move is itself, the evaluation in centipawns for the side that plays it, and the number of moves that were searched;
each of those follows with its visits. Readers learn from positions with such moves only, and take the visits' shares.
(dlshogi: cppshogi.h, HuffmanCodedPosAndEval3; python_module.cpp, __load_hcpe3.)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from yomi.engine.color import DRAW, opponent
from yomi.engine.search.types import Counts
from yomi.engine.shogi.notation import illegal_action
from yomi.engine.shogi.records.hcpe import MAX_SCORE, RESULTS, pack, unpack
from yomi.engine.shogi.records.record import GameRecord, ImpossibleMoveError, RecordError

HCPE3_DTYPE = np.dtype([("hcp", np.uint8, (32,)), ("moves", "<u2"), ("result", "u1"), ("opponent", "u1")])
MOVE_DTYPE = np.dtype([("move", "<u2"), ("score", "<i2"), ("counts", "<u2")])
COUNT_DTYPE = np.dtype([("move", "<u2"), ("visits", "<u2")])
MAX_VISITS = 0xFFFF
WINNER_BITS = 3
ENDINGS = {"SENNICHITE": 4, "KACHI": 8, "MAX_MOVES": 16}
"""Bits of the result beside the winner's, for endings by CSA's names."""


def write_hcpe3(records: Iterable[GameRecord]) -> bytes:
    """Return games whose result is known; those without are left out.

    Raises:
        RecordError: a position that the form cannot hold.
    """
    return b"".join(_format(record) for record in records if record.winner is not None)


def _format(record: GameRecord) -> bytes:
    assert record.winner is not None
    result = RESULTS[record.winner] | ENDINGS.get(record.ending, 0)
    hcp = np.frombuffer(pack(record.initial), np.uint8)
    parts = [np.array((hcp, len(record.moves), result, 0), HCPE3_DTYPE).tobytes()]
    for recorded in record.moves:
        counts = _bounded(recorded.counts)
        score = min(max(recorded.score or 0, -MAX_SCORE), MAX_SCORE)
        parts.append(np.array((recorded.move, score, len(counts)), MOVE_DTYPE).tobytes())
        parts.append(np.array(counts, COUNT_DTYPE).tobytes())
    return b"".join(parts)


def _bounded(counts: Counts) -> list[tuple[int, int]]:
    """Return visits as 16 bits hold them, in the same shares."""
    most = max((visits for _, visits in counts), default=0)
    scale = min(1.0, MAX_VISITS / max(most, 1))
    found = [(move, round(scale * visits)) for move, visits in counts]
    return [(move, visits) for move, visits in found if visits]


def read_hcpe3(data: bytes) -> list[GameRecord]:
    """Read the games of an hcpe3 file. Positions without visits have an evaluation of 0, which is taken for none.

    Raises:
        RecordError: not whole games, or a position, move or result that cannot be.
    """
    games: list[GameRecord] = []
    place = 0
    while place < len(data):
        try:
            record, place = _read(data, place)
        except RecordError as error:
            raise RecordError(f"game {len(games) + 1}: {error}") from None
        games.append(record)
    return games


def _read(data: bytes, place: int) -> tuple[GameRecord, int]:
    """Return the game at a place, and the place behind it."""
    head = _take(data, place, HCPE3_DTYPE, 1)[0]
    place += HCPE3_DTYPE.itemsize
    record = GameRecord(unpack(head["hcp"].tobytes()))
    placement = record.initial
    for number in range(1, int(head["moves"]) + 1):
        row = _take(data, place, MOVE_DTYPE, 1)[0]
        place += MOVE_DTYPE.itemsize
        counts = _take(data, place, COUNT_DTYPE, int(row["counts"]))
        place += counts.nbytes
        for move in counts["move"].tolist():
            if why := placement.why_not(move):
                raise ImpossibleMoveError(f"move {number}, searched {move}: {why}")
        placement = record.add(placement, int(row["move"]))
        recorded = record.moves[-1]
        recorded.counts = tuple(counts.tolist())
        recorded.score = int(row["score"]) if len(counts) or row["score"] else None
    record.ending = _ending(record, placement.side, int(head["result"]))
    return record, place


def _take(data: bytes, place: int, dtype: np.dtype[np.void], count: int) -> npt.NDArray[np.void]:
    if place + count * dtype.itemsize > len(data):
        raise RecordError(f"{len(data) - place} bytes at the end: expected whole games (hcpe3)")
    return np.frombuffer(data, dtype, count, place)


def _ending(record: GameRecord, side: int, result: int) -> str:
    """Return how a game ended, by CSA's names, of which a winner that is not the last to move leaves a foul alone."""
    winners = {code: winner for winner, code in RESULTS.items()}
    names = [name for name, bit in ENDINGS.items() if result & bit]
    winner = winners.get(result & WINNER_BITS)
    if winner is None or len(names) > 1 or result & ~(WINNER_BITS | sum(ENDINGS.values())):
        raise RecordError(f"the result {result}: expected 0, 1 or 2, and 4, 8 or 16 for how the game ended")
    if winner == DRAW:
        wanted = names[0] if names else "HIKIWAKE"
    else:
        wanted = names[0] if names else illegal_action(opponent(winner)) if winner == side else "TORYO"
    record.ending = wanted
    if record.winner != winner:
        raise RecordError(f"the result {result}: expected one that an ending with {wanted} can have")
    return wanted
