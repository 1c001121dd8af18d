"""Opening books: YaneuraOu's text form (.db) and binary form (.ybb), and Apery's form (.bin).

Lookups read the file; a book is not loaded into memory.
"""

import abc
import bisect
import functools
import math
import mmap
import random
import re
import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from yomi.engine.color import BLACK, WHITE
from yomi.engine.options import Options
from yomi.engine.shogi.notation import NotationError, parse_usi
from yomi.engine.shogi.placement import Placement, SfenError, format_sfen, is_move, parse_sfen, turned
from yomi.engine.shogi.records.packed import from_psv_move, pack_psv, to_psv_move
from yomi.engine.shogi.records.record import RecordError
from yomi.errors import LineError, reraised

# A text book has a header, which may be missing, a line `sfen POSITION` for each position, and below it lines
# `MOVE PONDER SCORE DEPTH COUNT`, of which only the move is required.
TEXT_HEADER = b"#YANEURAOU-DB2016 1.00"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
POSITION_LINE = re.compile(rb"^(?:\xef\xbb\xbf)?sfen ([^\r\n]*)", re.MULTILINE)
# The first position of a book without a header, after comments.
FIRST_LINE = re.compile(rb"(?:\s*(?://|#(?!YANEURAOU))[^\n]*\n)*\s*sfen ([^\r\n]*)")
# A binary book has records sorted by key: key, move, count, score. The keys are those of Apery and cshogi.
RECORD = struct.Struct("<QHHi")
# YaneuraOu's binary book: header (magic, number of positions, flags), one entry for each position in the order of their
# keys (psv's packed board, offset of its moves, move number, number of moves), then moves (psv's move, score, and depth
# if the flag is set). https://github.com/yaneurao/YaneuraOu-ScriptCollection, BookMinerCpp/docs/04-ybb.md
YBB_MAGIC = b"YANE-BINBOOK-V1\0"
YBB_HEADER = struct.Struct("<16sQQ")
YBB_ENTRY = struct.Struct("<32sQHH")
YBB_MOVES = (struct.Struct("<Hh"), struct.Struct("<HhH"))  # by the flag for depths
NO_MOVES = ("none", "resign", "win", "pass", "0000")  # words in place of a missing move
MAX_NUMBER = 2**63 - 1  # greater numbers are not scores, depths or counts

NARROW_SHARE = 0.1  # a narrow book skips moves chosen less often; YaneuraOu's share


class BookError(LineError, ValueError):
    """A file is not a book, or a line of a book is broken. The message is one line."""


@dataclass(frozen=True, slots=True)
class BookMove:
    move: int
    count: int  # times played, or a weight; 0 if unknown
    score: int | None = None  # centipawns for the side that plays the move; None if unknown
    depth: int = 0  # of the search for the score; 0 if unknown
    ponder: int | None = None  # the expected answer


