"""Reads SGF: parses decoded text into nodes, then interprets their properties.

Faults become notes (`GameRecord.notes`) if the moves are still readable.
"""

import itertools
import math
import re
import string
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from sgfmill import sgf_grammar

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.encodings import decode_sgf
from yomi.engine.go.points import Board, square
from yomi.engine.go.record_rules import Source
from yomi.engine.go.rules import Rules
from yomi.engine.go.scoring import komi_in_text
from yomi.engine.go.sgf import APPLICATION, SETUP_PROPERTIES, GameRecord, Node, SgfError, line_of
from yomi.engine.options import MAX_KOMI
from yomi.engine.records import Note
from yomi.native.go.board import MAX_SIZE, MIN_SIZE, PASS

MOVE_PROPERTIES = {"B": BLACK, "W": WHITE}
# First letters of PL, in lower case. Old programs write numbers.
SIDES = {"b": BLACK, "w": WHITE, "1": BLACK, "2": WHITE}
# Programs (AP) that write even a small komi in hundredths (KM[50]), and 350 for 3.5 stones.
HUNDREDTHS = ("foxwq", "SGFC:2.0")
# Properties that only Fox writes. Other programs have replaced Fox's AP in many files.
FOX_PROPERTIES = ("TC", "TT", "RL")
MAX_HUNDREDTHS = 1000  # from here on a komi is not in hundredths
MAX_STONES = 5  # from here on a komi with a quarter is in points, below in stones
ROOT_PROPERTIES = ("FF", "GM", "SZ", "CA", "AP", "PB", "PW", "RE", "DT", "OT", "KM", "HA", "TM", "RU")
NODE_PROPERTIES = ("B", "W", *SETUP_PROPERTIES, "PL", "C")
_SIZE = re.compile(r"([0-9]{1,4})\s*(?:[:x*×路][\s]*([0-9]{1,4})?)?", re.IGNORECASE)
MAX_GAME_NOTES = 100  # Maximum notes of a game. A file that is not SGF may have any number of faults.
MAX_REPAIR = 2000  # maximum characters between two brackets of which the first may belong to a text
POINTS = ("B", "W", "AB", "AW", "AE")  # properties whose values are points
_VALUE = re.compile(r"\[([^\\\]]*(?:\\.[^\\\]]*)*)\]", re.DOTALL)
_VALUE_REST = re.compile(r"[^\\\]]*(?:\\.[^\\\]]*)*\]", re.DOTALL)
_NAME = re.compile(r"[A-Za-z]{1,64}")
_BLANK = re.compile(r"[\s\0\ufeff]*")
_STRAY = re.compile(r"[A-Za-z]{1,64}|[^\s;()\[A-Za-z]+")
# Beginning of a game. Some programs omit the first `;`, and a damaged file may lack its first `(`.
# Two patterns: a search for a literal "(" is ten times as fast as one for alternatives.
_START = re.compile(r"\(\s*(?:;|[A-Z]{1,2}\s*\[)")
_BARE_START = re.compile(r"[\s\ufeff]*;\s*[A-Z]{1,2}\s*\[")  # without a parenthesis, at the start of the text only
_ROOT = re.compile(r"\(\s*;\s*(?:GM|FF|SZ|CA|AP)\s*\[")  # beginning of a game but not of a variation
_CONTINUATION = re.compile(r"\s*(?:[\[;()]|[A-Za-z]{1,64}\s*\[|\Z)")  # text that may follow a value
# A node with only a move, as most nodes. Reading it without the repairs halves the time.
_PLAIN_NODE = re.compile(r";([BW])\[([a-z]{2})\](?=[;()])")
_NODE = re.compile(r";\s*(?:[A-Z]{1,2}\s*\[|\Z)")
# End of a value that has swallowed the next node, because its own bracket is missing.
_LOST_END = re.compile(r";\s*[BW]\s*\[[a-z]{0,2}\Z|\(\s*;\s*(?:GM|FF|SZ|CA|AP)\s*\[[^\[\]]*\Z")
_LOST_POINT = re.compile(r"\[([a-zA-Z]{0,2})(?=\s*(?:;\s*[A-Z]{1,2}\s*\[|[()]|\[))")  # a point whose bracket is missing
_NO_LOWER = str.maketrans("", "", string.ascii_lowercase)


