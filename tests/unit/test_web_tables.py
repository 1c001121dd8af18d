"""`yomi serve`: games without a server."""

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Any

import pytest

import yomi
from yomi.web import games, tables
from yomi.web.engines import Engines
from yomi.web.tables import Table, new_table


def table(game: str, **changes: Any) -> Table:
    given = {"size": 5, "handicap": 0, "record": None, "human": "black", "level": 1, "seconds": 0.1, **changes}
    return new_table(game, **given)


def test_the_first_position_of_shogi_may_have_any_move_number() -> None:
    sfen = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 31"
    game = table("shogi", record=f"position sfen {sfen} moves 7g7f", human="white")
    assert game.state()["sfen"] == sfen
    game.undo()
    assert game.state()["moves"] == [], "Black's move is the engine's: there is no earlier one to take back"


def test_moves_of_go_have_their_colors() -> None:
    state = table("go", record="(;GM[1]SZ[9];B[ee];B[gg];W[aa])").state()
    assert (state["first"], state["colors"]) == ("B", ["B", "B", "W"])
    assert table("go", record="(;GM[1]SZ[9];W[ee])").state()["colors"] == ["W"]


def test_records_are_read_as_reviews_read_them() -> None:
    state = table("go", record="(;SZ[9]RU[foo]KM[7];B[ee];W[cc];B[ee];W[gg])").state()
    assert (state["moves"], state["rules"]) == (["E5", "C7"], "chinese")
    assert state["notes"] == [
        "unknown rules 'foo': chinese rules assumed, because the komi is 7",
        "move 3 of the record: illegal move B E5: occupied: read up to there",
    ]


def test_notes_of_a_record_are_shown() -> None:
    (note,) = table("go", record="(;GM[1]SZ[9]KM[6.5];B[ee])").state()["notes"]
    assert note == "no rules (RU): japanese rules assumed, because the komi is 6.5"
    assert table("go").state()["notes"] == table("shogi", record="startpos moves 7g7f").state()["notes"] == []


def test_long_records_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games, "MAX_MOVES", 2)
    with pytest.raises(yomi.Error, match="a record of 3 moves found, expected at most 2"):
        table("go", record="(;GM[1]SZ[9];B[ee];W[gg];B[aa])")


def test_games_have_a_greatest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_MOVES", 1)
    game = table("go", human="both")
    game.play("C3")
    with pytest.raises(yomi.Error, match="1 moves have been played"):
        game.play("D4")


def test_the_visitor_resigns_and_takes_it_back() -> None:
    game = table("go")
    game.play("C3")
    game.resign()
    assert game.state()["result"] == "W+R", "also at the engine's turn"
    game.undo()
    assert (game.state()["result"], game.state()["moves"]) == ("", [])
    game.resign()
    game.undo()
    assert game.state()["result"] == ""


def test_the_record_of_a_counted_game_has_its_result() -> None:
    game = table("go", human="both")
    game.play("pass")
    game.play("pass")
    assert game.state()["result"] == "", "dead stones are not marked yet"
    game.agree()
    assert "RE[W+7.5]" in game.record()[0]
    game.undo()
    assert game.state()["dead"] == []
    assert game.state()["counting"] == {"dead": None, "result": "W+7.5"}, "the agreement is taken back first"
    game.undo()
    assert game.state()["counting"] is None


def test_dead_stones_are_known_after_the_agreement() -> None:
    game = table("go", human="both", record="(;GM[1]SZ[5]AB[cc]AW[aa];B[];W[])")
    game.mark("A5")
    game.agree()
    assert (game.state()["counting"], game.state()["dead"]) == (None, ["A5"])


def test_the_record_of_shogi_has_the_ending() -> None:
    game = table("shogi", human="both", record="sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1")
    assert "まで" not in game.record()[0]
    game.play("G*5b")
    text, _ = game.record()
    assert "   2 詰み" in text
    assert "まで1手で先手の勝ち" in text
    game = table("shogi", human="both", record="startpos moves " + 3 * "4i4h 6a6b 4h4i 6b6a ")
    assert "まで12手で千日手" in game.record()[0]


