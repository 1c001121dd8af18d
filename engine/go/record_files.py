"""Files of Go records: SGF, GIB (Tygem), NGF (Cyberoro, WBaduk) and UGF (Pandanet). The content determines the format.

GIB, NGF and UGF have no public specification. Sources: the converters xyz2sgf and Sabaki; for UGF, A. Brouwer's
description (https://homepages.cwi.nl/~aeb/go/misc/ugf.html).
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.go.encodings import decode_sgf
from yomi.engine.go.points import Board, HandicapError, square
from yomi.engine.go.record_rules import Source
from yomi.engine.go.rules import Rules
from yomi.engine.go.scoring import komi_in_text, result_in_words
from yomi.engine.go.sgf import GameRecord, Node, SgfError, escaped
from yomi.engine.go.sgf_reader import each_sgf_game, read_board
from yomi.engine.records import Note, read_record_bytes
from yomi.language import tr
from yomi.native.go.board import MAX_SIZE, MIN_SIZE, PASS


def each_record(data: bytes) -> Iterator[GameRecord | SgfError]:
    """Yield each game of a file, or the error that prevents reading it; at least one."""
    reader = reader_of(data)
    if reader is None:
        yield from each_sgf_game(data)
        return
    try:
        yield reader(data)
    except SgfError as error:
        yield error


def load_records(path: str | Path) -> list[GameRecord]:
    """Read all games of a file. An unreadable game becomes a note of the first game.

    Raises:
        SgfError: the file cannot be opened, or no game can be read.
    """
    records: list[GameRecord] = []
    faults: list[SgfError] = []
    for found in each_record(_bytes_of(path)):
        if isinstance(found, GameRecord):
            records.append(found)
        else:
            faults.append(found)
    if not records:
        raise faults[0]
    records[0].notes += [fault.note.extended("this game is left out") for fault in faults]
    return records


def load_record(path: str | Path) -> GameRecord:
    """Read the first game of a file, or raise SgfError."""
    found = next(each_record(_bytes_of(path)))
    if isinstance(found, SgfError):
        raise found
    return found


def load_board(path: str | Path) -> Board:
    """Return the board of a file's first game, or raise SgfError. Only the root of an SGF file is read."""
    data = _bytes_of(path)
    if reader_of(data) is not None:
        return load_record(path).board
    return read_board(data)


def _bytes_of(path: str | Path) -> bytes:
    try:
        return read_record_bytes(path)
    except OSError as error:
        raise SgfError(tr("cannot read {path}: {why}", path=path, why=error.strerror)) from None


# -- GIB, NGF and UGF --------------------------------------------------------------------------------------------------

_LINE_END = re.compile(r"\r\n|\r|\n")
_GIB_FIELD = re.compile(r"\\\[(\w+)=(.*?)\\\]", re.DOTALL)
_NGF_MOVE = re.compile(r"PM..([BW])([A-Z])([A-Z])")
# Tygem's codes (GRLT, W). For 0 and 1 another field has the points times ten.
_RESULT_CODES = {"0": "B+", "1": "W+", "3": "B+R", "4": "W+R", "7": "B+T", "8": "W+T"}
_COLORS = {"1": BLACK, "2": WHITE, "B": BLACK, "W": WHITE}
_GIB_SIZE = _UGF_SIZE = 19


def reader_of(data: bytes) -> Callable[[bytes], GameRecord] | None:
    """Return the reader for content in GIB, NGF or UGF, or None if it looks like none of them."""
    found = ((looks_like_gib, read_gib), (looks_like_ngf, read_ngf), (looks_like_ugf, read_ugf))
    return next((reader for looks_like, reader in found if looks_like(data)), None)


def looks_like_gib(data: bytes) -> bool:
    head = data[:200].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith((rb"\HS", rb"\[GAME"))


def looks_like_ngf(data: bytes) -> bool:
    """Return whether a file is NGF: its second line is a board size, or lines of moves begin with PM."""
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"("):
        return False
    lines = data[:2000].splitlines()
    return bool(re.search(rb"(?m)^PM..[BW][A-Z]{2}", data)) or (
        len(lines) > 10 and bool(re.fullmatch(rb"\s*(?:9|13|19)\s*", lines[1])) and b"win" in lines[10]
    )


def looks_like_ugf(data: bytes) -> bool:
    """Return whether a file is UGF or UGI: its first section, after comments, is the header."""
    return bool(re.match(rb"(?:\xef\xbb\xbf)?(?:\s|#[^\r\n]*[\r\n])*+\[Header\]", data, re.IGNORECASE))


