"""Files of game records in every form: CSA, KIF, KI2, lines of USI, hcpe3, and hcpe, which is written alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from engine.shogi.records.csa import format_csa_records, looks_like_csa, read_csa
from engine.shogi.records.hcpe import write_hcpe
from engine.shogi.records.hcpe3 import write_hcpe3
from engine.shogi.records.kif import format_kif_record, looks_like_kif, read_kif
from engine.shogi.records.record import GameRecord, RecordError, format_usi_line, read_usi_lines
from nets.files import write_atomically

SUFFIXES = (".csa", ".kif", ".kifu", ".usi", ".sfen", ".hcpe", ".hcpe3")


def read_records(data: bytes | str, *, cut: bool = False) -> list[GameRecord]:
    """Read the games of CSA, KIF, KI2 or USI text, which its content tells apart.

    Args:
        data: the text; bytes are UTF-8 where they can be, else Shift JIS.
        cut: leave games out from any move on that the rules forbid, and say so in their `left_out`.

    Raises:
        RecordError: in none of the forms, or broken.
    """
    text = data if isinstance(data, str) else decode(data)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise RecordError("an empty record: expected CSA, KIF, KI2 or lines of USI")
    if looks_like_kif(lines):
        records = [read_kif(text, cut=cut)]
    elif looks_like_csa(lines):
        records = read_csa(text, cut=cut)
    else:
        records = read_usi_lines(text, cut=cut)
    if cut:
        for record in records:
            record.cut_at_fault()
    return records


def decode(data: bytes) -> str:
    """Decode a record: UTF-8 (a byte order mark may stand before it), or Shift JIS.

    Raises:
        RecordError: neither.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp932")
    except UnicodeDecodeError:
        raise RecordError("neither UTF-8 nor Shift JIS: expected a record in CSA, KIF, KI2 or USI") from None


def load_records(path: str | Path, *, cut: bool = False) -> list[GameRecord]:
    """Read the games of a file; `cut` as in `read_records`.

    Raises:
        RecordError: the file cannot be read, or see `read_records`.
    """
    try:
        return read_records(Path(path).read_bytes(), cut=cut)
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from None
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None


def to_bytes(records: Iterable[GameRecord], suffix: str) -> bytes:
    """Return games as the content of a file whose name ends in `suffix`: KIF holds one game, the others any number.

    A `.kif` is Shift JIS, all other text UTF-8.

    Raises:
        RecordError: an unknown suffix, several games for KIF, or a name that Shift JIS cannot write.
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
    """Write games to a file, in the form that its name tells; see `to_bytes`.

    Raises:
        RecordError: see `to_bytes`, or the file cannot be written.
    """
    path = Path(path)
    data = to_bytes(records, path.suffix)
    try:
        write_atomically(path, data)
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror}") from None
