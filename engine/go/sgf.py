"""Game records with variations, set-up stones and comments, and how they are written as SGF.

A `GameRecord` is the tree of a game; a `GoGame` is one position in it with the moves before it. Boards may be
rectangular, but only square ones can be played. Not supported: other games, and writing collections.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sgfmill import sgf_grammar

from yomi import __version__
from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import (
    HANDICAP_KOMI,
    STANDARD,
    Board,
    HandicapError,
    SetupError,
    fixed_handicap,
    format_color,
)
from yomi.engine.go.record_rules import CHINESE, Guess, Source, guess_rules
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.records import Note
from yomi.engine.search.types import Counts
from yomi.errors import IllegalMove, LineError, reraised
from yomi.native.go.board import EMPTY, PASS

# SGF's names of rule sets. Other rule sets are written as in GTP.
RULE_NAMES = {"japanese": "Japanese", "chinese": "Chinese", "aga": "AGA", "new-zealand": "NZ", "goe": "GOE"}

SETUP_PROPERTIES = {"AB": BLACK, "AW": WHITE, "AE": EMPTY}
COUNTS = "VN"  # yomi's property for the visits of the move's search: VN[cd:40][:2] for 40 visits of cd and 2 of a pass
FIRST_MOVES = 20  # moves that must leave the points of missing handicap stones empty
APPLICATION = "yomi"  # AP of yomi's records. Their komi is always in points.


class SgfError(LineError, ValueError):
    """A record cannot be read or played. The message is one line, with the place of the fault if it is known."""

    def __init__(self, text: str, place: Note | None = None) -> None:
        """Put the line and column of `place` into the message."""
        self.note = Note(text, place.line, place.column) if place else Note(text)
        super().__init__(str(self.note))

    def __reduce__(self) -> tuple[type[SgfError], tuple[str, Note]]:
        """Make the error picklable, since its constructor has two arguments."""
        return SgfError, (self.note.text, self.note)


@dataclass(slots=True)
class Node:
    move: tuple[int, int] | None = None  # (color, point or PASS)
    # (BLACK, WHITE or EMPTY, point): stones placed or removed before the move.
    setup: list[tuple[int, int]] = field(default_factory=list)
    side: int | None = None  # side to move according to the record (PL)
    comment: str = ""
    other: dict[str, list[str]] = field(default_factory=dict)  # all other properties, with escaped values
    # Main line first, then variations. Not in == and repr, which would recurse at each move.
    children: list[Node] = field(default_factory=list, compare=False, repr=False)
    # Why the node's move cannot be read. The property is kept in `other`.
    fault: Note | None = field(default=None, compare=False)

    def add(self, color: int, move: int, comment: str = "") -> Node:
        """Append a child with a move and return it. The first child is the main line."""
        child = Node((color, move), comment=comment)
        self.children.append(child)
        return child


@dataclass
class GameRecord:
    """A game with its variations and the root's properties."""

    board: Board = STANDARD
    komi: float | None = None  # without handicap compensation; None if missing
    rules: Rules | None = None  # None if missing or unknown
    rules_text: str = ""  # name of unknown rules
    handicap: int = 0
    black: str = ""
    white: str = ""
    result: str = ""  # as in SGF: "B+3.5", "W+R", "0", "Void"
    date: str = ""
    seconds: float | None = None  # main time of each side (TM)
    overtime: str = ""  # byo-yomi in words (OT)
    root: Node = field(default_factory=Node)
    source: Source = field(default=Source(), compare=False)  # what suggests the rules if the record names none
    # Faults that the reader has tolerated. A file's first record has the faults of the whole file.
    notes: list[Note] = field(default_factory=list, compare=False)
    _guess: Guess | None = field(default=None, compare=False, repr=False)

    def line(self) -> Iterator[Node]:
        """Yield the nodes of the main line from the root to its end."""
        node = self.root
        yield node
        while node.children:
            node = node.children[0]
            yield node

    def nodes(self) -> Iterator[Node]:
        """Yield every node, parents before children, the main line before its variations."""
        pending = [self.root]
        while pending:
            node = pending.pop()
            yield node
            pending += reversed(node.children)

    def game(
        self,
        moves: int | None = None,
        *,
        rules: Rules | None = None,
        override_rules: bool = False,
        cut: bool = False,
        komi: float | None = None,
    ) -> GoGame:
        """Return the game after `moves` moves of the main line.

        Args:
            moves: number of moves; None for all. Set-up stones before the next move are included.
            rules: rules for a record that names none; None for a guess from the result, the server and the komi.
            override_rules: use `rules` for any record.
            komi: replaces the record's komi.
            cut: end the game before an unplayable move and add a note, instead of raising.

        Raises:
            SgfError: see `replay`.
        """
        count = None if moves is None else moves + 1
        games: list[GoGame] = []
        try:
            games += itertools.islice(self.replay(rules=rules, override_rules=override_rules, komi=komi), count)
        except SgfError as error:
            note = error.note.extended("read up to there")
            if not cut or not games:
                raise
            if note not in self.notes:
                self.notes.append(note)
        return games[-1]

    def replay(
        self, *, rules: Rules | None = None, override_rules: bool = False, komi: float | None = None
    ) -> Iterator[GoGame]:
        """Yield the game before each move of the main line, and at its end: the same object, which changes in place.

        A move that ko or suicide forbids is played, with a note. The default komi is that of the rules, or half a point
        with handicap. Assumed rules and komi get a note.

        Raises:
            SgfError: an impossible move or set-up, or the record names unknown rules.
        """
        if self.rules is None and self.rules_text and not override_rules:
            raise SgfError(
                f"record has unknown rules '{line_of(self.rules_text)}': expected one of {', '.join(PRESETS)}"
            )
        guess = None
        if rules is None and (override_rules or self.rules is None):
            guess = self.guess()
            rules = guess.rules
        used = rules if rules is not None and (override_rules or self.rules is None) else self.rules
        assert used is not None
        assumed = ""
        if komi is None and self.komi is None:
            komi = HANDICAP_KOMI if self.handicap >= 2 and not used.states_komi else used.komi
            assumed = "" if used.states_komi else f"komi {komi:g}"
        if guess is not None:
            name = f"unknown rules '{line_of(self.rules_text)}'" if self.rules_text else "no rules (RU)"
            both = f" and {assumed}" if assumed else ""
            flags = "--rules (Python: rules=)" + (" and --komi change" if assumed else " changes")
            self._note(f"{name}: {used} rules{both} assumed, because {guess.reason}. {flags} this")
        elif assumed:
            self._note(f"no komi (KM): {assumed} assumed. --komi changes this")
        with reraised(SetupError, SgfError):
            game = GoGame(self.board, used, self.komi if komi is None else komi)
        nodes = list(self.line())
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
                with reraised(IllegalMove, SgfError, f"move {played} of the record: "):
                    if why := game.why_illegal(*node.move):
                        name = f"{format_color(node.move[0])} {self.board.vertex(node.move[1])}"
                        fault = f"move {played} of the record, {name}, is illegal ({why})"
                        game.play(*node.move, strict=False)
                        self._note(f"{fault}: played all the same")
                    else:
                        game.play(*node.move, strict=False)
                if node.side is not None:
                    game.turn_to(node.side)
        yield game

    def guess(self) -> Guess:
        """Return the guessed rules, even if the record names rules. The first call plays through the main line."""
        if self._guess is None:
            final = None
            with contextlib.suppress(SgfError):
                komi = CHINESE.komi if self.komi is None else self.komi
                *_, final = self.replay(rules=CHINESE, override_rules=True, komi=komi)
            self._guess = guess_rules(self.source, self.komi, self.result, final)
        return self._guess

    def _note(self, text: str) -> None:
        """Add a note about the whole record, unless it is there already."""
        if (note := Note(text)) not in self.notes:
            self.notes.append(note)

    def place_handicap(self) -> None:
        """Set up the handicap stones on GTP's points beside other set-up stones, or raise HandicapError."""
        points = fixed_handicap(self.handicap, self.board)
        points.sort(key=lambda point: (-self.board.coordinates(point)[1], point))  # in the SGF reader's order
        self.root.setup[:0] = [(BLACK, point) for point in points]

    def place_missing_handicap(self) -> None:
        """Set up handicap stones that the record leaves out, with a note, unless Black plays them as moves."""
        moves: list[tuple[int, int]] = []
        for node in self.line():
            if not moves and any(color == BLACK for color, _ in node.setup):
                return
            moves += [node.move] if node.move else []
        if self.handicap < 2 or (moves and moves[0][0] == BLACK):
            return
        try:
            points = fixed_handicap(self.handicap, self.board)
        except HandicapError as error:
            self._note(f"no handicap stones (AB): left out, {error}")
            return
        # Soon after the start, a handicap stone cannot have been captured.
        if any(point in points for _, point in (*self.root.setup, *moves[:FIRST_MOVES])):
            self._note(f"no handicap stones (AB) for HA[{self.handicap}]: other stones are on their points, left out")
            return
        self.place_handicap()
        self._note(f"no handicap stones (AB) for HA[{self.handicap}]: placed on the usual points")

    def to_sgf(self) -> str:
        """Return the record as SGF text.

        Raises:
            SgfError: a property's name or value cannot be written.
        """
        try:
            return str(sgf_grammar.block_format(self._pieces()).decode("utf-8"))
        except ValueError as error:
            raise SgfError(f"cannot write SGF: {' '.join(str(error).split())}") from None

    def _root_properties(self) -> dict[str, list[str]]:
        rules = self.rules_text if self.rules is None else RULE_NAMES.get(self.rules.name or "", str(self.rules))
        texts = {
            "PB": self.black,
            "PW": self.white,
            "RE": self.result,
            "DT": self.date,
            "OT": self.overtime,
            "RU": rules,
            "KM": "" if self.komi is None else _number_text(self.komi),
            "HA": str(self.handicap) if self.handicap >= 2 else "",
            "TM": "" if self.seconds is None else _number_text(self.seconds),
        }
        board = self.board
        size = str(board.width) if board.width == board.height else f"{board.width}:{board.height}"
        fixed = {"FF": "4", "GM": "1", "CA": "UTF-8", "SZ": size, "AP": f"{APPLICATION}:{__version__}"}
        return {name: [escaped(text)] for name, text in (fixed | texts).items() if text}

    def _pieces(self) -> Iterator[bytes]:
        """Yield the SGF text in pieces. Lines may be broken between two pieces."""
        pending: list[Node | bytes] = [b"\n", b")", self.root, b"("]  # a stack: the last entry is written first
        while pending:
            node = pending.pop()
            if isinstance(node, bytes):
                yield node
                continue
            properties = self._root_properties() if node is self.root else {}
            properties |= _properties_of(node, self.board)
            yield b";"
            for name in sorted(properties, key=lambda name: (name != "FF", name)):
                yield "".join([name, *(f"[{value}]" for value in properties[name])]).encode("utf-8")
            if len(node.children) == 1:
                pending += node.children
            else:
                for child in reversed(node.children):
                    pending += (b")", child, b"(")

    def _set_up(self, game: GoGame, node: Node, rest: Sequence[Node]) -> None:
        """Apply the set-up of a node. The side to move is stated in the node, or follows from the next move."""
        follower = next((later.move[0] for later in rest if later.move), None)
        black_only = self.handicap >= 2 and all(color == BLACK for color, _ in node.setup)
        stated = None if node.move else node.side  # beside a move, PL is the side after the move
        side = stated or follower or (WHITE if black_only else None)
        with reraised((HandicapError, SetupError), SgfError, "set-up of the record: "):
            if black_only and node is self.root and len(node.setup) == self.handicap and side == WHITE:
                game.place_handicap([point for _, point in node.setup])
            else:
                game.edit(node.setup, side)


