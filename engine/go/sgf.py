"""Game records: SGF in and out, with variations, set-up stones and comments. sgfmill interprets values and writes.

A `GameRecord` is the tree of a game, a `GoGame` one position in it with the moves before it. Not done: boards that are
not square, other games than Go, writing collections. Files: `yomi.engine.go.record_files`.

Faults of a record become notes if moves can be read all the same: `GameRecord.notes`.
"""

from __future__ import annotations

import itertools
import math
import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sgfmill import sgf, sgf_grammar, sgf_properties

from yomi import __version__
from yomi.engine.color import BLACK, LETTERS, WHITE
from yomi.engine.go.encodings import decode_sgf
from yomi.engine.go.game import GoGame, IllegalMove, SetupError
from yomi.engine.go.handicap import HANDICAP_KOMI, HandicapError
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.go.sgf_parser import GameParser, RawNode, find_game
from yomi.engine.go.vertex import column_and_row, point_at
from yomi.engine.go.words import komi_in_text
from yomi.engine.options import MAX_KOMI
from yomi.engine.records import Note
from yomi.engine.search.types import Counts
from yomi.native.go.board import EMPTY, MAX_SIZE, MIN_SIZE, PASS
from yomi.nets.errors import LineError

RULE_NAMES = {"japanese": "Japanese", "chinese": "Chinese", "aga": "AGA", "new-zealand": "NZ", "goe": "GOE"}
"""SGF's own names of rule sets; others are written as in GTP."""

MOVE_PROPERTIES = {"B": BLACK, "W": WHITE}
SIDES = {"b": BLACK, "w": WHITE, "1": BLACK, "2": WHITE}
"""First letters of PL, in any case; old programs write numbers."""
SETUP_PROPERTIES = {"AB": BLACK, "AW": WHITE, "AE": EMPTY}
HUNDREDTHS = ("foxwq", "SGFC:2.0")
"""Programs (AP) that write a komi in hundredths even if it is small (KM[50]), and 350 for 3.5 stones."""
FOX_PROPERTIES = ("TC", "TT", "RL")
"""Properties that only Fox writes. Other programs have replaced its AP in many files."""
MAX_HUNDREDTHS = 1000
"""A larger komi is no komi in hundredths."""
MAX_STONES = 5
"""A komi with a quarter is in points from here on, in stones below."""
COUNTS = "VN"
"""A property of our own: visits of the moves in the search for the node's move, VN[cd:40][:2] for 2 of a pass."""
APPLICATION = "yomi"
"""What records that are written here name (AP). Their komi is in points, whatever it looks like."""


class SgfError(LineError, ValueError):
    """A game record that cannot be read or played; the message is one line, with the place if there is one."""

    def __init__(self, text: str, place: Note | None = None) -> None:
        """Raise with a text, about the place of a note."""
        self.note = Note(text, place.line, place.column) if place else Note(text)
        super().__init__(str(self.note))

    def __reduce__(self) -> tuple[type[SgfError], tuple[str, Note]]:
        """Let the error pass between processes."""
        return SgfError, (self.note.text, self.note)


@dataclass(slots=True)
class Node:
    """One node of a game tree."""

    move: tuple[int, int] | None = None
    """(color, point or PASS)."""
    setup: list[tuple[int, int]] = field(default_factory=list)
    """(BLACK, WHITE or EMPTY, point): stones put down or taken away before the move."""
    side: int | None = None
    """The side to move that the record states (PL)."""
    comment: str = ""
    other: dict[str, list[str]] = field(default_factory=dict)
    """All other properties, values as they stand in the file (escaped)."""
    children: list[Node] = field(default_factory=list, compare=False, repr=False)
    """The main line first, variations after it. (Left out of == and repr, which would recurse once a move.)"""
    fault: Note | None = field(default=None, compare=False)
    """Why the node's move cannot be read. The property is kept in `other`."""

    def add(self, color: int, move: int, comment: str = "") -> Node:
        """Append a child with a move and return it; the first child is the main line."""
        child = Node((color, move), comment=comment)
        self.children.append(child)
        return child


