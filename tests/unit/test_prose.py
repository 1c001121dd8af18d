"""Texts keep out the habits of tests/prose.py, and pages are made of short sentences."""

import json
from pathlib import Path

import pytest

from tests import prose

LIMITS = json.loads(prose.LIMITS.read_text("utf-8"))


def test_texts_have_no_new_habits() -> None:
    allowed = LIMITS["findings"]
    grown = {package: number for package, number in prose.counts().items() if number > allowed.get(package, 0)}
    found = "; ".join(f"{package}: {number} (at most {allowed.get(package, 0)})" for package, number in grown.items())
    assert not grown, f"{found}: `python -m tests.prose {' '.join(grown)}` lists them, and the words to write instead"


@pytest.mark.parametrize("page", prose.pages(), ids=prose.package_of)
def test_pages_have_short_sentences(page: Path) -> None:
    mean, longest = prose.lengths(page)
    allowed_mean, allowed_longest = LIMITS["sentences"].get(prose.package_of(page), (prose.MAX_MEAN, prose.MAX_WORDS))
    assert mean <= allowed_mean, "split sentences"
    assert longest <= allowed_longest, "split the longest sentences"


def test_pages_link_to_files_and_headings_that_exist() -> None:
    for page in [*prose.pages(), *prose.japanese_pages()]:
        assert not prose.broken_links(page), f"{page}: expected links to existing files and headings"


def test_the_page_about_the_code_names_files_that_exist() -> None:
    paths = prose.source_paths(prose.ROOT / "docs/explanation/code.md")
    assert paths
    for path in paths:
        assert (prose.ROOT / path).exists(), f"docs/explanation/code.md: {path} found, expected an existing file"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""Return the move, None where there is none."""', ["if, when"]),
        ('"""What is known of\nthe network."""', ["a noun"]),
        ("x = 1  # the search goes on", ["continue"]),
        ('raise ValueError("the file says nothing")', ["contain, set, predict"]),
        ("x = 'all of it is told\\' anew'", ["report, show, pass", "again"]),
        ("MOST_VISITS: int = 3\n", ["MAX_, MIN_"]),
        ('"""A place\n    at\n    hand."""', ["current, active"]),
    ],
)
def test_habits_are_found(tmp_path: Path, source: str, expected: list[str]) -> None:
    path = tmp_path / "module.py"
    path.write_text(source, "utf-8")
    assert [advice for _, _, advice in prose.findings(path)] == expected


@pytest.mark.parametrize(
    "source",
    [
        "told = so_many = anew = np.where(what is None, 0, 1) if judge else None",
        '"""Say what to do, and where the file is. Two forms are told apart, +1 where Black is."""',
        '"""The option `those_that` decides, else if that fails."""',
    ],
)
def test_other_words_are_left_alone(tmp_path: Path, source: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source, "utf-8")
    assert not list(prose.findings(path))


def test_sentences_of_a_page() -> None:
    page = (
        "# Title\n\nOne two. Three `a. B c` four\nfive.\n\n```\nNo. Text.\n```\n\n"
        "| a | b |\n|---|:-:|\n| One. Two `c\\|d` | e \\| f |\n\n- Six. Seven [x y](z. B).\n"
    )
    assert prose.sentences(page) == ["One two.", "Three x four five.", "Six.", "Seven [x y]."]
    assert [text for text in prose.cell_sentences(page) if text] == ["a", "b", "One.", "Two x", "e \\| f"]


def test_a_long_sentence_in_a_table_counts(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"One two.\n\n| a |\n|---|\n| {'word ' * 40}|\n", "utf-8")
    assert prose.lengths(page) == (2.0, 40)


def test_links_without_target_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A `title`, 二\n\n```\n# no heading\n```\n", "utf-8")
    page = tmp_path / "page.md"
    good = "[a](other.md) [b](other.md#a-title-二) [c](#own) [d](https://example.com/#x)"
    page.write_text(f"# Own\n\n{good} [e](other.md#no-heading) [f](#none) [g](no.md)\n", "utf-8")
    assert prose.broken_links(page) == ["other.md#no-heading", "#none", "no.md"]
