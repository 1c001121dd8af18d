"""Reads training positions from records, hcpe, hcpe3 and psv files as rows of numbers."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.game import Say
from yomi.engine.records import MAX_RECORD_BYTES, read_record_bytes, refuse_special, report_notes
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.placement import Placement, format_sfen, is_move
from yomi.engine.shogi.records.files import read_records
from yomi.engine.shogi.records.packed import (
    HCPE_DTYPE,
    MAX_SCORE,
    PSV_DTYPE,
    RESULTS,
    from_psv_move,
    pack,
    pack_psv,
    read_hcpe,
    read_hcpe3,
    to_psv_move,
    unpack_bits,
)
from yomi.engine.shogi.records.record import GameRecord, RecordError
from yomi.engine.shogi.settings import ShogiDataOptions
from yomi.errors import reraised
from yomi.native.datasets.packed import HCP, PSV
from yomi.nets.errors import NetworkError

RECORD_SUFFIXES = (".csa", ".kif", ".kifu", ".ki2", ".ki2u", ".jkf", ".usi", ".sfen")
SHOGI_SUFFIXES = (*RECORD_SUFFIXES, ".hcpe", ".hcpe3", ".psv")
ROW_DTYPE = np.dtype(
    [
        ("packed", np.uint8, (32,)),
        ("form", np.uint8),  # of the packed board: HCP or PSV
        ("move", np.uint16),  # NO_MOVE if unknown
        ("score", np.float32),  # centipawns for the side to move; NaN if unknown
        ("winner", np.int8),  # BLACK, WHITE, 0 drawn
        ("game", np.int64),  # positions of one game are held out together
    ]
)
NO_MOVE = 0  # missing moves in hcpe and psv
# yomi counts games from 1 to this in the last byte of hcpe and psv. Other programs write 0 there.
MARKS = 255
GAME_BLOCK = 1024  # consecutive rows that count as one game if games are unknown
_RATE = re.compile(r"(black|white)_rate:.*:([\d.]+)\s*$", re.MULTILINE)


def read_rows(path: Path, options: ShogiDataOptions, game: int, say: Say = lambda text: None) -> npt.NDArray[np.void]:
    """Return the positions of a file: ROW_DTYPE[n], with games numbered from `game` on. Raises NetworkError.

    Handicap games are left out with a message, because hcp needs all 40 pieces.
    """
    suffix = path.suffix.lower()
    if suffix in (".hcpe", ".psv"):
        rows = _packed_rows(path, game)
    else:
        records = without_handicap(path, read_games(path, say), say)
        found = [row for number, record in enumerate(records, game) for row in _record_rows(record, options, number)]
        rows = np.array(found, ROW_DTYPE)
    if options.evaluation:
        rows = rows[~(np.abs(rows["score"]) > options.evaluation)]
    return rows


def read_games(path: Path, say: Say = lambda text: None) -> list[GameRecord]:
    """Return the games of a file, and report its notes. Raises NetworkError if it is broken."""
    read = {".hcpe": read_hcpe, ".hcpe3": read_hcpe3}.get(path.suffix.lower())
    with reraised((OSError, RecordError), NetworkError, f"{path}: "):
        data = read_record_bytes(path, MAX_RECORD_BYTES if read is None else None)
        records = read_records(data) if read is None else read(data)
    report_notes(say, path, (note for record in records for note in record.notes))
    return records


def without_handicap(path: Path, records: Sequence[GameRecord], say: Say) -> list[GameRecord]:
    """Return the games that begin with all 40 pieces. Raises NetworkError if there is none."""
    found = [record for record in records if is_packable(record.initial)]
    if left := len(records) - len(found):
        why = f"handicap games or positions without all 40 pieces, which hcpe, hcpe3 and psv cannot hold: {left}"
        if not found:
            raise NetworkError(f"{path}: {why}")
        say(f"{path}: {why}, left out")
    return found


def records_of(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[np.void]:
    """Return the records of a file. Raises NetworkError if it cannot be read, or the last one is incomplete."""
    with reraised(OSError, NetworkError, f"{path}: "):
        refuse_special(path)
        data = np.fromfile(path, np.uint8)
    if data.size % dtype.itemsize:
        raise NetworkError(f"{path}: {data.size} bytes found, expected whole records of {dtype.itemsize}")
    return data.view(dtype)


def _packed_rows(path: Path, game: int) -> npt.NDArray[np.void]:
    is_psv = path.suffix.lower() == ".psv"
    data = records_of(path, PSV_DTYPE if is_psv else HCPE_DTYPE)
    rows = np.zeros(len(data), ROW_DTYPE)
    rows["packed"], rows["form"] = (data["sfen"], PSV) if is_psv else (data["hcp"], HCP)
    rows["score"] = data["score"]
    rows["move"] = _moves(path, data, _psv_move if is_psv else _hcpe_move)
    if is_psv:
        # The lowest bit of a packed board is the side to move.
        side = 1 + (data["sfen"][:, 0] & 1).astype(np.int8)
        rows["winner"] = np.where(data["result"] == 0, 0, np.where(data["result"] > 0, side, 3 - side))
    else:
        # RESULTS are 0, 1 and 2; higher bits mark how the game ended.
        rows["winner"] = np.array([0, BLACK, WHITE, 0], np.int8)[data["result"] & 3]
    rows["game"] = game + _games_of(data["spare" if is_psv else "mark"])
    return rows


def _games_of(marks: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the game number of each position, from the marks, or from blocks of positions without marks."""
    # Neighbors with different marks belong to different games.
    if len(marks) and marks.all():
        return np.concatenate([[0], np.cumsum(marks[1:] != marks[:-1])])
    return np.arange(len(marks)) // GAME_BLOCK