@dataclass(slots=True)
class RawNode:
    parent: int  # index of the parent in text order; -1 for the root
    properties: dict[str, list[str]] = field(default_factory=dict)  # values are still escaped
    places: dict[str, int] = field(default_factory=dict)  # property name -> offset in the text


class GameParser:
    """Parses one game of a text. Nodes are not kept, because some files have a million nodes."""

    def __init__(self, text: str, start: int) -> None:
        """Prepare to parse the game at `start`, an offset from `find_game`."""
        self.text = text
        self.end = start  # Offset after the game. `nodes` sets it after the last node.
        self.notes: list[Note] = []

    def note(self, offset: int, fault: str) -> None:
        if len(self.notes) < MAX_GAME_NOTES:
            self.notes.append(Note.at(self.text, offset, fault))

    def nodes(self) -> Iterator[RawNode]:
        """Yield the nodes in text order."""
        text, place = self.text, _skip(self.text, self.end)
        number = tip = -1  # the last node; the node that the next one follows
        starts: list[int] = []  # the nodes that the open variations follow
        node: RawNode | None = None
        is_empty = is_closed = False  # the variation has no node yet; it has variations of its own
        if text[place] != "(":
            self.note(place, "no '(' at the beginning of the game: read as if it was there")
            starts, is_empty = [-1], True
        while (place := _skip(text, place)) < len(text):
            mark = text[place]
            if mark in ";()":
                if node is not None:
                    yield node
                    number += 1
                    tip, node = number, None
                if mark == ";":
                    if is_closed:
                        self.note(place, "a node after the variations of its parent: read as another variation")
                    node, is_empty = RawNode(tip), False
                    if plain := _PLAIN_NODE.match(text, place):
                        node.properties[plain[1]], node.places[plain[1]] = [plain[2]], plain.start(1)
                        place = plain.end()
                        continue
                elif mark == "(":
                    if number >= 0 and _ROOT.match(text, place):
                        self.note(place, f"the next game begins: {len(starts)} ')' are missing before it")
                        break
                    if is_empty and number >= 0:
                        self.note(place, "a variation without a node of its own")
                    starts.append(tip)
                    is_empty, is_closed = True, False
                else:
                    if is_empty:
                        self.note(place, "a variation without nodes: left out")
                    tip, is_empty, is_closed = starts.pop(), False, True
                    if not starts:
                        place += 1
                        break
                place += 1
                continue
            if (name := _NAME.match(text, place)) and text.startswith("[", _skip(text, name.end())):
                if node is None:
                    if number >= 0:  # the Nihon Ki-in leaves the root's out
                        self.note(place, f"no ';' before {name[0]}: read as if it was there")
                    node, is_empty = RawNode(tip), False
                place = self._read_property(node, name[0], place, name.end())
            else:
                place = self._skip_stray(place)
        else:
            self.note(len(text), f"the text ends: {len(starts)} ')' are missing")
            if node is not None:
                yield node
        self.end = place

    def _read_property(self, node: RawNode, name: str, begin: int, place: int) -> int:
        """Add a property to a node, and return the offset after its values."""
        key = name.translate(_NO_LOWER)  # old files write AddBlack for AB
        values = node.properties.setdefault(key, [])
        node.places.setdefault(key, begin)
        while self.text.startswith("[", begin := _skip(self.text, place)):
            value, place = self._read_value(key, begin)
            if value is not None:
                values.append(value)
        if not values:
            del node.properties[key]
        return place

    def _read_value(self, key: str, begin: int) -> tuple[str | None, int]:
        """Return the value whose bracket is at `begin`, and the offset after it. An unfinished point is None."""
        text = self.text
        if key in POINTS and (lost := _LOST_POINT.match(text, begin)):
            self.note(lost.end(), f"no ']' after {key}[{lost[1]}: read as if it was there")
            return lost[1], lost.end()
        found = _VALUE.match(text, begin)
        if found is None:
            self.note(begin, f"the text ends within a value of {key}" + ": left out" * (key in POINTS))
            return None if key in POINTS else text[begin + 1 :].rstrip("\\"), len(text)
        end = found.end() - 1
        if key in POINTS:
            return found[1], end + 1
        if lost := _LOST_END.search(text, begin + 1, end):
            self.note(lost.start(), f"no ']' after a value of {key}: read as if it was there")
            return text[begin + 1 : lost.start()].rstrip("\\"), lost.start()
        ends = [end]
        opened = text.count("[", begin + 1, end)
        while not _CONTINUATION.match(text, ends[-1] + 1):
            following = _VALUE_REST.match(text, ends[-1] + 1, ends[-1] + 1 + MAX_REPAIR)
            is_far = ends[-1] - end > 5 * MAX_REPAIR  # without a limit, the time is the square of the text's length
            if (
                following is None
                or is_far
                or _NODE.search(following[0])
                or ("[" in following[0] and opened < len(ends))
            ):
                return found[1], end + 1  # the text after the value is stray
            ends.append(following.end() - 1)
        if len(ends) > 1:
            self.note(end, f"']' without a backslash in a value of {key}: read as text")
        pieces = (text[a + 1 : b] for a, b in itertools.pairwise((begin, *ends)))
        return "\\]".join(pieces), ends[-1] + 1

    def _skip_stray(self, place: int) -> int:
        """Skip text that belongs to no property. Return the offset after it."""
        found = _VALUE.match(self.text, place) or _STRAY.match(self.text, place)
        end = found.end() if found else len(self.text)
        shown = " ".join(self.text[place : min(end, place + 20)].split())
        self.note(place, f"'{shown}' found, expected a property or a node: left out")
        return end


