"""Shogi has one engine under one name: hints, analyses, levels and reviews are searched by alpha-beta."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import yomi
from tests.fakes.session import ScriptedSession
from tests.fakes.shogi_player import FakeShogiPlayer
from yomi.engine.cli.play import advice_settings
from yomi.engine.clock import Clock
from yomi.engine.color import BLACK, WHITE
from yomi.engine.levels import AUTO, COUNT, Follower, LevelSwitch, level_settings
from yomi.engine.options import Options
from yomi.engine.players.request import Request
from yomi.engine.registry import GAMES
from yomi.engine.search.types import Limits
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.players.player import ShogiPlayer
from yomi.engine.shogi.usi.session import Session
from yomi.language import JAPANESE, within

SHOGI = GAMES["shogi"]
SMALL = {"device": "cpu", "workers": 1, "memory": 2**20, "seed": 1}
LINE = "suisho-petite.nn (K-P 256x2-32-32) on cpu (NNUE kernels, vectors of "


def options_of(**values: object) -> Options:
    return Options.for_game("shogi").with_values({**SMALL, **values})  # type: ignore[dict-item]


@pytest.fixture(scope="module")
def player() -> Iterator[ShogiPlayer]:
    made = ShogiPlayer(options_of())
    yield made
    made.close()


def test_the_line_names_evaluation_search_and_threads(player: ShogiPlayer) -> None:
    assert player.setup_line == player.description
    assert player.description.startswith(LINE)
    assert player.description.endswith("int8), alpha-beta search, 1 thread")


def test_the_line_is_in_the_language_of_the_session(player: ShogiPlayer) -> None:
    english = player.description
    with within(JAPANESE):
        assert player.description == english, "records and JSON stay English"
        found = re.sub(r"\d+", "N", player.setup_line)
    assert found == "suisho-petite.nn (K-P NxN-N-N)（cpu、NNUEカーネル、ベクトル長N、intN）、αβ探索、Nスレッド"


def test_reports_say_that_they_count_nodes(player: ShogiPlayer) -> None:
    report = player.decide(Request(ShogiGame(), limits=Limits(playouts=500))).report
    assert report.unit == "nodes"
    assert 500 <= report.playouts < 1000


def test_a_level_draws_a_move_by_the_policy_and_its_analysis_is_as_strong_as_without(player: ShogiPlayer) -> None:
    game, level = ShogiGame(), level_settings(SHOGI, 1, player.options)
    request = player.options.with_values(level)
    moves = {player.decide(Request(game, request)).move for _ in range(8)}
    assert len(moves) > 2
    assert moves <= set(game.legal_moves())
    assert len(player.report().moves) > 1, "the model of people compares moves"
    switch = LevelSwitch(SHOGI, options_of(level=1))
    assert switch.full() == options_of(level=1)
    report = player.decide(Request(game, switch.full(), limits=Limits(depth=6))).report
    assert (report.depth, len(report.moves)) == (6, 1)


def test_the_same_seed_plays_the_same_game() -> None:
    games = []
    for _ in range(2):
        other = ShogiPlayer(options_of(**level_settings(SHOGI, 4, options_of())))
        game = ShogiGame()
        while game.ply < 8:
            move = other.choose(game).move
            assert move is not None
            game.push(move)
        games.append(game.moves)
        other.close()
    assert games[0] == games[1]


def test_options_without_effect_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "yomi.player"):
        other = ShogiPlayer(options_of(temperature=0.5, c_puct=1.0))
        other.decide(Request(ShogiGame(), limits=Limits(playouts=10)))
        other.options.set("root_noise", 0.25)
        other.decide(Request(ShogiGame(), limits=Limits(playouts=10)))
        other.close()
    end = "no effect in alpha-beta search; set search_engine (Search_Engine) to tree to use it"
    assert caplog.messages == [f"c_puct (C_init), temperature: {end}", f"root_noise: {end}"]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "yomi.player"):
        tree = ShogiPlayer(options_of(temperature=0.5, fv_scale=16, search_engine="tree"))
        assert "tree search, 1 thread" in tree.description
        tree.close()
    assert caplog.messages == ["fv_scale (FV_SCALE): no effect in tree search; only NNUE evaluations (nn.bin) read it"]


@pytest.mark.parametrize("limits", [{"visits": 8}, {"search_engine": "tree"}, {"net": "fast"}])
def test_visits_and_a_policy_ask_for_a_tree(limits: dict[str, object]) -> None:
    other = ShogiPlayer(options_of(**limits))
    report = other.decide(Request(ShogiGame(), limits=Limits(visits=8))).report
    assert report.unit == "visits"
    assert len(report.moves) > 1
    other.close()


def test_the_least_time_of_a_move(player: ShogiPlayer) -> None:
    clock = Clock.of(60.0)
    short, long, longest = (
        player._budget(clock, ShogiGame(), options_of(min_seconds=seconds), 0.1, 0.0) for seconds in (0.0, 2.0, 99.0)
    )
    assert short.soft < 2.0
    assert (long.soft, long.free) == (2.0, 2.0), "no earlier end, even if the choice is clear"
    assert longest.soft == longest.hard == short.hard


# -- the library -------------------------------------------------------------------------------------------------------


def test_the_library_has_the_same_engine() -> None:
    with yomi.Engine("shogi", **SMALL) as engine:  # type: ignore[arg-type]
        assert engine.name.startswith(LINE)
        position = engine.new_game()
        report = engine.analyse(position, yomi.Limit(nodes=2000))
        assert (report.unit, len(report.moves)) == ("nodes", 3)
        assert f"{report.visits} nodes" in repr(report)
        assert f"{report.moves[0].visits} nodes" in repr(report.moves[0])
        assert "<th>nodes</th>" in report._repr_html_()
        assert len(engine.play(position, yomi.Limit(nodes=2000)).report.moves) == 1
        engine.configure(multipv=2)
        assert len(engine.analyse(position, yomi.Limit(nodes=2000)).moves) == 2
        assert engine.evaluate(position).policy.sum() == pytest.approx(1.0, abs=1e-4), "the policy beside it"
    with yomi.Engine("shogi", visits=4, **SMALL) as engine:  # type: ignore[arg-type]
        report = engine.analyse(engine.new_game())
        assert (report.unit, report.visits) == ("visits", 4)


# -- the level auto ----------------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "yomi" / "levels.json"


def test_the_level_auto_follows_the_player(state: Path) -> None:
    follower = Follower("go")
    assert follower.level == 5
    assert [follower.note(True) for _ in range(3)] == [False, False, True]
    assert Follower("go").level == follower.level == 6, "it is stored"
    assert Follower("shogi").level == 5
    results = [False, False, True, False, False, False]
    assert [follower.note(won) for won in results] == [False] * 5 + [True]
    assert follower.level == 5
    assert advice_settings(GAMES["go"], Options(level=AUTO))["visits"] is None
    for _ in range(3 * COUNT):
        follower.note(True)
    assert follower.level == COUNT
    assert advice_settings(GAMES["go"], Options(level=AUTO)) == {}, "full strength: the player's own limits"
    for damaged in ("broken", "[]", '"go"', "\0"):
        state.write_text(damaged)
        assert Follower("go").level == 5
        Follower("shogi").note(True)
        assert set(json.loads(state.read_text())) == {"shogi"}
    state.write_text('{"go": [Infinity, 0]}')
    assert Follower("go").level == 5


def test_a_level_that_cannot_be_stored_lasts_for_the_session(
    state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state.parent.parent.joinpath("yomi").write_text("no folder")
    follower = Follower("go")
    assert [follower.note(False) for _ in range(3)] == [False, False, True]
    assert follower.level == 4
    assert "the level lasts until the engine ends" in caplog.text


def test_usi_tells_results_to_the_level_auto(state: Path) -> None:
    written: list[str] = []
    options = Options.for_game("shogi")
    session = Session(options, lambda say: FakeShogiPlayer(options), written.append)  # type: ignore[arg-type, return-value]

    def say(*lines: str) -> None:
        for line in lines:
            session.answer(line.encode())

    say("setoption name Level value auto", "isready")
    assert options.level == AUTO
    assert options.playouts == level_settings(SHOGI, 5, Options.for_game("shogi"))["playouts"]
    assert "info string level 5 of 20 (" in "".join(written)
    say("gameover lose", "gameover lose", "gameover lose", "gameover draw")
    assert "info string level 6 of 20 (" in written[-1]
    assert options.playouts == level_settings(SHOGI, 6, Options.for_game("shogi"))["playouts"]
    say("gameover win", "gameover win", "gameover win", "setoption name Level value -1")
    assert "info string level 5 of 20 (" in written[-1]
    say("setoption name Level value 20", "isready")
    assert options.playouts is None


def test_gtp_tells_results_to_the_level_auto(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = ScriptedSession(options=Options(size=5))
    session.send("kata-set-param level auto")
    for _ in range(2):
        session.send("clear_board")
        session.send("play w resign")  # no move of yomi yet
        session.send("genmove b")
        session.send("play w resign")
        session.send("final_score")
        session.send("undo")
        session.send("genmove b")  # the game goes on, and ends again
        session.send("play w resign")
    assert capsys.readouterr().err == ""
    session.send("clear_board")
    session.send("genmove b")
    session.send("play w resign")
    assert "yomi: level 4 of 20 (" in capsys.readouterr().err
    assert session.options.visits == level_settings(GAMES["go"], 4, Options(size=5))["visits"]
    for _ in range(3):
        session.send("clear_board")
        session.send("genmove b")  # A5
        session.send("play w pass")
        session.color = WHITE
        session.send("play b pass")
        assert session.send("final_score").startswith("= B+")
    assert "yomi: level 5 of 20 (" in capsys.readouterr().err


def test_colors_of_winners_in_the_terminal() -> None:
    from yomi.engine.go.terminal import GoTerminalGame
    from yomi.engine.shogi.terminal import ShogiTerminalGame

    go = GoTerminalGame(None, GAMES["go"].new_game(Options(size=5)))  # type: ignore[arg-type]
    assert [go.winner(result) for result in ("B+R", "W+0.5", "0", "Void")] == [BLACK, WHITE, None, None]
    shogi = ShogiTerminalGame(FakeShogiPlayer(Options.for_game("shogi")), ShogiGame())  # type: ignore[arg-type]
    assert shogi.winner(shogi.resigned()) == WHITE
