"""The command line in this process: parsing, help, errors, the terminal game and self-play with a fake player."""

import argparse
import contextlib
import dataclasses
import importlib.util
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import yomi.engine.cli.loading
import yomi.engine.cli.main
import yomi.engine.cli.play
from tests.fakes.player import FakePlayer
from tests.fakes.plugins import forget
from tests.unit.test_go_game import take_kos_once_around, three_kos
from yomi import __version__, nets
from yomi.bench.cli import make_parser
from yomi.engine.cli import doctor, play
from yomi.engine.cli.games import GAMES, GO, split_game, with_game
from yomi.engine.cli.main import BENCH, COMMANDS, EPILOG, GROUPS, build, expanded, find_command, main, main_usi
from yomi.engine.cli.match_settings import read_file
from yomi.engine.cli.parser import ESSENTIAL, CliError, Command, short_help
from yomi.engine.cli.selfplay import Series
from yomi.engine.evaluators import backends, cuda, devices
from yomi.engine.evaluators.base import EvaluatorError, Fault
from yomi.engine.evaluators.devices import CPU, Device
from yomi.engine.evaluators.onnx_session import GpuSession
from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.learning import GoRecorder
from yomi.engine.go.record_files import load_record
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.sgf_reader import read_sgf
from yomi.engine.go.terminal import GoTerminalGame
from yomi.engine.options import Options, rows_for
from yomi.engine.players.request import Decision, Request
from yomi.engine.terminal import Terminal, TerminalGame
from yomi.native.errors import CompileError
from yomi.native.go.board import BLACK, PASS
from yomi.nets.gpu_variants import variant_file
from yomi.nets.installation import pip_command


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[FakePlayer]:
    """Let the commands play with a fake player; the list holds those that were made."""
    made: list[FakePlayer] = []

    def make(game: str, options: Options) -> FakePlayer:
        made.append(FakePlayer(options))
        return made[-1]

    monkeypatch.setattr(yomi.engine.cli.loading, "make_player", make)
    monkeypatch.setattr(yomi.engine.cli.play, "prepare", lambda *_: None)
    return made