def find_game(text: str, begin: int = 0) -> int:
    """Return the offset of the next game; -1 if there is none."""
    if begin == 0 and _BARE_START.match(text):
        return 0
    found = _START.search(text, begin)
    return found.start() if found else -1


def _skip(text: str, place: int) -> int:
    if " " < text[place : place + 1] <= "~":
        return place
    found = _BLANK.match(text, place)
    assert found is not None
    return found.end()


# -- from nodes to a record ------------------------------------------------------------------------------------------


def each_sgf_game(data: bytes | str) -> Iterator[GameRecord | SgfError]:
    """Yield each game of a file, or the error that prevents reading it; at least one. For encodings see `decode_sgf`.

    Broken text is read as far as possible, with a note for each fault. A TM that is not a number is kept in `other`; an
    HA that is not a number is dropped. A game without an end ends at the next root, whose first property distinguishes
    it from a variation.
    """
    text, notes = (data, []) if isinstance(data, str) else decode_sgf(data)
    start = find_game(text)
    if start < 0:
        yield SgfError("no game of SGF found, expected '(;'")
    while start >= 0:
        parser = GameParser(text, start)
        try:
            record = _Reader(parser).read()
            record.notes[:0] = notes
            notes = []
            yield record
        except SgfError as error:
            for _ in parser.nodes():  # finds the end
                pass
            yield error
        start = find_game(text, parser.end)


def read_board(data: bytes) -> Board:
    """Return the board of the first game of SGF data, or raise SgfError. Only its root is read."""
    text, _ = decode_sgf(data)
    start = find_game(text)
    if start < 0:
        raise SgfError("no game of SGF found, expected '(;'")
    return _Reader(GameParser(text, start)).read_root()[0].board


