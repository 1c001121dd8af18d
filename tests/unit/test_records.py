"""Records of both games: notes, files that are safe to read, scores, and text for a terminal."""

import logging
import math
import os
import tracemalloc
from pathlib import Path

import pytest

from yomi.engine.cli.output import echo, format_table, say, set_up_logs
from yomi.engine.options import Options
from yomi.engine.records import (
    MATE_SCORE,
    MAX_NAMED,
    MAX_USI_CENTIPAWNS,
    LeftOut,
    Note,
    read_record_bytes,
    record_score,
    report_notes,
    usi_centipawns,
    winrate_of,
)
from yomi.errors import printable


@pytest.mark.parametrize(
    ("source", "offset", "place"),
    [
        ("abc", 0, (1, 1)),
        ("abc\ndef", 5, (2, 2)),
        ("abc\r\ndef", 5, (2, 1)),
        ("abc\rdef", 4, (2, 1)),
        ("a\u2028b\x0cc\nd", 7, (2, 2)),
        ("柯洁\n柯", 4, (2, 2)),
    ],
)
def test_places_in_a_text(source: str, offset: int, place: tuple[int, int]) -> None:
    note = Note.at(source, offset, "fault")
    assert (note.line, note.column) == place
    assert str(note) == f"line {place[0]}, column {place[1]}: fault"


def test_notes_are_reported_by_file() -> None:
    lines: list[str] = []
    report_notes(lines.append, "a.sgf", [Note("whole"), Note("line", 3), Note("place", 3, 4)])
    assert lines == ["a.sgf: whole", "a.sgf:3: line", "a.sgf:3:4: place"]
    lines.clear()
    report_notes(lines.append, "a.sgf", [Note("x")] * 9)
    assert lines == ["a.sgf: x"] * 5 + ["a.sgf: 4 further notes"]


def test_files_left_out_are_named_and_counted() -> None:
    lines: list[str] = []
    left_out = LeftOut(lines.append)
    left_out.report(3)
    assert not lines
    for number in range(MAX_NAMED + 2):
        left_out.add(f"{number}.sgf", "broken")
    left_out.report(50)
    assert lines[0] == "0.sgf: broken: left out"
    assert len(lines) == MAX_NAMED + 1
    assert lines[-1] == f"{MAX_NAMED + 2} left out, of 50 files"
    lines.clear()
    left_out = LeftOut(lines.append)
    for number in range(MAX_NAMED + 3):
        left_out.report_notes(f"{number}.sgf", [Note("fault")] if number else [])
    left_out.report(50)
    assert lines[0] == "1.sgf: fault"
    assert len(lines) == MAX_NAMED + 1
    assert lines[-1] == f"{MAX_NAMED + 2} files have faults and are used all the same"


def test_only_files_of_reasonable_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.sgf"
    path.write_bytes(b"(;)")
    assert read_record_bytes(path) == b"(;)"
    with pytest.raises(OSError, match="larger than 0 MiB"):
        read_record_bytes(path, 2)
    with path.open("wb") as stream:
        stream.truncate(2**33)  # a hole, which takes no space
    tracemalloc.start()
    try:
        with pytest.raises(OSError, match="larger than 256 MiB, expected a smaller file"):
            read_record_bytes(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    with pytest.raises(FileNotFoundError):
        read_record_bytes(tmp_path / "none")
    with pytest.raises(OSError, match=r"folder|directory|Permission denied"):  # the last on Windows
        read_record_bytes(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes of Unix")
def test_devices_and_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for a writer
    with pytest.raises(OSError, match="a pipe, expected a file"):
        read_record_bytes(tmp_path / "pipe")
    with pytest.raises(OSError, match="a device, expected a file"):
        read_record_bytes("/dev/zero")


EVIL = "\x1b[31mred\x1b[2J\x1b]0;title\x07\x9b2J\x00\x7f\u2028\u202e\r\b"


def test_text_for_a_terminal() -> None:
    assert printable(EVIL) == "\ufffd[31mred\ufffd[2J\ufffd]0;title\ufffd\ufffd2J" + "\ufffd" * 6
    for text in ("Aki 本因坊 é ½ 흑 \u3000", "", "\udce9", "👍🏽", "क्षि"):
        assert printable(text) == text
    assert printable("a\nb\t", keep="\n") == "a\nb\ufffd"


def test_what_commands_print(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"{EVIL}\nsecond")
    echo(f"{EVIL}\nsecond")
    print(format_table([{"name": EVIL}]))
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        assert "\nsecond\n" in text
        assert not set(text) & set("\x1b\x07\x9b\x00\x7f\u2028\u202e\r\b")
    root = logging.getLogger("yomi")
    try:
        set_up_logs(Options())
        logging.getLogger("yomi.test").warning("%s", EVIL)
    finally:
        root.handlers.clear()
    assert "\x1b" not in capsys.readouterr().err


def test_scores_of_records_tell_mates_from_winrates() -> None:
    assert record_score(0.5, None, 756.0) == 0
    assert record_score(0.9, None, 600.0) == -record_score(0.1, None, 600.0) == 1318
    assert record_score(1.0 - 1e-10, None, 600.0) == usi_centipawns(1.0 - 1e-10, 600.0) == 13816
    assert record_score(1.0, None, 756.0) == MATE_SCORE / 2 == 15000
    assert record_score(0.0, None, 756.0) == -15000
    assert record_score(0.9, 5, 756.0) == 29995
    assert record_score(0.1, -4, 756.0) == -29996


def test_centipawns_of_usi() -> None:
    assert usi_centipawns(0.5, 756) == 0
    assert usi_centipawns(0.75, 756) == round(756 * math.log(3)) == -usi_centipawns(0.25, 756)
    assert usi_centipawns(1.0, 756) == MAX_USI_CENTIPAWNS == -usi_centipawns(0.0, 756)
    assert usi_centipawns(1 - 1e-16, 10000) == MAX_USI_CENTIPAWNS


def test_scores_lead_back_to_winrates() -> None:
    for score in (-900, 0, 35):
        winrate = winrate_of(score, 756)
        assert usi_centipawns(winrate, 756) == score == record_score(winrate, None, 756)
    assert winrate_of(-99999, 1) == 0.0
