"""The Japanese catalogue is complete, and is used if the user's language is Japanese."""

import argparse
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import catalogue
from tests.unit.command_lines import help_of
from yomi import language
from yomi.engine import screen
from yomi.engine.cli import main as command_line
from yomi.engine.cli.main import main
from yomi.engine.reviews.review import shown_limit

ROOT = Path(__file__).parents[2]
JAPANESE = re.compile("[぀-ヿ一-鿿]")


@pytest.fixture(autouse=True)
def english_afterwards() -> Iterator[None]:
    yield
    language.choose(language.ENGLISH)


@pytest.mark.skipif(not Path(argparse.__file__).is_file(), reason="this Python has no sources of its modules")
def test_the_catalogue_is_complete() -> None:
    listed = "`python -m tests.catalogue` prints what to add to yomi/locale/ja.po, and what to remove"
    assert catalogue.missing() == [], listed
    assert catalogue.stale() == [], listed


def test_translations_have_the_placeholders_of_their_texts() -> None:
    found = language.read_catalogue()
    assert len(found) > 200
    for english, japanese in found.items():
        assert japanese, english
        assert catalogue.placeholders(english) == catalogue.placeholders(japanese), english


def test_the_catalogue_is_a_po_file() -> None:
    # Every entry is read: one msgid and one msgstr, no message twice.
    source = (ROOT / "yomi/locale/ja.po").read_text("utf-8")
    entries = source.count('\nmsgid "') - 1  # the header
    assert entries == source.count('\nmsgstr "') - 1 == len(language.read_catalogue())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja"}, "ja"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "ja_JP.UTF-8", "LANGUAGE": "en"}, "en"),
        ({"LANG": "ja_JP.UTF-8", "YOMI_LANGUAGE": "en"}, "en"),
        ({"LANG": "de_DE.UTF-8", "YOMI_LANGUAGE": "ja"}, "ja"),
        ({}, "en"),
    ],
)
def test_the_language_of_the_user(variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (language.VARIABLE, *language.LOCALES):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert language.wanted() == expected


def test_a_terminal_without_japanese_gets_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("YOMI_LANGUAGE")
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert language.wanted() == "en"


def test_plural_forms() -> None:
    assert [language.counted("{n} text", "{n} texts", n) for n in (1, 2000)] == ["1 text", "2,000 texts"]


@pytest.mark.parametrize(
    "words", [[], ["play", "go"], ["review"], ["serve"], ["selfplay", "go"], ["match"], ["setup"], ["doctor"]]
)
def test_help_in_japanese(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("YOMI_LANGUAGE", "ja")
    monkeypatch.setenv("COLUMNS", "80")
    for flag in ("--help", "--help-all"):
        text = help_of(" ".join([*words, flag]), capsys)
        assert text.startswith("使い方：")
        for line in text.splitlines():
            # Choices, and the examples of commands, are as long as they are.
            is_example = bool(words) and line.startswith("  yomi ")
            assert JAPANESE.search(line) is None or is_example or screen.width(line) <= 80, line
    assert "（既定値：" in text or not words or words == ["doctor"]


def test_the_overview_fills_one_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("YOMI_LANGUAGE", "ja")
    for words, title in (([], "主なコマンド:"), (["help", "all"], "対局と検討:")):
        assert main(words) == 0
        text = capsys.readouterr().out
        assert all(part in text for part in (title, "はじめに："))
        assert len(text.splitlines()) <= 42


def test_errors_in_japanese(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("YOMI_LANGUAGE", "ja")
    for words, expected in (
        (["play", "go", "--levl", "1"], "yomi: エラー： 不明な引数： --levl 1。もしかして： --level, --log-level（"),
        (["play", "go", "--level", "x"], "引数 --level： 'x' は使えません（使える値：整数（-1〜20）、max、off、auto）"),
        (["review"], "次の引数が必要です： FILE|FOLDER（例：game.sgf"),
        (["play"], "yomi play に種目がありません"),
    ):
        assert main(words) == 2
        assert expected in capsys.readouterr().err


def test_other_commands_stay_english(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("YOMI_LANGUAGE", "ja")
    for command in command_line.COMMANDS:
        if command not in (*command_line.IN_JAPANESE, command_line.BENCH):
            assert help_of(f"{command} --help", capsys).startswith("usage: "), command


def test_english_commands_do_not_read_the_catalogue() -> None:
    code = (
        "import sys; opened = [];"
        "sys.addaudithook(lambda name, args: opened.append(str(args)) if name == 'open' else None);"
        "from yomi.engine.cli.main import main; main([]); print(any('ja.po' in path for path in opened))"
    )
    for name, expected in (("en", "False"), ("ja", "True")):
        environment = os.environ | {"YOMI_LANGUAGE": name, "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8")
        assert done.stdout.splitlines()[-1] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("あいう、えお", ["あい", "う、え", "お"]),
        ("ab cd ef", ["ab cd", "ef"]),
        ("あ（い）う", ["あ", "（い）", "う"]),
        ("", []),
    ],
)
def test_wide_lines(text: str, expected: list[str]) -> None:
    assert screen.wrap(text, 6) == expected


def test_columns_of_wide_texts() -> None:
    assert (screen.width("７六歩a"), screen.ljust("手", 4), screen.rjust("手", 4)) == (7, "手  ", "  手")


def test_the_limit_of_a_review_names_its_unit_once() -> None:
    with language.within(language.JAPANESE):
        assert shown_limit("180 nodes to 3,000 nodes") == "180〜3,000 ノード"
        assert shown_limit("50 visits") == "50 探索"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "棋譜が空です"),
        ('[Event "x"]\n[Variant "Shogi"]\n\n1. Pc4 Pd6 0-1\n', "PGN 形式は読めません"),
        ("手合割：5五将棋\n   1 ５四歩(55)\n", "2 行目：5五将棋は別のゲームです。"),
        ("手合割：平手\nhello\nworld\n", "読める指し手がありません：2 行目：「hello」は KIF、KI2 の行ではないので"),
        ("手合割：変な手\n   1 ７六歩(77)\n", "2 行目：手合割：変な手 には盤面図が必要です。"),
        ("後手の持駒：犬\n手合割：平手\n", "1 行目：持駒「犬」の「犬」が読めません"),
        ("手合割：その他\n|v香|一\n   1 ７六歩(77)\n", "盤面図が 1 段です"),
    ],
)
def test_errors_about_records_are_japanese(
    text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "game.kif"
    path.write_text(text, "utf-8")
    monkeypatch.setenv("YOMI_LANGUAGE", "ja")
    assert main(["review", str(path), "--visits", "2"]) != 0
    shown = capsys.readouterr().err
    assert expected in shown
    assert "expected" not in shown
    assert "line " not in shown
