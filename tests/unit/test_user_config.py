"""The user's file of options: `yomi config`, its place in the order of precedence, and its faults."""

import errno
import os
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.command_lines import error_of
from yomi.engine.cli import play, review
from yomi.engine.cli.engines import account_options
from yomi.engine.cli.flags import collect, known_options, user_config, visits_without_limit
from yomi.engine.cli.main import build, main
from yomi.engine.cli.setup import PROPOSED
from yomi.engine.options import OptionError, Options, Value, read_config
from yomi.engine.registry import GO, SHOGI


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the user's file, in an empty folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "yomi").mkdir()
    return tmp_path / "yomi" / "config.toml"


def options_from(line: str, **defaults: Value) -> Options:
    """Return the options of a command line."""
    words = line.split()
    args = build(words).parse_args(words)
    return collect(args, SHOGI if words[0] == "usi" or words[1:2] == ["shogi"] else GO, **defaults)


def test_flags_over_config_over_the_users_file_over_defaults(file: Path, tmp_path: Path) -> None:
    assert options_from("gtp").visits is None
    file.write_text("visits = 3\nsize = 9\nworkers = 2\nseconds = 'none'\n")
    other = tmp_path / "other.toml"
    other.write_text("size = 13\nworkers = 3\n")
    options = options_from(f"gtp --config {other} --workers 4", visits=100, seconds=5.0)
    assert (options.visits, options.size, options.workers, options.seconds) == (3, 13, 4, None)


@pytest.mark.parametrize("line", ["gtp", "usi", "analysis", "review a.sgf", "play go", "selfplay go"])
def test_commands_read_it(line: str, file: Path) -> None:
    file.write_text("memory = '123M'\n")
    assert options_from(line).memory == 123 << 20


def test_options_of_one_game(file: Path) -> None:
    file.write_text("visits = 5\nworkers = 2\n[go]\nvisits = 6\nkomi = 6.5\n[shogi]\nvisits = 7\nmultipv = 2\n")
    go, shogi = options_from("play go"), options_from("play shogi")
    assert (go.visits, go.komi, go.workers) == (6, 6.5, 2)
    assert (shogi.visits, shogi.multipv, shogi.workers) == (7, 2, 2)
    assert options_from("usi").visits == 7


def test_options_that_a_command_has_no_flag_for_are_left_alone(file: Path) -> None:
    file.write_text("ponder = true\nsize = 9\nc_puct = 2.0\nseconds = 1\n")
    assert options_from("gtp").ponder
    options = options_from("learn go")
    assert not options.ponder
    assert (options.seconds, options.c_puct, options.size) == (None, 2.0, 9)


