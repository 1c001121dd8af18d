"""Help of the command line."""

import argparse
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.looping import looped
from tests.prose import ROOT, walk
from tests.unit.command_lines import error_of, help_of
from yomi import nets
from yomi.engine.cli.games import EXAMPLES
from yomi.engine.cli.main import BENCH, COMMANDS, EPILOG, GROUPS, MAIN, build, expanded, find_command, main, main_usi
from yomi.engine.cli.parser import ESSENTIAL, short_help
from yomi.engine.options import GROUPS as OPTION_GROUPS
from yomi.engine.options import TABLE, rows_for
from yomi.engine.registry import GAMES


@looped("name", [name for name in COMMANDS if name != BENCH])
def test_help_of_every_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(f"{name} --help-all", capsys)
    assert f"usage: yomi {name}" in text
    assert name == "doctor" or "examples:" in text
    if name == "gtp":
        assert all(row.flag in text for row in rows_for("go"))
        assert text.count("default:") >= len(rows_for("go"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dataset", "The format of data sets: nets/data/shards.py."),
        ("train", "The keys of a configuration: yomi help settings; examples: nets/recipes/"),
        ("match", "yomi match ./new ./old --sprt"),
    ],
)
def test_help_names_what_is_there(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert text in " ".join(help_of(f"{name} --help-all", capsys).split())
    assert all((Path(nets.__path__[0]).parent / path).exists() for path in re.findall(r"nets/[a-z/]+(?:\.py)?", text))


def test_short_help_is_one_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parsers = children_of("yomi", build((), with_all=True))
    assert len(parsers) > 60
    for words, parser in parsers.items():
        text, full = short_help(parser), parser.format_help()
        assert sum(max(1, -(-len(line) // 80)) for line in text.splitlines()) <= 40, words
        assert text == full or "--help-all" in text.splitlines()[-1], words
        assert set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)) <= set(re.findall(r"--[a-z-]+", full)), words
    for words in ("gtp", "play go", "net info", "bench nps"):
        text = short_help(parsers[f"yomi {words}"])
        assert help_of(f"{words} -h", capsys) == help_of(f"help {words}", capsys) == text
        assert help_of(f"{words} --help-all", capsys) == parsers[f"yomi {words}"].format_help()


def children_of(name: str, parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a command's actions and games, and of theirs, by their command lines."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                found |= {f"{name} {word}": child} | children_of(f"{name} {word}", child)
    return found


@looped("words", ["gtp", "usi", "review", "analysis", "play go", "play shogi", "match", "duel go"])
def test_short_help_has_about_ten_options(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 8 <= len(re.findall(r"^  --", help_of(f"{words} -h", capsys), re.MULTILINE)) <= 13


def test_every_option_of_short_help_exists() -> None:
    for command, names in ESSENTIAL.items():
        lines = [f"{command} {game.name}" for game in GAMES.values() if command in game.commands] or [command]
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


@pytest.mark.parametrize(
    ("commands", "sections", "names"),
    [
        ([[], ["--help"], ["-h", "play"], ["help"], ["--unknown", "--help"]], ["main commands"], MAIN),
        ([["--help-all"], ["help", "all"]], list(GROUPS), COMMANDS),
    ],
)
def test_commands_are_listed_on_one_screen(
    commands: list[list[str]], sections: list[str], names: Collection[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(COMMANDS)
    texts = set()
    for words in commands:
        assert main(words) == 0
        texts.add(capsys.readouterr().out)
    (text,) = texts
    lines = text.splitlines()
    assert len(lines) <= 42
    assert max(map(len, lines)) <= 80
    assert [line[:-1] for line in lines if line.endswith(":")] == [*sections, "start here"]
    assert sorted(line.split()[0] for line in lines if re.match(r"  (?!yomi )\S", line)) == sorted(names)


def test_help_of_the_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = help_of("help options", capsys)
    assert max(map(len, text.splitlines())) <= 80
    assert re.findall(r"^  (--\S+)$", text, re.MULTILINE) == [
        row.flag for group in OPTION_GROUPS for row in TABLE.values() if row.group == group
    ]
    few = help_of("help options BYO", capsys)
    assert "--byoyomi-margin" in few
    assert "--net\n" not in few
    assert "found no such option; did you mean komi?" in error_of(capsys, "help", "options", "komy")


def test_pages_that_texts_name_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Texts of the program name pages by `yomi help PAGE`, because a wheel lies in no checkout."""
    named = set()
    for folder in ("engine", "nets", "native", "yomi"):
        for path in walk(ROOT / folder):
            named |= set(re.findall(r"yomi help ([a-z][a-z/-]+)", path.read_text("utf-8")))
    assert {"levels", "clusters", "servers", "settings", "reference/analysis"} <= named
    for name in named - set(COMMANDS) - {"options", "all"}:
        assert help_of(f"help {name}", capsys).startswith("# "), name
    assert help_of("help training", capsys).startswith("# ")
    error = error_of(capsys, "help", "nonsense")
    assert ", expected a command, or one of " in error
    assert " levels, " in error
    assert "did you mean levels?" in error_of(capsys, "help", "level")


def test_the_wheel_has_the_pages() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    assert set(build["exclude"]) < set(wheel["exclude"])  # a target's list replaces the general one
    assert wheel["sources"]["docs"] == "yomi/docs"
    assert "docs" in wheel["only-include"]


def examples() -> list[str]:
    """Return the command lines in the help texts of all commands, without what is said of them."""
    texts = [EPILOG, *(find_command(name).epilog for name in COMMANDS if name != BENCH)]
    texts += [text for game in GAMES for text in EXAMPLES[game].values()]
    lines = re.findall(r"^  (yomi .*)", "\n".join(texts).replace("\\\n      ", ""), re.MULTILINE)
    return [re.split(r" {3,}| [<>] ", line)[0] for line in lines if not re.search("--help|yomi help|version", line)]


@looped("line", dict.fromkeys(examples()))
def test_examples_are_understood(line: str) -> None:
    words = shlex.split(line)[1:]
    words = expanded(words)
    assert build(words).parse_args(words).command == words[0]


def test_help_shows_the_commands_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    for words, visits in (("analysis", 500), ("analyze", 100), ("selfplay go", 200), ("selfplay shogi", 200)):
        text = " ".join(help_of(f"{words} --help-all", capsys).split())
        assert re.search(rf"--visits N [^()]*\(default: {visits}\)", text)
    assert "(default: 320)" in text
    for words, hides in (("analysis", "true"), ("analyze", "true"), ("gtp", "false")):
        text = " ".join(help_of(f"{words} --help-all", capsys).split())
        assert re.search(rf"--no-ignore-pre-root-history [^-]*\(default: {hides}\)", text)


def test_usi_as_a_program_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["yomi-usi", "--workers", "many"])
    assert main_usi() == 2
    assert "workers: expected an integer" in capsys.readouterr().err