def record_of(game: GoGame, comments: Sequence[str] = (), counts: Sequence[Counts] = ()) -> GameRecord:
    """Return a record of `game` without names or result.

    `comments` belong to the initial position and then each move; `counts` are the visits of the search for each move,
    written as COUNTS. Both may be shorter.
    """
    texts = [*comments, *[""] * (len(game.moves) + 1 - len(comments))]
    record = GameRecord(game.board, game.komi, game.rules, handicap=game.handicap)
    record.root = Node(setup=list(game.setup), comment=texts[0])
    first = game.moves[0][0] if game.moves else game.side_to_move
    if game.setup or first != BLACK:
        record.root.side = game.initial_side
    node = record.root
    for number, ((color, move), text) in enumerate(zip(game.moves, texts[1:], strict=False)):
        node = node.add(color, move, text)
        if number < len(counts) and counts[number]:
            node.other[COUNTS] = [
                f"{'' if point == PASS else game.board.letters(point)}:{visits}" for point, visits in counts[number]
            ]
    return record


def to_sgf(game: GoGame, comments: Sequence[str] = (), counts: Sequence[Counts] = (), **info: Any) -> str:
    """Return `game` as SGF text; see `record_of`. `info`: fields of `GameRecord`, such as black="A", result="B+R"."""
    return replace(record_of(game, comments, counts), **info).to_sgf()