@dataclass
class GameRecord:
    """A game with all its variations, and what the root says about it."""

    size: int = 19
    komi: float | None = None
    """Without handicap compensation; None where the record has none."""
    rules: Rules | None = None
    """None where the record names none or none that is known."""
    rules_text: str = ""
    """The name of rules that are not known."""
    handicap: int = 0
    black: str = ""
    white: str = ""
    result: str = ""
    """As in SGF: "B+3.5", "W+R", "0", "Void", ..."""
    date: str = ""
    seconds: float | None = None
    """Main time of each side (TM)."""
    overtime: str = ""
    """Byo-yomi in words (OT)."""
    root: Node = field(default_factory=Node)
    notes: list[Note] = field(default_factory=list, compare=False)
    """Faults that did not stop the reader. The first record of a file has those of the whole file."""

    def line(self, path: Sequence[int] = ()) -> Iterator[Node]:
        """Yield the nodes of one line from the root to its end.

        Args:
            path: which child to take at each node that has several, one after the other; after that the first.

        Raises:
            SgfError: a node has no such child.
        """
        choices = list(path)
        node = self.root
        yield node
        while node.children:
            choice = choices.pop(0) if choices and len(node.children) > 1 else 0
            if not 0 <= choice < len(node.children):
                raise SgfError(f"no variation {choice}: the node has {len(node.children)}")
            node = node.children[choice]
            yield node

    def nodes(self) -> Iterator[Node]:
        """Yield every node, each before its children, the main line before its variations."""
        pending = [self.root]
        while pending:
            node = pending.pop()
            yield node
            pending += reversed(node.children)

    def game(
        self,
        moves: int | None = None,
        path: Sequence[int] = (),
        *,
        rules: Rules = PRESETS["chinese"],
        override_rules: bool = False,
        cut: bool = False,
        komi: float | None = None,
    ) -> GoGame:
        """Return the game after `moves` moves of a line (all of them for None).

        Args:
            moves: how many; set-up stones that come before the next move are put down too.
            path: see `line`.
            rules: for a record that names none.
            override_rules: use `rules` whatever the record names.
            komi: used instead of the record's.
            cut: end the game before a move that cannot be played, and add a note, instead of raising.

        Raises:
            SgfError: see `replay`.
        """
        count = None if moves is None else moves + 1
        games: list[GoGame] = []
        try:
            games += itertools.islice(self.replay(path, rules=rules, override_rules=override_rules, komi=komi), count)
        except SgfError as error:
            note = error.note.extended("read up to there")
            if not cut or not games:
                raise
            if note not in self.notes:
                self.notes.append(note)
        return games[-1]

    def replay(
        self,
        path: Sequence[int] = (),
        *,
        rules: Rules = PRESETS["chinese"],
        override_rules: bool = False,
        komi: float | None = None,
    ) -> Iterator[GoGame]:
        """Yield the game before each move of a line, and at its end: one object, which changes in place.

        Moves that only the rules of ko and suicide forbid are played: the record says that they were. A record
        without komi gets the one usual with the rules, with handicap half a point. The arguments are those of `game`.

        Raises:
            SgfError: an impossible move or set-up, or the record names rules that are not known.
        """
        if self.rules is None and self.rules_text and not override_rules:
            raise SgfError(f"record has unknown rules '{_line(self.rules_text)}': expected one of {', '.join(PRESETS)}")
        used = rules if override_rules or self.rules is None else self.rules
        if komi is None:
            komi = self.komi if self.komi is not None else (HANDICAP_KOMI if self.handicap >= 2 else used.komi)
        try:
            game = GoGame(self.size, used, komi)
        except SetupError as error:
            raise SgfError(str(error)) from None
        nodes = list(self.line(path))
        played = 0
        for i, node in enumerate(nodes):
            if node.setup or (node.move is None and node.side not in (None, game.side_to_move)):
                self._set_up(game, node, nodes[i:])
            if node.move or node.fault:
                yield game
                played += 1
            if node.fault:
                raise SgfError(f"move {played} of the record: {node.fault.text}", node.fault)
            if node.move:
                try:
                    game.play(*node.move, strict=False)
                except IllegalMove as error:
                    raise SgfError(f"move {played} of the record: {error}") from None
                if node.side is not None:
                    game.turn_to(node.side)
        yield game

    def to_sgf(self) -> str:
        """Return the record as SGF text.

        Raises:
            SgfError: a property's name or value cannot stand in SGF.
        """
        try:
            return self._to_sgf()
        except ValueError as error:
            raise SgfError(f"cannot write SGF: {' '.join(str(error).split())}") from None

    def _to_sgf(self) -> str:
        root = sgf.Sgf_game(self.size).get_root()
        texts = {
            "PB": self.black,
            "PW": self.white,
            "RE": self.result,
            "DT": self.date,
            "OT": self.overtime,
            "RU": self.rules_text if self.rules is None else RULE_NAMES.get(self.rules.name or "", str(self.rules)),
        }
        for key, text in texts.items():
            if text:
                root.set(key, text)
        root.set("AP", (APPLICATION, __version__))
        if self.komi is not None:
            root.set("KM", self.komi)
        if self.handicap >= 2:
            root.set("HA", self.handicap)
        if self.seconds is not None:
            root.set("TM", self.seconds)
        return str(sgf_grammar.block_format(self._pieces(root)).decode("utf-8"))

    def _pieces(self, root: sgf.Node) -> Iterator[bytes]:
        """Yield the text in pieces between which lines may end; `root` is sgfmill's, with what is told of the game.

        Sgfmill's own tree, of which it would write the same, takes 1 KB for each node.
        """
        presenter = sgf_properties.Presenter(self.size, root.get_encoding())
        pending: list[Node | bytes] = [b"\n", b")", self.root, b"("]  # what comes first is last
        while pending:
            node = pending.pop()
            if isinstance(node, bytes):
                yield node
                continue
            target = root if node is self.root else sgf.Node({}, presenter)
            _write_node(node, target, self.size)
            yield b";"
            properties = target.get_raw_property_map()
            for name in sorted(properties, key=lambda name: (name != "FF", name)):
                yield name.encode("ascii") + b"".join(b"[%b]" % value for value in properties[name])
            if len(node.children) == 1:
                pending += node.children
            else:
                for child in reversed(node.children):
                    pending += (b")", child, b"(")

    def _set_up(self, game: GoGame, node: Node, rest: Sequence[Node]) -> None:
        """Apply the set-up of a node; the side to move is as stated, or else as the next move shows."""
        follower = next((later.move[0] for later in rest if later.move), None)
        black_only = self.handicap >= 2 and all(color == BLACK for color, _ in node.setup)
        stated = None if node.move else node.side  # beside a move, PL is about the position after it
        side = stated or follower or (WHITE if black_only else None)
        try:
            if black_only and node is self.root and len(node.setup) == self.handicap and side == WHITE:
                game.place_handicap([point for _, point in node.setup])
            else:
                game.edit(node.setup, side)
        except (HandicapError, SetupError) as error:
            raise SgfError(f"set-up of the record: {error}") from None


