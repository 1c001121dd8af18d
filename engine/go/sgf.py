"""Game records: SGF in and out, with variations, set-up stones and comments. sgfmill interprets values and writes.

A `GameRecord` is the tree of a game, a `GoGame` one position in it with the moves before it. Not done: boards that are
not square, other games than Go, writing collections.
"""

import codecs
import contextlib
import itertools
import math
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgfmill import sgf, sgf_grammar, sgf_properties

from engine.color import BLACK, LETTERS, WHITE
from engine.go.game import GoGame, IllegalMove, SetupError
from engine.go.handicap import HandicapError
from engine.go.rules import PRESETS, Rules, RulesError
from engine.go.vertex import column_and_row, point_at
from engine.search.report import Counts
from engine.version import VERSION
from native.go.board import EMPTY, MAX_SIZE, MIN_SIZE, PASS

RULE_NAMES = {"japanese": "Japanese", "chinese": "Chinese", "aga": "AGA", "new-zealand": "NZ", "goe": "GOE"}
"""SGF's own names of rule sets; others are written as in GTP."""

MOVE_PROPERTIES = {"B": BLACK, "W": WHITE}
SIDES = {"b": BLACK, "w": WHITE, "1": BLACK, "2": WHITE}
"""First letters of PL, in any case; old programs write numbers."""
SETUP_PROPERTIES = {"AB": BLACK, "AW": WHITE, "AE": EMPTY}
BRACKET_CODECS = ("shift_jis", "cp932", "big5", "big5hkscs", "cp950", "gbk", "gb18030", "johab", "iso2022_jp")
"""Python's names of encodings in which the second byte of a character may be SGF's backslash or bracket."""
CHARSETS = {"windows-31j": "cp932", "x-sjis": "cp932"}
"""Names that records give and Python does not know, and Python's; in small letters."""
HUNDREDTHS = ("foxwq", "SGFC:2.0")
"""Programs (AP) whose komi is in hundredths also where it is small (KM[50]), and in stones where it is 350."""
MAX_STONES = 5
"""A komi with a quarter is in points from here on, in stones below."""
COUNTS = "VN"
"""A property of our own: visits of the moves in the search for the node's move, VN[cd:40][:2] for 2 of a pass."""
APPLICATION = "yomi"
"""What records that are written here name (AP). Their komi is in points, whatever it looks like."""
_TOKEN = re.compile(rb"\s*(?:\[([^\\\]]*(?:\\.[^\\\]]*)*)\]|([A-Za-z]{1,64})|([;()]))", re.DOTALL)
"""A property's value, a property's name, or what nodes and variations begin and end with."""
_BRACKET = re.compile(rb"\[[^\\\]]*(?:\\.[^\\\]]*)*\]|([()])", re.DOTALL)
"""The beginning or the end of a variation, or a value, in which there may be brackets too."""
_LOWER_CASE = string.ascii_lowercase.encode()
_CHARSET = re.compile(rb"[;\]\s]CA\s*\[([^\]]*)\]")
_START = re.compile(rb"\(\s*;")
_ROOT = re.compile(rb"\(\s*;\s*(?:GM|FF|SZ|CA|AP)\s*\[")
"""The beginning of a game and not of a variation."""


class SgfError(ValueError):
    """A game record that cannot be read or played; the message is one line."""


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
    children: list["Node"] = field(default_factory=list, compare=False, repr=False)
    """The main line first, variations after it. (Left out of == and repr, which would recurse once a move.)"""

    def add(self, color: int, move: int, comment: str = "") -> "Node":
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
    ) -> GoGame:
        """Return the game after `moves` moves of a line (all of them for None).

        Args:
            moves: how many; set-up stones that come before the next move are put down too.
            path: see `line`.
            rules: for a record that names none.
            override_rules: use `rules` whatever the record names.

        Raises:
            SgfError: see `replay`.
        """
        count = None if moves is None else moves + 1
        return list(itertools.islice(self.replay(path, rules=rules, override_rules=override_rules), count))[-1]

    def replay(
        self, path: Sequence[int] = (), *, rules: Rules = PRESETS["chinese"], override_rules: bool = False
    ) -> Iterator[GoGame]:
        """Yield the game before each move of a line, and at its end: one object, which changes in place.

        Moves that only the rules of ko and suicide forbid are played: the record says that they were. A record
        without komi gets the one usual with the rules, with handicap half a point. The arguments are those of `game`.

        Raises:
            SgfError: an impossible move or set-up, or the record names rules that are not known.
        """
        if self.rules is None and self.rules_text and not override_rules:
            raise SgfError(f"record has unknown rules '{self.rules_text}': expected one of {', '.join(PRESETS)}")
        used = rules if override_rules or self.rules is None else self.rules
        komi = self.komi if self.komi is not None else (0.5 if self.handicap >= 2 else used.komi)
        try:
            game = GoGame(self.size, used, komi)
        except SetupError as error:
            raise SgfError(str(error)) from None
        nodes = list(self.line(path))
        played = 0
        for i, node in enumerate(nodes):
            if node.setup or node.side not in (None, game.side_to_move):
                self._set_up(game, node, nodes[i:])
            if node.move:
                yield game
                played += 1
                try:
                    game.play(*node.move, strict=False)
                except IllegalMove as error:
                    raise SgfError(f"move {played} of the record: {error}") from None
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
        root.set("AP", (APPLICATION, VERSION))
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
        side = node.side or follower or (WHITE if black_only else None)
        try:
            if black_only and node is self.root and len(node.setup) == self.handicap and side == WHITE:
                game.place_handicap([point for _, point in node.setup])
            else:
                game.edit(node.setup, side)
        except (HandicapError, SetupError) as error:
            raise SgfError(f"set-up of the record: {error}") from None


