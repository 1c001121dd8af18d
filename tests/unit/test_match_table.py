"""The tables of a match, against those that the field prints."""

import functools
import re
from dataclasses import asdict
from itertools import count as counter
from pathlib import Path

import pytest

from yomi.engine.cli.main import main
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.matches import results
from yomi.engine.matches.report import (
    plot_boxes,
    plot_ratings,
    report,
    to_markdown,
    to_text,
    without_duplicates,
)
from yomi.engine.matches.results import GameResult, MatchError, MatchJournal
from yomi.engine.pictures import PlotError, check
from yomi.engine.records import LeftOut
from yomi.engine.registry import GAMES
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import parse_sfen
from yomi.engine.shogi.records.files import save_records
from yomi.engine.shogi.records.record import GameRecord, RecordedMove

read_results = functools.partial(results.read_results, games=GAMES.values())

FIRST, SECOND, THIRD = "dlshogi-1gpu_2th-1", "dlshogi-1gpu_2th-2", "suisho4-10th"
BY_COLOR = {
    (FIRST, SECOND): (117, 0, 67),
    (SECOND, FIRST): (123, 1, 58),
    (FIRST, THIRD): (155, 5, 46),
    (THIRD, FIRST): (81, 3, 120),
    (SECOND, THIRD): (152, 12, 41),
    (THIRD, SECOND): (71, 6, 128),
}
"""Black's wins, draws and losses against White in a league published in 2021, duplicate games left out."""

COLOR_TABLE = """\
dlshogi-1gpu_2th-1 vs dlshogi-1gpu_2th-2: 175-190-1 (48.0%)
Black vs White: 240-125-1 (65.7%)
dlshogi-1gpu_2th-1 playing Black: 117-67-0 (63.6%)
dlshogi-1gpu_2th-1 playing White: 58-123-1 (32.1%)
dlshogi-1gpu_2th-2 playing Black: 123-58-1 (67.9%)
dlshogi-1gpu_2th-2 playing White: 67-117-0 (36.4%)

dlshogi-1gpu_2th-1 vs suisho4-10th: 275-127-8 (68.0%)
Black vs White: 236-166-8 (58.5%)
dlshogi-1gpu_2th-1 playing Black: 155-46-5 (76.5%)
dlshogi-1gpu_2th-1 playing White: 120-81-3 (59.6%)
suisho4-10th playing Black: 81-120-3 (40.4%)
suisho4-10th playing White: 46-155-5 (23.5%)

dlshogi-1gpu_2th-2 vs suisho4-10th: 280-112-18 (70.5%)
Black vs White: 223-169-18 (56.6%)
dlshogi-1gpu_2th-2 playing Black: 152-41-12 (77.1%)
dlshogi-1gpu_2th-2 playing White: 128-71-6 (63.9%)
suisho4-10th playing Black: 71-128-6 (36.1%)
suisho4-10th playing White: 41-152-12 (22.9%)
"""
"""As it was printed."""


def league() -> list[GameResult]:
    """Return the league's games."""
    numbers = counter()
    games = []
    for (black, white), scores in BY_COLOR.items():
        for winner, many in zip((BLACK, DRAW, WHITE), scores, strict=True):
            for _ in range(many):
                number = next(numbers)
                games.append(
                    GameResult(number, black, white, winner, "resignation", plies=90, key=str(number),
                               seconds=(70.0, 80.0), chosen=(45, 45))
                )  # fmt: skip
    return games


def test_the_published_tables() -> None:
    text = to_text(report(league()))
    head, facts, colors = text.split("\n\n", 2)
    assert re.sub(r", [+-].* stronger with .*%", "", colors) == COLOR_TABLE
    assert ", -17 Elo (95%: -47 to +12), stronger with 12.6%\n" in colors
    lines = [line.replace(":", " ").split() for line in head.splitlines()]
    columns = ["#", "PLAYER", "RATING", "ERROR", "POINTS", "PLAYED", "(%)", "CFS(%)", "W", "D", "L", "D(%)"]
    assert lines[0] == [*columns, "s/game", "s/move", "faults"]
    assert [line[1] for line in lines[1:]] == [SECOND, FIRST, THIRD]
    assert lines[1][4:7] + lines[1][8:12] == ["479.5", "776", "62", "470", "19", "287", "2"]
    assert lines[3][7] == "---"
    assert [line[12] for line in lines[1:]] == ["75.01", "74.97", "75.01"]  # 387, 390 and 409 games as Black
    assert facts.startswith("First-player advantage = ")
    assert "Draw rate (equal opponents) = 2." in facts
    assert facts.endswith("1186 games: resignation 1186")