def read_sgf(data: bytes | str) -> GameRecord:
    """Read the first game of SGF data.

    Encodings: see `decode_sgf`. Broken text is read as far as possible; the record's notes name each place. A TM that
    is no number is kept as text (in `other`), a HA that is none is left out.

    Raises:
        SgfError: not SGF, not Go, or a board that is not square or not from 2x2 to 19x19.
    """
    found = next(each_sgf_game(data))
    if isinstance(found, SgfError):
        raise found
    return found


def each_sgf_game(data: bytes | str) -> Iterator[GameRecord | SgfError]:
    """Yield the games of a file, at least one, each as its record, or as the reason why it cannot be read.

    A game without an end is left at the next root that can be told from a variation by its first property.
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


def read_size(data: bytes) -> int:
    """Return the board size of the first game of SGF data. Only its root is read.

    Raises:
        SgfError: see `read_sgf`.
    """
    text, _ = decode_sgf(data)
    start = find_game(text)
    if start < 0:
        raise SgfError("no game of SGF found, expected '(;'")
    return _Reader(GameParser(text, start)).read_root()[0].size


class _Reader:
    """Makes a record of parsed nodes."""

    def __init__(self, parser: GameParser) -> None:
        """Read the game of a parser."""
        self._parser = parser
        self._nodes = parser.nodes()
        self._size = 19

    def read(self) -> GameRecord:
        """Return the whole record."""
        record, last = self.read_root()
        made = [last]
        for raw in self._nodes:
            node = Node()
            made[max(raw.parent, 0)].children.append(node)
            made.append(self._read_node(raw, node))
        record.notes = self._parser.notes
        return record

    def read_root(self) -> tuple[GameRecord, Node]:
        """Return a record of the root's properties, and the node that the next ones follow."""
        raw = next(self._nodes)
        self._size = self._read_size(raw)
        record = GameRecord(self._size)
        record.black, record.white = _text(raw, "PB"), _text(raw, "PW")
        record.result, record.date, record.overtime = _text(raw, "RE"), _text(raw, "DT"), _text(raw, "OT")
        record.komi = self._read_komi(raw)
        handicap, seconds = _number(raw, "HA"), _number(raw, "TM")
        record.handicap = int(handicap) if handicap is not None and handicap >= 2 else 0
        is_text = seconds is not None and math.isnan(seconds)
        record.seconds = None if is_text else seconds
        name = _text(raw, "RU").strip()
        record.rules = Rules.named(name) if name else None
        if record.rules is None:
            record.rules_text = name  # `game` says so when the rules are needed; a viewer may not need them
        last = self._read_node(raw, record.root)
        for key in ROOT_PROPERTIES:
            if not (key == "TM" and is_text):
                record.root.other.pop(key, None)
        return record, last

    def _note(self, raw: RawNode, key: str, text: str) -> None:
        self._parser.note(raw.places.get(key, 0), text)

    def _error(self, raw: RawNode, key: str, text: str) -> SgfError:
        return SgfError(text, Note.at(self._parser.text, raw.places[key], text))

    def _read_size(self, raw: RawNode) -> int:
        game = _text(raw, "GM").strip()
        if game.lower() not in ("1", "", "go"):
            raise self._error(raw, "GM", f"not a game of Go: GM is {_line(game)}, expected 1")
        text = unicodedata.normalize("NFKC", _text(raw, "SZ")).strip()
        if not text:
            if "SZ" in raw.properties:
                self._note(raw, "SZ", "SZ is empty: read as 19")
            return 19
        found = _SIZE.fullmatch(text)
        expected = f"expected a number from {MIN_SIZE} to {MAX_SIZE}"
        if found is None:
            raise self._error(raw, "SZ", f"board size '{_line(text)}': {expected}")
        size = int(found[1])
        if found[2] and int(found[2]) != size:
            wanted = f"{MIN_SIZE}x{MIN_SIZE} to {MAX_SIZE}x{MAX_SIZE}"
            raise self._error(raw, "SZ", f"board {_line(text)} is not square: expected {wanted}")
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise self._error(raw, "SZ", f"board size {size}: expected {MIN_SIZE} to {MAX_SIZE}")
        return size

    def _read_komi(self, raw: RawNode) -> float | None:
        """Return the komi in points; see `komi_in_points` for other units."""
        key = "KM" if "KM" in raw.properties else "KO"  # KO: records of the Nihon Ki-in
        text = _text(raw, key).strip()
        if not text:
            return None
        komi = komi_in_text(text)
        applications = [_unescaped(value) for value in raw.properties.get("AP", [])]
        is_fox = any(name in each for name in HUNDREDTHS for each in applications)
        is_fox |= all(name in raw.properties for name in FOX_PROPERTIES)
        if komi is not None and not any(each.partition(":")[0].strip() == APPLICATION for each in applications):
            komi = komi_in_points(komi, is_fox=is_fox)
        if komi is None or abs(komi) > MAX_KOMI:
            self._note(raw, key, f"{_shown(key, text)}: no komi, the usual one is used")
            return None
        return komi

    def _read_node(self, raw: RawNode, node: Node) -> Node:
        """Read a node, and return the node that its children follow: two moves in one node become two nodes."""
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
        text = value.strip()
        if text.lower() == "pass":
            text = ""
        try:
            position = sgf_properties.interpret_go_point(text.encode("ascii", "replace"), self._size)
        except ValueError:
            fault = f"{_shown(key, value)}: expected a point of a {self._size}x{self._size} board"
            node.fault = Note.at(self._parser.text, raw.places[key], fault)
            node.other[key] = [value]
            return
        node.move = (MOVE_PROPERTIES[key], PASS if position is None else _point(position, self._size))

    def _setup_points(self, raw: RawNode, key: str) -> list[int]:
        """Return the points that a property lists, alone or as corners of rectangles."""
        size, values = self._size, raw.properties[key]
        presenter = sgf_properties.Presenter(size, "UTF-8")
        positions = set()
        for value in [] if values == [""] else values:
            try:
                positions |= sgf_properties.interpret_point_list([value.strip().encode("ascii", "replace")], presenter)
            except ValueError:
                self._note(raw, key, f"{_shown(key, value)}: expected a point of a {size}x{size} board, left out")
        return [_point(position, size) for position in sorted(positions)]