def read_sgf(data: bytes | str) -> GameRecord:
    """Read the first game of SGF data.

    Text without CA, or with one that is unknown, is UTF-8 where it can be, else Latin-1 (the standard's default).
    Characters that the encoding does not have are replaced in names and comments. A TM that is no number is kept as
    text (in `other`), a HA that is none is left out.

    Raises:
        SgfError: not SGF, not Go, a board that is not square or not from 2x2 to 19x19, or a property that is broken.
    """
    raw, encoding = (data.encode("utf-8"), "utf-8") if isinstance(data, str) else _recoded(data)
    return _read_game(raw, encoding)


def read_sgf_games(data: bytes) -> list[GameRecord]:
    """Read all games of a file, at least one; see `read_sgf`.

    Raises:
        SgfError: see `read_sgf`; from the second game on with its number.
    """
    records: list[GameRecord] = []
    for found in each_sgf_game(data):
        if isinstance(found, SgfError):
            raise SgfError(f"game {len(records) + 1}: {found}" if records else str(found))
        records.append(found)
    return records


def each_sgf_game(data: bytes) -> Iterator[GameRecord | SgfError]:
    """Yield the games of a file, at least one, each as its record, or as why it cannot be read; see `read_sgf`.

    A game without an end is left at the next root that can be told from a variation by its first property.
    """
    raw, encoding = _recoded(data)
    start = _START.search(raw)
    if start is None:
        yield SgfError("broken SGF: no SGF data found")
    while start is not None:
        end = _end_of_game(raw, start.start())
        if end is None:
            following = _ROOT.search(raw, start.end())
            end = following.start() if following else len(raw)
        try:
            yield _read_game(raw[start.start() : end], encoding)
        except SgfError as error:
            yield error
        start = _START.search(raw, end)


def _end_of_game(raw: bytes, begin: int) -> int | None:
    """Return where the game that begins at `begin` ends; None where it does not."""
    depth = 0
    for match in _BRACKET.finditer(raw, begin):
        depth += {b"(": 1, b")": -1}.get(match[1], 0)
        if depth == 0:
            return match.end()
    return None


def _read_game(raw: bytes, encoding: str) -> GameRecord:
    """Read the game that `raw` begins with; `encoding` is empty where the game itself has to tell."""
    nodes = _parse(raw)
    _, first = next(nodes)
    encoding = encoding or _encoding(raw, first)
    size = _checked_size(first)
    presenter = sgf_properties.Presenter(size, encoding)
    record = _read_root(_Source(first, presenter), size)
    made = [record.root]
    for parent, properties in nodes:
        node = Node()
        _read_node(_Source(properties, presenter), node)
        made[parent].children.append(node)
        made.append(node)
    return record