def test_the_other_forms() -> None:
    made = report(league())
    markdown = to_markdown(made).splitlines()
    assert markdown[0].startswith("| # | PLAYER | RATING |")
    assert len({line.count("|") for line in markdown[:5]}) == 1
    scores = (
        f"| {FIRST} vs {SECOND} | 175-190-1 (48.0%) | 240-125-1 (65.7%) | 117-67-0 (63.6%) | 58-123-1 (32.1%) | -17"
    )
    assert any(line.startswith(scores) for line in markdown)
    data = asdict(made)
    assert data["games"] == 1186
    assert data["rows"][0]["player"] == SECOND  # type: ignore[index]


def test_the_difference_has_an_error_of_its_own() -> None:
    """Records without pairs: twice the error against the mean."""
    games = [GameResult(n, *(("A", "B") if n < 10 else ("B", "A")), (BLACK, WHITE)[n % 2], "score") for n in range(20)]
    made = report(games)
    assert made.rows[0].error == pytest.approx(76, abs=1)
    assert "A vs B: 10-10-0 (50.0%), +0 Elo (95%: -152 to +152), stronger with 50.0%\n" in to_text(made)


def test_colors_that_decide_are_named() -> None:
    games = [GameResult(n, *(("A", "B") if n % 2 == 0 else ("B", "A")), BLACK, "score") for n in range(64)]
    made = report(games)
    assert made.pairs[0].verdict.startswith("no verdict: Black won both games in 32 of 32 pairs")
    assert abs(made.rows[0].rating) < 1
    assert "no verdict" not in to_text(report(games[:8]))  # chance


def test_a_first_player_who_wins_a_few_games_does_not_stretch_the_table() -> None:
    """Three wins of Black and one of White: A leads by 190 Elo without advantage, by far more with a free one."""
    games = [GameResult(0, "A", "B", BLACK, "score"), GameResult(1, "B", "A", BLACK, "score"),
             GameResult(2, "A", "B", BLACK, "score"), GameResult(3, "B", "A", WHITE, "score")]  # fmt: skip
    made = report(games)
    assert 150 < made.rows[0].rating - made.rows[1].rating < 260


def test_duplicates() -> None:
    game = league()[0]
    games = [game, game, GameResult(1, game.white, game.black, BLACK, "score", plies=90, key=game.key),
             GameResult(2, "A", "B", BLACK, "failure"), GameResult(3, "A", "B", BLACK, "failure")]  # fmt: skip
    assert len(without_duplicates(games)) == 4  # another color is another game; a game without moves is none
    assert report(games, unique=True).duplicates == 1
    assert report(games).games == 5


def test_faults_are_counted() -> None:
    games = [GameResult(0, "A", "B", BLACK, "time"), GameResult(1, "B", "A", BLACK, "failure"),
             GameResult(2, "A", "B", WHITE, "score")]  # fmt: skip
    assert {row.player: row.faults for row in report(games).rows} == {"A": 1, "B": 1}


