"""Files of game records: CSA, KIF, KI2, JKF, lines of USI and hcpe3. hcpe is written only, JKF read only."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from yomi.engine.color import BLACK, WHITE
from yomi.engine.records import Note, read_record_bytes
from yomi.engine.shogi.notation import CSA_TYPES, JAPANESE_NAMES, NotationError, is_playable, parse_japanese
from yomi.engine.shogi.placement import HAND_INDEX, Placement, board_move, code_of, drop, japanese_square, target_of
from yomi.engine.shogi.records.csa import format_csa_records, looks_like_csa, read_csa
from yomi.engine.shogi.records.japanese import parse_handicap, read_comment, set_header
from yomi.engine.shogi.records.kif import format_kif_record, looks_like_kif, read_kif
from yomi.engine.shogi.records.packed import write_hcpe, write_hcpe3
from yomi.engine.shogi.records.record import (
    ENDINGS,
    START,
    GameRecord,
    RecordError,
    Texts,
    checked,
    cut_before,
    format_usi_line,
    lines_of,
    one_line,
    read_usi_lines,
)
from yomi.language import tr
from yomi.native.shogi.pieces import HAND_TYPES
from yomi.nets.files import write_atomically

SUFFIXES = (".csa", ".kif", ".kifu", ".usi", ".sfen", ".hcpe", ".hcpe3")
# Encodings by Python's names. The first one is preferred.
ENCODINGS = {"utf-8": "UTF-8", "cp932": "Shift JIS", "euc_jp": "EUC-JP"}
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
HEAD = 40  # lines in which a KIF file usually shows its form
# Signs of formats that are not read.
OTHER_FORMS = {
    "PSN": re.compile(r'\s*(?:\[(?:Sente|Gote)(?:_grade)? "|1\.\s*[+]?[PLNSGBRK](?:[1-9][a-i])?[-x*][1-9][a-i])'),
    "PGN": re.compile(r'\s*(?:\[(?:Event|Site|Round|White|Black|Variant|Result) "|1\.\s*[PLNSGBRK]?[a-i][1-9]\s)'),
}
MAX_BROKEN_SHARE = 0.3  # a file with more broken characters is not text
# Penalties for signs of a wrong encoding: broken, private or control characters, half-width katakana.
UNLIKELY = {"\ufffd": 4, "[\ue000-\uf8ff\x80-\x9f]": 2, "[\uff61-\uff9f]": 1}
INVALID = re.compile("[\0\uf8f0-\uf8f3]")  # NUL, and Python's characters for bytes that Shift JIS does not have


def read_records(data: bytes | str, *, cut: bool = False) -> list[GameRecord]:
    """Read CSA, KIF, KI2, JKF or USI, depending on the content. Raises RecordError for other texts.

    `cut` ends games before a move that the rules forbid, with a note. `decode` converts bytes to text.
    """
    text, notes = (data, []) if isinstance(data, str) else decode(data)
    lines = [line for line in lines_of(text) if line.strip()]
    if not lines:
        raise RecordError(tr("an empty record: expected CSA, KIF, KI2, JKF or lines of USI"))
    for name, sign in OTHER_FORMS.items():
        if any(map(sign.match, lines[:HEAD])):
            raise RecordError(tr("{name} is not read: expected CSA, KIF, KI2, JKF or lines of USI", name=name))
    if lines[0].lstrip().startswith("{"):
        records = [read_jkf(text, cut=cut)]
    elif looks_like_kif(lines[:HEAD]) or (not looks_like_csa(lines) and looks_like_kif(lines)):
        records = [read_kif(text, cut=cut)]
    elif looks_like_csa(lines):
        records = read_csa(text, cut=cut)
    else:
        records = read_usi_lines(text, cut=cut)
    for record in records:
        if record.notes and not record.moves and not record.ending and record.initial == START:
            raise RecordError(tr("no move was understood: {note}", note=record.notes[0]))
    if cut:
        for record in records:
            record.cut_at_fault()
    if records:
        records[0].notes[:0] = notes
    return records


def decode(data: bytes) -> tuple[str, list[Note]]:
    """Return the text of a record, and notes about broken bytes, which become U+FFFD. Raises RecordError if it is not
    text.

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
        text = tr("neither UTF-8 nor Shift JIS nor EUC-JP: expected a record in CSA, KIF, KI2, JKF or USI")
        raise RecordError(text)
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
    """Read the games of a file; see `read_records`. Raises RecordError, also if the file cannot be read."""
    try:
        return read_records(read_record_bytes(path), cut=cut)
    except OSError as error:
        raise RecordError(tr("cannot read {path}: {why}", path=path, why=error.strerror)) from None
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None


