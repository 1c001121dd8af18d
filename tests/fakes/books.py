"""Books of openings in all forms, for tests."""

from collections.abc import Sequence
from pathlib import Path

from yomi.engine.shogi.book import RECORD, TEXT_HEADER, YBB_ENTRY, YBB_HEADER, YBB_MAGIC, YBB_MOVES, BookMove, book_key
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.placement import Placement, format_sfen
from yomi.engine.shogi.records.packed import pack_psv, to_psv_move

Positions = Sequence[tuple[Placement, Sequence[BookMove]]]


def write_apery(path: Path, positions: Positions) -> None:
    """Write a binary book."""
    rows = [
        (book_key(placement), entry.move, entry.count, entry.score)
        for placement, entries in positions
        for entry in entries
    ]
    path.write_bytes(b"".join(RECORD.pack(*row) for row in sorted(rows, key=lambda row: row[0])))


def write_yaneuraou(path: Path, positions: Positions) -> None:
    """Write a text book."""
    lines = [TEXT_HEADER.decode()]
    for placement, entries in positions:
        lines.append(f"sfen {format_sfen(placement)}")
        for entry in entries:
            ponder = "none" if entry.ponder is None else format_usi(entry.ponder)
            lines.append(f"{format_usi(entry.move)} {ponder} {entry.score} {entry.depth} {entry.count}")
    path.write_text("\n".join(lines) + "\n")


def write_ybb(path: Path, positions: Positions, *, depths: bool = True) -> None:
    """Write a binary book of YaneuraOu."""
    entries, moves = b"", b""
    for placement, found in sorted(positions, key=lambda row: pack_psv(row[0])):
        entries += YBB_ENTRY.pack(pack_psv(placement), len(moves), placement.number, len(found))
        for entry in found:
            fields = (to_psv_move(entry.move), entry.score, entry.depth)
            moves += YBB_MOVES[depths].pack(*fields[: 2 + depths])
    path.write_bytes(YBB_HEADER.pack(YBB_MAGIC, len(positions), depths) + entries + moves)