def read_gib(data: bytes) -> GameRecord:
    """Read a record of Tygem. Raises SgfError if it has no moves."""
    text, notes = decode_sgf(data)
    fields = dict(_GIB_FIELD.findall(text))
    record = GameRecord(square(_GIB_SIZE), source=Source("Tygem"), notes=notes)
    record.black = _with_rank(record, "BR", *_split_rank(fields.get("GAMEBLACKNAME", "")))
    record.white = _with_rank(record, "WR", *_split_rank(fields.get("GAMEWHITENAME", "")))
    tags = f",{fields.get('GAMETAG', '')},{fields.get('GAMEINFOMAIN', '')},"
    record.result = _tygem_result(tags) or result_in_words(fields.get("GAMERESULT", ""))
    if komi := re.search(r",(?:G|GONGJE:)(\d+),", tags):
        record.komi = _number(komi[1]) / 10
    else:
        record.komi = komi_in_text(fields.get("GAMECONDITION", "").partition(":")[2])
    if date := re.search(r",C(\d{4}):(\d\d):(\d\d)", tags):
        record.date = "-".join(date.groups())
    node = record.root
    for number, line in enumerate(_LINE_END.split(text), 1):
        words = line.split()
        match words[:1]:
            case ["INI"] if len(words) > 3 and words[3].isdecimal():
                _place_handicap(record, _number(words[3]), number)
            case ["STO"]:
                node = _add_move(record, node, words[3:6], number, line)
            case ["SKI"]:
                last = node.move[0] if node.move else WHITE if not record.handicap else BLACK
                node = node.add(opponent(last), PASS)
    if rb"\GE" not in data:
        notes.append(Note("the text ends without \\GE: moves may be missing"))
    return _checked(record, "STO 0 2 1 15 3")


def read_ngf(data: bytes) -> GameRecord:
    """Read a record of Cyberoro or WBaduk. Raises SgfError if it has no moves or an impossible board size."""
    text, notes = decode_sgf(data)
    lines = _LINE_END.split(text)
    header = [line.strip() for line in lines[:12] if not _NGF_MOVE.match(line)]
    header += [""] * (12 - len(header))
    size = _number(header[1]) if header[1].isdecimal() else _GIB_SIZE
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise SgfError(f"board size {size}: expected {MIN_SIZE} to {MAX_SIZE}", Note("", 2))
    record = GameRecord(square(size), source=Source("Cyberoro"), notes=notes)
    record.white, record.black = (
        _with_rank(record, key, *_last_word(text)) for key, text in (("WR", header[2]), ("BR", header[3]))
    )
    if header[5].isdecimal():
        _place_handicap(record, _number(header[5]), 6)
    komi = komi_in_text(header[7])
    if komi is not None:
        record.komi = komi + 0.5 if komi.is_integer() and not record.handicap else komi
    if date := re.match(r"(\d{4})(\d\d)(\d\d)", header[8]):
        record.date = "-".join(date.groups())
    record.result = result_in_words(header[10])
    node = record.root
    for number, line in enumerate(lines, 1):
        if found := _NGF_MOVE.match(line.strip()):
            color, *letters = found.groups()
            places = [str(ord(letter) - ord("B")) for letter in letters]
            node = _add_move(record, node, [color, *places], number, line)
    return _checked(record, "PMABBQDQD")


def read_ugf(data: bytes) -> GameRecord:
    """Read a record of Pandanet. Raises SgfError if it has no moves or an impossible board size."""
    language = re.search(rb"(?m)^\s*Lang=([\w-]+)", data)
    text, notes = decode_sgf(data, language[1] if language else b"")
    lines = [(number, line.strip()) for number, line in enumerate(_LINE_END.split(text), 1)]
    begin = next((place for place, (_, line) in enumerate(lines) if line.lower() == "[data]"), len(lines))
    fields = {name.strip(): value.strip() for _, line in lines[:begin] for name, _, value in [line.partition("=")]}
    size = _number(fields["Size"]) if fields.get("Size", "").isdecimal() else _UGF_SIZE
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise SgfError(f"board size {size}: expected {MIN_SIZE} to {MAX_SIZE}")
    record = GameRecord(square(size), source=Source("Pandanet"), notes=notes)
    for side, key in (("B", "BR"), ("W", "WR")):
        name, _, rest = fields.get(f"Player{side}", "").partition(",")
        setattr(record, "black" if side == "B" else "white", _with_rank(record, key, name, rest.partition(",")[0]))
    name = fields.get("Rule", "")
    record.rules = Rules.named(name) if name else None
    record.rules_text = name if record.rules is None else ""
    stones, _, komi = fields.get("Hdcp", "").partition(",")
    record.handicap = _number(stones) if stones.isdecimal() and int(stones[:9]) >= 2 else 0
    record.komi = komi_in_text(komi)
    if record.komi is not None and record.komi < 0 and not record.handicap:
        notes.append(Note(f"komi {record.komi:g} of an even game: read as {-record.komi:g}"))
        record.komi = -record.komi  # newer files count it from Black's side
    record.date = fields.get("Date", "").partition(",")[0].replace("/", "-").strip("-")
    record.result = _pandanet_result(fields.get("Winner", ""))
    from_below = fields.get("CoordinateType", "").upper() == "IGS"
    node = record.root
    for number, line in lines[begin + 1 :]:
        if line.startswith("["):
            break
        if not line or line.startswith("."):
            continue
        place, player, count = ([word.strip() for word in line.split(",")] + ["", ""])[:3]
        row = -1 if place[1:] == "" else ord(place[1]) - ord("A")
        column = ord(place[0]) - ord("A") if place else -1
        is_pass = column >= ord("Y") - ord("A")  # YA, YR, YS, YZ, ZZ
        row = size - 1 - row if from_below else row
        at = [-1, -1] if is_pass else [column, row] if 0 <= row < size else [size, size]
        color = player[:1] if player[:1] in ("B", "W") else ("W" if node.move and node.move[0] == BLACK else "B")
        if count == "0" and not is_pass and max(at) < size and min(at) >= 0:
            record.root.setup.append((_COLORS[color], record.board.point(*at)))
        else:
            node = _add_move(record, node, [color, *map(str, at)], number, line)
    if not record.root.setup:
        record.place_missing_handicap()
    return _checked(record, "PP,B1,1 in a section [Data]")


