"""What a user says of an engine: its command line, options and limits; and what its clock shows."""

import math
import sys

import pytest

from tests.looping import looped
from yomi.engine.clients.spec import (
    EngineLimits,
    SpecError,
    limits_of,
    parse_spec,
    parse_spec_table,
    with_unique_names,
)
from yomi.engine.clock import Clock, TimeSystem

# -- limits and clocks -------------------------------------------------------------------------------------------------


def test_clocks_of_limits() -> None:
    assert EngineLimits(main=60, byoyomi=10, periods=3).clock().system is TimeSystem.BYOYOMI
    assert EngineLimits(byoyomi=10, stones=5).clock().count == 5
    assert EngineLimits(main=60, increment=2).clock().main == 60
    assert EngineLimits(main=60, increment=2).clock(increment_first=True).main == 62
    assert EngineLimits(seconds=1, visits=400).clock().system is TimeSystem.NONE


@looped(
    ("values", "message"),
    [
        ({"main": "-1"}, "expected seconds from 0"),
        ({"visits": "0"}, "expected at least 1"),
        ({"visits": "1.5"}, "expected a whole number"),
        ({"visits": "inf"}, "expected a whole number"),
        ({"visits": "nan"}, "expected a whole number"),
        ({"seconds": "x"}, "expected a number"),
        ({"moves": "1"}, "unknown limit 'moves'"),
        ({"seconds": "1", "main": "5"}, "expected one kind"),
        ({"increment": "1", "byoyomi": "5"}, "expected one of them"),
        ({"periods": "3"}, "expected byoyomi"),
        ({"byoyomi": "3", "periods": "3", "stones": "2"}, "expected one of them"),
    ],
)
def test_limits_that_cannot_be(values: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        limits_of(values)


def test_a_players_own_limits_go_first() -> None:
    shared = EngineLimits(main=60, byoyomi=10, visits=100)
    assert EngineLimits(seconds=1).over(shared) == EngineLimits(seconds=1, visits=100)
    assert EngineLimits(visits=7).over(shared) == EngineLimits(main=60, byoyomi=10, visits=7)
    assert EngineLimits().over(shared) == shared


def test_a_clock_runs_out() -> None:
    clock = Clock.full(EngineLimits(main=1, byoyomi=2, periods=2).clock())
    assert clock.allowed == 5
    clock = clock.after(0.5).after(3.0)  # the rest of the main time and the first period
    assert clock.allowed == clock.after(2.05).allowed == pytest.approx(2)
    canadian = Clock.full(EngineLimits(main=1, byoyomi=2, stones=3).clock())
    assert canadian.allowed == 3
    assert canadian.after(1.5).allowed == pytest.approx(1.5)
    fischer = Clock.full(EngineLimits(main=1, increment=1).clock(increment_first=True))
    assert fischer.after(1.5).allowed == pytest.approx(1.5)
    assert Clock.full(EngineLimits(seconds=1).clock()).allowed == math.inf


# -- engines -----------------------------------------------------------------------------------------------------------


def test_yomi_as_a_player() -> None:
    player = parse_spec("yomi:net=a.onnx,visits=200,ponder=false,resign --lag 0 ;; name=me byoyomi=2", "shogi", "usi")
    assert player.command[:4] == (sys.executable, "-m", "yomi", "usi")
    assert player.command[4:] == ("--net", "a.onnx", "--no-ponder", "--resign", "--lag", "0")
    assert player.limits == EngineLimits(visits=200, byoyomi=2)
    assert parse_spec("yomi", "go", "gtp").command[3:] == ("gtp",)


def test_a_command_line_as_a_player() -> None:
    text = "/opt/katago gtp -model 'my net.gz' ;; visits=3 init='kata-set-param a 1' init=b env.OMP=2 evaluations=false"
    player = parse_spec(text, "go", "gtp")
    assert player.command == ("/opt/katago", "gtp", "-model", "my net.gz")
    assert (player.name, player.commands) == ("katago", ("kata-set-param a 1", "b"))
    assert (player.environment, player.evaluations) == ({"OMP": "2"}, False)
    usi = parse_spec("engine ;; 'option.Skill Level=3' folder=/tmp", "shogi", "usi")
    assert (usi.options, usi.folder) == ({"Skill Level": "3"}, "/tmp")
    assert [each.name for each in with_unique_names([usi, usi, usi])] == ["engine", "engine-2", "engine-3"]


def test_a_player_from_a_table() -> None:
    table = {"engine": "prog -x", "name": "p", "seconds": 1.5, "options": {"Threads": 2, "Ponder": False}}
    player = parse_spec_table(table, "shogi", "usi")
    assert (player.command, player.limits.seconds) == (("prog", "-x"), 1.5)
    assert player.options == {"Threads": "2", "Ponder": "false"}


@looped(
    ("text", "message"),
    [
        ("", "without engine"),
        ("yomi:frobnicate=1", "unknown option 'frobnicate'"),
        ("yomi:entering_king=24", "another game's option"),
        ("yomi:workers=many", "expected an integer"),
        ("prog ;; colour=red", "unknown key 'colour'"),
        ("prog ;; name", "expected KEY=VALUE"),
        ("prog ;; seconds=never", "expected a number"),
        ("prog ;; evaluations=maybe", "expected true or false"),
        ("prog 'x", "no closing quotation"),
        ("prog ;; 'name=a\nb'", "expected a name of one line"),
    ],
)
def test_players_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_spec(text, "go", "gtp")
