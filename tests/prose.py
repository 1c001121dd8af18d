"""Check texts for habits that make them hard to read, and pages for long sentences.

`python -m tests.prose` lists every finding with the words to write instead. `python -m tests.prose PATH...` lists the
findings below these paths. `python -m tests.prose --update` writes the smaller counts into tests/prose.json after texts
have improved. It refuses counts that have grown.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = ROOT / "tests/prose.json"
"""Findings that each package may have, and the sentences of pages that exceed MAX_MEAN or MAX_WORDS."""
FOLDERS = ("bench", "engine", "native", "nets", "tests", "yomi")
MAX_MEAN = 17.0
"""Words of a sentence, on average over a page."""
MAX_WORDS = 35
"""Words of the longest sentence of a page."""

HABITS = (
    (r"\b(?:None|True|False|nothing|empty|(?<![+.])[01]) where\b|[,;] (?!and|or|but)[\w.]+ where\b", "if, when"),
    (r"\bwhere (?:not|none|nothing|nobody|no one)\b", "if, when"),
    (r"\b(?:of|by|with|from|to|in|than|as|Return|Answer|Compile|Make|makes?) what (?!to\b)", "a noun"),
    (r'(?:\A|""")What (?!to\b)', "a noun"),
    (
        r"\b(?:networks?|files?|evaluators?|formats?|edges?|nodes?|rows?|options?|books?|records?|quer(?:y|ies)|servers?|"
        r"positions?|it|they) (?:says?|said)\b",
        "contain, set, predict",
    ),
    (r"\btold\b(?! apart)|\btells\b", "report, show, pass"),
    (r"(?<!are\x20)\bthose of\b|\bthose (?:that|which|who)\b", "repeat the noun"),
    (
        r"\bstands? (?:in|at|on|there|here|beside|behind|before|after|by|together|below|above)\b|\bstood\b",
        "is, is stored",
    ),
    (r"\bas (?:it|they) stands?\b", "current, as it is now"),
    (r"\bjudg(?:e|es|ed|ing)\b", "evaluate, compare"),
    (r"\bso (?:many|much)\b|\bas (?:long|much) as\b", "the number's name"),
    (r"\b(?:goes|went|going|to go) on\b", "continue"),
    (r'(?:\A|""")Of (?:a|an|the|all|each|every|this|what)\b', "number of ..., size of ..."),
    (r"\bwhoever\b", "the caller, the thread"),
    (r"\b(?:at|in) hand\b|\bunder way\b|\bin force\b", "current, active"),
    (r"\banew\b", "again"),
    (r"\bbut for\b", "except"),
    (r"\bsee(?:s|ing)? to it\b", "check, ensure"),
    (r"[,;] else\b(?! if)", "otherwise"),
    (r"\blikewise\b", "repeat the words"),
)
"""Pattern of a habit, and the words to write instead."""
_GROUPS = (f"(?P<h{number}>{pattern})" for number, (pattern, _) in enumerate(HABITS))
_HABIT = re.compile("|".join(_GROUPS).replace(" ", r"\s+"))  # lines may break at every space
_NAME = re.compile(r"^_?(?:MOST|LEAST)_[A-Z_]+(?: *:.*)? =", re.MULTILINE)
_TEXTS = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*', re.DOTALL)
"""Strings and comments of a Python file."""
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
"""Parts of a page that are no text: code, and the targets of links."""
_BLOCK = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Return the Markdown pages that describe yomi as it is now."""
    names = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "nets/README.md")
    return [*(ROOT / name for name in names), *english_docs()]


def english_docs() -> list[Path]:
    return [path for path in sorted(ROOT.glob("docs/**/*.md")) if not path.name.endswith(".ja.md")]


def japanese_pages() -> list[Path]:
    return [ROOT / "README.ja.md", *sorted(ROOT.glob("docs/**/*.ja.md"))]


def findings(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the words and the advice of each finding in a Python file or a page."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        texts = [(0, _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), source))]
    else:
        texts = [(found.start(), found[0]) for found in _TEXTS.finditer(source) if " " in found[0]]
        for name in _NAME.finditer(source):
            yield source.count("\n", 0, name.start()) + 1, name[0].split()[0], "MAX_, MIN_"
    for start, text in texts:
        for found in _HABIT.finditer(text):
            advice = HABITS[int(str(found.lastgroup)[1:])][1]
            yield source.count("\n", 0, start + found.start()) + 1, " ".join(found[0].split()), advice


def package_of(path: Path) -> str:
    """Return the package that a file is counted in; a page is counted by itself."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts) if path.suffix == ".md" else "/".join(parts[: min(2, len(parts) - 1)])


def sources() -> list[Path]:
    """Return the files that are checked."""
    modules = [path for folder in FOLDERS for path in walk(ROOT / folder)]
    return [path for path in modules if path != Path(__file__)] + pages()