def _parse(raw: bytes) -> Iterator[tuple[int, dict[str, list[bytes]]]]:
    """Yield (parent, properties) of each node of a game, in the order of the file.

    The parent is a node's number in that order, the root's is -1. Values are as in the file, without their brackets.
    Nothing is kept of nodes that were yielded, since files of a million have been seen; sgfmill's parser, the tests'
    oracle, keeps 1 to 2 KB of each.

    Raises:
        SgfError: the data is no game tree.
    """
    token = _START.search(raw)
    if token is None:
        raise SgfError("broken SGF: no SGF data found")
    place = token.start()
    number = tip = -1  # the last node; the one that the next follows
    starts: list[int] = []  # the nodes that the open variations follow
    properties: dict[str, list[bytes]] | None = None  # of the node at hand
    values: list[bytes] = []  # of the property at hand
    wanted = 0  # values that it has with its first
    is_empty, is_closed = (
        False,
        True,
    )  # whether the variation has no node yet, or can have no further one
    while token := _TOKEN.match(raw, place):
        place = token.end()
        value, name, mark = token.groups()
        if value is not None:
            if not wanted:
                raise SgfError("broken SGF: unexpected value")
            values.append(value)
            continue
        if len(values) < wanted:
            raise SgfError("broken SGF: property with no values")
        if name is not None:
            if properties is None:
                raise SgfError("broken SGF: property value outside a node")
            values = properties.setdefault(name.translate(None, _LOWER_CASE).decode("ascii"), [])
            wanted = len(values) + 1
            continue
        wanted = 0
        if properties is not None:
            yield tip, properties
            number += 1
            tip, properties = number, None
        if mark == b";":
            if is_closed:
                raise SgfError("broken SGF: unexpected node")
            properties, is_empty = {}, False
            continue
        if is_empty:
            raise SgfError("broken SGF: empty sequence")
        is_empty = mark == b"("
        is_closed = not is_empty
        if is_empty:
            starts.append(tip)
        else:
            tip = starts.pop()
            if not starts:
                return
    raise SgfError("broken SGF: unexpected end of SGF data")


@dataclass(slots=True)
class _Source:
    """A node as it stands in the file."""

    properties: dict[str, list[bytes]]
    presenter: sgf_properties.Presenter

    def text(self, key: str) -> str:
        """Return a property's text; empty where the node has none."""
        if key not in self.properties:
            return ""
        text: bytes = sgf_grammar.text_value(self.properties[key][0])
        return text.decode(self.presenter.encoding, "replace")

    def number(self, key: str) -> float | None:
        """Return a number, NaN for text that is none; None where there is no text."""
        text = self.text(key).strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            return math.nan
        return value if math.isfinite(value) else math.nan


def load_sgf(path: str | Path) -> GameRecord:
    """Read the first game of a file.

    Raises:
        SgfError: the file cannot be opened, or see `read_sgf`.
    """
    return read_sgf(_bytes_of(path))


def load_size(path: str | Path) -> int:
    """Return the board size of the first game of a file, whose further nodes are not read.

    Raises:
        SgfError: the file cannot be opened, or see `read_sgf`.
    """
    _, root = next(_parse(_recoded(_bytes_of(path))[0]))
    return _checked_size(root)


def load_sgf_games(path: str | Path) -> list[GameRecord]:
    """Read all games of a file, at least one.

    Raises:
        SgfError: the file cannot be opened, or see `read_sgf_games`.
    """
    return read_sgf_games(_bytes_of(path))


