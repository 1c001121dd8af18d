"""README.ja.md has the commands and networks of README.md."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGLISH, JAPANESE = ((ROOT / name).read_text("utf-8") for name in ("README.md", "README.ja.md"))
COMMANDS = ("pip ", "yomi ", "import ")
NETWORK = re.compile(r"^\| `([\w-]+)` \|.*\| ([\d.]+ MB) \|", re.MULTILINE)
PROGRAM = re.compile(r"^\| (.+) \| (?:`([^`]+)`|.*docs/how-to/servers.md)", re.MULTILINE)


def blocks(page: str) -> list[str]:
    """Return the blocks of code that begin with a command or a program, not with an output."""
    found = re.findall(r"^```\w*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [block for block in found if block.startswith(COMMANDS)]


def programs(page: str) -> list[tuple[str, str]]:
    return [(re.sub(r"[（(].*?[）)]|[、, ]", "", name), command) for name, command in PROGRAM.findall(page)]


def test_the_readmes_have_the_same_commands() -> None:
    assert len(blocks(ENGLISH)) == 5
    assert blocks(JAPANESE) == blocks(ENGLISH)


def test_the_readmes_have_the_same_tables() -> None:
    assert len(NETWORK.findall(ENGLISH)) == 5
    assert NETWORK.findall(JAPANESE) == NETWORK.findall(ENGLISH)
    assert len(programs(ENGLISH)) > 4
    assert programs(JAPANESE) == programs(ENGLISH)


def test_the_readmes_are_short_and_linked() -> None:
    for page, other in ((ENGLISH, "README.ja.md"), (JAPANESE, "README.md")):
        assert len(page.splitlines()) <= 130
        assert f"]({other})" in page.split("\n\n")[1]
