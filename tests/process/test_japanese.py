"""Commands for players in Japanese, as real processes: through pipes and on a terminal."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.process.engine_process import ROOT
from tests.process.prepared import prepared
from tests.process.test_terminal import Person
from yomi import language
from yomi.engine.go.terminal import japanese_result
from yomi.engine.shogi.records.files import load_records

pytestmark = pytest.mark.slow

COMPILING = 400
"""Seconds that a first start may take on a busy machine."""
LANGUAGES = ("YOMI_LANGUAGE", "LANGUAGE", "LC_ALL", "LC_MESSAGES")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in LANGUAGES} | {
    "LANG": "ja_JP.UTF-8",  # need not be installed
    "PYTHONIOENCODING": "utf-8",
}
FAST = ("--workers", "1", "--memory", "32M", "--seed", "1")


def yomi(*words: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        prepared("yomi", *words),
        cwd=ROOT,
        input=typed,
        env=ENVIRONMENT,
        capture_output=True,
        encoding="utf-8",
        timeout=COMPILING,
    )


def test_a_game_of_shogi(tmp_path: Path) -> None:
    path = tmp_path / "game.kifu"
    typed = (
        "ヘルプ\n７六歩\nヒント\n形勢\n待った\n７６歩\n２七飛\n７７七\n７八金\n２６歩\n４六歩\n待った\n２ｇ２ｆ\n盤\n"
        f"保存 {path}\n投了\n盤\n終了\n"
    )
    done = yomi("play", "shogi", "--no-save", "--level", "1", *FAST, typed=typed)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for expected in (
        "「ヘルプ」と入れるとコマンドの一覧が出ます",
        "レベル 1／20",
        "待った      自分の最後の手とその応手を取り消す",
        "先手 1手目> ",
        "手数＝1　後手番　▲７六歩まで",
        "先手の勝率 ",
        "、αβ探索、",
        "「７７七」は指し手として読めません",
        f"{path} に保存しました",
        "の勝ち\n",
        "保存 FILE または 終了> ",
    ):
        assert expected in text, text
    assert re.search(r"^△\S+: 後手の勝率 [\d.]+%、\d+ ノード", text, re.MULTILINE)
    assert re.search(r"\d\d\.\d%  ▲\S+△", text)
    assert re.search(r"評価値 [+-]\d+、読み筋 ▲", text)
    assert re.search(r"まで\d手で後手の勝ち$", text, re.MULTILINE)
    tables = "\n".join(line for line in text.splitlines() if "▲" in line and "着手できません" not in line)
    assert not re.search(r"[1-9][a-i][1-9][a-i]", tables)
    record = load_records(path)[0]
    assert (record.black, record.white) == ("you", "yomi")


def test_a_handicap_by_name() -> None:
    done = yomi("play", "shogi", "--no-save", "--playouts", "10", "--handicap", "二枚落ち", *FAST, typed="投了\n終了\n")
    assert done.returncode == 0, done.stderr
    assert "上手の持駒：なし" in done.stdout
    assert "下手 2手目> " in done.stdout
    assert "まで1手で上手の勝ち" in done.stdout
    wrong = yomi("play", "shogi", "--no-save", "--handicap", "九枚落ち")
    assert wrong.returncode == 2
    assert "yomi: エラー： --handicap 九枚落ち：次のどれかを指定してください。香落ち (lance), " in wrong.stderr


def test_the_end_of_a_game_by_mate() -> None:
    sfen = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    done = yomi("play", "shogi", "--no-save", "--playouts", "10", "--sfen", sfen, *FAST, typed="５二金打\n終了\n")
    assert "まで1手で先手の勝ち（詰み）" in done.stdout


def test_a_game_of_go(tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    typed = f"ヘルプ\nＣ３\nヒント\n形勢\nc3\nZ9\n待った\nc2\nパス\n保存 {path}\n投了\n終了\n"
    words = ("--size", "5", "--rules", "japanese", "--komi", "6.5", "--level", "1")
    done = yomi("play", "go", "--no-save", *words, *FAST, typed=typed)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for expected in (
        "パス        パスする",
        "黒番> ",
        "白（O）の番、1手まで、最後の手 黒 C3",
        "ルール：japanese、コミ 6.5目",
        "   勝率    目差   探索数  読み筋",
        "黒 C3 は着手できません。すでに石があります",
        "「Z9」は座標として読めません。A1〜E5 か「パス」を入れてください",
        f"{path} に保存しました",
    ):
        assert expected in text, text
    assert re.search(r"^白 \S+：勝率 [\d.]+%、形勢 [+-][\d.]+目、探索数 \d+、[\d.]+秒$", text, re.MULTILINE)
    assert re.search(r"予想：.*、黒の勝率 [\d.]+%", text)
    assert "白の中押し勝ち" in text
    assert "RE[W+R]" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("B+R", "黒の中押し勝ち"),
        ("W+0.5", "白の半目勝ち"),
        ("B+3.5", "黒の3目半勝ち"),
        ("W+12", "白の12目勝ち"),
        ("0", "持碁"),
    ],
)
def test_results_of_go(result: str, expected: str) -> None:
    with language.within(language.JAPANESE):
        assert japanese_result(result) == expected


def test_a_review_of_shogi(tmp_path: Path) -> None:
    moves = [
        "７六歩(77)", "３四歩(33)", "７五歩(76)", "８八角成(22)", "同\u3000銀(79)", "８四歩(83)",
        "５五角打", "３三桂(21)", "３三角成(55)",
    ]  # fmt: skip
    lines = [f"{number:4} {move}" for number, move in enumerate(moves, 1)]
    path = tmp_path / "game.kifu"
    path.write_text("\n".join(["手合割：平手", "先手：田中", *lines, "  10 投了", ""]), "utf-8")
    typed = "５五角\n３三桂\n"
    done = yomi("review", str(path), "--visits", "50", "--json", str(tmp_path / "a.json"), "--quiz", *FAST, typed=typed)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert f"{path}: 田中（先手） 対 後手、一局面あたり 50 探索" in text
    assert re.search(r"^先手（田中）：5手、一致率 \d+%、平均損失 [\d.]+%、評価値 [\d.]+、精度 \d+%", text, re.MULTILINE)
    assert re.search(r"^  手数  実戦 +判定 +損失 +評価値  着手前  着手後  最善手と読み筋$", text, re.MULTILINE)
    assert re.search(r"^     8  △３三桂 +悪手 +[\d.]+% +\d+ +[\d.]+% +[\d.]+%  △", text, re.MULTILINE)
    assert not re.search(r"[1-9][a-i][1-9][a-i]", text)
    assert "後手の持駒：角" in text  # the board of a problem
    assert "の番、8手目\n次の一手は？（? で答え、q で終了）\n" in text
    assert "それは実戦の手です。損失は " in text
    assert f"{tmp_path / 'game.yomi.kifu'} に書き出しました" in text
    assert re.search(r"10 局面、各 50 探索：約1?\d秒（実測：毎秒 ", done.stderr)
    # What programs read is in English.
    assert not re.search("[ぁ-ん一-鿿]", (tmp_path / "a.json").read_text("utf-8").replace("田中", ""))


def test_selfplay_and_a_match(tmp_path: Path) -> None:
    words = ("--size", "5", "--evaluator", "rollouts", "--visits", "4", "--out", str(tmp_path / "games"))
    done = yomi("selfplay", "go", "--games", "1", *words, *FAST)
    assert re.search(r"^1 局、[\d.]+秒：黒（先手）[01] 勝、白（後手）[01] 勝、引き分け [01]。一局平均 ", done.stdout), (
        done.stderr
    )
    player = "yomi:evaluator=rollouts,visits=4,memory=32M,workers=1"
    players = (f"{player} ;; name=a", f"{player} ;; name=b")
    done = yomi(
        "match", "go", *players, "--games", "2", "--size", "5", "--komi", "0.5", "--out", str(tmp_path / "match")
    )
    assert re.search(r"^1/2　第[12]局　[ab] - [ab]：[ab] の勝ち、(投了|作り碁)", done.stderr, re.MULTILINE), done.stderr
    assert "RATING" in done.stdout  # Ordo's form of tables


def test_setup_and_doctor() -> None:
    done = yomi("doctor")
    assert done.stdout.startswith("プログラム\n  ok yomi ")
    assert re.search(r"^プロセッサ\n  ok .*：yomi が使えるコアは \d+$", done.stdout, re.MULTILINE)
    assert re.search(r"^カーネル（numba）\n  ok numba ", done.stdout, re.MULTILINE)
    done = yomi("setup", "go", "--clean")
    assert (done.returncode, done.stderr) == (
        2,
        "yomi: エラー： yomi setup go --clean：種目と --clean は同時に使えません\n",
    )


def test_protocols_stay_english() -> None:
    done = yomi("usi", "--evaluator", "material", *FAST, typed="usi\nposition startpos moves 2g2e\nquit\n")
    assert "usiok" in done.stdout
    assert not re.search("[ぁ-ん]", done.stdout + done.stderr)
    done = yomi("gtp", "--evaluator", "rollouts", *FAST, typed="play b d4\nplay w d4\nquit\n")
    assert "? illegal move" in done.stdout


def test_a_game_on_a_terminal() -> None:
    environment = {**dict.fromkeys((*LANGUAGES, "PYTHONIOENCODING"), ""), "LANG": ENVIRONMENT["LANG"]}
    person = Person("shogi", "--no-warn", "--playouts", "10", **environment)
    person.read("先手 1手目> ")
    person.answer("７六歩", "先手 3手目> ")
    person.answer("投了", "または 終了> ")
    person.leave("終了")