class _Reader:
    """Converts parsed nodes to a record."""

    def __init__(self, parser: GameParser) -> None:
        self._parser = parser
        self._nodes = parser.nodes()
        self._board = square(19)

    def read(self) -> GameRecord:
        record, last = self.read_root()
        made = [last]
        for raw in self._nodes:
            node = Node()
            made[max(raw.parent, 0)].children.append(node)
            made.append(self._read_node(raw, node))
        record.notes = self._parser.notes
        _follow_moves(record)
        record.place_missing_handicap()
        return record

    def read_root(self) -> tuple[GameRecord, Node]:
        """Return a record with the root's properties, and the node to which the next nodes are added."""
        raw = next(self._nodes)
        self._board = self._read_board(raw)
        record = GameRecord(self._board)
        record.black, record.white = _text(raw, "PB"), _text(raw, "PW")
        record.result, record.date, record.overtime = _text(raw, "RE"), _text(raw, "DT"), _text(raw, "OT")
        handicap, seconds = _number(raw, "HA"), _number(raw, "TM")
        record.handicap = int(handicap) if handicap is not None and handicap >= 2 else 0
        is_text = seconds is not None and math.isnan(seconds)
        record.seconds = None if is_text else seconds
        name = _text(raw, "RU").strip()
        record.rules = Rules.named(name) if name else None
        if record.rules is None:
            record.rules_text = name  # `replay` raises if the rules are needed; a viewer may not need them
        self._read_komi(raw, record, is_even=not handicap)
        last = self._read_node(raw, record.root)
        for key in ROOT_PROPERTIES:
            if not (key == "TM" and is_text):
                record.root.other.pop(key, None)
        return record, last

    def _note(self, raw: RawNode, key: str, text: str) -> None:
        self._parser.note(raw.places.get(key, 0), text)

    def _error(self, raw: RawNode, key: str, text: str) -> SgfError:
        return SgfError(text, Note.at(self._parser.text, raw.places[key], text))

    def _read_board(self, raw: RawNode) -> Board:
        game = _text(raw, "GM").strip()
        if game.lower() not in ("1", "", "go"):
            raise self._error(raw, "GM", f"not a game of Go: GM is {line_of(game)}, expected 1")
        text = unicodedata.normalize("NFKC", _text(raw, "SZ")).strip()
        if not text:
            if "SZ" in raw.properties:
                self._note(raw, "SZ", "SZ is empty: read as 19")
            return square(19)
        found = _SIZE.fullmatch(text)
        if found is None:
            wanted = f"expected a number from {MIN_SIZE} to {MAX_SIZE}"
            raise self._error(raw, "SZ", f"board size '{line_of(text)}': {wanted}")
        width, height = int(found[1]), int(found[2] or found[1])
        if not (MIN_SIZE <= width <= MAX_SIZE and MIN_SIZE <= height <= MAX_SIZE):
            raise self._error(raw, "SZ", f"board size {text}: expected {MIN_SIZE} to {MAX_SIZE}")
        return Board(width, height)

    def _read_komi(self, raw: RawNode, record: GameRecord, *, is_even: bool) -> None:
        """Store the komi in points (see `komi_in_points`), and facts about it that suggest rules."""
        places = " ".join(_unescaped(value) for key in ("AP", "PC", "SO") for value in raw.properties.get(key, []))
        record.source = Source(places)
        key = "KM" if "KM" in raw.properties else "KO"  # KO: records of the Nihon Ki-in
        text = _text(raw, key).strip()
        if not text:
            return
        komi = written = komi_in_text(text)
        applications = [_unescaped(value) for value in raw.properties.get("AP", [])]
        is_fox = any(name in application for name in HUNDREDTHS for application in applications)
        is_fox |= all(name in raw.properties for name in FOX_PROPERTIES)
        if komi is not None and not any(
            application.partition(":")[0].strip() == APPLICATION for application in applications
        ):
            komi = komi_in_points(komi, is_fox=is_fox)
        if komi is None or abs(komi) > MAX_KOMI:
            self._note(raw, key, f"{_shown(key, text)}: not a komi, the default is used")
            return
        if komi == 0 and is_fox and is_even:  # Fox leaves the komi of even games out
            self._note(raw, key, f"{_shown(key, text)} of an even game of Fox: the usual komi is used")
            return
        record.komi = komi
        record.source = Source(places, komi_in_stones=written is not None and komi not in (written, written / 100))

    def _read_node(self, raw: RawNode, node: Node) -> Node:
        """Read a node. Return the node to which its children are added: two moves in one node become two nodes."""
        properties, last = raw.properties, node
        if len(properties) == 1 and (only := next(iter(properties))) in MOVE_PROPERTIES:
            self._read_move(raw, only, node)
            return node
        for key, stone in SETUP_PROPERTIES.items():
            if key in properties:
                node.setup += [(stone, point) for point in self._setup_points(raw, key)]
        for key, values in properties.items():
            if key in MOVE_PROPERTIES:
                if last.move or last.fault:
                    self._note(raw, key, "a second move in one node: read as a node of its own")
                    last.children.append(last := Node())
                self._read_move(raw, key, last)
            elif key in ("SZ", "CA") and raw.parent >= 0:
                self._note(raw, key, f"{_shown(key, values[0])} after the first node: left out")
            elif key and key not in NODE_PROPERTIES:
                # Lower case letters are left out of names: Black is B, x is none.
                node.other[key] = values
        if "PL" in properties:
            node.side = SIDES.get(_text(raw, "PL").strip().lower()[:1])
            if node.side is None:
                self._note(raw, "PL", f"{_shown('PL', properties['PL'][0])}: expected B or W, left out")
        node.comment = _text(raw, "C")
        return last

    def _read_move(self, raw: RawNode, key: str, node: Node) -> None:
        value = raw.properties[key][0]
        text, board = value.strip(), self._board
        if text.lower() in ("", "pass") or text == "tt":  # tt: on boards up to 19x19
            node.move = MOVE_PROPERTIES[key], PASS
            return
        try:
            node.move = MOVE_PROPERTIES[key], board.point(*board.parse_letters(text))
        except ValueError:
            fault = f"{_shown(key, value)}: expected a point of a {board} board"
            node.fault = Note.at(self._parser.text, raw.places[key], fault)
            node.other[key] = [value]

    def _setup_points(self, raw: RawNode, key: str) -> list[int]:
        """Return the valid points that a property lists, one by one or as rectangles such as `aa:cc`."""
        board, values = self._board, raw.properties[key]
        places = set()
        for value in [] if values == [""] else values:
            first, is_rectangle, last = value.strip().partition(":")
            try:
                left, top = board.parse_letters(first)
                right, bottom = board.parse_letters(last) if is_rectangle else (left, top)
            except ValueError:
                left, top, right, bottom = 0, 0, -1, -1
            if right < left or bottom < top:
                self._note(raw, key, f"{_shown(key, value)}: expected a point of a {board} board, left out")
            else:
                places |= {(column, row) for column in range(left, right + 1) for row in range(top, bottom + 1)}
        ordered = sorted(places, key=lambda place: (-place[1], place[0]))
        return [board.point(column, row) for column, row in ordered]