def to_bytes(records: Iterable[GameRecord], suffix: str) -> bytes:
    """Return games as the content of a file with this suffix. A `.kif` is Shift JIS, other text UTF-8.

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
                message = tr("Shift JIS has no '{found}': expected a name ending in .kifu (UTF-8)", found=found)
                raise RecordError(message) from None
        case ".usi" | ".sfen":
            return "".join(f"{format_usi_line(record)}\n" for record in games).encode("ascii")
        case ".hcpe":
            return write_hcpe(games)
        case ".hcpe3":
            return write_hcpe3(games)
    known = ", ".join(SUFFIXES)
    raise RecordError(tr("a record ending in '{suffix}': expected one of {known}", suffix=suffix, known=known))


def save_records(path: str | Path, records: Iterable[GameRecord]) -> None:
    """Write games in the format of the suffix. Raises RecordError, also if the file cannot be written."""
    path = Path(path)
    # An error in a record must not leave an empty file.
    data = to_bytes(records, path.suffix)
    try:
        write_atomically(path, data)
    except OSError as error:
        raise RecordError(tr("cannot write {path}: {why}", path=path, why=error.strerror)) from None


# -- JKF ---------------------------------------------------------------------------------------------------------------

# The JSON form of Kifu for JS. The first entry of `moves` is the initial position. Further entries contain a move or
# the ending, and `forks`: other lines instead of the entry's move.

# KIF's names of initial positions. Other handicaps are numbers of pieces.
PRESETS = {
    "HIRATE": "平手",
    "KY": "香落ち",
    "KY_R": "右香落ち",
    "KA": "角落ち",
    "HI": "飛車落ち",
    "HIKY": "飛香落ち",
} | {"5_L": "左五枚落ち", "7_L": "左七枚落ち", "7_R": "右七枚落ち"}
WORDS = {"L": "左", "C": "直", "R": "右", "U": "上", "M": "寄", "D": "引", "H": "打"}
MAX_DEPTH = 100  # of forks within forks


def read_jkf(text: str, *, cut: bool = False) -> GameRecord:
    """Read a game from JSON. Raises RecordError. For `cut` see `read_csa`."""
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False)
        # Lone surrogates, which JSON can escape but UTF-8 cannot encode, become U+FFFD.
        data = json.loads(whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    except RecursionError:
        raise RecordError("no JSON: nested too deep, expected a record in JKF") from None
    except ValueError as error:
        raise RecordError(f"no JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("moves"), list):
        raise RecordError("JSON without 'moves': expected a record in JKF")
    record = GameRecord(_initial(data.get("initial")))
    texts = Texts()
    _headers(record, texts, data.get("header"))
    _read_line(record, record, texts, _entries(data["moves"]), None, cut=cut, depth=0)
    texts.store()
    return record


def _initial(data: Any) -> Placement:
    preset = str(_get(data, "preset", "HIRATE")) if data is not None else "HIRATE"
    if preset != "OTHER":
        placement = parse_handicap(PRESETS.get(preset, f"{preset}枚落ち"))
        if placement is None:
            raise RecordError(f"the first position '{preset[:40]}': expected HIRATE, OTHER or a handicap of JKF")
        return placement
    state = _get(data, "data", {})
    board = [0] * 81
    for file, column in enumerate(_entries(_get(state, "board", []))[:9]):
        for rank, cell in enumerate(_entries(column)[:9]):
            kind = _get(cell, "kind", None)
            if kind is not None:
                board[9 * file + rank] = code_of(_type_of(kind), _color_of(_get(cell, "color", 0)))
    hands = []
    for hand in [*_entries(_get(state, "hands", [])), {}, {}][:2]:
        counts = {_type_of(kind): count for kind, count in hand.items()} if isinstance(hand, dict) else {}
        if not all(isinstance(count, int) and 0 <= count <= 18 for count in counts.values()):
            raise RecordError(f"the hand {str(hand)[:40]}: expected numbers of pieces")
        if any(count and kind not in HAND_INDEX for kind, count in counts.items()):
            raise RecordError(f"the hand {str(hand)[:40]}: expected pieces that can be in hand")
        hands.append(tuple(counts.get(kind, 0) for kind in HAND_TYPES))
    return checked(Placement(tuple(board), (hands[0], hands[1]), _color_of(_get(state, "color", 0))))


def _headers(record: GameRecord, texts: Texts, data: Any) -> None:
    for key, value in data.items() if isinstance(data, dict) else ():
        if key != "手合割":
            set_header(record, texts, str(key), one_line(str(value)))


def _read_line(
    game: GameRecord,
    record: GameRecord,
    texts: Texts,
    entries: list[Any],
    previous: int | None,
    *,
    cut: bool,
    depth: int,
) -> None:
    """Read the entries of a game or a fork into `record`, and their forks into the game's variations.

    `previous` is the target of the move before the entries. A fork is always cut.
    """
    placement = record.initial
    forks: list[tuple[Placement, int | None, list[Any]]] = []
    special: Any
    for entry in entries:
        for fork in _entries(_get(entry, "forks", None) or []):
            # Forks replace the entry's move, so they start before it.
            forks.append((placement, previous, _entries(fork)))
        move, special = _get(entry, "move", None), _get(entry, "special", None)
        if move is not None and not record.ending:
            number = len(record.moves) + 1
            try:
                placement = record.add(placement, _move_of(move, placement, previous))
            except (NotationError, RecordError) as error:
                fault = str(error) if isinstance(error, RecordError) else f"move {number}: {error}"
                if record is game and not cut:
                    raise RecordError(fault) from None
                game.add_note(cut_before(fault))
                break
            previous = target_of(record.moves[-1].move)
            record.moves[-1].seconds = _seconds(_get(entry, "time", None))
        # A move after the end: what follows is another program's business.
        elif move is not None:
            game.add_note("the moves after the end of the game are left out")
            break
        elif isinstance(special, str) and special in ENDINGS and not record.ending:
            record.ending, record.ending_seconds = special, _seconds(_get(entry, "time", None))
        elif special is not None:
            game.add_note(f"the ending '{str(special)[:40]}' is unknown and left out")
        for comment in _entries(_get(entry, "comments", None) or []):
            read_comment(record, texts, str(comment), by_black=placement.side == WHITE)
    if forks and depth >= MAX_DEPTH:
        game.add_note(f"forks in more than {MAX_DEPTH} forks are left out")
        return
    # A variation of KIF leaves the line before it, so that late forks come first.
    for start, target, fork in sorted(forks, key=lambda fork: -fork[0].number):
        variation = GameRecord(start)
        place = len(game.variations)
        game.variations.append(variation)
        _read_line(game, variation, texts, fork, target, cut=cut, depth=depth + 1)
        if not variation.moves:
            del game.variations[place]


def _move_of(data: Any, placement: Placement, previous: int | None) -> int:
    """Return the move of an entry. Records that were made from KI2 contain no source square."""
    piece, promote = _type_of(_get(data, "piece", None)), _get(data, "promote", None)
    to, source = _get(data, "to", None), _get(data, "from", None)
    # JKF leaves `to` out for 同.
    if to is None and previous is None:
        raise RecordError("a move without 'to': expected a square")
    target = previous if to is None else _square(to)
    assert target is not None
    if source is not None:
        return board_move(_square(source), target, bool(promote))
    relative = str(_get(data, "relative", None) or "")
    if relative == "H" and piece in HAND_INDEX:
        return drop(piece, target)
    words = "".join(WORDS.get(letter, "?") for letter in relative)
    end = "成" if promote else "不成" if promote is False else ""
    return parse_japanese(
        japanese_square(target) + JAPANESE_NAMES[piece] + words + end, placement, previous, is_playable(placement)
    )


def _seconds(data: Any) -> float | None:
    now = _get(data, "now", None) if data is not None else None
    parts = [_get(now, name, 0) or 0 for name in "hms"] if now is not None else []
    if not parts or not all(isinstance(part, int | float) and 0 <= part < 10**6 for part in parts):
        return None
    return float(3600 * parts[0] + 60 * parts[1] + parts[2])


def _get(data: Any, name: str, default: Any) -> Any:
    if not isinstance(data, dict):
        raise RecordError(f"{str(data)[:40]!r} found, expected an object with '{name}'")
    return data.get(name, default)


def _entries(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise RecordError(f"{str(data)[:40]!r} found, expected a list")
    return data


def _square(data: Any) -> int:
    file, rank = _get(data, "x", None), _get(data, "y", None)
    if not (isinstance(file, int) and isinstance(rank, int) and 1 <= file <= 9 and 1 <= rank <= 9):
        raise RecordError(f"the square {str(data)[:40]}: expected x and y from 1 to 9")
    return 9 * (file - 1) + rank - 1


def _type_of(kind: Any) -> int:
    if not isinstance(kind, str) or kind not in CSA_TYPES:
        raise RecordError(f"the piece {str(kind)[:20]!r}: expected one of {', '.join(CSA_TYPES)}")
    return CSA_TYPES[kind]


def _color_of(value: Any) -> int:
    if value not in (0, 1):
        raise RecordError(f"the color {str(value)[:20]!r}: expected 0 or 1")
    return WHITE if value else BLACK