def _bytes_of(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SgfError(f"cannot read {path}: {error.strerror}") from None


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


def _recoded(data: bytes) -> tuple[bytes, str]:
    """Return a file in UTF-8, and "utf-8", where its characters may hold bytes of brackets; others as they are."""
    found = _CHARSET.search(data)
    codec = _codec_of(found[1]) if found else None
    if codec in BRACKET_CODECS:
        with contextlib.suppress(UnicodeError):
            return data.decode(codec).encode("utf-8"), "utf-8"
    return data, ""


def _encoding(raw: bytes, root: dict[str, list[bytes]]) -> str:
    """Return the encoding that CA names, or else that of the bytes."""
    codec = _codec_of(root["CA"][0]) if "CA" in root else None
    if codec is not None:
        return codec
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return "iso8859-1"
    return "utf-8"


def _codec_of(charset: bytes) -> str | None:
    """Return Python's name of a charset; None for one that is unknown or cannot hold SGF."""
    name = charset.decode("ascii", "replace").strip()
    name = CHARSETS.get(name.lower(), name)
    try:
        return codecs.lookup(name).name if b"(;)".decode(name) == "(;)" else None
    except (LookupError, ValueError):
        return None


def _checked_size(root: dict[str, list[bytes]]) -> int:
    """Return the board size of the root's raw properties, in which a square `n:n` is rewritten to `n`."""
    if root.get("GM", [b"1"])[0].strip() not in (b"1", b""):
        raise SgfError(f"not a game of Go: GM is {root['GM'][0].decode('ascii', 'replace')}, expected 1")
    text = root.get("SZ", [b"19"])[0].decode("ascii", "replace").strip()
    width, _, height = text.partition(":")
    if height and height.strip() != width.strip():
        raise SgfError(f"board {text} is not square: expected {MIN_SIZE}x{MIN_SIZE} to {MAX_SIZE}x{MAX_SIZE}")
    try:
        size = int(width)
    except ValueError:
        raise SgfError(f"board size '{text}': expected a number from {MIN_SIZE} to {MAX_SIZE}") from None
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise SgfError(f"board size {size}: expected {MIN_SIZE} to {MAX_SIZE}")
    root["SZ"] = [str(size).encode()]
    return size


def _read_root(root: _Source, size: int) -> GameRecord:
    """Return a record of what only the root says."""
    record = GameRecord(size)
    record.black, record.white = root.text("PB"), root.text("PW")
    record.result, record.date, record.overtime = root.text("RE"), root.text("DT"), root.text("OT")
    record.komi = _read_komi(root)
    handicap, seconds = root.number("HA"), root.number("TM")
    record.handicap = int(handicap) if handicap is not None and handicap >= 2 else 0
    is_text = seconds is not None and math.isnan(seconds)
    record.seconds = None if is_text else seconds
    name = root.text("RU").strip()
    try:
        record.rules = Rules.parse(name) if name else None
    except RulesError:
        record.rules_text = name  # `game` says so when the rules are needed; a viewer may not need them
    _read_node(root, record.root)
    for key in ROOT_PROPERTIES:
        if not (key == "TM" and is_text):
            record.root.other.pop(key, None)
    return record


ROOT_PROPERTIES = ("FF", "GM", "SZ", "CA", "AP", "PB", "PW", "RE", "DT", "OT", "KM", "HA", "TM", "RU")
NODE_PROPERTIES = ("B", "W", *SETUP_PROPERTIES, "PL", "C")


def _read_node(source: _Source, node: Node) -> None:
    properties, size = source.properties, source.presenter.size
    for key, color in MOVE_PROPERTIES.items():
        if key in properties:
            if node.move:
                raise SgfError("a node has moves of both colors")
            node.move = (color, _move(key, properties[key][0], size))
    for key, stone in SETUP_PROPERTIES.items():
        if key in properties:
            node.setup += [(stone, point) for point in _setup_points(source, key)]
    if "PL" in properties:
        raw = properties["PL"][0]
        side = raw.decode("ascii", "replace").strip().lower()[:1]
        if side not in SIDES:
            raise SgfError(f"{_shown('PL', raw)}: expected B or W")
        node.side = SIDES[side]
    node.comment = source.text("C")
    for key, values in properties.items():
        if key and key not in NODE_PROPERTIES:  # lower case letters are left out of names: Black is B, x is none
            node.other[key] = [value.decode(source.presenter.encoding, "replace") for value in values]


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


def _move(key: str, raw: bytes, size: int) -> int:
    """Return the point of a move, or PASS."""
    try:
        position = sgf_properties.interpret_go_point(raw, size)
    except ValueError:
        raise SgfError(f"{_shown(key, raw)}: expected a point of a {size}x{size} board") from None
    return PASS if position is None else _point(position, size)


def _letters(move: int, size: int) -> str:
    """Return a move as SGF writes it; nothing for a pass."""
    if move == PASS:
        return ""
    row, column = _row_and_column(move, size)
    return string.ascii_lowercase[column] + string.ascii_lowercase[size - 1 - row]


def _setup_points(source: _Source, key: str) -> list[int]:
    """Return the points that a property lists, alone or as corners of rectangles."""
    values, size = source.properties[key], source.presenter.size
    positions = set()
    for raw in [] if values == [b""] else values:
        try:
            positions |= sgf_properties.interpret_point_list([raw], source.presenter)
        except ValueError:
            raise SgfError(f"{_shown(key, raw)}: expected a point of a {size}x{size} board") from None
    return [_point(position, size) for position in sorted(positions)]


def _shown(key: str, raw: bytes) -> str:
    """Return a property on one line, for a message."""
    return f"{key}[{' '.join(raw[:40].decode('ascii', 'replace').split())}]"


def _point(position: tuple[int, int], size: int) -> int:
    """Return the point of sgfmill's (row, column), rows counted from the bottom."""
    row, column = position
    return point_at(column, size - 1 - row, size)


def _row_and_column(point: int, size: int) -> tuple[int, int]:
    column, row = column_and_row(point, size)
    return size - 1 - row, column


def _read_komi(root: _Source) -> float | None:
    """Return the komi; hundredths (KM[650]) and Chinese stones, two points each (KM[3.75], KM[375]), are known."""
    komi = root.number("KM")
    if komi is None:
        return None
    if math.isnan(komi):
        raise SgfError(f"property KM is '{root.text('KM').strip()}': expected a number")
    application = root.text("AP")
    if application.partition(":")[0].strip() == APPLICATION:
        return komi
    is_known = any(name in application for name in HUNDREDTHS)
    if komi % 25 == 0 and abs(komi) >= (25 if is_known else 100):
        komi /= 100
        if is_known and komi == 3.5:
            return 7.0
    return 2 * komi if komi % 0.5 == 0.25 and abs(komi) < MAX_STONES else komi