def _follow_moves(record: GameRecord) -> None:
    """Make the first variation with moves the main line, with a note. Some programs begin with a comment or set-up."""
    node, moves = record.root, 0
    while node.children:
        moves += node.move is not None
        first = next((place for place, child in enumerate(node.children) if _has_moves(child)), 0)
        if first:
            node.children.insert(0, node.children.pop(first))
            record.notes.append(
                Note(f"the first variation after move {moves} has no moves: variation {first + 1} is the main line")
            )
        node = node.children[0]


def _has_moves(node: Node) -> bool:
    pending = [node]
    while pending:
        node = pending.pop()
        if node.move or node.fault:
            return True
        pending += node.children
    return False


def komi_in_points(komi: float, *, is_fox: bool = False) -> float | None:
    """Convert a record's komi from hundredths (KM[650]) or Chinese stones of two points (KM[3.75], KM[375]).

    Args:
        komi: the number in the record.
        is_fox: the program always writes hundredths, and stones without a quarter (KM[350] for 7 points).

    Returns:
        None if it is impossible in any unit.
    """
    if abs(komi) >= MAX_HUNDREDTHS:
        return None
    if komi % 25 == 0 and abs(komi) >= (25 if is_fox else 100):
        komi /= 100
        if is_fox and komi == 3.5:
            return 7.0
    return 2 * komi if komi % 0.5 == 0.25 and abs(komi) < MAX_STONES else komi


def _text(raw: RawNode, key: str) -> str:
    """Return a property's text, empty if it is missing. Only comments may have several lines."""
    return _unescaped(raw.properties[key][0], has_lines=key == "C") if key in raw.properties else ""


def _unescaped(value: str, *, has_lines: bool = False) -> str:
    convert = sgf_grammar.text_value if has_lines else sgf_grammar.simpletext_value
    text: bytes = convert(value.encode("utf-8", "replace"))
    return text.decode("utf-8")


def _number(raw: RawNode, key: str) -> float | None:
    """Return a property as a number: NaN for other text, None if it is missing or empty."""
    text = _text(raw, key).strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _shown(key: str, value: str) -> str:
    """Return a property as one line, for a message."""
    return f"{key}[{line_of(value)}]"