def marks_of(path: Path, rows: npt.NDArray[np.void]) -> npt.NDArray[np.uint8]:
    """Return the game marks of a file's rows, or 0 if its games are unknown."""
    suffix = path.suffix.lower()
    if suffix in (".hcpe", ".psv"):
        data = records_of(path, HCPE_DTYPE if suffix == ".hcpe" else PSV_DTYPE)
        marks: npt.NDArray[np.uint8] = data["mark" if suffix == ".hcpe" else "spare"]
        return marks if marks.all() else np.zeros(len(rows), np.uint8)
    return np.asarray(1 + rows["game"] % MARKS, np.uint8)


def _moves(path: Path, data: npt.NDArray[np.void], read: Callable[[int], int | None]) -> npt.NDArray[np.uint16]:
    """Return the moves of a file's records. `read` decodes the file's numbers, each distinct number once."""
    moves = np.zeros(1 << 16, np.uint16)
    for number in np.unique(data["move"]).tolist():
        if (move := read(number)) is None:
            record = np.flatnonzero(data["move"] == number)[0] + 1
            raise NetworkError(
                f"{path}, record {record}: move {number} found, expected squares of the board or a piece to drop, "
                f"or {NO_MOVE} for none"
            )
        moves[number] = move
    return np.asarray(moves[data["move"]], np.uint16)


def _hcpe_move(number: int) -> int | None:
    return number if number == NO_MOVE or is_move(number) else None


def _psv_move(number: int) -> int | None:
    move = from_psv_move(number)
    # A number with bits that no move has changes when it is encoded again.
    return move if number == NO_MOVE or (is_move(move) and to_psv_move(move) == number) else None


def _record_rows(record: GameRecord, options: ShogiDataOptions, game: int) -> Iterator[tuple[Any, ...]]:
    # Games without a known end have no result to learn.
    if record.winner is None or len(record.moves) < options.min_moves:
        return
    if options.rating and min(ratings_of(record), default=0.0) < options.rating:
        return
    winner = record.winner if record.winner in (BLACK, WHITE) else 0
    for recorded, placement in zip(record.moves, record.placements(), strict=False):
        score = np.nan if recorded.score is None else float(recorded.score)
        yield np.frombuffer(pack(placement), np.uint8), HCP, recorded.move, score, winner, game


