"""Files of game records: CSA, KIF, KI2, JKF, lines of USI and hcpe3. hcpe is written only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from yomi.engine.records import Note, read_record_bytes
from yomi.engine.shogi.records.csa import format_csa_records, looks_like_csa, read_csa
from yomi.engine.shogi.records.jkf import read_jkf
from yomi.engine.shogi.records.kif import format_kif_record, looks_like_kif, read_kif
from yomi.engine.shogi.records.packed import write_hcpe, write_hcpe3
from yomi.engine.shogi.records.record import GameRecord, RecordError, format_usi_line, lines_of, read_usi_lines
from yomi.nets.files import write_atomically

SUFFIXES = (".csa", ".kif", ".kifu", ".usi", ".sfen", ".hcpe", ".hcpe3")
# Encodings by Python's names. The first one is preferred.
ENCODINGS = {"utf-8": "UTF-8", "cp932": "Shift JIS", "euc_jp": "EUC-JP"}
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
HEAD = 40  # lines in which a KIF file usually shows its form
MAX_BROKEN_SHARE = 0.3  # a file with more broken characters is not text
# Penalties for signs of a wrong encoding: broken, private or control characters, half-width katakana.
UNLIKELY = {"\ufffd": 4, "[\ue000-\uf8ff\x80-\x9f]": 2, "[\uff61-\uff9f]": 1}
INVALID = re.compile("[\0\uf8f0-\uf8f3]")  # NUL, and Python's characters for bytes that Shift JIS does not have


def read_records(data: bytes | str, *, cut: bool = False) -> list[GameRecord]:
    """Read CSA, KIF, KI2, JKF or USI; the content decides. Raises RecordError for other texts.

    `cut` cuts games before a move that the rules forbid, and adds a note. `decode` turns bytes into text.
    """
    text, notes = (data, []) if isinstance(data, str) else decode(data)
    lines = [line for line in lines_of(text) if line.strip()]
    if not lines:
        raise RecordError("an empty record: expected CSA, KIF, KI2, JKF or lines of USI")
    if lines[0].lstrip().startswith("{"):
        records = [read_jkf(text, cut=cut)]
    elif looks_like_kif(lines[:HEAD]) or (not looks_like_csa(lines) and looks_like_kif(lines)):
        records = [read_kif(text, cut=cut)]
    elif looks_like_csa(lines):
        records = read_csa(text, cut=cut)
    else:
        records = read_usi_lines(text, cut=cut)
    if cut:
        for record in records:
            record.cut_at_fault()
    if records:
        records[0].notes[:0] = notes
    return records


def decode(data: bytes) -> tuple[str, list[Note]]:
    """Return a record's text, and notes about broken bytes, which become U+FFFD. Raises RecordError if it is not text.

    A byte order mark decides the encoding. Without one it is UTF-8 if the bytes are valid, otherwise Shift JIS or
    EUC-JP, whichever gives fewer unlikely characters.
    """
    mark = next((mark for mark in BYTE_ORDER_MARKS if data.startswith(mark)), None)
    if mark is not None:
        encoding = BYTE_ORDER_MARKS[mark]
    elif b"\x1b$" in data:
        encoding = "iso2022_jp"
    elif _is_utf8(data):
        return data.decode("utf-8"), []
    else:
        encoding = min(ENCODINGS, key=lambda name: _penalty(_decoded(data, name)))
    text = _decoded(data, encoding)
    broken = text.count("\ufffd")
    if broken > MAX_BROKEN_SHARE * len(text):
        raise RecordError("neither UTF-8 nor Shift JIS nor EUC-JP: expected a record in CSA, KIF, KI2, JKF or USI")
    if not broken:
        return text, []
    name = ENCODINGS.get(encoding, encoding)
    return text, [Note.at(text, text.index("\ufffd"), f"characters that are not {name} are replaced: {broken}")]


def _is_utf8(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _decoded(data: bytes, encoding: str) -> str:
    return INVALID.sub("\ufffd", data.decode(encoding, "replace"))


def _penalty(text: str) -> int:
    return sum(weight * len(re.findall(letters, text)) for letters, weight in UNLIKELY.items())


def load_records(path: str | Path, *, cut: bool = False) -> list[GameRecord]:
    """Read a file's games; `cut` as for `read_records`. Raises RecordError, also if it cannot be read."""
    try:
        return read_records(read_record_bytes(path), cut=cut)
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from None
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None


def to_bytes(records: Iterable[GameRecord], suffix: str) -> bytes:
    """Return the content of a file with this suffix. A `.kif` is Shift JIS, other text UTF-8.

    Raises RecordError for an unknown suffix, several games for KIF, or a name that Shift JIS cannot write.
    """
    games = list(records)
    match suffix.lower():
        case ".csa":
            return format_csa_records(games).encode("utf-8")
        case ".kif" | ".kifu" if len(games) != 1:
            raise RecordError(f"{len(games)} games: expected one for a file in KIF")
        case ".kifu":
            return format_kif_record(games[0], "UTF-8").encode("utf-8")
        case ".kif":
            try:
                return format_kif_record(games[0], "Shift_JIS").encode("cp932")
            except UnicodeEncodeError as error:
                found = error.object[error.start]
                raise RecordError(f"Shift JIS has no '{found}': expected a name ending in .kifu (UTF-8)") from None
        case ".usi" | ".sfen":
            return "".join(f"{format_usi_line(record)}\n" for record in games).encode("ascii")
        case ".hcpe":
            return write_hcpe(games)
        case ".hcpe3":
            return write_hcpe3(games)
    raise RecordError(f"a record ending in '{suffix}': expected one of {', '.join(SUFFIXES)}")


def save_records(path: str | Path, records: Iterable[GameRecord]) -> None:
    """Write games in the form of the suffix. Raises RecordError, also if the file cannot be written."""
    path = Path(path)
    # An error in a record must not leave an empty file.
    data = to_bytes(records, path.suffix)
    try:
        write_atomically(path, data)
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror}") from None
