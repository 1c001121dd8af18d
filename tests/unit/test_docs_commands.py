"""The commands of README.md and docs/ exist with their options, and the navigation of the site is complete."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import prose, site
from tests.looping import looped
from yomi.bench.cli import make_parser
from yomi.engine.cli.games import with_game
from yomi.engine.cli.main import BENCH, build, expanded
from yomi.engine.cli.pages import OPTIONS, pages, print_page
from yomi.engine.cli.parser import CliError
from yomi.engine.registry import GAMES
from yomi.settings import OptionError

BLOCK = re.compile(r"^ *```(?!python)\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    (yomi .*)", re.MULTILINE)
LINE = re.compile(r"\s*(?:[A-Z_]+=\S+ )?(?:exec )?yomi(?:-usi)? |pip .*&& yomi |printf .*\| yomi")
MENTION = re.compile(r"`((?:exec )?(?:/path/to/)?yomi(?:-usi)? [^`\n]+|pip [^`\n]*&& yomi [^`\n]+)`")
# Texts also name a command without all that it requires, or with a word in capitals in place of a value.
UNFINISHED = re.compile(
    r"are required|without a game|expected one argument|no such file, expected a Python|(invalid|found) .*'?[A-Z]+'"
)
PAGES = [*prose.pages(), *prose.japanese_pages()]


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each yomi command in the blocks of a page: lines that begin with yomi, without their pipes."""
    text = page.read_text("utf-8")
    for block in [*BLOCK.findall(text), *INDENTED.findall(BLOCK.sub("", text))]:
        for line in block.replace("\\\n", "").splitlines():
            if LINE.match(line):
                yield from yomi_commands(re.sub(r"\$\w+", "1", line))


def mentions(page: Path) -> Iterator[list[str]]:
    """Yield the words of each yomi command in the texts and tables of a page."""
    for code in MENTION.findall(BLOCK.sub("", page.read_text("utf-8"))):
        yield from yomi_commands(code.replace("/path/to/", "").replace("\\|", "|"))


def yomi_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each yomi command in a line for the shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    skips = False
    for word in [*lexer, ";"]:
        if set(word) <= set("|&;"):
            while words and (words[0] == "exec" or "=" in words[0]):
                del words[0]
            if words and words[0] in ("yomi", "yomi-usi"):
                yield words[1:] if words[0] == "yomi" else ["usi", *words[1:]]
            words, skips = [], False
        elif set(word) <= set("<>"):
            skips = True
        elif skips:
            skips = False
        else:
            words.append(word)


def parser_of(words: list[str]) -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the parser of a command line, and the words that it reads."""
    words = expanded(words)
    if words[:1] == [BENCH]:
        return make_parser(words[1:]), words[1:]
    known = dict(GAMES)
    words = with_game(words)
    parser = build(words)
    GAMES.clear()  # without games by file
    GAMES.update(known)
    return parser, words


def parse(words: list[str]) -> None:
    """Parse a command line. Raises CliError or SystemExit as the command does."""
    if expanded(words)[:1] == ["help"]:
        if not words[1].isupper() and words[1] not in (OPTIONS, *pages()):
            print_page(words[1:])
        return
    parser, words = parser_of(words)
    parser.parse_args(words)


def fault(words: list[str]) -> str:
    """Return why a command that a text names does not exist, or an empty text."""
    try:
        parse(words)
    except SystemExit as end:  # --help and the like
        return "" if end.code == 0 else f"exit {end.code}"
    except (CliError, OptionError) as error:
        if not UNFINISHED.search(str(error)):
            return str(error)
        if "are required" in str(error):  # argparse has not looked at unknown flags
            known = flags_of(parser_of(words)[0])
            return ", ".join(word for word in words if word.startswith("--") and word not in known)
    return ""


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    """Return the flags of a parser and of its commands."""
    flags: set[str] = set()
    for action in parser._actions:
        flags |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            flags = flags.union(*map(flags_of, action.choices.values()))
    return flags


CASES = [(page, words) for page in PAGES for words in commands(page)]


@looped("page, words", CASES)
def test_a_command_of_the_documents_is_known(page: Path, words: list[str]) -> None:
    parse(words)


@looped("page", PAGES)
def test_mentioned_commands_and_options_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faults = [f"yomi {' '.join(words)}: {fault(words)}" for words in mentions(page) if fault(words)]
    capsys.readouterr()
    assert not faults


def test_commands_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```\nyomi doctor | grep ok\nyomi: no command\n```\n\n```sh\nyomi gtp --size 9 < moves && yomi setup\n```\n"
        "\n    yomi doctor  # a comment\n\n"
        "1. An item `yomi play go --size $size`, `yomi`:\n\n   ```\n   A=b yomi status $out\n   ```\n"
    )
    assert list(commands(page)) == [["doctor"], ["gtp", "--size", "9"], ["setup"], ["status", "1"], ["doctor"]]
    assert list(mentions(page)) == [["play", "go", "--size", "$size"]]
    assert len(CASES) > 30


@looped("line", ["play go --sise 9", "reviews a.sgf", "bench npx", "play chess"])
def test_unknown_words_are_refused(line: str) -> None:
    with pytest.raises(CliError):
        parse(line.split())


@looped("line", ["review --htlm", "net info --tree a.onnx", "bench nqs", "match --cpux 1", "cgos --accounts"])
def test_mentioned_faults_are_found(line: str) -> None:
    assert fault(line.split())


@looped("line", ["review --html", "learn", "match --cpus", "bench NAME", "--help", "review --quick 0"])
def test_unfinished_commands_may_be_mentioned(line: str) -> None:
    assert not fault(line.split())


def test_the_navigation_has_every_page() -> None:
    navigation = set(re.findall(r"[\w./-]+\.md", (prose.ROOT / "mkdocs.yml").read_text("utf-8")))
    expected = {site.site_path(path) for path in site.sources() if path.endswith(".md")}
    assert expected == navigation, f"nav of mkdocs.yml: {sorted(expected ^ navigation)} found once, expected twice"


def test_links_lead_to_pages_of_the_site() -> None:
    page = (
        '[a](../docs/how-to/levels.md#top) [b](../README.md) [c](https://a.b/c.md) <img src="../docs/pictures/go.svg">'
    )
    linked = site.with_site_links(page, "nets/README.md")
    assert linked == (
        '[a](../how-to/levels.md#top) [b](../index.md) [c](https://a.b/c.md) <img src="../pictures/go.svg">'
    )
