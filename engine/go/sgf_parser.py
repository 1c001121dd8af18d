"""Parses decoded SGF text into nodes. Faults of grammar become notes: the parser reads as much as it can."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, field

from yomi.engine.records import Note

MAX_GAME_NOTES = 100  # Maximum notes of a game. A file that is not SGF may have any number of faults.
MAX_REPAIR = 2000  # maximum characters between two brackets of which the first may belong to a text
POINTS = ("B", "W", "AB", "AW", "AE")  # properties whose values are points
_VALUE = re.compile(r"\[([^\\\]]*(?:\\.[^\\\]]*)*)\]", re.DOTALL)
_VALUE_REST = re.compile(r"[^\\\]]*(?:\\.[^\\\]]*)*\]", re.DOTALL)
_NAME = re.compile(r"[A-Za-z]{1,64}")
_BLANK = re.compile(r"[\s\0\ufeff]*")
_STRAY = re.compile(r"[A-Za-z]{1,64}|[^\s;()\[A-Za-z]+")
# Beginning of a game. Some programs omit the first `;`, and a damaged file may lack its first `(`.
_START = re.compile(r"\(\s*(?:;|[A-Z]{1,2}\s*\[)|\A[\s\ufeff]*;\s*[A-Z]{1,2}\s*\[")
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
        """Return the value whose bracket is at `begin`, and the offset after it. The value is None for half a point."""
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
        """Skip text that belongs to no property, and return the offset after it."""
        found = _VALUE.match(self.text, place) or _STRAY.match(self.text, place)
        end = found.end() if found else len(self.text)
        shown = " ".join(self.text[place : min(end, place + 20)].split())
        self.note(place, f"'{shown}' found, expected a property or a node: left out")
        return end


def find_game(text: str, begin: int = 0) -> int:
    """Return the offset of the next game; -1 if there is none."""
    found = _START.search(text, begin)
    return found.start() if found else -1


def _skip(text: str, place: int) -> int:
    if " " < text[place : place + 1] <= "~":
        return place
    found = _BLANK.match(text, place)
    assert found is not None
    return found.end()
