"""The command line in this process: parsing and errors."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import yomi.engine.cli.main
from tests.fakes.player import FakePlayer
from tests.looping import looped
from tests.unit.command_lines import error_of, help_of
from yomi import __version__
from yomi.bench.cli import make_parser
from yomi.engine.cli import play
from yomi.engine.cli.games import split_game, with_game
from yomi.engine.cli.main import BENCH, build, expanded, main
from yomi.engine.cli.match import read_file
from yomi.engine.cli.parser import CliError, Command
from yomi.errors import CompileError

HEX = f"{Path(__file__).parents[2] / 'docs' / 'games' / 'hex.py'}:FIVE"


def test_words_for_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert help_of("version", capsys) == help_of("--version", capsys) == f"yomi {__version__}\n"
    assert "did you mean play?" in error_of(capsys, "help", "plya")
    assert expanded(["help"]) == ["--help"]
    assert expanded(["analyze", "a.sgf"]) == expanded(["analyse", "a.sgf"]) == ["review", "a.sgf"]
    assert expanded(["usi", "help"]) == ["usi", "help"]
    assert expanded([]) == []


@pytest.mark.parametrize(
    "words",
    [
        "chess", "gtp --frobnicate", "gtp --visits few", "gtp --visits", "gtp --memory 1", "gtp --net no/such/file",
        "gtp --config no/such/file", "gtp --rules checkers", "gtp --log-file no/such/folder/log", "play", "play chess",
        "play go --color green", "play go --handicap 99", "selfplay go --games 0", "net", "net info",
        "net info no/such/file", "net import no/such/file", "net frobnicate x",
    ],
)  # fmt: skip
def test_errors_are_one_line(words: str, fake_players: list[FakePlayer], capsys: pytest.CaptureFixture[str]) -> None:
    error_of(capsys, *words.split())


def test_closed_standard_streams(monkeypatch: pytest.MonkeyPatch, fake_players: list[FakePlayer]) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(["play", "go", "--size", "5", "--no-save"]) == 0
    assert main(["play", "go", "--nonsense"]) == 2
    opened = [sys.stdin, sys.stdout, sys.stderr]
    monkeypatch.undo()
    for stream in opened:
        stream.close()
    assert fake_players[0].calls[-1] == "close"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")
@pytest.mark.parametrize("buffering", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "words", ["yomi --version", "yomi --help", "yomi gtp --help", "yomi doctor", "tests.process.fake_engine"]
)
def test_a_full_device(words: str, buffering: str) -> None:
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [sys.executable, "-m", *words.split()],
            input="name\n",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": buffering},
            cwd=Path(__file__).parents[2],
            check=False,
        )
    assert found.returncode == 2
    assert found.stderr.startswith("yomi: error: cannot write to stdout: No space left on device: expected a pipe")
    assert found.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")
def test_a_log_file_on_a_full_device_is_reported_once() -> None:
    words = ["gtp", "--evaluator", "rollouts", "--log-file", "/dev/full", "--log-level", "debug"]
    found = subprocess.run(
        [sys.executable, "-m", "yomi", *words],
        input="name\nversion\nquit\n",
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert found.stdout.startswith("= yomi\n\n= ")
    reason = "No space left on device; yomi continues without it"
    assert found.stderr == f"yomi: warning: cannot write /dev/full: {reason}\n"
    assert found.returncode == 0


@pytest.mark.parametrize(("command", "errors"), [("doctor", "backslashreplace"), ("gtp", "strict")])
def test_letters_that_the_terminal_lacks(command: str, errors: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), "iso8859-1")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(yomi.engine.cli.main, "find_command", lambda _: Command("", "", lambda _: None, lambda _: 0))
    assert main([command]) == 0
    assert stream.errors == errors


def test_interrupt_at_the_keyboard(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(args: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(play, "run", interrupted)
    assert main(["play", "go"]) == 130


@pytest.mark.parametrize("words", ["--root-noise 0.25", "--temperature 1", "--komi 6.5", "--ponder"])
def test_flags_without_meaning_to_an_analysis_are_refused(words: str) -> None:
    argv = ["analysis", *words.split()]
    with pytest.raises(CliError, match=f"unrecognized arguments: {words}"):
        build(argv).parse_args(argv)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("gtp --vists 5", "did you mean --visits?"),
        ("gtp --vists=5", "did you mean --visits?"),
        ("selfplay go --gmes 5", "did you mean --games?"),
        ("bench nps --vorkers 5", "did you mean --workers"),
        ("slefplay", "did you mean selfplay?"),
        ("bench nest", "did you mean nets?"),
        ("gpt", "did you mean gtp?"),
        ("play go --level 21", "--level: expected an integer from -1 to 20, or max, or off, or auto, found 21"),
        ("play go --level -2", "--level: expected an integer from -1 to 20, or max, or off, or auto, found -2"),
        ("play go --size 9x", "--size: expected a number or COLUMNSxROWS such as 13x9, found '9x'"),
        ("analysis -config a.cfg", "remove KataGo's -config"),
        ("analysis -config=a.cfg", "--config FILE with a TOML file"),
        ("gtp -config a.cfg -model b.bin.gz", "use --net FILE for KataGo's -model"),
        ("selfplay go --level 3", "yomi play, gtp and usi have levels of strength: yomi play GAME --level 1 to 20"),
        ("gtp -override-config x=1", "only yomi analysis reads"),
        ("gtp --nothing-like-it", "(see yomi gtp --help-all)"),
        ("analysis game.sgf", "takes no file: to review game records use yomi review FILE"),
        ("gtp b6c96.bin.gz", "to choose a network --net FILE"),
        ("usi game.csa", "takes no file: to review game records use yomi review FILE"),
        (
            "analyze",
            "required: FILE|FOLDER, such as game.sgf or a folder; KaTrain runs yomi analysis, which needs no",
        ),
        ("tune b6c96.bin.gz", "to find the fastest way to compute a network, use yomi net calibrate FILE"),
        ("selfplay game.py", "a game of your own is FILE.py:NAME"),
        ("play game.sgf", "to resume a saved game, use yomi play --resume FILE"),
        (f"play {HEX}", f"{HEX}: yomi play plays go and shogi; expected one of selfplay, learn, duel, tune"),
        (
            "net tune go",
            "go: found a game, expected a network file; to tune parameters of the search, use yomi tune",
        ),
        ("net calibrate shogi", "to tune parameters of the search, use yomi tune shogi"),
    ],
)
def test_messages_tell_what_to_do(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = error_of(capsys, *words.split())
    assert message in error
    assert ("did you mean" in error) == ("did you mean" in message)


def test_a_folder_is_no_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"--net {tmp_path}: is a folder; expected a network" in error_of(capsys, "gtp", "--net", str(tmp_path))


@pytest.mark.parametrize("words", ["play go --no-save", "selfplay shogi", "bench nps"])
def test_kernels_that_cannot_be_compiled_are_one_line(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(game: str, report: Any) -> None:
        raise CompileError("compiling failed: no room")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("yomi.native.precompile.compile_names", fail)
    assert main(words.split()) == 2
    assert capsys.readouterr().err.endswith("error: compiling failed: no room\n")


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        ("duel go", "--side-by-side 4", "--at-once 4"),
        ("tune go --parameter c_puct 0:1", "--side-by-side 4", "--at-once 4"),
        ("match a b", "--parallel 4", "--at-once 4"),
        ("analysis", "--threads 4", "--at-once 4"),
        ("analysis", "-analysis-threads 4", "--at-once 4"),
        ("learn go", "--workers 4", "--processes 4"),
        ("learn go --cluster local", "--actors 4", "--processes 4"),
        ("learn go --cluster local", "--actor-cpus 0.5", "--cores-per-process 0.5"),
        ("learn go --cluster local", "--actor-gpus 0.5", "--gpus-per-process 0.5"),
        ("learn go", "--games 4", "--at-once 4"),
        ("bench nets", "--threads 4", "--workers 4"),
    ],
)
def test_old_names_of_flags(words: str, old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    is_bench = words.startswith(BENCH)
    parse = make_parser(()).parse_args if is_bench else build(words.split()).parse_args
    before, after = (parse(f"{words} {flag}".split()[is_bench:]) for flag in (old, new))
    assert vars(before) == vars(after)
    command = re.match(r"[a-z]+( go| nets)?", words)
    assert command is not None
    text = help_of(f"{command[0]} --help-all", capsys)
    assert new.split()[0] in text
    assert not re.search(rf"^ +{old.split()[0]}\b", text, re.MULTILINE)


def test_a_match_file_may_have_the_old_name(tmp_path: Path) -> None:
    path = tmp_path / "match.toml"
    for key in ("parallel", "at_once"):
        path.write_text(f"{key} = 3\n", encoding="ascii")
        assert read_file(path)[0] == {"at_once": 3}


@looped(
    ("words", "name", "values"),
    [
        ("match go --size 9 yomi gnugo", "players", "go yomi gnugo"),
        ("match --size 9 go yomi --games 4 gnugo", "players", "go yomi gnugo"),
        ("review a.sgf --visits 2 b.sgf --plot c.sgf", "records", "a.sgf b.sgf c.sgf"),
        ("rate a --unique b", "files", "a b"),
        ("merge --out x part-1 part-2", "parts", "part-1 part-2"),
        ("status a b", "folders", "a b"),
        ("train test --limit 5 net data", "words", "test net data"),
        ("dataset make a --out x b", "paths", "a b"),
        ("net join a --out x b", "moves", "b"),
    ],
)
def test_words_and_flags_mix(words: str, name: str, values: str) -> None:
    args = build(words.split()).parse_args(words.split())
    found = getattr(args, name)
    assert " ".join(map(str, found if isinstance(found, list) else [found])) == values


def test_a_flag_among_more_words_is_still_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--vists 5; did you mean --visits?" in error_of(capsys, "review", "a.sgf", "--plot", "b.sgf", "--vists", "5")
    assert "unrecognized arguments: b" in error_of(capsys, "net", "info", "yomi-go-b6c96", "b")


@pytest.mark.parametrize("words", ["", "--second visits=200", "--first c_puct=1 --second c_puct=1"])
def test_a_duel_needs_something_to_compare(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["duel", "go", "--evaluator", "uniform", "--out", str(tmp_path / "out"), *words.split()]
    assert "both players are equal: expected --first or --second" in error_of(capsys, *argv)
    assert not (tmp_path / "out").exists()


def test_fast_is_the_network_of_each_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["net", "info", "fast"]) == 0
    found = re.findall(r"^file +\S*/(\S+)", capsys.readouterr().out, re.MULTILINE)
    assert found == ["yomi-go-b6c96.bin.gz", "yomi-shogi-sparse.safetensors"]
    argv = ["net", "compress", "fast", "--out", "fast.bin.xz"]
    assert build(argv).parse_args(argv).file.name == "yomi-go-b6c96.bin.gz"


def test_a_missing_file_of_a_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.py"
    words = ["learn", "go", "--search", f"{path}:search"]
    assert f"argument --search: {path}: no such file, expected a Python file" in error_of(capsys, *words)


def test_a_network_that_cannot_tell_the_game(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.bin.gz"
    path.write_bytes(b"nothing")
    assert "net.bin.gz: " in error_of(capsys, "play", "--net", str(path))


def test_the_game_of_a_match_goes_before_the_players() -> None:
    assert split_game(["shogi", "a", "b"], None) == ("shogi", ["a", "b"])
    assert split_game(["shogi", "a", "b"], "shogi") == ("shogi", ["a", "b"])
    assert split_game(["a", "b"], "shogi") == ("shogi", ["a", "b"])
    assert split_game([], None) == (None, [])
    with pytest.raises(CliError, match="go with --game shogi: expected one game"):
        split_game(["go", "a"], "shogi")


@looped(
    ("words", "expected"),
    [
        ("play --resume saved.sgf", "play go --resume saved.sgf"),
        ("play --color white --resume=saved.KIFU", "play shogi --color white --resume=saved.KIFU"),
        ("selfplay --net yomi-go-b6c96 --games 2", "selfplay go --net yomi-go-b6c96 --games 2"),
        ("duel --net=yomi-shogi-6x64.onnx", "duel shogi --net=yomi-shogi-6x64.onnx"),
        ("play --net yomi-shogi-sparse --help", "play shogi --net yomi-shogi-sparse --help"),
        ("dataset play --teacher yomi-go-b6c96 --size 9", "dataset play go --teacher yomi-go-b6c96 --size 9"),
        ("play go --net x", "play go --net x"),
        ("learn --help", "learn --help"),
        ("play --size 9 go --level 3", "play go --size 9 --level 3"),
        ("selfplay --games 2 shogi", "selfplay shogi --games 2"),
        ("duel go --out shogi", "duel go --out shogi"),
    ],
)
def test_the_game_may_follow_flags_or_from_a_file(words: str, expected: str) -> None:
    assert with_game(words.split()) == expected.split()


@pytest.mark.parametrize(
    "words",
    ["play", "play --visits 9", "play --net fast", "learn", "duel --out go --games 2"],  # a folder's name
)
def test_a_command_without_a_game(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = words.split()[0]
    expected = f"yomi {command} without a game: expected yomi {command} go or yomi {command} shogi"
    assert expected in error_of(capsys, *words.split())
