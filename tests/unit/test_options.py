"""The table of options and everything made from it."""

import argparse
import itertools
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.looping import looped
from tests.reference import options_page
from yomi.engine.cli.flags import add_options, check_limited, collect, known_options, visits_without_limit
from yomi.engine.cli.main import main
from yomi.engine.cli.parser import CliError
from yomi.engine.default_network import network_file
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.options import (
    ALIASES,
    TABLE,
    OptionError,
    Options,
    find,
    read_config,
)
from yomi.engine.registry import GAMES, GO, SHOGI
from yomi.nets.load import game_of
from yomi.nets.models import MODELS, default_network
from yomi.settings import format_memory, parse_memory

ROOT = Path(__file__).parents[2]


def parse(*words: str, game: str = "go") -> Options:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, GAMES[game])
    return collect(parser.parse_args(list(words)), GAMES[game])


@pytest.mark.parametrize(
    ("game", "text", "words", "limited"),
    [
        ("go", "", [], True),
        ("go", "seconds = 1", [], False),
        ("go", "maxPlayouts = 7", [], False),
        ("go", "visits = 7", [], True),
        ("go", "", ["--playouts", "7"], False),
        ("go", "seconds = 1", ["--seconds", "none"], True),
        ("go", "depth = 6", [], True),
        ("shogi", "depth = 6", [], False),
        ("shogi", "", ["--depth", "6"], False),
        ("shogi", "", [], True),
    ],
)
def test_default_visits_give_way_to_a_limit(
    game: str, text: str, words: list[str], limited: bool, tmp_path: Path
) -> None:
    config = tmp_path / "yomi.toml"
    config.write_text(text)
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, GAMES[game])
    args = parser.parse_args(["--config", str(config), *words])
    assert visits_without_limit(args, 100, GAMES[game]) == ({"visits": 100} if limited else {})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("analysis --visits none", "expected one of visits, playouts, seconds\n"),
        ("analysis --config {}", "expected one of visits, playouts, seconds\n"),
        ("analyze {}.sgf --visits none", "expected one of visits, playouts, seconds\n"),
        ("analyze {}.csa --config {}", "expected one of visits, playouts, seconds, depth\n"),
        ("selfplay go --visits none --seconds none", "expected one of visits, playouts, seconds\n"),
        ("selfplay shogi --visits none", "expected one of visits, playouts, seconds, depth\n"),
    ],
)
def test_a_search_without_any_limit_is_refused(
    words: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "none"
    path.write_text('visits = "none"')
    for suffix in (".sgf", ".csa"):
        path.with_suffix(suffix).touch()
    assert main([word.format(path) for word in words.split()]) == 2
    assert f"error: visits none without another limit: {expected}" in capsys.readouterr().err


def test_a_limit_in_the_place_of_visits(tmp_path: Path) -> None:
    for game, name in (("go", "seconds"), ("go", "playouts"), ("shogi", "depth")):
        check_limited(parse("--visits", "none", f"--{name}", "3", game=game), GAMES[game])
    shogi_only = tmp_path / "yomi.toml"
    shogi_only.write_text("depth = 3")
    with pytest.raises(CliError, match="visits none without another limit"):
        check_limited(parse("--config", str(shogi_only)), GO)


def test_reference_is_current() -> None:
    text = (ROOT / "docs/reference/options.md").read_text(encoding="utf-8")
    assert text == options_page(), "run: python -m tests.reference"


def test_help_is_short() -> None:
    long = [row.name for row in TABLE.values() if len(row.help) > 80]
    assert not long, "expected a verb phrase of at most 80 characters; put the rest into `more` and `unset`"


@pytest.mark.parametrize(("game", "without"), [("go", "rollouts"), ("shogi", "material")])
def test_the_network_that_comes_with_yomi_plays_where_nothing_else_is_named(
    game: str, without: str, tmp_path: Path
) -> None:
    own = str(default_network(game, on_processor=True))
    general = str(default_network(game))
    other = tmp_path / "other"
    other.touch()
    cpu = "--device", "cpu"
    assert network_file(parse(*cpu, game=game), game) == own
    assert network_file(parse("--net", "none", "--evaluator", "onnx", *cpu, game=game), game) == own
    assert network_file(parse("--precision", "int16", "--backend", "native", *cpu, game=game), game) == own
    for elsewhere in (("--device", "cuda"), ("--precision", "fp32", *cpu), ("--backend", "onnx", *cpu)):
        assert network_file(parse(*elsewhere, game=game), game) == general
    assert network_file(parse("--evaluator", without, game=game), game) is None
    assert network_file(parse("--net", str(other), game=game), game) == str(other)


def test_what_comes_with_a_network_counts_where_nobody_has_named_it(tmp_path: Path) -> None:
    net = tmp_path / "net.onnx"
    net.touch()
    (tmp_path / "net.onnx.ini").write_text("C_init=60\nSoftmax_Temperature=125\nC_fpu_reduction=10\nOther=1\n")
    options = Options.for_game("shogi")
    options.net, options.policy_temperature = str(net), 1.5
    named = argparse.Namespace(config=None, c_puct=options.c_puct)
    found = SHOGI.with_network_defaults(options, known_options(named, SHOGI))
    assert (found.c_puct, found.policy_temperature, found.fpu_reduction) == (options.c_puct, 1.5, 0.2)
    assert SHOGI.with_network_defaults(options, known_options(argparse.Namespace(config=None), SHOGI)).c_puct == 1.2
    assert SHOGI.with_network_defaults(options, ["c_puct"]).c_puct == options.c_puct
    (tmp_path / "net.onnx.ini").write_text("C_init=high\n")
    with pytest.raises(OptionError, match=r"net\.onnx\.ini: C_init: expected a number"):
        SHOGI.with_network_defaults(options, known_options(named, SHOGI))
    own = Options.for_game("shogi")
    own.device = "cpu"
    assert SHOGI.with_network_defaults(own, known_options(argparse.Namespace(config=None), SHOGI)).c_puct == 1.1


def test_networks_that_come_with_yomi_are_small() -> None:
    assert set(MODELS) == set(GAMES)
    for game, on_processor in itertools.product(GAMES, (False, True)):
        path = default_network(game, on_processor=on_processor)
        assert len(zlib.compress(path.read_bytes())) <= 12e6, "in a wheel, which is a zip archive"
        assert game_of(path) == game


def test_every_row_is_sound() -> None:
    assert len(ALIASES) == sum(bool(row.katago) for row in TABLE.values())
    for row in TABLE.values():
        assert row.check(row.default) == row.default
        assert row.parse(row.format(row.default)) == row.default
        assert row.help
        assert row.expected
        assert row.choices or row.kind != "choice"


@looped(
    ("name", "text", "value"),
    [
        ("visits", "800", 800),
        ("visits", "none", None),
        ("maxVisits", "5", 5),
        ("root-noise", "0.25", 0.25),
        ("memory", "256M", 256 * 2**20),
        ("memory", "1.5g", 3 * 2**29),
        ("memory", "2GiB", 2**31),
        ("ponder", "TRUE", True),
        ("ponder", "0", False),
        ("symmetry", "Average", "average"),
        ("net", "a b.bin.gz", "a b.bin.gz"),
    ],
)
def test_values_from_text(name: str, text: str, value: object) -> None:
    options = Options()
    options.set(name, find(name).parse(text))
    assert options.get(name) == value


@looped(
    ("name", "text"),
    [
        ("visits", "0"),
        ("visits", "-5"),
        ("visits", "1.5"),
        ("visits", "1e3"),
        ("visits", "9" * 5000),
        ("seconds", "nan"),
        ("seconds", "inf"),
        ("seconds", ""),
        ("memory", "lots"),
        ("memory", "1K"),
        ("memory", "9" * 15 + "T"),
        ("ponder", "maybe"),
        ("symmetry", "most"),
        ("evaluator", "none"),
        ("colour", "red"),
        ("", "1"),
    ],
)
def test_wrong_values(name: str, text: str) -> None:
    options = Options()
    with pytest.raises(OptionError) as caught:
        options.set(name, find(name).parse(text))
    assert "\n" not in str(caught.value)
    assert options == Options()


@given(st.sampled_from(sorted(TABLE)), st.text(max_size=30))
def test_any_text_is_a_value_or_an_error(name: str, text: str) -> None:
    row = TABLE[name]
    try:
        value = row.parse(text)
    except OptionError:
        return
    assert row.parse(row.format(value)) == value


@given(st.integers(0, 2**50))
def test_memory_is_read_back(count: int) -> None:
    assert parse_memory(format_memory(count)) == count


def test_command_line_before_file_before_defaults(tmp_path: Path) -> None:
    path = tmp_path / "yomi.toml"
    path.write_text(
        'visits = 100\nseconds = 2\nmemory = "64M"\nnet = "none"\nevaluator = "rollouts"\nroot-noise = 0.5\n'
    )
    options = parse("--config", str(path), "--visits", "7", "--ponder", "--no-resign")
    assert (options.visits, options.seconds, options.memory, options.net) == (7, 2.0, 64 * 2**20, None)
    assert options.root_noise == 0.5
    assert options.ponder
    assert not options.resign
    assert options.lag == Options().lag


@pytest.mark.parametrize(
    "text",
    ["colour = 1", "visits = true", "visits = 'many'", "ponder = 1", "visits = [1]", "= 3", "[search]\nvisits=3"],
)
def test_wrong_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "yomi.toml"
    path.write_text(text)
    with pytest.raises(OptionError, match=r"yomi\.toml"):
        read_config(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot read"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError, match="not a TOML file"):
        read_config(tmp_path / "binary.toml")


def test_early_checks() -> None:
    for words in (["--net", "no/such/file"], ["--rules", "checkers"]):
        with pytest.raises(CliError):
            parse(*words)


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(OptionError, match="did you mean"):
        find("noise")


@pytest.mark.parametrize("game", GAMES)
def test_names_of_the_other_game_are_unknown(game: str) -> None:
    for name, row in TABLE.items():
        if row.is_for(game):
            assert find(name, game) is row
        else:
            with pytest.raises(OptionError, match=f"unknown option '{name}'"):
                find(name, game)


def test_every_komi_of_the_table_can_be_played() -> None:
    row = find("komi")
    for komi in (row.low, row.high):
        assert GoGame(square(5), komi=komi).komi == komi
    assert row.high is not None
    with pytest.raises(OptionError, match="from -400 to 400"):
        row.check(row.high + 0.5)