def test_records_of_shogi_are_rated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moves = [RecordedMove(parse_usi("7g7f"), 3.0), RecordedMove(parse_usi("3c3d"), 2.0)]
    save_records(tmp_path / "a.csa", [GameRecord(moves=moves, black="A", white="B", ending="TORYO")])
    save_records(tmp_path / "b.kifu", [GameRecord(moves=moves[:1], black="B", white="A", ending="TIME_UP")])
    save_records(tmp_path / "c.csa", [GameRecord(moves=moves, black="A", white="B", ending="CHUDAN")])
    results = read_results([tmp_path])
    assert [(game.winner, game.ending, game.seconds) for game in results] == [
        (WHITE, "resignation", (3.0, 2.0)),
        (BLACK, "time", (3.0, None)),
    ]
    assert main(["rate", str(tmp_path)]) == 0
    assert "2 games: resignation 1, time 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "ending"),
    [
        ("a.csa", "PI\n+\n+7776FU\n-3334FU\n+8833UM\n-8384FU\n%ILLEGAL_MOVE\n", "illegal move"),
        ("a.csa", "PI\n+\n+7776FU\n%-ILLEGAL_ACTION\n", "illegal move"),
        ("a.kifu", "手合割：平手\n   1 ７六歩(77)\n   2 反則負け\n", "illegal move"),
        ("a.kifu", "手合割：香落ち\n   1 ３四歩(33)\n   2 ７六歩(77)\n   3 反則負け\n", "illegal move"),
        ("a.kifu", "手合割：香落ち\n   1 ３四歩(33)\n   2 反則勝ち\n", "illegal move"),
    ],
)
def test_a_fault_is_the_losers(name: str, text: str, ending: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    (game,) = read_results([tmp_path])
    assert (game.winner, game.ending) == (BLACK, ending)
    assert {row.player: row.faults for row in report([game]).rows} == {"Black": 0, "White": 1}


@pytest.mark.parametrize("cut", [0, 1])
def test_perpetual_check_is_no_illegal_move(cut: int, tmp_path: Path) -> None:
    """In all forms, of which KIF has one word for both, and whoever is to move at the end."""
    cycle = ["5a4a", "5c4c", "4a5a", "4c5c"]
    initial = parse_sfen("4k4/9/4+R4/9/9/9/9/9/K8 w - 1")
    moves = [RecordedMove(parse_usi(text)) for text in [*cycle * 3, *cycle[:cut]]]
    for suffix in (".csa", ".kifu"):
        save_records(tmp_path / f"a{suffix}", [GameRecord(initial, moves, ending="+ILLEGAL_ACTION")])
        (game,) = read_results([tmp_path / f"a{suffix}"])
        assert (game.winner, game.ending, game.blamed) == (WHITE, "perpetual check", "")


def test_records_beside_a_match_are_rated(tmp_path: Path) -> None:
    for folder in ("old", "match/games", "match-2"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.sgf").write_text(f"(;PB[{folder}]PW[B]RE[B+R])")
    with MatchJournal(tmp_path / "match", {}) as journal:
        journal.add(GameResult(0, "A", "B", BLACK, "score"))
    assert [result.black for result in read_results([tmp_path])] == ["A", "match-2", "old"]
    assert [result.black for result in read_results([tmp_path / "match" / "games"])] == ["match/games"]


def test_a_game_counts_once(tmp_path: Path) -> None:
    """Whatever forms it was written in, whoever names its files, and beside its journal."""
    moves = [RecordedMove(parse_usi("7g7f"), 3.0)]
    game = GameRecord(moves=moves, black="A", white="B", ending="TORYO")
    for name in ("a.csa", "a.kif", "a.kifu", "b.kifu", "match/a.csa", "other/a.csa"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        save_records(tmp_path / name, [game])
    (tmp_path / "a.sgf").write_text("(;PB[C]PW[D]RE[B+R])")
    with MatchJournal(tmp_path / "match", {}) as journal:
        journal.add(GameResult(0, "E", "F", BLACK, "score", files=("a.csa", "a.kifu")))
    assert [result.black for result in read_results([tmp_path])] == ["E", "A", "C", "A", "A"]
    named = [*sorted(tmp_path.glob("a.*")), tmp_path / "other", tmp_path / "other" / "a.csa"]
    assert [result.files for result in read_results(named)] == [
        (str(tmp_path / name),) for name in ("a.csa", "a.sgf", "other/a.csa")
    ]
    for journal_path in (tmp_path / "match", tmp_path / "match" / "match.jsonl"):
        assert [result.black for result in read_results([tmp_path / "match" / "a.csa", journal_path])] == ["E"]


def test_files_that_are_named_count_unless_a_journal_lists_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("run/game-1.sgf", "run/other.sgf", "run/human/a.sgf"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"(;PB[{path.stem}]PW[B]RE[B+R])")
    with MatchJournal(tmp_path / "run", {}) as journal:
        journal.add(GameResult(0, "J", "B", BLACK, "score", files=("game-1.sgf",)))

    def rated(*paths: str) -> list[str]:
        return [result.black for result in read_results(map(Path, paths))]

    monkeypatch.chdir(tmp_path)
    assert rated("run") == ["J"]
    assert rated("run/match.jsonl", "run/human/a.sgf") == ["J", "a"]
    assert rated("run/match.jsonl", "run/human") == ["J", "a"]
    assert rated("run", "run/human/a.sgf", "run/other.sgf", str(tmp_path / "run" / "game-1.sgf")) == ["J", "a", "other"]
    assert rated("run/game-1.sgf", "run/other.sgf") == ["game-1", "other"]


def test_records_of_go_are_rated(tmp_path: Path) -> None:
    results = ("B+3.5", "W+R", "b+Res.", "W+Resign", "B+T", "W+Time", "B+F", "0", "Void", "W+", "?")
    (tmp_path / "a.sgf").write_text("\n".join(f"(;PB[A]PW[B]RE[{result}];B[cc])" for result in results))
    assert [(result.winner, result.ending) for result in read_results([tmp_path / "a.sgf"])] == [
        (BLACK, "score"), (WHITE, "resignation"), (BLACK, "resignation"), (WHITE, "resignation"), (BLACK, "time"),
        (WHITE, "time"), (BLACK, "failure"), (DRAW, "score"), (WHITE, "score"),
    ]  # fmt: skip
    (tmp_path / "a.sgf").write_text("(;RE[B+R])(;SZ[99])")
    lines: list[str] = []
    assert len(read_results([tmp_path], left_out=LeftOut(lines.append))) == 1
    assert lines == [f"{tmp_path / 'a.sgf'}:1:13: board size 99: expected 2 to 19: this game is left out"]


def test_broken_files_do_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.sgf").write_text("(;PB[A]PW[B]RE[B+R];B[cc])")
    (tmp_path / "b.sgf").write_text("(;SZ[99])")
    (tmp_path / "c.csa").write_text("")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "match.jsonl").write_text("no journal\n")
    (tmp_path / "d.gib").write_text("\\HS\n\\[GAMERESULT=white wins by time\\]\nSTO 0 2 1 15 3\n\\GE\n")
    assert main(["rate", str(tmp_path)]) == 0
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 4
    for name in ("b.sgf", "c.csa", "match.jsonl"):
        assert sum(name in line and line.endswith("left out") for line in errors) == 1
    assert errors[-1] == "yomi: 3 left out, of 5 files"
    assert main(["rate", str(tmp_path / "b.sgf")]) == 2
    assert "board size 99" in capsys.readouterr().err


def test_the_form_of_a_plot_is_checked_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    for words in (["rate", str(tmp_path / "none")], ["match", "yomi", "yomi"]):
        assert main([*words, "--plot", "x.foo"]) == 2
        assert "--plot x.foo: unknown format .foo, expected one of ." in capsys.readouterr().err
    for name in ("x.PNG", "x", "x.svg"):
        check(Path(name))


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plots(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    for name in ("ratings", "boxes"):
        path = tmp_path / f"{name}{suffix}"
        if name == "ratings":
            plot_ratings(report(league()), path)
        else:
            plot_boxes({"a": [1.0, 2.0, 3.0], "b": [10.0]}, "nodes per second", path)
        assert path.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")
    with pytest.raises(PlotError, match="not supported"):
        plot_ratings(report(league()), tmp_path / "x.xyz")
    with pytest.raises(PlotError, match="No such file"):
        plot_ratings(report(league()), tmp_path / "no" / "x.png")


def test_nothing_to_rate(tmp_path: Path) -> None:
    with pytest.raises(MatchError, match="no game with a result"):
        read_results([tmp_path])
    (tmp_path / "x.sgf").write_text("not SGF")
    with pytest.raises(MatchError, match=r"x\.sgf: "):
        read_results([tmp_path])
