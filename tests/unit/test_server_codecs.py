"""The protocols of CGOS and CSA as text, and lines out of bytes."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.looping import looped
from yomi.engine.clock import Clock
from yomi.engine.go.cgos import codec as cgos_codec
from yomi.engine.go.points import square
from yomi.engine.protocols.streams import LineSplitter, decode
from yomi.engine.servers.connection import MAX_LINE
from yomi.engine.shogi.floodgate import codec as csa_codec
from yomi.engine.shogi.floodgate.codec import MessageReader, TimeRule, parse_summary
from yomi.engine.shogi.floodgate.game import CsaClock
from yomi.engine.shogi.notation import format_usi

CGOS_TRANSCRIPT = """\
protocol genmove_analyze
info Games in progress: 1 Players:2
info another login is being attempted using this user name
username
password
setup 7 9 7.0 120000 gnugo-l1(1800?) probe1(1750) E5 120000 c5 119368
play w c5 120000
genmove b 116983
gameover 2026-11-20 W+Illegal Illegal move error:do not understand syntax move:z99
Error: Sorry, password doesn't match
"""
CGOS_MESSAGES = [
    cgos_codec.Message("protocol", "genmove_analyze"),
    cgos_codec.Message("info", "Games in progress: 1 Players:2"),
    cgos_codec.Message("another login"),
    cgos_codec.Message("user"),
    cgos_codec.Message("password"),
    cgos_codec.Setup(
        "7",
        square(9),
        7.0,
        120.0,
        {2: "gnugo-l1", 1: "probe1"},
        {2: "1800?", 1: "1750"},
        (("e5", 120.0), ("c5", 119.368)),
    ),
    cgos_codec.OpponentMove(2, "c5", 120.0),
    cgos_codec.Genmove(1, 116.983),
    cgos_codec.Gameover("2026-11-20", "W+Illegal", "Illegal move error:do not understand syntax move:z99"),
    cgos_codec.Message("refused", "Sorry, password doesn't match"),
]

SUMMARY = """\
BEGIN Game_Summary
Protocol_Version:1.2
Format:Shogi 1.0
Declaration:Jishogi 1.1
Game_ID:test+match-5-1F+a+b+1
Name+:a
Name-:b
Your_Turn:-
To_Move:+
Max_Moves:256
BEGIN Time
Time_Unit:1sec
Total_Time:300
Byoyomi:0
Increment:10
Least_Time_Per_Move:0
END Time
BEGIN Position
P1-KY-KE-GI-KI-OU-KI-GI-KE-KY
P2 * -HI *  *  *  *  * -KA *
P3-FU-FU-FU-FU-FU-FU-FU-FU-FU
P4 *  *  *  *  *  *  *  *  *
P5 *  *  *  *  *  *  *  *  *
P6 *  *  *  *  *  *  *  *  *
P7+FU+FU+FU+FU+FU+FU+FU+FU+FU
P8 * +KA *  *  *  *  * +HI *
P9+KY+KE+GI+KI+OU+KI+GI+KE+KY
+
+7776FU,T12
END Position
END Game_Summary
"""
CSA_TRANSCRIPT = (
    "LOGIN:a OK\n\nLOGIN:incorrect\n"
    + SUMMARY
    + "START:1\nREJECT:1 by b\n+7776FU,T12\n-3334FU\n-3334FU,'* 30 +2726FU\n%TORYO,T4\n#RESIGN\n#WIN\n#CHUDAN\n"
    + "##[CHAT] hello\nLOGOUT:completed\n"
)
CSA_MESSAGES = [
    csa_codec.Message("login", "a"),
    csa_codec.Message("keepalive"),
    csa_codec.Message("refused"),
    csa_codec.Message("start", "1"),
    csa_codec.Message("reject", "1 by b"),
    csa_codec.Message("move", "+7776FU", 12),
    csa_codec.Message("move", "-3334FU"),
    csa_codec.Message("move", "-3334FU"),
    csa_codec.Message("special", "TORYO", 4),
    csa_codec.Message("reason", "RESIGN"),
    csa_codec.Message("result", "WIN"),
    csa_codec.Message("result", "CHUDAN"),
    csa_codec.Message("other", "##[CHAT] hello"),
    csa_codec.Message("logout"),
]


def summary(*replacements: tuple[str, str]) -> csa_codec.Summary:
    """Return the summary above with texts replaced."""
    text = SUMMARY
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return parse_summary(text.splitlines()[1:-1])


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def read_cgos(chunks: list[bytes]) -> list[object]:
    splitter = LineSplitter(MAX_LINE)
    return [cgos_codec.parse_line(decode(line, "replace")) for chunk in chunks for line in splitter.feed(chunk)]


def read_csa(chunks: list[bytes]) -> list[object]:
    splitter, reader = LineSplitter(MAX_LINE), MessageReader()
    messages = [reader.feed(decode(line, "replace")) for chunk in chunks for line in splitter.feed(chunk)]
    return [message for message in messages if message is not None]


def test_cgos_lines_split_at_every_byte() -> None:
    data = CGOS_TRANSCRIPT.encode()
    for cut in range(len(data) + 1):
        assert read_cgos([data[:cut], data[cut:]]) == CGOS_MESSAGES
    for size in (1, 2, 3, 7):
        assert read_cgos(pieces(data, size)) == CGOS_MESSAGES
    assert read_cgos([data.replace(b"\n", b"\r\n")]) == CGOS_MESSAGES


def test_csa_lines_split_at_every_byte() -> None:
    data = CSA_TRANSCRIPT.encode()
    for chunks in [[data[:cut], data[cut:]] for cut in range(len(data) + 1)] + [pieces(data, 1), pieces(data, 5)]:
        messages = read_csa(chunks)
        assert isinstance(messages.pop(3), csa_codec.Summary)
        assert messages == CSA_MESSAGES


@given(st.binary(max_size=400), st.integers(1, 50))
def test_garbage_is_passed_over(data: bytes, size: int) -> None:
    read_cgos(pieces(data, size))
    read_csa(pieces(b"BEGIN Game_Summary\n" + data + b"\nEND Game_Summary\n" + data, size))


@looped(
    "line",
    [
        "setup 7 9 7.0 120000 white(1)", "setup 7 nine 7.0 120000 w b", "setup 7 9 7.0 soon w b",
        "setup 7 9 7.0 1 w b e5 x", "play x e5 100", "play b e5", "genmove b", "genmove b -", "gameover",
        "username now", "", "e5",
    ],
)  # fmt: skip
def test_other_lines_of_cgos(line: str) -> None:
    assert cgos_codec.parse_line(line) == cgos_codec.Message("other", line)


@looped(
    ("size", "komi", "moves", "why"),
    [
        ("99", "7", "", "board size 99: expected 2 to 19"),
        ("1", "7", "", "board size 1: expected 2 to 19"),
        ("0", "7", "", "board size 0: expected 2 to 19"),
        ("9" * 5000, "7", "", f"board size {'9' * 20}: expected 2 to 19"),
        ("9", "401", "", "komi 401: expected -400 to 400"),
        ("9", "9" * 5000, "", f"komi {'9' * 20}: expected -400 to 400"),
        ("9", "nan", "", "komi nan: expected -400 to 400"),
        ("9", "-inf", "", "komi -inf: expected -400 to 400"),
        ("9", "1e9", "", "komi 1e9: expected -400 to 400"),
        ("9", "٧", "", "komi ٧: expected -400 to 400"),
        ("9", "7", " j9 1 k1 1", "move 2: invalid vertex 'k1': expected A1 to J9 or pass"),
        ("9", "7", " resign 1", "move 1: invalid vertex 'resign': expected A1 to J9 or pass"),
    ],
)
def test_games_of_cgos_that_cannot_be_played(size: str, komi: str, moves: str, why: str) -> None:
    assert cgos_codec.parse_line(f"setup 7 {size} {komi} 1000 w b{moves}") == cgos_codec.Message("broken", why)


@looped("time", ["٣", "1.5", "nan", "inf", "1e3", "1_000", "9" * 16, "9" * 5000])
def test_times_of_cgos_that_are_no_numbers(time: str) -> None:
    for line in (f"play b e5 {time}", f"genmove b {time}", f"setup 7 9 7 {time} w b", f"setup 7 9 7 1 w b e5 {time}"):
        assert cgos_codec.parse_line(line) == cgos_codec.Message("other", line)
    assert cgos_codec.parse_line(f"genmove b {'9' * 15}") == cgos_codec.Genmove(1, 1e7)


def test_an_overdrawn_clock_of_cgos_shows_nothing_left() -> None:
    assert cgos_codec.parse_line("genmove w -120") == cgos_codec.Genmove(2, 0.0)


def test_cgos_answers() -> None:
    assert cgos_codec.format_protocol(True).startswith("e1 yomi ")
    assert cgos_codec.format_protocol(True).endswith(" genmove_analyze")
    assert "genmove_analyze" not in cgos_codec.format_protocol(False)
    assert cgos_codec.format_move("D4", '{"winrate":0.5}') == 'd4 {"winrate":0.5}'
    assert cgos_codec.format_move("resign", "{}") == "resign"
    assert cgos_codec.format_move("D4", "x" * 60_000) == "d4"  # the server would drop the connection


def test_a_line_without_end_takes_no_memory() -> None:
    splitter = LineSplitter(MAX_LINE)
    tracemalloc.start()
    found = [line for _ in range(1000) for line in splitter.feed(b"x" * 10_000)]
    assert found == [b"x" * (MAX_LINE + 1)]
    assert tracemalloc.get_traced_memory()[1] < 4 * MAX_LINE
    tracemalloc.stop()
    assert splitter.feed(b"x\nplay w c5 1\nrest") == [b"play w c5 1"]
    assert splitter.rest == b"rest"


@given(st.binary(max_size=60), st.integers(1, 9))
def test_lines_are_the_same_in_pieces_of_any_size(data: bytes, size: int) -> None:
    splitter = LineSplitter(4)
    *lines, rest = data.split(b"\n")
    found = [line for chunk in pieces(data, size) for line in splitter.feed(chunk)]
    assert found == [line[:5] for line in lines] + [rest[:5]] * (len(rest) > 4)
    assert splitter.rest == (b"" if len(rest) > 4 else rest)


def test_lines_can_be_written_anywhere_whatever_came_in() -> None:
    (line,) = LineSplitter(MAX_LINE).feed(b"setup \xff\xfeman \xe6\xa3\x8b\n")
    assert decode(line, "replace") == "setup \ufffd\ufffdman \u68cb"


def test_a_line_of_a_million_characters_in_one_piece() -> None:
    splitter = LineSplitter(MAX_LINE)
    assert splitter.feed(b"a\n" + b"x" * 10**6 + b"\nb\n") == [b"a", b"x" * (MAX_LINE + 1), b"b"]
    assert splitter.feed(b"y" * MAX_LINE + b"\n") == [b"y" * MAX_LINE]


def test_a_summary_without_end_takes_no_memory() -> None:
    reader = MessageReader()
    reader.feed("BEGIN Game_Summary")
    found = [message for i in range(csa_codec.MAX_SUMMARY + 10) if (message := reader.feed(f"x{i}")) is not None]
    assert isinstance(found[0], csa_codec.Message)
    assert found[0].kind == "broken"


def test_the_rule_of_the_declaration_win() -> None:
    assert csa_codec.DECLARATIONS[summary().declaration] == "27"
    assert summary(("Jishogi 1.1", "Jishogi 2.0")).declaration not in csa_codec.DECLARATIONS
    assert summary(("Declaration:Jishogi 1.1\n", "")).declaration == ""


def test_a_game_that_goes_on() -> None:
    found = summary()
    assert (found.game_id, found.color, found.max_moves) == ("test+match-5-1F+a+b+1", 2, 256)
    assert found.names == {1: "a", 2: "b"}
    assert [format_usi(move.move) for move in found.record.moves] == ["7g7f"]
    assert found.record.moves[0].seconds == 12
    assert found.rules[1] == found.rules[2] == TimeRule(300.0, 0.0, 10.0)


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [("1sec", 300.0), ("sec", 300.0), ("1min", 18000.0), ("msec", 0.3), ("1msec", 0.3), ("100msec", 30.0)],
)
def test_units_of_time(unit: str, seconds: float) -> None:
    assert summary(("1sec", unit)).rules[1].total == pytest.approx(seconds)


def test_each_side_may_have_a_time_of_its_own() -> None:
    text = "END Time\nBEGIN Time-\nTotal_Time:60\nByoyomi:5\nTime_Roundup:YES\nEND Time-"
    found = summary(("END Time", text), ("Increment:10", "Increment:0\nRemaining_Time+:42"))
    assert found.rules[1] == TimeRule(300.0)
    assert found.rules[2] == TimeRule(60.0, 5.0, is_rounded_up=True)
    assert found.remaining == {1: 42.0}


@looped(
    ("old", "new", "message"),
    [
        ("Game_ID:test+match-5-1F+a+b+1", "", "a game's summary without Game_ID"),
        ("Your_Turn:-", "Your_Turn:x", "Your_Turn:x: expected + or -"),
        ("1sec", "0sec", "Time_Unit:0sec: expected a number and msec, sec or min"),
        ("1sec", "1year", "Time_Unit:1year: expected a number and msec, sec or min"),
        ("Total_Time:300", "Total_Time:soon", "Total_Time:soon: expected a number"),
        ("+7776FU,T12", "+7775FU,T12", "the position of a game's summary: ended by +ILLEGAL_ACTION"),
        ("Max_Moves:256", "Max_Moves:٢", "Max_Moves:٢: expected a number"),
        ("Max_Moves:256", f"Max_Moves:{'9' * 5000}", f"Max_Moves:{'9' * 20}: expected a number"),
        ("Byoyomi:0", "Byoyomi:nan", "Byoyomi:nan: expected a number"),
        ("Byoyomi:0", "Remaining_Time+:٣", "Remaining_Time+:٣: expected a number"),
        ("Byoyomi:0", f"Remaining_Time-:{'9' * 400}", f"Remaining_Time-:{'9' * 20}: expected a number"),
        ("+7776FU,T12", "+7776FU,T20000000", "the position of a game's summary: a move of more than 10000000 s"),
        ("P5 *  *  *  *", "P5 *  *  * +OU", "the position of a game's summary: "),
    ],
)
def test_summaries_that_cannot_be_used(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"a game's|expected") as error:
        summary((old, new))
    assert str(error.value).startswith(message)


def test_csa_lines_to_the_server() -> None:
    assert csa_codec.format_login("a", "b,c", "x-1-0") == "LOGIN a x-1-0,b,c"
    assert csa_codec.format_login("a", "b", "") == "LOGIN a b"
    assert csa_codec.format_move("+7776FU", -12, "-3334FU +2726FU") == "+7776FU,'* -12 -3334FU +2726FU"
    assert csa_codec.format_move("+7776FU", 0, "") == "+7776FU,'* 0"
    assert csa_codec.format_move("+7776FU", None, "-3334FU") == "+7776FU"


def test_the_clock_of_increments() -> None:
    """As the server in Ruby keeps it: 5 s and 1 s a move."""
    clock = CsaClock({1: TimeRule(5.0, 0.0, 1.0), 2: TimeRule(5.0, 0.0, 1.0)})
    assert clock.allowed(1) == 6.0
    pondering = clock.clocks(1, 3.0)  # the move is not charged yet
    assert clock.charge(1, 3) == 3.0
    assert clock.left == {1: 3.0, 2: 5.0}
    assert clock.clocks(1) == pondering
    clock.charge(1, 9)
    assert clock.left[1] == 0.0
    assert clock.clocks(1) == {1: Clock.of(0.0, increment=1.0), 2: Clock.of(5.0, increment=1.0)}


def test_the_clock_of_byoyomi_in_tenths_that_are_rounded_up() -> None:
    rule = TimeRule(1.0, 2.0, unit=0.1, is_rounded_up=True)
    clock = CsaClock({1: rule, 2: rule})
    assert clock.charge(2, 25) == 2.5
    assert clock.left == {1: 1.0, 2: 0.0}
    assert clock.clocks(2) == {1: Clock.of(1.0, 1.9), 2: Clock.of(0.0, 1.9)}
    assert CsaClock({1: TimeRule(), 2: TimeRule()}).clocks(1) is None
