"""GTP lines and answers as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.looping import looped
from yomi.engine.go.gtp.codec import (
    MAX_ERROR,
    Command,
    format_response,
    is_interrupt,
    parse_line,
)
from yomi.engine.protocols.streams import MAX_LINE, encode


@looped(
    ("line", "expected"),
    [
        (b"name", Command(None, "name", ())),
        (b"name\r", Command(None, "name", ())),
        (b"12 play B D4\r", Command("12", "play", ("B", "D4"))),
        (b"  007\tPLAY\tb   pass  ", Command("007", "play", ("b", "pass"))),
        (b"genmove b # think", Command(None, "genmove", ("b",))),
        (b"3 # nothing", Command("3", "", ())),
        (b"99999999999999999999 name", Command("99999999999999999999", "name", ())),
        (b"-1 name", Command(None, "-1", ("name",))),
        (b"na\x00me\x07", Command(None, "name", ())),
        (b"loadsgf \xff.sgf", Command(None, "loadsgf", ("\udcff.sgf",))),
        ("٣ name".encode(), Command(None, "٣", ("name",))),
        ("play b d4\u00a0x".encode(), Command(None, "play", ("b", "d4\u00a0x"))),
    ],
)
def test_lines(line: bytes, expected: Command) -> None:
    assert parse_line(line) == expected


@pytest.mark.parametrize("line", [b"", b"\r", b"   \t", b"# 12 name", b" # x", b"\x01\x02"])
def test_lines_without_a_command(line: bytes) -> None:
    assert parse_line(line) is None


@looped(
    ("number", "text", "ok", "expected"),
    [
        (None, "", True, "=\n\n"),
        ("5", "", True, "=5\n\n"),
        ("5", "D4", True, "=5 D4\n\n"),
        (None, "a\n\n\nb\n", True, "= a\nb\n\n"),
        (None, "\n  A B\n 1 . .", True, "=\n  A B\n 1 . .\n\n"),
        ("1", "illegal move", False, "?1 illegal move\n\n"),
        (None, "two\n\nlines", False, "? two; lines\n\n"),
        (None, "\nx", False, "? x\n\n"),
    ],
)
def test_answers(number: str | None, text: str, ok: bool, expected: str) -> None:
    assert format_response(number, text, ok) == expected


def test_long_errors_are_cut() -> None:
    assert len(format_response(None, "x" * 10000, ok=False)) < MAX_ERROR + 20


def test_bytes_that_are_not_text_come_back_unchanged() -> None:
    command = parse_line(b"echo \xff\xfe")
    assert command is not None
    assert encode(command.text) == b"\xff\xfe"


def test_interrupt() -> None:
    assert is_interrupt(b"# interrupt\r")
    assert not is_interrupt(b"# interrupted")
    assert not is_interrupt(b"interrupt")


@given(st.binary(max_size=200))
def test_any_line_can_be_read(line: bytes) -> None:
    command = parse_line(line)
    if command is not None:
        assert command.id is None or command.id.isdigit()
        encode(format_response(command.id, command.text))


@given(st.text(max_size=200), st.booleans())
def test_an_answer_ends_with_its_only_empty_line(text: str, ok: bool) -> None:
    answer = format_response("1", text, ok)
    assert answer.endswith("\n\n")
    assert answer.index("\n\n") == len(answer) - 2


def test_a_long_line_keeps_its_id() -> None:
    command = parse_line(b"17 echo " + b"x" * (MAX_LINE + 5))
    assert command is not None
    assert command.id == "17"