ROOT_PROPERTIES = ("FF", "GM", "SZ", "CA", "AP", "PB", "PW", "RE", "DT", "OT", "KM", "HA", "TM", "RU")
NODE_PROPERTIES = ("B", "W", *SETUP_PROPERTIES, "PL", "C")
_SIZE = re.compile(r"([0-9]{1,4})\s*(?:[:x*×路][\s]*([0-9]{1,4})?)?", re.IGNORECASE)


def komi_in_points(komi: float, *, is_fox: bool = False) -> float | None:
    """Convert a record's komi: hundredths (KM[650]) and Chinese stones of two points (KM[3.75], KM[375]).

    Args:
        komi: the number in the record.
        is_fox: whether the program writes hundredths always, and stones without a quarter (KM[350] for 7 points).

    Returns:
        The komi in points; None if it is none in any unit.
    """
    if abs(komi) >= MAX_HUNDREDTHS:
        return None
    if komi % 25 == 0 and abs(komi) >= (25 if is_fox else 100):
        komi /= 100
        if is_fox and komi == 3.5:
            return 7.0
    return 2 * komi if komi % 0.5 == 0.25 and abs(komi) < MAX_STONES else komi


def _text(raw: RawNode, key: str) -> str:
    """Return a property's text, on one line except for comments; empty if the node has none."""
    return _unescaped(raw.properties[key][0], has_lines=key == "C") if key in raw.properties else ""