def walk(folder: Path) -> Iterator[Path]:
    """Yield the Python files below a folder, without following links: yomi/ has links to the other folders."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py":
            yield path
        elif path.is_dir() and not path.is_symlink() and not path.name.startswith((".", "__")):
            yield from walk(path)


def counts() -> Counter[str]:
    """Return the number of findings of each package that has any."""
    return Counter(package_of(path) for path in sources() for _ in findings(path))


def sentences(page: str) -> list[str]:
    """Return the sentences of a Markdown page, without headings, tables and code."""
    found: list[str] = []
    lines: list[str] = []
    for line in [*_BLOCK.sub("", page).split("\n"), ""]:
        is_item = re.match(r"\s*(?:[-*]|\d+\.) ", line)
        is_text = line.strip() and not line.startswith(("#", "|", "    "))
        if lines and (is_item or not is_text):
            found += _split(" ".join(lines))
            lines = []
        if is_text:
            lines.append(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line).strip())
    return found


def cell_sentences(page: str) -> list[str]:
    """Return the sentences in the tables of a Markdown page."""
    rows = [line for line in _BLOCK.sub("", page).split("\n") if re.match(r"\s*\|(?! *[-:]+ *\|)", line)]
    return [text for row in rows for cell in re.split(r"(?<!\\)\|", row) for text in _split(cell.strip())]


def _split(text: str) -> list[str]:
    text = re.sub(r"`[^`]*`", "x", re.sub(r"\]\([^)]*\)", "]", text))
    return re.split(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z0-9x\"'(*\[]|yomi)", text)


def _words(texts: list[str]) -> list[int]:
    """Return the number of words of each sentence. One word alone is no sentence."""
    numbers = (len([word for word in text.split() if re.search(r"\w", word)]) for text in texts)
    return [number for number in numbers if number > 1]


def lengths(path: Path) -> tuple[float, int]:
    """Return the mean words of a page's sentences outside tables, and the words of its longest sentence."""
    page = path.read_text("utf-8")
    numbers = _words(sentences(page)) or [0]
    return round(sum(numbers) / len(numbers), 1), max(numbers + _words(cell_sentences(page)))


def broken_links(path: Path) -> list[str]:
    """Return the links of a page to files, pictures and headings that do not exist."""
    page = _BLOCK.sub("", path.read_text("utf-8"))
    broken = []
    for link in re.findall(r'(?:\]\(|src=")([^)"\s]+)', page):
        name, _, heading = link.partition("#")
        target = path.parent / name if name else path
        if "://" in link or (target.exists() and (not heading or heading in anchors(target))):
            continue
        broken.append(link)
    return broken


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, which GitHub and the site make alike."""
    found: Counter[str] = Counter()
    for title in re.findall(r"^#+ (.*)$", _BLOCK.sub("", path.read_text("utf-8")), re.MULTILINE):
        words = re.sub(r"\]\([^)]*\)", "]", title).lower().strip()
        found[re.sub(r"[^\w\- ]", "", words).replace(" ", "-")] += 1
    return set(found)


def source_paths(path: Path) -> list[str]:
    """Return the files and folders of the repository that a page names as code, from the root."""
    folders = "|".join((*FOLDERS, "docs"))
    return sorted(set(re.findall(rf"(?<![\w/])(?:{folders})/[\w./]*\w", path.read_text("utf-8"))))


def update() -> None:
    """Write the present counts and sentences into LIMITS.

    Raises:
        SystemExit: the findings of all packages together, or the sentences of a page, have grown.
    """
    limits = json.loads(LIMITS.read_text("utf-8"))
    found = counts()
    if found.total() > sum(limits["findings"].values()):
        raise SystemExit(f"{found.total()} findings, expected at most {sum(limits['findings'].values())}")
    long = {}
    for page in pages():
        mean, longest = lengths(page)
        old_mean, old_longest = limits["sentences"].get(package_of(page), (MAX_MEAN, MAX_WORDS))
        if mean > old_mean or longest > old_longest:
            raise SystemExit(
                f"{package_of(page)}: sentences of {mean} words (at most {longest}), expected {old_mean}, {old_longest}"
            )
        if mean > MAX_MEAN or longest > MAX_WORDS:
            long[package_of(page)] = [mean, longest]
    limits = {"findings": dict(sorted(found.items())), "sentences": long}
    LIMITS.write_text(json.dumps(limits, indent=1) + "\n", "utf-8")


def main(arguments: list[str]) -> None:
    """Print the findings below the paths given, or update LIMITS."""
    if arguments == ["--update"]:
        update()
        return
    wanted = [Path(text).resolve() for text in arguments]
    for path in sources():
        if not wanted or any(path.is_relative_to(folder) for folder in wanted):
            for line, words, advice in findings(path):
                print(f"{path.relative_to(ROOT)}:{line}: {words!r}: write {advice}")


if __name__ == "__main__":
    main(sys.argv[1:])
