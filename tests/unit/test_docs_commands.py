"""The commands of README.md and docs/ exist with their options, and the navigation of the site is complete."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import prose
from yomi.bench.cli import make_parser
from yomi.engine.cli.games import with_game
from yomi.engine.cli.main import BENCH, build, expanded
from yomi.engine.cli.parser import CliError

BLOCK = re.compile(r"^```(?:bash|sh)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [*prose.pages(), *prose.japanese_pages()]


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each yomi command in the blocks of a page: lines that begin with yomi, without their pipes."""
    for block in BLOCK.findall(page.read_text("utf-8")):
        for line in block.replace("\\\n", "").splitlines():
            if re.match(r"(?:exec )?yomi |pip .*&& yomi ", line):
                yield from yomi_commands(line)


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


def parse(words: list[str]) -> None:
    """Parse a command line. Raises CliError or SystemExit as the command does."""
    words = expanded(words)
    if words[:1] == [BENCH]:
        make_parser(words[1:]).parse_args(words[1:])
    else:
        words = with_game(words)
        build(words).parse_args(words)


CASES = [
    pytest.param(words, id=f"{prose.package_of(page)}: {' '.join(words)}") for page in PAGES for words in commands(page)
]


@pytest.mark.parametrize("words", CASES)
def test_a_command_of_the_documents_is_known(words: list[str]) -> None:
    parse(words)


def test_commands_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```\nyomi doctor | grep ok\nyomi: no command\n```\n\n```sh\nyomi gtp --size 9 < moves && yomi setup\n```\n"
    )
    assert list(commands(page)) == [["doctor"], ["gtp", "--size", "9"], ["setup"]]
    assert len(CASES) > 30


@pytest.mark.parametrize("line", ["play go --sise 9", "reviews a.sgf", "bench npx", "play chess"])
def test_unknown_words_are_refused(line: str) -> None:
    with pytest.raises(CliError):
        parse(line.split())


def test_the_navigation_has_every_page() -> None:
    navigation = set(re.findall(r"[\w./-]+\.md", (prose.ROOT / "mkdocs.yml").read_text("utf-8")))
    expected = {str(path.relative_to(prose.ROOT / "docs")) for path in (prose.ROOT / "docs").glob("**/*.md")}
    assert expected <= navigation, f"put {sorted(expected - navigation)} into nav of mkdocs.yml"