def _unescaped(value: str, *, has_lines: bool = False) -> str:
    convert = sgf_grammar.text_value if has_lines else sgf_grammar.simpletext_value
    text: bytes = convert(value.encode("utf-8", "replace"))
    return text.decode("utf-8")


def _number(raw: RawNode, key: str) -> float | None:
    """Return a number, NaN for text that is none; None if there is no text."""
    text = _text(raw, key).strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _line(text: str) -> str:
    """Return the beginning of a text on one line, for a message."""
    return " ".join(text[:40].split())


def _shown(key: str, value: str) -> str:
    """Return a property on one line, for a message."""
    return f"{key}[{_line(value)}]"


def record_of(game: GoGame, comments: Sequence[str] = (), counts: Sequence[Counts] = ()) -> GameRecord:
    """Return a record of `game` without names or result.

    Args:
        game: its initial position and moves.
        comments: one for the initial position, then one for each move; may be shorter.
        counts: visits of the search for each move, which COUNTS tells; may be shorter.
    """
    texts = [*comments, *[""] * (len(game.moves) + 1 - len(comments))]
    record = GameRecord(game.size, game.komi, game.rules, handicap=game.handicap)
    record.root = Node(setup=list(game.setup), comment=texts[0])
    first = game.moves[0][0] if game.moves else game.side_to_move
    if game.setup or first != BLACK:
        record.root.side = game.initial_side
    node = record.root
    for number, ((color, move), text) in enumerate(zip(game.moves, texts[1:], strict=False)):
        node = node.add(color, move, text)
        if number < len(counts) and counts[number]:
            node.other[COUNTS] = [f"{_letters(each, game.size)}:{visits}" for each, visits in counts[number]]
    return record


def to_sgf(game: GoGame, comments: Sequence[str] = (), counts: Sequence[Counts] = (), **info: Any) -> str:
    """Return `game` as SGF text.

    Args:
        game: its initial position and moves.
        comments: see `record_of`.
        counts: see `record_of`.
        info: fields of `GameRecord`, such as black="A", white="B", result="B+R".
    """
    record = record_of(game, comments, counts)
    for name, value in info.items():
        if not hasattr(record, name):
            raise TypeError(f"GameRecord has no field {name}")
        setattr(record, name, value)
    return record.to_sgf()


def _write_node(node: Node, target: Any, size: int) -> None:
    if node.move:
        color, move = node.move
        target.set_move(LETTERS[color], None if move == PASS else _row_and_column(move, size))
    stones = {stone: [_row_and_column(p, size) for c, p in node.setup if c == stone] for stone in (BLACK, WHITE, EMPTY)}
    target.set_setup_stones(stones[BLACK], stones[WHITE], stones[EMPTY])
    if node.side is not None:
        target.set("PL", LETTERS[node.side])
    if node.comment:
        target.set("C", node.comment)
    for key, values in node.other.items():
        target.set_raw_list(key, [value.encode("utf-8") for value in values])


def _letters(move: int, size: int) -> str:
    """Return a move as SGF writes it; nothing for a pass."""
    if move == PASS:
        return ""
    row, column = _row_and_column(move, size)
    return string.ascii_lowercase[column] + string.ascii_lowercase[size - 1 - row]


def _point(position: tuple[int, int], size: int) -> int:
    """Return the point of sgfmill's (row, column), rows counted from the bottom."""
    row, column = position
    return point_at(column, size - 1 - row, size)


def _row_and_column(point: int, size: int) -> tuple[int, int]:
    column, row = column_and_row(point, size)
    return size - 1 - row, column