def is_packable(placement: Placement) -> bool:
    try:
        pack(placement)
    except RecordError:
        return False
    return True


def ratings_of(record: GameRecord) -> list[float]:
    """Return both players' ratings in a Floodgate record, or an empty list if one of them is missing."""
    ratings = [float(rate) for _, rate in _RATE.findall(record.comment)]
    return ratings if len(ratings) == 2 else []


def merged(rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return each position once, with its most frequent result and move, and its mean evaluation."""
    keys = np.concatenate([rows["packed"], rows["form"][:, None]], axis=1)
    _, first, inverse, counts = np.unique(
        np.ascontiguousarray(keys).view("V33").ravel(), return_index=True, return_inverse=True, return_counts=True
    )
    result = rows[first].copy()
    order = np.argsort(inverse, kind="stable")
    starts = np.cumsum(counts) - counts
    # Few positions repeat, so a loop is fast enough.
    for index in np.flatnonzero(counts > 1):
        same = rows[order[starts[index] : starts[index] + counts[index]]]
        for name in ("winner", "move"):
            result[name][index] = Counter(same[name].tolist()).most_common(1)[0][0]
        scores = same["score"][~np.isnan(same["score"])]
        result["score"][index] = scores.mean() if len(scores) else np.nan
    return result


def placement_of(row: npt.NDArray[np.void]) -> Placement:
    """Return the position of a row. Raises NetworkError if the packed board is broken."""
    with reraised(RecordError, NetworkError):
        return unpack_bits(row["packed"].tobytes(), is_psv=row["form"] == PSV)


def move_fault(row: npt.NDArray[np.void]) -> str | None:
    """Return the reason why a row's move cannot be played, with the position; None if it can."""
    placement, move = placement_of(row), int(row["move"])
    why = placement.why_not(move)
    return None if why is None else f"{format_usi(move)} in {format_sfen(placement)}: {why}"


def to_hcpe(rows: npt.NDArray[np.void], marks: npt.NDArray[np.uint8] | int = 0) -> bytes:
    """Return rows as the content of an hcpe file. A missing evaluation becomes 0."""
    results = {0: RESULTS[DRAW], BLACK: RESULTS[BLACK], WHITE: RESULTS[WHITE]}
    data = np.zeros(len(rows), HCPE_DTYPE)
    data["hcp"], data["move"], data["mark"] = rows["packed"], rows["move"], marks
    data["score"] = np.clip(np.nan_to_num(rows["score"]), -MAX_SCORE, MAX_SCORE)
    data["result"] = [results[winner] for winner in rows["winner"].tolist()]
    # psv packs the same board in another order: pack it again.
    for index in np.flatnonzero(rows["form"] != HCP):
        data["hcp"][index] = np.frombuffer(pack(placement_of(rows[index])), np.uint8)
    return data.tobytes()


def to_psv(rows: npt.NDArray[np.void], marks: npt.NDArray[np.uint8] | int = 0) -> bytes:
    """Return rows as the content of a psv file. The ply is unknown and written as 0."""
    data = np.zeros(len(rows), PSV_DTYPE)
    data["spare"] = marks
    for target, row in zip(data, rows, strict=True):
        placement = placement_of(row)
        target["sfen"] = np.frombuffer(pack_psv(placement), np.uint8)
        target["score"] = np.clip(np.nan_to_num(row["score"]), -MAX_SCORE, MAX_SCORE)
        target["move"] = to_psv_move(int(row["move"]))
        winner = int(row["winner"])
        target["result"] = 0 if winner == 0 else 1 if winner == placement.side else -1
    return data.tobytes()
