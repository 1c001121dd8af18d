"""USI lines as text, and the table of options as USI shows it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.looping import looped
from yomi.engine.default_network import network_file
from yomi.engine.levels import LevelSwitch
from yomi.engine.options import TABLE, USI_NAMES, OptionError, Options, rows_for
from yomi.engine.protocols.streams import MAX_LINE
from yomi.engine.shogi.descriptor import GAME as SHOGI
from yomi.engine.shogi.usi.codec import (
    MAX_ERROR,
    Command,
    Go,
    format_bestmove,
    format_checkmate,
    format_error,
    format_info,
    parse_go,
    parse_line,
    parse_position,
    parse_setoption,
)
from yomi.engine.shogi.usi.commands import find_option, option_lines, set_option
from yomi.nets.models import default_network


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"usi", Command("usi", "")),
        (b"usi\r", Command("usi", "")),
        (b"  \tGO\tbtime 5 \r", Command("go", "btime 5")),
        (b"setoption name A  B", Command("setoption", "name A  B")),
        (b"po\x00sition \xff", Command("position", "\udcff")),
        (b"", None),
        (b" \r", None),
    ],
)
def test_lines(line: bytes, expected: Command | None) -> None:
    assert parse_line(line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name USI_Hash value 256", ("USI_Hash", "256")),
        ("name Clear Hash", ("Clear Hash", None)),
        ("NAME Book File VALUE C:\\my  books\\value b.db", ("Book File", "C:\\my  books\\value b.db")),
        ("name X value", ("X", "")),
        ("name X value  ", ("X", "")),
        ("X value 3", ("X", "3")),
        ("name evalue value value", ("evalue", "value")),
    ],
)
def test_setoption(text: str, expected: tuple[str, str | None]) -> None:
    assert parse_setoption(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("startpos", ("startpos", [])),
        ("startpos moves", ("startpos", [])),
        ("startpos moves 7g7f 3c3d", ("startpos", ["7g7f", "3c3d"])),
        ("sfen 9/9 b - 1 moves 7g7f", ("9/9 b - 1", ["7g7f"])),
        ("sfen 9/9 b -", ("9/9 b - 1", [])),
        ("sfen 9/9 b - moves 7g7f", ("9/9 b - 1", ["7g7f"])),
    ],
)
def test_position(text: str, expected: tuple[str, list[str]]) -> None:
    assert parse_position(text) == expected


def test_arguments_of_another_form() -> None:
    for text in ("", "name", "name value 3", "value"):
        with pytest.raises(ValueError, match="expected name NAME"):
            parse_setoption(text)
    for text in ("", "fen x", "startpos 7g7f", "sfen", "sfen 9/9 b", "sfen a b c d e"):
        with pytest.raises(ValueError, match="expected startpos or sfen"):
            parse_position(text)


def parse(text: str) -> tuple[Go, list[str]]:
    """Read the arguments of a `go`."""
    return parse_go(text.split())


def test_go() -> None:
    go, faults = parse("ponder btime 1500 wtime 60000 byoyomi 0 binc 100 winc 200 movetime 5")
    assert not faults
    assert (go.ponder, go.btime, go.wtime, go.byoyomi, go.binc, go.winc, go.movetime) == (
        *(True, 1.5, 60.0, 0.0, 0.1, 0.2, 0.005),
    )
    go, faults = parse("searchmoves 7g7f P*5e nodes 100 depth 7 infinite")
    assert (go.searchmoves, go.nodes, go.depth, go.infinite, faults) == (["7g7f", "P*5e"], 100, 7, True, [])
    assert not go.is_endless
    for text, endless in (("infinite", True), ("infinite btime 5", True), ("movetime 5 infinite", False)):
        assert parse(text)[0].is_endless == endless
    for text, mate in (("mate 5000", 5.0), ("mate infinite", math.inf), ("mate", math.inf), ("mate nodes 3", math.inf)):
        go, faults = parse(text)
        assert (go.mate, faults) == (mate, [])
    assert not go.infinite
    assert go.nodes == 3
    go, faults = parse("mate x")
    assert (go.mate, faults) == (math.inf, ["mate: expected a number, found 'x'"])
    go, faults = parse("btime -500 wtime 1.5 nodes " + "9" * 5000)
    assert (go.btime, go.wtime, go.nodes, faults) == (0.0, 0.001, 10**15, [])
    assert not parse_go([])[0].has_clock


def test_wrong_arguments_of_go() -> None:
    go, faults = parse("btime many byoyomi wtime 1000 what nodes")
    assert (go.btime, go.byoyomi, go.wtime, go.nodes) == (None, None, 1.0, None)
    assert faults == [
        "btime: expected a number, found 'many'",
        "byoyomi: expected a number, found 'wtime'",
        "unknown word 'what'",
        "nodes: expected a number, found nothing",
    ]


@pytest.mark.parametrize("word", ["0", "-5", "0.5", "-0"])
def test_a_limit_of_0_asks_for_an_answer_at_once(word: str) -> None:
    for key, least in (("depth", 1), ("nodes", 1), ("movetime", 0.001), ("mate", 0.001)):
        go, faults = parse(f"{key} {word} btime 0")
        assert (getattr(go, key), go.btime, faults) == (least, 0.0, [])


@given(
    st.lists(st.sampled_from(["btime", "mate", "searchmoves", "infinite", "5", "-1", "x", "nodes", "٣"]), max_size=8)
)
def test_any_go_is_read(words: list[str]) -> None:
    go, _ = parse_go(words)
    assert not go.infinite or "infinite" in words
    for value in (go.btime, go.nodes):
        assert value is None or value >= 0


def test_answers() -> None:
    assert format_info(3, 5, 1.5, 3000, 0.012, ("7g7f", "3c3d"), centipawns=-7) == (
        "info depth 3 seldepth 5 score cp -7 nodes 3000 nps 2000 hashfull 12 time 1500 pv 7g7f 3c3d"
    )
    assert " score cp 7 lowerbound nodes " in format_info(1, 1, 0.0, 1, 0.0, (), centipawns=7, bound=1)
    assert " score mate 5 upperbound nodes " in format_info(1, 1, 0.0, 1, 0.0, (), mate=5, bound=-1)
    line = format_info(1, 1, 0.0, 1, 0.0, (), mate=-2, multipv=1)
    assert line == "info depth 1 seldepth 1 multipv 1 score mate -2 nodes 1 nps 0 hashfull 0 time 0"
    assert format_bestmove("7g7f", "3c3d") == "bestmove 7g7f ponder 3c3d"
    assert format_bestmove("win") == "bestmove win"
    assert format_checkmate(["G*5b"]) == "checkmate G*5b"
    assert format_checkmate("nomate") == "checkmate nomate"
    assert format_error("two\nlines") == "info string Error! two lines"
    assert len(format_error("x" * MAX_LINE)) < MAX_ERROR + 50


# -- options -------------------------------------------------------------------------------------------------------


def test_every_option_is_read_as_it_is_shown() -> None:
    options = Options.for_game("shogi")
    lines = list(option_lines(LevelSwitch(SHOGI, options)))
    assert len(lines) == len({line.split()[2] for line in lines}) == len({row.name for row in USI_NAMES.values()}) + 1
    for row in rows_for("shogi"):
        if row.usi is None:
            continue
        assert row.parse_usi(row.format_usi(row.default_for("shogi"))) == row.default_for("shogi")
        if row.kind in ("int", "real", "memory"):
            low, high = row.usi_limits()
            assert low <= int(row.format_usi(row.default_for("shogi"))) <= high
            for number in (low, high):
                row.parse_usi(str(number))
        for text in ("", "nonsense", "1e5", "9" * 5000, "٣", "nan"):
            if row.kind in ("int", "real", "memory"):
                with pytest.raises(OptionError, match="expected a number from"):
                    row.parse_usi(text)


@looped(
    ("name", "text", "value"),
    [
        ("usi_hash", "256", 256 * 2**20),
        ("NetworkDelay", "120", 0.12),
        ("Byoyomi Margin", "0", 0.0),
        ("UCT_Threads", "0", None),
        ("UCT_Threads", "4", 4),
        ("C_init", "144", 2.88),
        ("C_base", "28288", 28288.0),
        ("C_fpu_reduction", "27", 0.54),
        ("C_fpu_reduction_root", "5", 0.1),
        ("C_init_root", "116", 2.32),
        ("C_init_root", "0", None),
        ("C_base_root", "25617", 25617.0),
        ("Softmax_Temperature", "174", 1.74),
        ("Draw_Value_Black", "450", 0.45),
        ("EnteringKingRule", "noenteringking", "none"),
        ("EnteringKingRule", "24", "24"),
        ("EnteringKingRule", "CSARule27H", "27h"),
        ("EnteringKingRule", "TryRule", "try"),
        ("BookEvalDiff", "50", 50),
        ("BookEvalWhiteLimit", "-140", -140),
        ("BookIgnoreRate", "25", 0.25),
        ("FlippedBook", "false", False),
        ("Stochastic_Ponder", "false", False),
        ("DNN_Model", "<empty>", None),
        ("DNN_Model", "", None),
        ("DNN_Model", "C:\\a b.onnx", "C:\\a b.onnx"),
        ("Const_Playout", "800", 800),
    ],
)
def test_values(name: str, text: str, value: object) -> None:
    row = find_option(name)
    assert row is not None
    assert row.parse_usi(text) == pytest.approx(value) if isinstance(value, float) else row.parse_usi(text) == value


def test_names_that_interfaces_set() -> None:
    names = (
        "USI_Ponder Stochastic_Ponder MultiPV DNN_Batch_Size Resign_Threshold Draw_Value_White Mate_Root_Search"
        " MaxMovesToDraw ByoyomiMargin BookFile OwnBook"
    )
    assert [name for name in names.split() if find_option(name) is None] == []


def test_wrong_choices() -> None:
    rules = "NoEnteringKing, CSARule24, CSARule24H, CSARule27, CSARule27H, TryRule"
    with pytest.raises(OptionError, match=f"^EnteringKingRule: expected one of {rules}, found 'HalfRule'$"):
        TABLE["entering_king"].parse_usi("HalfRule")
    with pytest.raises(OptionError, match="expected one of"):
        TABLE["device"].parse_usi("abacus")
    assert find_option("No_Such") is None


def test_no_network_means_the_one_that_comes_with_yomi() -> None:
    """Graphical interfaces keep the values of options: a path within an installation must not be among them."""
    row = TABLE["net"]
    options = Options.for_game("shogi")
    options.device = "cpu"
    own = network_file(options, "shogi")
    assert own == str(default_network("shogi", on_processor=True))
    assert "option name DNN_Model type filename default <empty>" in option_lines(LevelSwitch(SHOGI, options))
    set_option(row, "mine.onnx", LevelSwitch(SHOGI, options))
    assert network_file(options, "shogi") == "mine.onnx"
    assert "option name DNN_Model type filename default mine.onnx" in option_lines(LevelSwitch(SHOGI, options))
    set_option(row, "<empty>", LevelSwitch(SHOGI, options))
    assert network_file(options, "shogi") == own


def test_a_wrong_value_says_what_stays() -> None:
    options = Options.for_game("shogi")
    with pytest.raises(OptionError, match=r"found 'many'; it stays 1$"):
        set_option(TABLE["multipv"], "many", LevelSwitch(SHOGI, options))