@pytest.mark.parametrize(
    ("kind", "record", "found"),
    [
        ("go", "(;GM[1]SZ[9]PB[Cho]PW[Otake];B[ee])", ["PB[Cho]", "PW[Otake]"]),
        ("go", "(;GM[1]SZ[9]PW[Otake];B[ee])", ["PW[Otake]"]),
        ("shogi", "先手：羽生\n後手：谷川\n手合割：平手\n1 ７六歩(77)\n", ["先手：羽生", "後手：谷川"]),
        ("shogi", "startpos moves 7g7f", ["先手：yomi"]),
    ],
)
def test_a_continued_record_keeps_its_names(kind: str, record: str, found: list[str]) -> None:
    text, _ = table(kind, record=record, human="white").record()
    assert all(name in text for name in found), text


def options(name: str) -> list[str]:
    """Return the values that the page offers for a setting of a new game."""
    page = (Path(tables.__file__).parent / "play.html").read_text("utf-8")
    (choices,) = re.findall(f'<select name="{name}">(.*?)</select>', page)
    return [value or text for value, text in re.findall(r'<option(?: value="([^"]*)"[^>]*)?>(\d*)', choices)]


def test_the_settings_of_a_new_game() -> None:
    state = table("go", size=9, rules="japanese", komi=-3.5).state()
    assert (state["rules"], state["komi"]) == ("japanese", -3.5)
    assert [table("go", size=9, handicap=n).state()["komi"] for n in (0, 2)] == [7.5, 0.5]
    for name in options("rules"):
        assert table("go", rules=name).state()["rules"] == name
    for stones in options("handicap"):
        assert len(table("go", size=9, handicap=int(stones)).state()["stones"]) == int(stones)
    for name in options("gives"):
        state = table("shogi", gives=name).state()
        assert (state["isHandicap"], state["toMove"]) == ((True, "W") if name else (False, "B"))
    assert "手合割：二枚落ち" in table("shogi", gives="2-piece").record()[0]
    with pytest.raises(yomi.Error, match="handicap 'king' found, expected one of lance"):
        table("shogi", gives="king")


def test_pages_follow_a_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(tables, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(tables, "MAX_FOLLOWERS", 1)

    async def visit() -> None:
        engines, game = Engines({}), table("go", human="both")
        async with contextlib.aclosing(game.follow(engines)) as states:
            first = await anext(states)
            assert await anext(states) is None, "a page notices that the connection is there"
            with pytest.raises(yomi.Error, match="too many windows"):
                await anext(game.follow(engines))
            for action in (lambda: game.play("pass"), lambda: game.play("pass"), game.agree, game.undo, game.undo):
                action()
                while (state := await anext(states)) is None:
                    pass
                assert first is not None
                assert state["version"] > first["version"]
                first = state
            engines.end_searches()
            assert [state async for state in states] == []
        assert game.followers == 0

    asyncio.run(visit())


def test_dead_stones_are_marked_and_counted() -> None:
    game = table(
        "go", record="(;GM[1]SZ[5]KM[0.5];B[cb];W[bb];B[cc];W[bc];B[cd];W[bd];B[ca];W[ba];B[ce];W[be];B[ad];W[])"
    )
    with pytest.raises(yomi.Error, match="both sides have passed"):
        game.mark("A2")
    game.play("pass")
    assert game.state()["counting"]["result"] == "B+10.5", "the stone on A2 leaves White no territory"
    game.mark("a2")
    assert game.state()["counting"] == {"dead": ["A2"], "result": "B+4.5"}
    game.mark("A2")
    assert game.state()["counting"]["dead"] == []
    with pytest.raises(yomi.Error, match="no stone on A5"):
        game.mark("A5")
    with pytest.raises(yomi.Error, match="invalid vertex"):
        game.mark("Q9")
    game.agree()
    with pytest.raises(yomi.Error, match="the game is over"):
        game.play("A1")
