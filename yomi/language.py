"""The language of texts for people: English, or Japanese from the catalogue `locale/ja.po`.

Texts are English until a command calls `choose`. The library and the protocols never call it, so that everything that
programs read stays English. The catalogue is read as it is: no tool has to compile it.
"""

import contextlib
import functools
import os
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar

ENGLISH, JAPANESE = "en", "ja"
JAPANESE_SAMPLE = "▲７六歩"
VARIABLE = "YOMI_LANGUAGE"
LOCALES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")  # in gettext's order

Texts = Mapping[str, str] | None  # English to Japanese
_texts: Texts = None
_own: ContextVar[Texts] = ContextVar("_own")  # of a thread or task, in place of `_texts`


def tr(text: str, /, **values: object) -> str:
    """Return a text in the user's language, with `values` in its braces.

    `text` is a literal: tests collect these calls and compare them with the catalogue.
    """
    texts = _own.get(_texts)
    found = text if texts is None else texts.get(text) or text
    return found.format(**values) if values else found


def counted(one: str, many: str, n: int, /, **values: object) -> str:
    """Return the text `one` if n is 1, otherwise `many`, in the user's language. `{n}` is n with separators."""
    return tr(one if n == 1 or is_japanese() else many, n=f"{n:,}", **values)


def translated_line(line: str) -> str:
    """Translate a line of help: a heading, or the remark after an example."""
    if not is_japanese():
        return line
    import re  # not above: an English start does without it

    found = re.fullmatch(r"( +yomi .*?  +)(\S.*)", line)
    return found[1] + tr(found[2]) if found else line if line.startswith(" ") or not line else tr(line)


def is_japanese() -> bool:
    return _own.get(_texts) is not None


def choose(language: str) -> None:
    """Set the language of this process. For Japanese, read the catalogue of translations."""
    global _texts
    _texts = read_catalogue() if language == JAPANESE else None


@contextlib.contextmanager
def within(language: str) -> Iterator[None]:
    """Set the language inside the `with` block, for this thread or asyncio task only."""
    token = _own.set(read_catalogue() if language == JAPANESE else None)
    try:
        yield
    finally:
        _own.reset(token)


def wanted() -> str:
    """Return the user's language: YOMI_LANGUAGE, otherwise that of the locale if the terminal can show Japanese."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return JAPANESE if named.lower().startswith(JAPANESE) else ENGLISH
    locale = next(filter(None, map(os.environ.get, LOCALES)), "")
    return JAPANESE if locale.startswith(JAPANESE) and encodes(JAPANESE_SAMPLE) else ENGLISH


def encodes(text: str) -> bool:
    """Return whether stdout can encode a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


@functools.cache
def read_catalogue() -> dict[str, str]:
    """Return a dictionary from English texts to their Japanese translations."""
    with open(os.path.join(os.path.dirname(__file__), "locale", "ja.po"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    found: dict[str, str] = {}
    parts: dict[str, str] = {}  # of an entry: msgid, msgstr
    name = ""
    for line in (*lines, ""):
        if line.startswith("msg"):
            name, _, line = line.partition(" ")
            parts[name] = ""
        if line.startswith('"'):
            parts[name] += line[1:-1]
        elif not line and parts.get("msgid"):
            found[_unescaped(parts["msgid"])] = _unescaped(parts["msgstr"])
            parts.clear()
    return found


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return text.replace("\\\\", "\0").replace("\\n", "\n").replace('\\"', '"').replace("\0", "\\")