def error_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one line that a wrong command line gets."""
    assert main(list(words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("yomi: error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_help_without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    assert "yomi doctor" in text


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != BENCH])
def test_help_of_every_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help-all"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert f"usage: yomi {name}" in text
    assert name == "doctor" or "examples:" in text
    if name == "gtp":
        assert all(row.flag in text for row in rows_for("go"))
        assert text.count("default:") >= len(rows_for("go"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dataset", "The format of data sets: nets/data/shards.py."),
        ("train", "The keys of a configuration: docs/SETTINGS.md; examples: nets/recipes/"),
        ("match", "yomi match ./new ./old --sprt"),
    ],
)
def test_help_names_what_is_there(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help-all"])
    assert text in " ".join(capsys.readouterr().out.split())
    assert all((Path(nets.__path__[0]).parent / path).exists() for path in re.findall(r"nets/[a-z/]+(?:\.py)?", text))


PARSERS = [
    *COMMANDS,
    *(f"{command} {game.name}" for game in GAMES.values() for command in game.examples),
    *(f"net {action}" for action in ("info", "import", "compress", "join", "calibrate")),
    *(f"dataset {action}" for action in ("make", "vary", "check", "describe", "convert", "openings")),
    *(f"bench {name}" for name in ("nps", "evaluator", "levels", "people", "choices", "precision", "gpu", "mate")),
]


def help_of(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the help that a command line prints."""
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", PARSERS)
def test_short_help_is_one_screen(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = help_of(f"{words} -h", capsys)
    assert sum(max(1, -(-len(line) // 80)) for line in text.splitlines()) <= 40
    assert help_of(f"help {words}", capsys) == help_of(f"{words} --help", capsys) == text
    full = help_of(f"{words} --help-all", capsys)
    assert text == full or "--help-all" in text.splitlines()[-1]
    assert set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)) <= set(re.findall(r"--[a-z-]+", full))


def test_the_short_help_of_every_action_is_one_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parsers = children_of("yomi", build((), with_all=True))
    assert len(parsers) > 60
    for name, parser in parsers.items():
        lines = sum(max(1, -(-len(line) // 80)) for line in short_help(parser).splitlines())
        assert lines <= 40, name


def children_of(name: str, parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a command's actions and games, and of theirs, by their command lines."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                found |= {f"{name} {word}": child} | children_of(f"{name} {word}", child)
    return found


@pytest.mark.parametrize("words", ["gtp", "usi", "review", "analysis", "play go", "play shogi", "match", "duel go"])
def test_short_help_has_about_ten_options(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 8 <= len(re.findall(r"^  --", help_of(f"{words} -h", capsys), re.MULTILINE)) <= 13


def test_every_option_of_short_help_exists() -> None:
    for command, names in ESSENTIAL.items():
        lines = [f"{command} {game.name}" for game in GAMES.values() if command in game.examples] or [command]
        parsers = [find_parser(line.split()) for line in lines]
        known = {flag.lstrip("-") for parser in parsers for flag in parser._option_string_actions}
        assert set(names.split()) <= known, command


def find_parser(words: list[str]) -> argparse.ArgumentParser:
    """Return the parser of a command or of its game."""
    parser = build(words)
    for word in words:
        children = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        parser = children.choices[word]
    return parser


@pytest.mark.parametrize(
    "words", ["--help", "gtp -h", "usi -h", "analysis -h", "help play go", "config show", "version"]
)
def test_help_imports_nothing_heavy(words: str) -> None:
    code = (
        "import contextlib, sys; from yomi.engine.cli.main import main\n"
        f"with contextlib.suppress(SystemExit): main({words.split()})\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "onnx", "onnxruntime", "torch", "matplotlib", "shtab"} & set(ran.stderr.split())


def test_help_uses_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for columns in (60, 80, 140):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = help_of("review --help-all", capsys)
        prose = [line for line in text.splitlines() if not line.startswith("  ")]
        assert columns - 20 < max(map(len, prose)) <= columns
    assert "Ctrl-C keeps the searched positions" in " ".join(text.split())


def test_commands_are_listed_in_groups_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    text = help_of("--help", capsys)
    assert text == help_of("help", capsys) == help_of("--help-all", capsys)
    lines = text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert [line[:-1] for line in lines if line.endswith(":")] == [*GROUPS, "start here"]


def examples() -> list[str]:
    """Return the command lines in the help texts of all commands, without what is said of them."""
    texts = [EPILOG, *(find_command(name).epilog for name in COMMANDS if name != BENCH)]
    texts += [text for game in GAMES.values() for text in game.examples.values()]
    lines = re.findall(r"^  (yomi .*)", "\n".join(texts).replace("\\\n      ", ""), re.MULTILINE)
    return [re.split(r" {3,}| [<>] ", line)[0] for line in lines if not re.search("--help|yomi help|version", line)]


@pytest.mark.parametrize("line", dict.fromkeys(examples()))
def test_examples_are_understood(line: str) -> None:
    words = shlex.split(line)[1:]
    words = expanded(words)
    assert build(words).parse_args(words).command == words[0]


def test_help_shows_the_commands_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    for words, visits in (("analysis", 500), ("analyze", 100), ("selfplay go", 200), ("selfplay shogi", 200)):
        with pytest.raises(SystemExit):
            main([*words.split(), "--help-all"])
        text = " ".join(capsys.readouterr().out.split())
        assert re.search(rf"--visits N [^()]*\(default: {visits}\)", text)
    assert "(default: 320)" in text
    for words, hides in (("analysis", "true"), ("analyze", "true"), ("gtp", "false")):
        with pytest.raises(SystemExit):
            main([words, "--help-all"])
        text = " ".join(capsys.readouterr().out.split())
        assert re.search(rf"--no-ignore-pre-root-history [^-]*\(default: {hides}\)", text)


def test_usi_as_a_program_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["yomi-usi", "--workers", "many"])
    assert main_usi() == 2
    assert "workers: expected an integer" in capsys.readouterr().err


COMPLETED = [
    ("yomi gt", "gtp"),
    ("yomi re", "review"),
    ("yomi gtp --vis", "--visits"),
    ("yomi gtp --device cu", "cuda"),
    ("yomi play sh", "shogi"),
    ("yomi play go --color wh", "white"),
    ("yomi bench nps sh", "shogi"),
    ("yomi bench nps --workers 3 --siz", "--size"),
    ("yomi review pypro", "pyproject.toml"),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the scripts of `yomi completion`: _yomi is that for zsh."""
    pytest.importorskip("shtab")
    folder = tmp_path_factory.mktemp("completion")
    for shell, name in (("bash", "yomi.bash"), ("zsh", "_yomi"), ("fish", "yomi.fish")):
        with (folder / name).open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
            assert main(["completion", shell]) == 0
    return folder


def in_shell(shell: str, *words: str) -> str:
    """Return what a shell prints that runs a command; skip the test if this machine lacks the shell."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    ran = subprocess.run([shell, *words], capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.parametrize(("typed", "completed"), COMPLETED)
def test_completion_in_bash(typed: str, completed: str, scripts: Path) -> None:
    *words, last = typed.split()
    line = f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _shtab_yomi yomi {last}; echo ${{COMPREPLY[*]}}"
    assert in_shell("bash", "-c", f"source {scripts / 'yomi.bash'}; {line}").split() == [completed]


@pytest.mark.parametrize(("typed", "completed"), COMPLETED)
def test_completion_in_fish(typed: str, completed: str, scripts: Path) -> None:
    printed = in_shell("fish", "--no-config", "-c", f"source {scripts / 'yomi.fish'}; complete -C '{typed}'")
    assert [line.partition("\t")[0] for line in printed.splitlines()] == [completed]


@pytest.mark.parametrize(("typed", "completed"), COMPLETED[:1] + COMPLETED[2:7])
def test_completion_in_zsh(typed: str, completed: str, scripts: Path) -> None:
    begin = f"fpath=({scripts} $fpath); autoload -Uz compinit; compinit -D -u; print rea''dy"
    line = f"{typed.rpartition(' ')[0]} {completed}"
    commands = (
        "zmodload zsh/zpty",
        "zpty shell zsh -f -i",
        f'zpty -w shell "{begin}"',
        "zpty -r shell text '*ready*'",
        f"zpty -n -w shell $'{typed}\\t'",
        f"zpty -r shell text '*{line}*'",  # waits for it
        "zpty -d shell",
        "print -r -- $text",
    )
    printed = in_shell("zsh", "-f", "-c", "; ".join(commands))
    assert line in printed
    assert "command not found" not in printed


def test_completion_without_shtab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "completion needs shtab, which is not installed" in error_of(capsys, "completion", "bash")


def test_completion_by_an_old_shtab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shtab = pytest.importorskip("shtab")
    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash", "zsh"])
    error = error_of(capsys, "completion", "fish")
    assert "cannot complete fish: " in error
    assert "--upgrade shtab" in error


def test_words_for_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert help_of("version", capsys) == help_of("--version", capsys)
    assert "invalid choice: 'plya'" in error_of(capsys, "help", "plya")
    assert expanded(["help"]) == ["--help"]
    assert expanded(["analyze", "a.sgf"]) == expanded(["analyse", "a.sgf"]) == ["review", "a.sgf"]
    assert expanded(["usi", "help"]) == ["usi", "help"]
    assert expanded([]) == []


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"yomi {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        "chess",
        "gtp --frobnicate",
        "gtp --visits few",
        "gtp --visits",
        "gtp --memory 1",
        "gtp --net no/such/file",
        "gtp --config no/such/file",
        "gtp --rules checkers",
        "gtp --log-file no/such/folder/log",
        "play",
        "play chess",
        "play go --color green",
        "play go --handicap 99",
        "selfplay go --games 0",
        "net",
        "net info",
        "net info no/such/file",
        "net import no/such/file",
        "net frobnicate x",
    ],
)
def test_errors_are_one_line(words: str, fake: list[FakePlayer], capsys: pytest.CaptureFixture[str]) -> None:
    error_of(capsys, *words.split())


def test_a_player_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(game: str, options: Options) -> FakePlayer:
        raise EvaluatorError("device cuda: not here")

    monkeypatch.setattr(yomi.engine.cli.loading, "make_player", fail)
    monkeypatch.setattr(yomi.engine.cli.play, "prepare", lambda *_: None)
    assert "device cuda: not here" in error_of(capsys, "play", "go")


def play_with(
    lines: list[str], player: FakePlayer, human: int | None = 1, game: GoGame | None = None
) -> tuple[Terminal, str]:
    """Return the terminal and what it showed of a game of Go after the user typed `lines`."""
    return play_at(GoTerminalGame(player, game or new_game(player.options)), lines, human)


def play_at(game: TerminalGame[Any], lines: list[str], human: int | None) -> tuple[Terminal, str]:
    """Return the terminal and what it showed after the user typed `lines`."""
    shown: list[str] = []
    typed = iter(lines)

    def read(prompt: str) -> str:
        shown.append(prompt)
        line = next(typed, None)
        if line is None:
            raise EOFError
        return line

    terminal = Terminal(game, human, read, shown.append)
    terminal.run()
    return terminal, "\n".join(shown)


def test_a_game_in_the_terminal(tmp_path: Path) -> None:
    player = FakePlayer(Options(size=5))
    path = tmp_path / "game.sgf"
    terminal, text = play_with(
        ["help", "A1", "a1", "z9", "back", "score", "hint", "undo", "undo", "B2", "board", f"save {path}", "save",
         "resign", f"save {tmp_path}/no/such/game.sgf", "b1", "quit"],
        player,
    )  # fmt: skip
    assert terminal.result == "W+R"
    assert "illegal move B A1" in text
    assert "invalid vertex 'z9': expected A1 to E5 or pass\n" in text
    assert "invalid vertex 'back': expected A1 to E5 or pass; help lists the commands\n" in text
    assert "cannot undo" in text
    assert "expected a file name" in text
    assert "cannot write" in text
    assert "the game is over" in text
    assert "16 visits" in text
    record = load_record(path)
    assert (record.black, record.white) == ("you", "yomi")
    assert len(record.game().moves) == 2


def test_two_passes_end_a_game_in_the_terminal() -> None:
    player = FakePlayer(Options(size=2, komi=0.5))
    game = new_game(player.options)
    game.play(1, 4)
    game.play(2, 423)
    terminal, text = play_with(["pass", "quit"], player, game=game)
    assert terminal.result is not None
    assert "Result: B+" in text


def test_a_game_without_result_in_the_terminal(tmp_path: Path) -> None:
    game, tops = three_kos(PRESETS["japanese"])
    for _ in range(2):
        take_kos_once_around(game, tops)
    path = tmp_path / "game.sgf"
    terminal, text = play_with(["score", f"save {path}", "quit"], FakePlayer(), game=game)
    assert terminal.result == load_record(path).result == "Void"
    assert "Result: Void" in text
    assert "as the board stands: Void" in text


def test_the_engine_may_resign_and_watch() -> None:
    player = FakePlayer(Options(size=5), resign_at=4)
    terminal, text = play_with([], player, human=None)
    assert terminal.result == "W+R"
    assert "B resigns." in text


def test_end_of_input_leaves_the_terminal() -> None:
    terminal, _ = play_with(["C3"], FakePlayer(Options(size=5)))
    assert terminal.result is None


def test_play_with_handicap(
    fake: list[FakePlayer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("C3\nhint\nquit\n"))
    assert main(["play", "go", "--no-save", "--size", "9", "--color", "white", "--handicap", "2"]) == 0
    assert fake[0].requests[0].game.handicap == 2
    assert fake[0].requests[0].game.komi == 0.5
    monkeypatch.setattr("sys.stdin", io.StringIO("C3\nhint\nquit\n"))
    assert main(["play", "go", "--no-save", "--size", "9", "--color", "white", "--handicap", "2", "--komi", "3.5"]) == 0
    assert fake[-1].requests[0].game.komi == 3.5
    assert fake[0].calls[-1] == "close"
    assert "W> " in capsys.readouterr().out


def test_selfplay(tmp_path: Path, fake: list[FakePlayer], capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "games"
    words = ["selfplay", "go", "--games", "2", "--size", "5", "--komi", "2.5", "--out", str(folder)]
    assert main([*words, "--playouts", "7"]) == 0
    captured = capsys.readouterr()
    assert re.match(r"2 games in [\d.]+ s: Black won \d, White \d, drawn \d; [\d.]+ moves a game", captured.out)
    assert "2/2" in captured.err
    options = fake[0].options
    assert (options.visits, options.playouts, options.temperature, options.resign) == (None, 7, 1.0, False)
    records = [read_sgf(path.read_bytes()) for path in sorted(folder.iterdir())]
    assert len(records) == 2
    assert all(record.komi == 2.5 and record.result[:2] in ("B+", "W+") for record in records)
    assert all("16 visits" in node.comment for node in records[0].nodes() if node.move)
    assert records[0].game().is_over
    assert main([*words, "--games", "1"]) == 0
    assert fake[1].options.visits == 200
    assert len(list(folder.iterdir())) == 3


def series(player: FakePlayer) -> Series[GoGame]:
    """Return games of Go that a player plays against itself."""
    return Series(GO, player, GoRecorder(player.options))


def test_selfplay_scores_games_that_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.go.scoring.MOVES_PER_POINT", 0.2)
    game = series(FakePlayer(Options(size=5))).play(0)
    assert len(game.game.moves) == 5
    resigned = series(FakePlayer(Options(size=5), resign_at=3)).play(0)
    assert (len(resigned.game.moves), resigned.ended.winner) == (3, 1)
    assert b"RE[B+R]" in resigned.files[".sgf"]


def test_selfplay_gives_a_game_without_result_to_nobody() -> None:
    class TripleKo(FakePlayer):
        """Plays the stones of three kos, then takes them twice around."""

        def decide(self, request: Request[GoGame]) -> Decision:
            return dataclasses.replace(super().decide(request), move=moves.pop(0))

    game, tops = three_kos(PRESETS["japanese"])
    stones: dict[bool, list[int]] = {True: [], False: []}
    for color, point in game.stones():
        stones[color == BLACK].append(point)
    moves = [move for pair in zip([*stones[True], PASS], stones[False], strict=True) for move in pair]
    for _ in range(2):
        take_kos_once_around(game, tops)
    moves += [move for _, move in game.moves]
    played = series(TripleKo(Options(rules="japanese"))).play(0)
    assert (moves, len(played.game.moves), played.ended.winner) == ([], 34, 0)
    assert b"RE[Void]" in played.files[".sgf"]


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for word in ("Python 3", "numba 0.", "onnxruntime", "CPUExecutionProvider", "cores", "cache"):
        assert word in text


class Wrong(GpuSession):
    def run(self, rows: int) -> list[Any]:
        return [output + 1 for output in super().run(rows)]


def show_gpus(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    forget()
    monkeypatch.setattr(devices, "gpu_descriptions", lambda: list(names))
    monkeypatch.setattr(cuda, "gpu_names", lambda: list(names))


@pytest.mark.parametrize(
    ("session", "said"),
    [
        (GpuSession, "ok CUDA (--device cuda) works\n"),
        (Wrong, "-- CUDA (--device cuda) does not work: its output_policy and"),
        (None, "-- CUDA (--device cuda) does not work: CUDA failure 35\n"),
    ],
)
def test_doctor_tries_every_way_to_a_gpu_or_names_what_it_needs(
    session: Any, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def open_engine(path: Path, device: Device, rows: int, outputs: list[str], variant: Any) -> Any:
        assert device == Device("cuda")
        if session is None:
            raise EvaluatorError("CUDA failure 35\nand more")
        return session(variant_file(path, variant), CPU, rows, outputs)

    monkeypatch.setattr(backends, "open_engine", open_engine)
    show_gpus(monkeypatch, "NVIDIA Something", "NVIDIA Other")
    missing = Fault("tensorrt not installed", "pip install that")
    monkeypatch.setattr(devices, "find_package_fault", lambda kind: None if kind == "cuda" else missing)
    assert main(["doctor"]) == 0
    forget()
    text = capsys.readouterr().out
    assert "ok GPU 0: NVIDIA Something\n" in text
    assert "ok GPU 1: NVIDIA Other\n" in text
    assert said in text
    assert "-- TensorRT (--device tensorrt): tensorrt not installed; to install it:\n  --     pip install that" in text


def test_doctor_knows_a_gpu_by_its_uuid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers of nvidia-smi are not CUDA's."""
    lines = ["GPU-b, NVIDIA Slow, 8192 MiB, 580.65, 7.5", "GPU-a, NVIDIA Fast, 143771 MiB, 580.65, 9.0"]
    answer = types.SimpleNamespace(stdout="\n".join(lines) + "\n")
    monkeypatch.setattr("shutil.which", lambda tool: tool)
    monkeypatch.setattr("subprocess.run", lambda command, **_: answer)
    show_gpus(monkeypatch, "NVIDIA Fast", "NVIDIA Slow")
    monkeypatch.setattr(cuda, "gpu_uuid", lambda number: ("GPU-a", "GPU-b")[number])
    assert main(["doctor"]) == 0
    forget()
    text = capsys.readouterr().out
    assert "ok GPU 0: NVIDIA Fast, 143771 MiB, compute capability 9.0, driver 580.65\n" in text
    assert "ok GPU 1: NVIDIA Slow, 8192 MiB, compute capability 7.5, driver 580.65\n" in text
    assert "ok TensorRT uses yomi's own binding of NVIDIA's driver\n" in text


def test_doctor_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fault = Fault("libcuda.so.1, NVIDIA's driver, is not found", "install the driver")
    monkeypatch.setattr(devices, "find_gpu_fault", lambda kind: fault)
    built = Fault("this onnxruntime is built for the processor only", "pip install the other")
    monkeypatch.setattr(devices, "find_package_fault", lambda kind: built if kind == "cuda" else None)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "-- no GPU for CUDA: libcuda.so.1, NVIDIA's driver, is not found; to change this:" in text
    assert "--     install the driver" in text
    assert "ok TensorRT (--device tensorrt) is installed; a test needs a GPU\n" in text
    assert "-- CUDA (--device cuda): this onnxruntime is built for the processor only; to install it:" in text
    assert "-- WebGPU (--device webgpu): libcuda.so.1, NVIDIA's driver, is not found; to mend it:" in text
    assert "webgpu:software" not in text


def test_doctor_sees_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "tqdm" else real(name))
    assert main(["doctor"]) == 1
    assert f"!! tqdm is missing: {pip_command('install', 'tqdm')}\n" in capsys.readouterr().out


def test_doctor_names_the_extras(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = doctor._version
    versions = {"torch": None, "matplotlib": "3.10"}
    monkeypatch.setattr(doctor, "_version", lambda name: versions[name] if name in versions else real(name))
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "ok matplotlib 3.10\n" in text
    missing = "-- training (yomi train): torch is not installed; to install it:"
    assert f"{missing}\n  --     {pip_command('install', 'torch>=2.6', 'onnx>=1.18', 'onnxscript>=0.5')}\n" in text


def test_doctor_knows_the_machine_as_measurements_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "processor_name", lambda: "Some CPU")
    monkeypatch.setattr(doctor, "usable_cores", lambda: 7)
    assert next(doctor.processor()) == (doctor.OK, "Some CPU: 7 cores for yomi")


def test_closed_standard_streams(monkeypatch: pytest.MonkeyPatch, fake: list[FakePlayer]) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(["play", "go", "--size", "5", "--no-save"]) == 0
    assert main(["play", "go", "--nonsense"]) == 2
    opened = [sys.stdin, sys.stdout, sys.stderr]
    monkeypatch.undo()
    for stream in opened:
        stream.close()
    assert fake[0].calls[-1] == "close"


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
    ("words", "meant"),
    [
        ("gtp --vists 5", "did you mean --visits?"),
        ("gtp --vists=5", "did you mean --visits?"),
        ("selfplay go --gmes 5", "did you mean --games?"),
        ("bench nps --vorkers 5", "did you mean --workers"),
        ("slefplay", "did you mean selfplay?"),
        ("bench nest", "did you mean nets?"),
    ],
)
def test_misspelt_words_get_a_suggestion(words: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert meant in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("play go --level 11", "--level: expected an integer from 0 to 10, or max, or off, found 11"),
        ("play go --level -1", "--level: expected an integer from 0 to 10, or max, or off, found -1"),
        ("analysis -config a.cfg", "remove KataGo's -config"),
        ("analysis -config=a.cfg", "--config FILE with a TOML file"),
        ("gtp -config a.cfg -model b.bin.gz", "use --net FILE for KataGo's -model"),
        ("selfplay go --level 3", "yomi play, gtp and usi have levels of strength: yomi play GAME --level 1 to 10"),
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
        ("play game.sgf", "to resume a saved game, use yomi play --resume FILE"),
        (
            "net tune go",
            "go: found a game, expected a network file; to tune parameters of the search, use yomi tune",
        ),
        ("net calibrate shogi", "to tune parameters of the search, use yomi tune shogi"),
    ],
)
def test_messages_tell_what_to_do(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "did you mean" not in error
    assert error.count("\n") == 1


def test_a_folder_is_no_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"--net {tmp_path}: is a folder; expected a network" in error_of(capsys, "gtp", "--net", str(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_selfplay_that_is_interrupted_tells_what_was_played(
    number: int, tmp_path: Path, fake: list[FakePlayer], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    played = Series.play

    def play(self: Series[Any], index: int) -> Any:
        if index == 2:
            signal.raise_signal(number)
        return played(self, index)

    monkeypatch.setattr(Series, "play", play)
    before = signal.signal(signal.SIGTERM, lambda *of_signal: None)
    words = ["selfplay", "go", "--games", "9", "--size", "5", "--out", str(tmp_path)]
    try:
        if number == signal.SIGINT:
            assert main(words) == 130
        else:
            with pytest.raises(SystemExit) as ended:
                main(words)
            assert ended.value.code == 128 + number
    finally:
        signal.signal(signal.SIGTERM, before)
    assert re.match(r"2 games in [\d.]+ s: Black won", capsys.readouterr().out)
    assert len(list(tmp_path.iterdir())) == 2
    assert fake[0].calls[-1] == "close"


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


@pytest.mark.parametrize(
    ("words", "game"),
    [
        ("play --resume saved.sgf", "go"),
        ("play --color white --resume=saved.KIFU", "shogi"),
        ("selfplay --net yomi-go-b6c96 --games 2", "go"),
        ("duel --net=yomi-shogi-6x64.onnx", "shogi"),
        ("tune --net yomi-shogi-sparse --parameter c_puct 1:2", "shogi"),
        ("play --net yomi-shogi-sparse --help", "shogi"),
        ("dataset play --teacher yomi-go-b6c96 --size 9", "go"),
    ],
)
def test_a_file_tells_the_game(words: str, game: str) -> None:
    command, flags, rest = words.partition(" --")
    assert with_game(words.split()) == f"{command} {game}{flags}{rest}".split()


@pytest.mark.parametrize(
    "words", ["play go --net x", "play", "play --visits 9", "play --net fast", "learn", "learn --help"]
)
def test_a_command_without_a_game(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    if " go" in words or "--help" in words:
        assert with_game(words.split()) == words.split()
        return
    command = words.split()[0]
    expected = f"yomi {command} without a game: expected yomi {command} go or yomi {command} shogi"
    assert expected in error_of(capsys, *words.split())


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