def test_an_interrupted_review_continues_only_with_the_same_options(file: Path, tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    words = ["review", "a.sgf", "--config", str(config)]
    found = set()
    for text, own in (("visits = 1", ""), ("visits = 2", ""), ("visits = 1", "c_puct = 2"), ("visits = 1", "")):
        config.write_text(text)
        file.write_text(own)
        found.add(review.search_settings(build(words).parse_args(words)))
    assert len(found) == 3


def test_a_limit_there_replaces_the_commands_own(file: Path) -> None:
    words = ["selfplay", "go"]
    args = build(words).parse_args(words)
    assert visits_without_limit(args, 200, GO) == {"visits": 200}
    file.write_text("seconds = 1\n")
    assert visits_without_limit(args, 200, GO) == {}


def test_what_the_user_sets_is_kept_before_what_comes_with_a_network(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["gtp"]
    args = build(words).parse_args(words)
    monkeypatch.setattr(type(GO), "network_defaults", lambda *_: {"c_puct": 9.0, "fpu_reduction": 0.9})
    file.write_text("c_puct = 2.0\n")
    options = GO.with_network_defaults(collect(args, GO), known_options(args, GO))
    assert (options.c_puct, options.fpu_reduction) == (2.0, 0.9)


def test_a_level_takes_precedence(file: Path) -> None:
    file.write_text("visits = 5000\nworkers = 1\n")
    words = ["play", "go", "--level", "1"]
    options, text = play.with_level(build(words).parse_args(words), GO)
    assert options.visits is not None
    assert options.visits < 100
    assert options.workers == 1
    assert "changed by" not in text


def test_accounts_on_servers(file: Path) -> None:
    class Account:
        options = {"visits": 8}  # noqa: RUF012
        places: dict[str, str] = {}  # noqa: RUF012
        server = SimpleNamespace(size=9)

    file.write_text("visits = 7\nsize = 19\nworkers = 3\n")
    options = account_options(Account(), GO, visits=6)  # type: ignore[arg-type]
    assert (options.visits, options.size, options.workers) == (8, 9, 3)


def test_home_in_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # on Windows
    path = tmp_path / "a.toml"
    path.write_text("net = '~/b.bin.gz'\nlog_file = 'c.log'\n")
    assert read_config(path) == {"net": f"{tmp_path}/b.bin.gz", "log_file": "c.log"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vists = 3", "unknown option 'vists'; did you mean visits"),
        ("[shogi]\nkomi = 3", "unknown option 'komi'"),
        ("[go]\nvisits = 'x'", "visits: expected an integer"),
        ("[chess]\nvisits = 3", "table [chess] found, expected one of go, shogi"),
        ("go = 3", "unknown option 'go'"),
        ("= 3", "is not a TOML file"),
    ],
)
def test_faults_are_one_line_and_name_the_file(
    text: str, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    for words in (["gtp"], ["config", "show"]):
        error = error_of(capsys, *words)
        assert str(file) in error
        assert message in error


def test_init_and_show(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.parent.rmdir()
    assert main(["config", "show"]) == 0
    assert capsys.readouterr().out == f"# {file}: no such file; yomi config init writes one\n"
    assert main(["config", "init"]) == 0
    assert str(file) in capsys.readouterr().out
    assert tomllib.loads(file.read_text()) == {"go": {}, "shogi": {}}
    assert f"{file} exists: edit it" in error_of(capsys, "config", "init")
    assert main(["config", "show"]) == 0
    assert capsys.readouterr().out == f"# {file}\n# sets no option\n"


def test_every_line_of_a_new_file_is_an_option_at_its_default(file: Path) -> None:
    main(["config", "init"])
    lines = [line.removeprefix("# ") if " = " in line else line for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines))
    for game in (GO, SHOGI):
        found = read_config(file, game.name)
        assert set(found) == {*PROPOSED[""], *PROPOSED[game.name]}
        plain = Options.for_game(game.name)
        assert found == {name: plain.get(name) for name in found}


def test_show_prints_what_can_be_read_again(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("seconds = 2\nmemory = '2G'\nponder = true\n[go]\nkomi = 'none'\nnet = 'ネット.bin.gz'\n", "utf-8")
    assert main(["config", "show"]) == 0
    text = capsys.readouterr().out
    assert "seconds = 2    # default: none" in text
    before = read_config(file, "go")
    file.write_text(text, "utf-8")
    assert read_config(file, "go") == before


def test_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # on Windows
    for text in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", text)
        assert user_config() == tmp_path / ".config" / "yomi" / "config.toml"


def test_a_user_without_home_has_no_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", fail)
    assert options_from("gtp").visits is None
    for action in ("init", "show"):
        assert "set HOME or XDG_CONFIG_HOME" in error_of(capsys, "config", action)


def test_a_folder_that_cannot_be_read(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(self: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "exists", fail)
    assert main(["gtp"]) == 2
    error = capsys.readouterr().err
    assert f"cannot read the configuration {file}: Permission denied; expected XDG_CONFIG_HOME to name" in error
    assert f"cannot read {file}: Permission denied" in error_of(capsys, "config", "show")


def test_tables_of_other_games_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[shogi]\nvisits = 0\n")
    with pytest.raises(OptionError, match="visits"):
        read_config(path, "go")