def _properties_of(node: Node, board: Board) -> dict[str, list[str]]:
    """Return the properties of a node: name -> escaped values."""
    properties: dict[str, list[str]] = {}
    if node.move:
        color, move = node.move
        properties[format_color(color)] = ["" if move == PASS else board.letters(move)]
    for name, stone in SETUP_PROPERTIES.items():
        points = sorted(board.letters(point) for color, point in node.setup if color == stone)
        if points:
            properties[name] = points
    if node.side is not None:
        properties["PL"] = [format_color(node.side)]
    if node.comment:
        properties["C"] = [escaped(node.comment)]
    for name, values in node.other.items():
        if not sgf_grammar.is_valid_property_identifier(name):
            raise ValueError(f"property {name[:40]!r} found, expected 1 to 64 capital letters")
        text = "".join(values)  # most values need no escapes, so the check of each value can be skipped
        if not values or (("]" in text or "\\" in text) and not all(map(_is_escaped, values))):
            raise ValueError(f"property {name}: expected values with a backslash before ']'")
        properties[name] = values
    return properties


def _is_escaped(value: str) -> bool:
    return bool(sgf_grammar.is_valid_property_value(value.encode("utf-8")))


def escaped(text: str) -> str:
    """Return a text with the escapes that a property's value needs."""
    return text.replace("\\", "\\\\").replace("]", "\\]")


def _number_text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def line_of(text: str) -> str:
    """Return the beginning of a text as one line, for a message."""
    return " ".join(text[:40].split())
