"""The GTP loop in a real process through real pipes, with a player without a search."""

import time
from collections.abc import Iterator

import pytest

from tests.process.engine_process import GtpProcess, check_end_without_reader
from yomi import __version__

FAKE = "tests.process.fake_engine"


@pytest.fixture(scope="module")
def fake() -> Iterator[GtpProcess]:
    """Give one engine to all tests that do not end it."""
    with GtpProcess(FAKE) as engine:
        yield engine


def test_pipelined_lines_of_every_kind() -> None:
    with GtpProcess(FAKE) as engine:
        engine.write(
            b"1 name\r\n\r\n# comment\r\n\t2\tVersion \r\n3 boardsize 9\n\n4 PLAY B e5\n5 play w \xff\xfe\n6 un"
        )
        engine.write(b"do\n7 undo\n8 echo a\x00b\n99 nonsense\n10 quit\n11 name\n")
        assert engine.rest().split("\n\n")[:-1] == [
            "=1 yomi",
            f"=2 0.120 (yomi {__version__})",
            "=3",
            "=4",
            "?5 invalid vertex '\ufffd\ufffd': expected A1 to J9 or pass",
            "=6",
            "?7 cannot undo",
            "=8 ab",
            "?99 unknown command nonsense",
            "=10",
        ]
        assert engine.end(60) == 0


@pytest.mark.parametrize("line", ["", "# note", "protocol_version", "5 play w a1"])
def test_analysis_stops_at_the_next_line(line: str, fake: GtpProcess) -> None:
    fake.ask("boardsize 9")
    fake.write("4 kata-analyze b 2\n")
    assert fake.line() == "=4"
    for _ in range(5):
        assert fake.line().startswith("info move E5 visits ")
    end = time.monotonic() + 60
    fake.write(line + "\n")
    while fake.line():
        assert time.monotonic() < end
    if line.startswith("5"):
        assert fake.answer() == "=5"
    elif line == "protocol_version":
        assert fake.answer() == "= 2"
    assert fake.ask("6 name") == "=6 yomi"


def test_end_of_input_during_analysis() -> None:
    with GtpProcess(FAKE) as engine:
        engine.write("boardsize 9\nlz-analyze 1\n")
        engine.answer()
        assert engine.line() == "="
        assert engine.line().startswith("info")
        engine.close_input()
        assert engine.end(60) == 0
        assert engine.rest().endswith("\n")


def test_end_of_input_during_a_move() -> None:
    with GtpProcess(FAKE, "600") as engine:
        engine.ask("boardsize 9")
        engine.write("2 genmove b\n3 genmove w\n4 name\n")
        time.sleep(0.2)
        engine.close_input()
        assert engine.end(60) == 0
        assert engine.rest() == "=2 E5\n\n=3 E6\n\n=4 yomi\n\n"


def test_end_of_input_while_nothing_happens() -> None:
    with GtpProcess(FAKE, "0", "ponder") as engine:
        engine.ask("genmove b")
        engine.close_input()
        assert engine.end(60) == 0
        assert engine.rest() == ""


def test_a_script_gets_its_searches_in_full() -> None:
    """Input that ends with quit is no sign that the controller is gone."""
    with GtpProcess(FAKE, "1.5") as engine:
        engine.ask("boardsize 9")
        start = time.monotonic()
        engine.write("genmove b\nquit\n")
        engine.close_input()
        assert engine.rest() == "= E5\n\n=\n\n"
        assert time.monotonic() - start > 1.4


def test_interrupt_comment() -> None:
    with GtpProcess(FAKE, "600") as engine:
        engine.ask("boardsize 9")
        engine.write("2 genmove b\n")
        time.sleep(0.2)
        engine.write("# interrupt\n")
        assert engine.answer(60) == "=2 E5"


def test_nobody_reads_the_answers() -> None:
    check_end_without_reader(FAKE, hello=b"name\n", answer=b"= yomi\n", last=b"name\nname\n")


def test_a_very_long_line(fake: GtpProcess) -> None:
    fake.write(b"1 echo " + b"x" * 3_000_000 + b"\n2 name\n")
    assert fake.answer().startswith("?1 line too long")
    assert fake.answer() == "=2 yomi"