class Book(abc.ABC):
    """A book whose file is open. A lookup takes less than a millisecond."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path, self._data = path, data

    @abc.abstractmethod
    def moves(self, placement: Placement) -> list[BookMove]:
        """Return a position's moves in the book's order; some may be illegal. Raises BookError for a broken book."""

    def close(self) -> None:
        self._data.close()


# -- Apery's binary form -------------------------------------------------------------------------------------------


@functools.cache
def _random_numbers() -> tuple[int, ...]:
    """Return the first 2,645 numbers of MT19937-64 (Matsumoto and Nishimura) with seed 5489."""
    mask = (1 << 64) - 1
    state = [5489]
    for i in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i) & mask)
    numbers: list[int] = []
    while len(numbers) < 31 * 81 + 7 * 19 + 1:
        for i in range(312):
            bits = (state[i] & 0xFFFFFFFF80000000) | (state[(i + 1) % 312] & 0x7FFFFFFF)
            state[i] = state[(i + 156) % 312] ^ bits >> 1 ^ (0xB5026F5AA96619E9 if bits & 1 else 0)
        for word in state:
            word ^= word >> 29 & 0x5555555555555555
            word ^= word << 17 & 0x71D67FFFEDA60000
            word ^= word << 37 & 0xFFF7EEE000000000
            numbers.append((word ^ word >> 43) & mask)
    return tuple(numbers)


def book_key(placement: Placement) -> int:
    """Return the key of a position in Apery's books. It covers the board, the mover's hand and the side to move."""
    numbers = _random_numbers()
    key = 0
    for square, code in enumerate(placement.board):
        if code:
            key ^= numbers[81 * code + square]
    for index, count in enumerate(placement.hands[placement.side - 1]):
        key ^= numbers[31 * 81 + 19 * index + count]
    return key ^ numbers[31 * 81 + 7 * 19] if placement.side == WHITE else key


class AperyBook(Book):
    def __init__(self, path: Path, data: mmap.mmap) -> None:
        """Check the content of a file. Raises BookError for incomplete records or unsorted keys."""
        if len(data) % RECORD.size:
            raise BookError(f"{path}: {len(data)} bytes, expected whole records of {RECORD.size} bytes")
        super().__init__(path, data)
        self._count = len(data) // RECORD.size
        # Other files are not sorted, and 65 probes show it at once.
        probes = [self._key(i * (self._count - 1) // 64) for i in range(65)]
        if probes != sorted(probes):
            raise BookError(f"{path}: the keys are not sorted, expected a book in Apery's form (.bin)")

    def _key(self, number: int) -> int:
        return int(RECORD.unpack_from(self._data, number * RECORD.size)[0])

    def moves(self, placement: Placement) -> list[BookMove]:
        wanted = book_key(placement)
        low = bisect.bisect_left(range(self._count), wanted, key=self._key)
        found = []
        while low < self._count:
            key, move, count, score = RECORD.unpack_from(self._data, low * RECORD.size)
            # Records of one position are neighbors.
            if key != wanted:
                break
            if not is_move(move):
                raise BookError(f"{self.path}: record {low} has the move {move}, expected squares of the board")
            found.append(BookMove(move, count, score))
            low += 1
        return found


# -- YaneuraOu's forms ---------------------------------------------------------------------------------------------


class YbbBook(Book):
    """A binary book of YaneuraOu. It contains no handicap games, counts or answers."""

    def __init__(self, path: Path, data: mmap.mmap, *, ignore_ply: bool) -> None:
        """Check the header of a file. Raises BookError if it is incomplete or unknown, or if keys are unsorted."""
        super().__init__(path, data)
        self._ignores_ply = ignore_ply
        if len(data) < YBB_HEADER.size:
            raise BookError(f"{path}: {len(data)} bytes, expected a header of {YBB_HEADER.size} bytes")
        _, self._count, flags = YBB_HEADER.unpack_from(data)
        if flags >= len(YBB_MOVES):
            raise BookError(f"{path}: flags {flags:#x} found, expected 0 or 1 (moves with depths)")
        self._record = YBB_MOVES[flags]
        self._moves_at = YBB_HEADER.size + self._count * YBB_ENTRY.size
        if self._moves_at > len(data):
            raise BookError(f"{path}: {len(data)} bytes, expected {self._count} positions of {YBB_ENTRY.size} bytes")
        probes = [self._key(i * (self._count - 1) // 64) for i in range(65)] if self._count else []
        if probes != sorted(probes):
            raise BookError(f"{path}: the positions are not sorted, expected a book in YaneuraOu's form (.ybb)")

    def _key(self, number: int) -> bytes:
        at = YBB_HEADER.size + number * YBB_ENTRY.size
        return self._data[at : at + 32]

    def moves(self, placement: Placement) -> list[BookMove]:
        try:
            wanted = pack_psv(placement)
        except RecordError:  # a handicap game: not all 40 pieces
            return []
        number = bisect.bisect_left(range(self._count), wanted, key=self._key)
        if number == self._count or self._key(number) != wanted:
            return []
        _, offset, ply, count = YBB_ENTRY.unpack_from(self._data, YBB_HEADER.size + number * YBB_ENTRY.size)
        if not self._ignores_ply and ply != placement.number:
            return []
        begin = self._moves_at + offset
        end = begin + count * self._record.size
        if end > len(self._data):
            raise BookError(f"{self.path}: the moves of position {number} end at byte {end}, expected at most "
                            f"{len(self._data)}")  # fmt: skip
        return [self._read_move(*fields) for fields in self._record.iter_unpack(self._data[begin:end])]

    def _read_move(self, packed: int, score: int, depth: int = 0) -> BookMove:
        move = from_psv_move(packed)
        if not is_move(move) or to_psv_move(move) != packed:
            raise BookError(f"{self.path}: the move {packed} found, expected squares of the board")
        return BookMove(move, 0, score, depth)


class YaneuraouBook(Book):
    """A text book, in any order. Opening it reads all lines, and stores 16 bytes for each position."""

    def __init__(self, path: Path, data: mmap.mmap, *, ignore_ply: bool) -> None:
        """Read the content of a file, which takes five seconds for a million positions.

        Without `ignore_ply` a position is found only at the move number that the book gives it.
        """
        super().__init__(path, data)
        self._ignores_ply = ignore_ply
        hashes, offsets = array("q"), array("q")
        for match in POSITION_LINE.finditer(data):
            # Hashes are compared first, the text decides: two positions may share a hash.
            hashes.append(hash(_position_of(match[1])))
            offsets.append(match.end())
        keys = np.array(hashes, np.int64)
        order = np.argsort(keys, kind="stable")
        self._keys, self._offsets = keys[order], np.array(offsets, np.int64)[order]

    def moves(self, placement: Placement) -> list[BookMove]:
        text = format_sfen(placement, number=False).encode()
        wanted = hash(text)
        at = int(np.searchsorted(self._keys, wanted))
        while at < len(self._keys) and self._keys[at] == wanted:
            offset = int(self._offsets[at])
            line = self._data[self._data.rfind(b"\n", 0, offset) + 1 : offset].removeprefix(BYTE_ORDER_MARK)
            number = line[5:].split()[3:4]
            if _position_of(line[5:]) == text and (self._ignores_ply or number == [b"%d" % placement.number]):
                return list(self._read_moves(offset))
            at += 1
        return []

    def _read_moves(self, offset: int) -> Iterator[BookMove]:
        offset = self._data.find(b"\n", offset) + 1
        while 0 < offset < len(self._data):
            end = self._data.find(b"\n", offset)
            end = len(self._data) if end < 0 else end
            line = self._data[offset:end].decode("utf-8", "replace").strip()
            if line.startswith("sfen"):
                return
            if line and not line.startswith(("#", "//")):
                entry = self._parse(line)
                if entry:
                    yield entry
            offset = end + 1

    def _parse(self, line: str) -> BookMove | None:
        words = line.split()
        if words[0] in NO_MOVES:
            return None
        try:
            move = parse_usi(words[0])
            ponder = parse_usi(words[1]) if len(words) > 1 and words[1] not in NO_MOVES else None
            numbers = [int(word) for word in words[2:5]]
            if any(abs(number) > MAX_NUMBER for number in numbers):
                raise ValueError("out of range")
        except (NotationError, ValueError):
            raise BookError(
                f"{self.path}: broken line '{line[:60]}', expected a move, its answer, score, depth and count"
            ) from None
        score = numbers[0] if numbers else None
        depth, count = (*numbers[1:], 0, 0)[:2]
        return BookMove(move, max(count, 0), score, depth, ponder)


def _position_of(line: bytes) -> bytes:
    """Return board, side and hands of an SFEN, without the move number."""
    return b" ".join(line.split()[:3])


# -- using a book --------------------------------------------------------------------------------------------------


def open_book(path: str | Path, *, ignore_ply: bool = True) -> Book:
    """Open a book of any form. Raises BookError. Opening a text book may take seconds.

    `ignore_ply` finds the positions of YaneuraOu's books at any move.
    """
    path = Path(path)
    with reraised(OSError, BookError, f"cannot read the book {path}: "), path.open("rb") as file:
        head = file.read(4096)
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if head else None
    if data is None:
        raise BookError(f"{path} is empty: expected a book of openings")
    try:
        if _is_text_book(head.removeprefix(BYTE_ORDER_MARK)):
            return YaneuraouBook(path, data, ignore_ply=ignore_ply)
        if head.startswith(YBB_MAGIC):
            return YbbBook(path, data, ignore_ply=ignore_ply)
        if re.match(rb"#YANEURAOU|\s*sfen |#|//", head.removeprefix(BYTE_ORDER_MARK)):
            raise BookError(f"{path} begins '{head.splitlines()[0].decode('utf-8', 'replace')[:60]}': expected "
                            f"'{TEXT_HEADER.decode()}' or a position")  # fmt: skip
        return AperyBook(path, data)
    except BookError:
        data.close()
        raise


def _is_text_book(head: bytes) -> bool:
    """Return whether a file begins with the header of text books, or with a valid position."""
    if head.startswith(TEXT_HEADER):
        return True
    match = FIRST_LINE.match(head)
    try:
        return match is not None and bool(parse_sfen(match[1].decode("ascii")))
    except (SfenError, UnicodeDecodeError):
        return False


def choose(
    book: Book, placement: Placement, rng: random.Random, is_legal: Callable[[int], bool], options: Options
) -> BookMove | None:
    """Return a move of a book within the options' limits, or None. Raises BookError if the book is broken.

    Moves are drawn by their counts, or uniformly. Without counts the best score is chosen. `is_legal` excludes moves,
    since two positions may have the same key. A move without a score passes the limits on scores.
    """
    if options.book_moves and placement.number > options.book_moves:
        return None
    if options.book_ignore_rate and rng.random() < options.book_ignore_rate:
        return None
    found = book.moves(placement)
    if not found and options.book_flipped:
        found = [
            replace(entry, move=turned(entry.move), ponder=entry.ponder and turned(entry.ponder))
            for entry in book.moves(placement.turned())
        ]
    found = [entry for entry in found if is_legal(entry.move)]
    if options.narrow_book:
        counts = [entry.count for entry in found]
        least = min(NARROW_SHARE * sum(counts), max(counts, default=0))
        found = [entry for entry in found if entry.count >= least]
    best = _best_of(found)
    if best is None or best.depth < options.book_depth_limit:
        return None
    limit = options.book_eval_black_limit if placement.side == BLACK else options.book_eval_white_limit
    if best.score is not None:
        limit = max(limit, best.score - options.book_eval_diff)
    found = [entry for entry in found if entry.score is None or entry.score >= limit]
    best = _best_of(found)
    if best is None:
        return None
    weights = [float(entry.count) if options.book_counts else 1.0 for entry in found]
    if not any(weights):
        # A book without counts prefers its best score.
        weights = [float(entry.score == best.score) for entry in found]
    return rng.choices(found, weights)[0]


def _best_of(moves: Sequence[BookMove]) -> BookMove | None:
    """Return the first move with the best score. Moves without a score rank last. Return None if there are no moves."""
    return max(moves, key=lambda entry: -math.inf if entry.score is None else entry.score, default=None)