def _pandanet_result(winner: str) -> str:
    """Return the SGF result of the field Winner: "B,7.50", "W,C" (resignation), "W,T", "D," or "N1,"."""
    side, _, how = winner.upper().partition(",")
    points = komi_in_text(how)
    if side in ("B", "W"):
        reason = {"C": "R", "R": "R", "T": "T", "F": "F"}.get(how[:1])
        return f"{side}+{reason or (f'{points:g}' if points is not None else '')}"
    return {"D": "0", "N": "Void"}.get(side[:1], "")


def _tygem_result(tags: str) -> str:
    found = re.search(r",(?:W|GRLT:)(\d+),", tags)
    result = _RESULT_CODES.get(found[1], "") if found else ""
    if not result.endswith("+"):
        return result
    points = re.search(r",(?:Z|ZIPSU:)(\d+),", tags)
    return f"{result}{_number(points[1]) / 10:g}" if points else result


def _number(digits: str) -> int:
    """Return a number from its first nine digits. Python refuses to convert thousands of digits."""
    return int(digits[:9])


def _split_rank(text: str) -> tuple[str, str]:
    """Split "name (7D)" into name and rank."""
    name, mark, rest = text.strip().partition("(")
    rank = rest.removesuffix(")")
    is_rank = mark and name.strip() and rest.endswith(")") and "(" not in rank and ")" not in rank
    return (name.strip(), rank) if is_rank else (text.strip(), "")


def _last_word(text: str) -> tuple[str, str]:
    """Split "name   7D*" into name and last word."""
    found = re.fullmatch(r"(.*\S)\s+(\d+\s*[A-Za-z]+\*?)", text)
    return (found[1], found[2]) if found else (text, "")


def _with_rank(record: GameRecord, key: str, name: str, rank: str) -> str:
    """Store a rank in the root, and return the name."""
    if rank:
        record.root.other[key] = [escaped(rank)]
    return name


def _place_handicap(record: GameRecord, stones: int, line: int) -> None:
    """Set up handicap stones on the points of GTP's fixed_handicap, as the servers with these formats do."""
    if stones < 2:
        return
    record.handicap = stones
    try:
        record.place_handicap()
    except HandicapError as error:
        record.handicap = 0
        record.notes.append(Note(f"handicap left out: {error}", line))


def _add_move(record: GameRecord, node: Node, words: list[str], line: int, text: str) -> Node:
    """Append a move [color, column, row] and return its node. Columns and rows count from 0 at the top left."""
    numbers = [int(word) for word in words[1:] if re.fullmatch(r"-?\d{1,3}", word)]
    color = _COLORS.get(words[0]) if words else None
    if color is not None and numbers == [-1, -1]:
        return node.add(color, PASS)
    if color is None or len(numbers) != 2 or not all(0 <= number < record.board.side for number in numbers):
        shown = " ".join(text[:40].split())
        fault = Note(f"'{shown}': expected a move on a {record.board} board", line)
        node.children.append(broken := Node(fault=fault))
        return broken
    return node.add(color, record.board.point(numbers[0], numbers[1]))


def _checked(record: GameRecord, word: str) -> GameRecord:
    """Return a record, or raise SgfError if it has no moves."""
    if not record.root.children:
        raise SgfError(f"no moves found, expected lines such as {word}")
    return record
