"""Wrong arguments of the library are errors of one line: what was found, what was expected."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yomi
from tests.looping import looped

SHORT = yomi.Limit(visits=20)


def assert_wrong(call: Callable[[], object], expected: str) -> None:
    """Check that a call with a wrong argument raises one line that contains what was expected."""
    with pytest.raises(yomi.Error) as caught:
        call()
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message


# Arguments of wrong types
ANY: Any = None
FIVE: Any = 5

CONNECT_FOUR = Path(__file__).parents[2] / "docs" / "games" / "connect_four.py"


@looped(
    ("arguments", "expected"),
    [
        ({"size": "x"}, "size 'x' found, expected an integer from 2 to 19"),
        ({"size": 9.5}, "size 9.5 found"),
        ({"size": None}, "size None found"),
        ({"height": 20}, "height 20 found, expected an integer from 2 to 19"),
        ({"komi": "x"}, "komi 'x' found, expected a number from -400 to 400"),
        ({"rules": 5}, "rules 5 found"),
        ({"handicap": "C3"}, "handicap 'C3' found, expected a list of points"),
        ({"handicap": 5}, "handicap 5 found"),
        ({"handicap": [5]}, "move 5 found, expected text"),
    ],
)
def test_wrong_games_of_go(arguments: dict[str, Any], expected: str) -> None:
    assert_wrong(lambda: yomi.go.Game(**arguments), expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"sfen": 5}, "sfen 5 found"),
        ({"entering_king": 5}, "entering_king 5 found"),
        ({"max_moves": "x"}, "max_moves 'x' found, expected an integer from 0 to 65535"),
    ],
)
def test_wrong_games_of_shogi(arguments: dict[str, Any], expected: str) -> None:
    assert_wrong(lambda: yomi.shogi.Game(**arguments), expected)


@pytest.mark.parametrize("move", [None, 1.5, ["D4"], np.zeros((3, 3))], ids=["none", "real", "list", "array"])
@pytest.mark.parametrize("game", [yomi.go.Game(9), yomi.shogi.Game()], ids=["go", "shogi"])
def test_moves_of_other_types(game: yomi.go.Game | yomi.shogi.Game, move: Any) -> None:
    assert_wrong(lambda: game.copy().play(move), "found, expected text or an integer")
    assert_wrong(lambda: game.move_at(move), "found, expected text or an integer")
    assert_wrong(lambda: game.move_index(move), "found, expected text")
    assert not game.is_legal(move)


@looped(
    ("call", "expected"),
    [
        (lambda game: game.svg(heat=[1, 2]), "heat [1, 2] found, expected 9 rows of 9 numbers"),
        (lambda game: game.svg(heat=5), "heat 5 found"),
        (lambda game: game.svg(heat=[["x"] * 9] * 9), "expected 9 rows of 9 numbers"),
        (lambda game: game.svg(ownership=np.zeros((9, 8))), "expected 9 rows of 9 numbers"),
        (lambda game: game.svg(labels=["D4"]), "labels ['D4'] found, expected a mapping"),
        (lambda game: game.svg(numbers={"pass": 1}), "numbers: pass found, expected points"),
        (lambda game: game.play("D4", 7), "color 7 found, expected yomi.BLACK or yomi.WHITE"),
        (lambda game: game.lead("D4"), "dead 'D4' found, expected a list of points"),
        (lambda game: game.lead(5), "dead 5 found"),
        (lambda game: game.to_sgf("abc"), "comments 'abc' found, expected a list of texts"),
        (lambda game: game.to_sgf([5]), "comments 5 found, expected a list of texts"),
        (lambda game: game.to_sgf(black=5), "black 5 found, expected text"),
        (lambda game: game.to_sgf(blak="x"), "expected black, white, result or date"),
        (lambda game: game.write(5), "path 5 found"),
    ],
)
def test_wrong_arguments_of_a_game_of_go(call: Callable[[Any], object], expected: str) -> None:
    game = yomi.go.Game(9)
    assert_wrong(lambda: call(game), expected)
    assert game == yomi.go.Game(9)


@looped(
    ("call", "expected"),
    [
        (lambda: yomi.shogi.Game().svg(bottom=7), "bottom 7 found, expected yomi.BLACK or yomi.WHITE"),
        (lambda: yomi.shogi.Game().to_text(black=FIVE), "black 5 found, expected text"),
        (lambda: yomi.shogi.Game().to_text(blak="x"), "expected black, white or ending"),
        (lambda: yomi.shogi.Game().to_text("usi", black="x", ending="TORYO"), "black, ending found, expected none for"),
        (lambda: yomi.shogi.Game().write("x.SFEN", black="x"), "black found, expected none for USI"),
        (lambda: yomi.shogi.Game().write(ANY), "path None found"),
        (lambda: yomi.go.Game(9).write("x\0.sgf"), "path 'x\\x00.sgf' found, expected a path"),
        (lambda: yomi.go.read("a\0b"), "path 'a\\x00b' found, expected a path"),
        (lambda: yomi.go.read(ANY), "path None found"),
        (lambda: yomi.shogi.read(ANY), "path None found"),
        (lambda: yomi.go.parse(ANY), "text None found, expected text or bytes"),
        (lambda: yomi.shogi.parse(ANY), "text None found, expected text or bytes"),
        (lambda: yomi.go.parse("(;GM[1]SZ[9];B[ee])")[0].game(-1), "moves -1 found, expected an integer of at least 0"),
        (lambda: yomi.go.parse("(;GM[1]SZ[9];B[ee])")[0].positions(rules=3), "rules 3 found"),  # type: ignore[arg-type]
        (lambda: yomi.shogi.parse("startpos moves 7g7f")[0].game(-1), "moves -1 found"),
        (lambda: yomi.Score(yomi.BLACK, 0.5).pov(3), "side 3 found, expected yomi.BLACK or yomi.WHITE"),
    ],
)
def test_wrong_arguments_of_records_and_scores(call: Callable[[], object], expected: str) -> None:
    assert_wrong(call, expected)


@looped(
    ("arguments", "expected"),
    [
        ({"visits": "x"}, "visits 'x' found, expected an integer of at least 1"),
        ({"visits": 2.5}, "visits 2.5 found, expected an integer of at least 1"),
        ({"playouts": True}, "playouts True found"),
        ({"nodes": 10**20}, "found, expected an integer of at least 1 and at most 10**12"),
        ({"depth": [1]}, "depth [1] found"),
        ({"seconds": "x"}, "seconds 'x' found, expected a number of at least 0"),
        ({"seconds": float("nan")}, "seconds nan found"),
        ({"clocks": 5}, "clocks 5 found, expected a yomi.Clock"),
        ({"clocks": {yomi.BLACK: 5}}, "found, expected a yomi.Clock"),
        ({"clocks": {yomi.BLACK: yomi.Clock()}}, "one for yomi.BLACK and for yomi.WHITE"),
        ({"clocks": {"black": yomi.Clock()}}, "found, expected a yomi.Clock"),
    ],
)
def test_wrong_limits(arguments: dict[str, Any], expected: str) -> None:
    assert_wrong(lambda: yomi.Limit(**arguments), expected)


@pytest.mark.parametrize("name", ["main", "byoyomi", "periods", "increment", "stones"])
def test_wrong_clocks(name: str) -> None:
    arguments: dict[str, Any] = {name: "x"}
    assert_wrong(lambda: yomi.Clock(**arguments), f"{name} 'x' found, expected a")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda engine, game: engine.analyse(game, 5), "limit 5 found, expected a yomi.Limit"),
        (lambda engine, game: engine.analyse(game, 0), "limit 0 found"),
        (lambda engine, game: engine.play(game, {"visits": 5}), "limit {'visits': 5} found"),
        (lambda engine, game: engine.analysis(game, 5), "limit 5 found"),
        (lambda engine, game: engine.analysis(game, interval="x"), "interval 'x' found, expected seconds"),
        (lambda engine, game: engine.analysis(5), "a position of int found, expected yomi.go.Game"),
        (lambda engine, game: asyncio.run(engine.aplay(game, 5)), "limit 5 found"),
        (lambda engine, game: asyncio.run(engine.aanalyse(5)), "a position of int found"),
        (lambda engine, game: engine.play(game, SHORT, avoid="C3"), "avoid 'C3' found, expected a list of moves"),
        (lambda engine, game: engine.play(game, SHORT, allow="C3"), "allow 'C3' found, expected a list of moves"),
        (lambda engine, game: engine.play(game, SHORT, allow=[None]), "move None found"),
        (
            lambda engine, game: engine.play(game, SHORT, allow=[]),
            "allow and avoid leave none of 26 legal moves",
        ),
        (lambda engine, game: engine.play(game, avoid=game.legal_moves()), "expected at least one"),
        (lambda engine, game: engine.analyse(game, allow=["C3"], avoid=["C3"]), "allow and avoid leave none of"),
        (lambda engine, game: engine.play(game.play("C3"), allow=["C3"]), "allow 'C3' found, expected legal moves"),
        (lambda engine, game: engine.analysis(game.play("C3"), avoid=["C3"]), "avoid 'C3' found, expected legal"),
        (lambda engine, game: engine.evaluate(5), "positions 5 found, expected a yomi.go.Game or a list of them"),
        (lambda engine, game: engine.evaluate(game).pov(3), "side 3 found"),
        (lambda engine, game: engine.find_mate(game), "an engine for go found, expected shogi: only shogi has a mate"),
    ],
)
def test_wrong_arguments_of_an_engine(
    go: yomi.Engine[yomi.go.Game], call: Callable[[Any, yomi.go.Game], object], expected: str
) -> None:
    assert_wrong(lambda: call(go, go.new_game()), expected)


def test_only_go_has_owners_and_only_names_of_games_make_engines(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    engine: Any = shogi
    assert_wrong(lambda: engine.ownership(engine.new_game()), "an engine for shogi found, expected go: only go has")
    assert_wrong(lambda: engine.dead_stones(engine.new_game()), "an engine for shogi found, expected go: only go has")
    assert_wrong(lambda: engine.find_mate(engine.new_game(), "x"), "seconds 'x' found")
    assert_wrong(lambda: yomi.Engine(["go"]), "game ['go'] found, expected go or shogi")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("games", "expected"),
    [
        ([("a", "b", 7)], "('a', 'b', 7) found, expected yomi.BLACK, yomi.WHITE or 0 as the winner"),
        ([("a", "b")], "('a', 'b') found, expected two names and a winner"),
        ([(1, 2, 0)], "(1, 2, 0) found, expected two names and a winner"),
        ([5], "games 5 found, expected a path"),
        ([["a", "b", 1]], "games ['a', 'b', 1] found, expected a path"),
        ("folder", "games 'folder' found, expected a list"),
        (Path("folder"), "found, expected a list"),
    ],
)
def test_ratings_of_wrong_games(games: Any, expected: str) -> None:
    assert_wrong(lambda: yomi.rate(games), expected)


@pytest.mark.parametrize("players", ["yomi", 5, [], ["yomi"], ["yomi", 5]], ids=str)
def test_a_match_without_two_players_starts_nothing(
    players: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr("yomi.library.commands.play_match", lambda *arguments: started.append(arguments))
    assert_wrong(
        lambda: yomi.match(players, game="go", size=5, out=tmp_path / "m"), "expected a list of at least two players"
    )
    assert started == []
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: yomi.selfplay("go", games=0), "games 0 found, expected an integer of at least 1"),
        (lambda: yomi.selfplay("go", games=ANY), "games None found"),
        (lambda: yomi.selfplay("go", out=FIVE), "out 5 found, expected a path"),
        (lambda: yomi.selfplay(ANY), "game None found, expected go or shogi"),
        (lambda: yomi.learn(FIVE), "game 5 found, expected go or shogi"),
        (lambda: yomi.match(["yomi", "yomi"], out=ANY), "out None found, expected a path"),
        (lambda: yomi.selfplay("go", out=__file__), "found, expected a folder"),
        (lambda: yomi.match(["yomi", "yomi"], out=__file__), "found, expected a folder"),
        (lambda: yomi.duel("go", {"visits": 2}, out=__file__), "found, expected a folder"),
        (lambda: yomi.duel("go", "c_puct=1"), "options 'c_puct=1' found, expected a mapping"),  # type: ignore[arg-type]
        (lambda: yomi.duel("shogi", {"visits": 2}, size=9), "unknown option 'size'"),
        (lambda: yomi.duel(f"{CONNECT_FOUR}:GAME", {"visits": 2}, size=5), "unknown option 'size'"),
        (lambda: yomi.tune("go", {}), "parameters {} found, expected a mapping such as"),
        (lambda: yomi.tune("go", ["c_puct"]), "parameters ['c_puct'] found"),  # type: ignore[arg-type]
        (lambda: yomi.learn("go", loss="x"), "loss 'x' found, expected a function"),  # type: ignore[arg-type]
        (lambda: yomi.dataset("d", []), "an empty list: no records found, expected files that end in .sgf"),
        (lambda: yomi.dataset("d", game="go", positions=9, size=5), "no teacher found, expected teacher=...: play and"),
    ],
)
def test_wrong_arguments_of_commands(
    call: Callable[[], object], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_wrong(call, expected)
    assert list(tmp_path.iterdir()) == []
