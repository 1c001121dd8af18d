"""The library: games, searches, evaluations, threads, asyncio and errors of `import yomi`."""

import ast
import asyncio
import copy
import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yomi
from tests.naive.shogi_networks import NetworkShape, ShogiForm, write_network
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.search.types import Limits
from yomi.errors import ClosedError
from yomi.nets.errors import NetworkError
from yomi.settings import OptionError
from yomi.web.games import opinion

SHORT = yomi.Limit(visits=20)


# -- games -------------------------------------------------------------------------------------------------------------


def test_moves_are_text_or_integers_and_are_undone() -> None:
    game = yomi.go.Game(9)
    game.play("D4").play(game.move_index("E5")).play("pass")
    assert game.moves == ["D4", "E5", "pass"]
    assert [game.move_at(game.move_index(move)) for move in game.moves] == game.moves
    assert game.undo().undo().moves == ["D4"]
    shogi = yomi.shogi.Game()
    shogi.play(shogi.move_index("7g7f")).play("3c3d")
    assert shogi.moves == ["7g7f", "3c3d"]
    assert {shogi.move_at(shogi.move_index(move)) for move in shogi.legal_moves()} == set(shogi.legal_moves())


@pytest.mark.parametrize("game", [yomi.go.Game(9), yomi.shogi.Game()], ids=["go", "shogi"])
def test_illegal_moves_are_errors_that_change_nothing(game: yomi.go.Game | yomi.shogi.Game) -> None:
    first = game.legal_moves()[0]
    played = game.copy().play(first)
    for move in ("Z99", "K*5e", -1, 99999):
        assert not played.is_legal(move)
        with pytest.raises(yomi.IllegalMove):
            played.play(move)
    assert played.moves == [first]
    with pytest.raises(yomi.Error, match="cannot undo"):
        game.copy().undo()


def test_copies_are_independent_and_keys_tell_positions_apart() -> None:
    game = yomi.go.Game(9).play("D4").play("E5").play("F6")
    other = yomi.go.Game(9).play("F6").play("E5").play("D4")
    assert game.key == other.key
    assert game != other
    assert game == copy.deepcopy(game) == game.copy()
    assert game.copy().undo().key != game.key
    assert yomi.shogi.Game().play("7g7f").key != yomi.shogi.Game().key


def test_results_of_both_games() -> None:
    game = yomi.go.Game(5, komi=0.5)
    for move in ("C3", "pass", "C4", "pass", "pass"):
        assert game.result() is None
        game.play(move)
    assert game.result() == yomi.Result(yomi.BLACK, "B+24.5")
    assert game.lead(dead=["C3", "C4"]) == -0.5
    mated = yomi.shogi.Game("4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1").play("G*5b")
    result = mated.result()
    assert result is not None
    assert (result.winner, result.points(yomi.BLACK), result.points(yomi.WHITE)) == (yomi.BLACK, 1.0, 0.0)


def test_records_are_written_and_read(tmp_path: Path) -> None:
    game = yomi.go.Game(9, komi=6.5, handicap=["C3", "G7"]).play("E5")
    game.write(tmp_path / "a.sgf", black="Anna", result="W+R")
    (record,) = yomi.go.read(tmp_path / "a.sgf")
    assert (record.black, record.result, record.moves) == ("Anna", "W+R", ["E5"])
    assert record.game() == game
    assert [position.ply for position in record.positions()] == [0, 1]
    shogi = yomi.shogi.Game().play("7g7f").play("3c3d")
    for form in ("csa", "kif", "usi"):
        (found,) = yomi.shogi.parse(shogi.to_text(form, black="" if form == "usi" else "Anna"))
        assert found.game() == shogi
        assert [position.sfen for position in found.positions()][-1] == shogi.sfen
    with pytest.raises(yomi.Error, match="expected one of csa, kif, usi"):
        shogi.to_text("pdf")
    for form in ("csa", "kif"):
        with pytest.raises(yomi.Error, match="ending 'resign' found, expected TORYO or TSUMI or"):
            shogi.to_text(form, ending="resign")
    for position, name in ((game, "none/a.sgf"), (shogi, "none/a.kif")):
        with pytest.raises(yomi.Error, match=f"^cannot write {re.escape(str(tmp_path / name))}: No such"):
            position.write(tmp_path / name)
    with pytest.raises(yomi.Error):
        yomi.go.read(tmp_path / "none.sgf")
    with pytest.raises(yomi.Error):
        yomi.shogi.parse("no record")


# -- searching ---------------------------------------------------------------------------------------------------------


def test_play_chooses_a_legal_move_and_leaves_the_position(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    game = shogi.new_game()
    decision = shogi.play(game, SHORT)
    assert decision.move in game.legal_moves()
    assert game.moves == []
    assert decision.report.visits >= 20
    assert shogi.play(game, SHORT, allow=["1g1f"]).move == "1g1f"
    assert shogi.play(game, SHORT, avoid=[str(decision.move)]).move != decision.move
    with pytest.raises(yomi.IllegalMove, match="allow '9g9e' found, expected legal moves"):
        shogi.play(game, SHORT, allow=["9g9f", "9g9e"])
    # A promotion is the only legal move, beside its pointless waiver.
    game = yomi.shogi.Game("1n1ksKB2/l4r1g1/p1pg2spn/2n2P2l/1P2p3p/2P+pP1PPP/P1SG4r/LB1P5/1N2S1+p1L b 2Pg 115")
    assert shogi.play(game, SHORT, avoid=["3a4b+"]).move == "3a4b"
    with pytest.raises(yomi.Error, match="legal moves, expected at least one"):
        shogi.play(game, SHORT, avoid=game.legal_moves())


def test_a_mated_side_has_lost(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    mated = yomi.shogi.Game("4k4/4G4/4P4/9/9/9/9/9/4K4 w 2r2b3g4s4n4l17p 1")
    report = shogi.analyse(mated, SHORT)
    assert (str(report.score), report.score.mate) == ("White 0.0%, mate", 0)
    assert str(report.score.black) == "Black 100.0%, mate"
    assert shogi.play(mated, SHORT).move is None
    assert opinion(mated, report)["winrate"] == 1.0
    perpetual = yomi.shogi.Game("k7R/9/9/9/9/9/9/9/K8 w - 1")  # Black's perpetual check: lost, but not mated
    for move in 3 * ("9a9b", "1a1b", "9b9a", "1b1a"):
        perpetual.play(move)
    assert perpetual.result() == yomi.Result(yomi.WHITE, "White wins: Black gave perpetual check")
    assert shogi.analyse(perpetual, SHORT).score.mate is None


def test_the_rules_are_the_games(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    sfen = "1+R2KG3/+R+B1SSGG2/1NNLL4/9/9/9/9/ppp6/3kg4 b B2S2N2L15P 1"
    assert shogi.play(yomi.shogi.Game(sfen), SHORT).win
    assert not shogi.play(yomi.shogi.Game(sfen, entering_king="none"), SHORT).win
    drawn = yomi.shogi.Game("4k4/9/9/9/9/9/9/9/RB2K4 b - 1", max_moves=1)
    assert shogi.analyse(drawn, SHORT).score.winrate == 0.5
    shogi.configure(entering_king="none", max_moves=1)
    try:
        assert shogi.play(yomi.shogi.Game(sfen), SHORT).win
        assert shogi.analyse(shogi.new_game(), SHORT).score.winrate == 0.5
    finally:
        shogi.configure(entering_king="27", max_moves=None)


def test_reports_have_points_of_view(go: yomi.Engine[yomi.go.Game]) -> None:
    game = go.new_game().play("C3")
    report = go.analyse(game, yomi.Limit(visits=300))
    score = report.score
    assert score.side == yomi.WHITE
    assert score.black.winrate == pytest.approx(1.0 - score.white.winrate)
    assert score.lead is not None
    assert score.black.lead == pytest.approx(-score.lead)
    best = report.best
    assert best is not None
    assert report[best.move] is best
    assert best.variation[0] == best.move
    searched = [move for move in report.moves if move.symmetry_of is None]
    assert len(searched) < len(report.moves)
    assert sum(move.visits for move in searched) <= report.visits
    with pytest.raises(KeyError, match="was not searched"):
        report["A9"]


def test_ownership_is_black_s() -> None:
    game = yomi.go.Game(5)
    for move in ("C1", "pass", "C2", "pass", "C3", "pass", "C4", "pass", "C5"):
        game.play(move)
    with yomi.Engine("go", size=5, evaluator="rollouts", workers=1) as engine:
        assert (engine.ownership(game) > 0.3).all()
        assert engine.dead_stones(game) == []


@pytest.mark.slow
def test_dead_stones_may_be_the_first_question_to_an_engine() -> None:
    game = yomi.go.Game(5, rules="chinese", komi=0.5)
    for row in range(1, 6):
        game.play(f"C{row}").play(f"B{row}")
    game.play("A2").play("pass").play("pass")
    with yomi.Engine("go", size=5, workers=1, memory="64M") as engine:
        assert engine.dead_stones(game) == ["A2"]


def test_an_analysis_reports_until_it_is_stopped(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    with shogi.analysis(shogi.new_game(), interval=0.02) as analysis:
        visits = [report.visits for report, _ in zip(analysis, range(3), strict=False)]
        assert analysis.is_running
    assert visits == sorted(visits)
    assert not analysis.is_running
    last = analysis.wait()
    assert last.visits >= visits[-1]
    assert list(shogi.analysis(shogi.new_game(), SHORT))[-1].visits >= 20


def test_a_call_ends_an_analysis_without_limit(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    analysis = shogi.analysis(shogi.new_game())
    assert shogi.play(shogi.new_game(), SHORT).move is not None
    assert analysis.wait().moves
    assert not analysis.is_running


def seconds_for(engine: yomi.Engine[Any], clock: yomi.Clock, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the seconds that the first search of a game may take."""
    limits: list[float | None] = []
    search = engine._player.search
    begin = search.start

    def start(given: Limits, *moves: Any) -> None:
        limits.append(given.seconds)
        begin(given, *moves)

    monkeypatch.setattr(search, "start", start)
    assert engine.play(engine.new_game(), yomi.Limit(clocks=clock)).move is not None
    (seconds,) = limits
    assert seconds is not None
    return seconds


def test_clocks_limit_a_search(shogi: yomi.Engine[yomi.shogi.Game], monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.0 < seconds_for(shogi, yomi.Clock(main=0.0, byoyomi=0.5), monkeypatch) <= 0.5
    for wrong in ({"seconds": -1.0}, {"visits": 0}, {"depth": 0}):
        with pytest.raises(yomi.Error, match=r"expected an? (number|integer) of at least"):
            yomi.Limit(**wrong)  # type: ignore[arg-type]  # a mapping of both kinds of numbers
    with pytest.raises(yomi.Error, match="expected one of them"):
        yomi.Clock(byoyomi=1.0, increment=1.0)


def test_pondering_lasts_until_the_next_call(go: yomi.Engine[yomi.go.Game]) -> None:
    game = go.new_game()
    decision = go.play(game, SHORT, ponder=True)
    search = go._player.search
    assert decision.move is not None
    while search.report().visits < 1000:
        assert search.is_running
        time.sleep(0.01)
    report = go.play(game.play(decision.move), yomi.Limit(visits=1)).report
    assert not search.is_running
    assert report.visits >= 1000 > report.playouts
    go.clear()
    go.play(game, SHORT)
    assert not search.is_running
    with yomi.Engine("go", size=5, evaluator="uniform", ponder=True, visits=5) as engine:
        engine.play(engine.new_game())
        assert engine._player.search.is_running
        engine.configure(ponder=False)
        assert not engine._player.search.is_running
        engine.play(engine.new_game(), ponder=True)  # `close` ends it


def test_canadian_byoyomi(
    go: yomi.Engine[yomi.go.Game], shogi: yomi.Engine[yomi.shogi.Game], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = yomi.Clock(byoyomi=1.0, stones=10)
    assert seconds_for(go, clock, monkeypatch) < 1.0
    with pytest.raises(yomi.Error, match="for shogi"):
        shogi.play(shogi.new_game(), yomi.Limit(clocks=clock))
    for wrong in ({"stones": 5}, {"byoyomi": 1.0, "stones": 0}, {"byoyomi": 1.0, "stones": 5, "periods": 2}):
        with pytest.raises(yomi.Error, match="expected a"):
            yomi.Clock(**wrong)  # type: ignore[arg-type]  # a mapping of both kinds of numbers


def test_a_mate_is_found(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    game = yomi.shogi.Game("4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1")
    assert shogi.find_mate(game) == ("G*5b",)
    assert shogi.find_mate(yomi.shogi.Game(), seconds=0.1) == ()
    assert shogi.play(game, SHORT).report.score.mate == 1


def test_options_change_and_faults_change_nothing(go: yomi.Engine[yomi.go.Game]) -> None:
    with yomi.Engine("go", size=5, evaluator="uniform", visits=10) as engine:
        assert engine.analyse(engine.new_game()).visits == 10
        engine.configure(visits=15)
        assert engine.analyse(engine.new_game()).visits == 15
        for wrong in ({"visits": -1}, {"vizits": 1}, {"net": "none.bin.gz", "evaluator": "auto"}):
            with pytest.raises(yomi.Error):
                engine.configure(**wrong)  # type: ignore[arg-type]  # a mapping of several kinds of values
        assert engine.options["visits"] == 15
        assert engine.play(engine.new_game()).move is not None


# -- evaluation --------------------------------------------------------------------------------------------------------


def test_evaluations_are_those_of_the_search(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    games = [yomi.shogi.Game()]
    rng = np.random.default_rng(1)
    for _ in range(40):
        moves = games[-1].legal_moves()
        games.append(games[-1].copy().play(moves[rng.integers(len(moves))]))
    games = [game for game in games if not game.is_over]
    opinion = shogi.evaluate(games)
    assert len(opinion) == len(games)
    assert opinion.policy.sum(axis=1) == pytest.approx(np.ones(len(games)), abs=1e-4)
    assert opinion.score is None
    assert opinion.ownership is None
    assert opinion.side.tolist() == [game.side_to_move for game in games]
    assert opinion.black.white.black.value == pytest.approx(opinion.black.value)
    for index in (0, 7, 33):
        legal = {games[index].move_index(move) for move in games[index].legal_moves()}
        assert set(np.flatnonzero(opinion.policy[index]).tolist()) <= legal
        with yomi.Engine("shogi", search_engine="tree", memory=2**24, workers=1) as tree:
            raw = tree.analyse(games[index], yomi.Limit(visits=1)).score
        assert raw.mate is not None or raw.winrate == pytest.approx(opinion.winrate[index], abs=2e-3)


def test_evaluations_of_alphazero_s_networks_have_the_same_labels(tmp_path: Path) -> None:
    path = write_network(tmp_path / "a.onnx", NetworkShape(blocks=1, channels=8, form=ShogiForm.ALPHAZERO))
    with yomi.Engine("shogi", net=path, precision="fp32", workers=1) as engine:
        games = [yomi.shogi.Game().play("7g7f"), yomi.shogi.Game().play("7g7f").play("3c3d")]
        opinion = engine.evaluate(games)
        for game, policy in zip(games, opinion.policy, strict=True):
            report = engine.analyse(game, yomi.Limit(visits=40))
            priors = [(move.prior, policy[game.move_index(move.move)]) for move in report.moves]
            assert len(priors) > 3
            order = [found for _, found in sorted(priors)]
            assert order == sorted(order)


def test_evaluations_of_go_have_scores_and_owners() -> None:
    game = yomi.go.Game(9).play("E5").play("C3")
    with yomi.Engine("go", size=9, symmetry="none") as engine:
        opinion = engine.evaluate([game, game.copy().play("G7"), game])
        assert opinion.ownership is not None
        assert opinion.score is not None
        assert opinion.ownership.shape == (3, 9, 9)
        assert opinion.policy.shape == (3, 82)
        assert opinion.value[0] == pytest.approx(opinion.value[2])
        priors = {move.move: move.prior for move in engine.analyse(game, yomi.Limit(visits=4)).moves}
        best = game.move_at(int(opinion.policy[0].argmax()))
        assert priors[best] == max(priors.values())
        with pytest.raises(yomi.Error, match="expected one size"):
            engine.evaluate([yomi.go.Game(9), yomi.go.Game(7)])


def test_evaluations_without_a_network(go: yomi.Engine[yomi.go.Game]) -> None:
    opinion = go.evaluate([go.new_game().play("C3")] * 200)
    assert opinion.black.value.mean() > 0.3
    assert opinion.ownership is not None
    nothing = go.evaluate([])
    assert nothing.score is not None
    assert nothing.ownership is not None
    assert (len(nothing), nothing.score.shape, nothing.ownership.shape) == (0, (0,), (0, 5, 5))


# -- threads, asyncio, errors ------------------------------------------------------------------------------------------


def test_threads_take_turns(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    found: list[object] = []

    def work(number: int) -> None:
        game = shogi.new_game().play(("7g7f", "2g2f", "5g5f", "6g6f")[number])
        found.append(shogi.play(game, SHORT).move in game.legal_moves() and len(shogi.evaluate([game] * 5)) == 5)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [True] * 4


def test_two_engines_in_one_process(shogi: yomi.Engine[yomi.shogi.Game], go: yomi.Engine[yomi.go.Game]) -> None:
    with shogi.analysis(shogi.new_game()) as analysis:
        assert go.play(go.new_game(), SHORT).move is not None
        assert analysis.is_running
    with pytest.raises(yomi.Error, match=r"expected yomi\.go\.Game"):
        go.play(shogi.new_game(), SHORT)  # type: ignore[arg-type]  # the wrong game


def test_a_closed_engine_raises() -> None:
    engine = yomi.Engine("go", size=5, evaluator="uniform")
    game = engine.new_game()
    analysis = engine.analysis(game)
    errors: list[BaseException] = []

    def play() -> None:
        try:
            engine.play(game, yomi.Limit(seconds=600.0))
            engine.play(game, yomi.Limit(seconds=600.0))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=play)
    thread.start()
    time.sleep(0.2)
    engine.close()
    engine.close()
    thread.join(300)
    assert [type(error) for error in errors] == [ClosedError]
    analysis.wait()
    for call in (engine.play, engine.analyse, engine.evaluate):
        with pytest.raises(ClosedError, match="closed"):
            call(game)
    with pytest.raises(ClosedError):
        engine.analysis(game).wait()
    with pytest.raises(ClosedError):
        engine.configure(visits=1)


def test_coroutines(shogi: yomi.Engine[yomi.shogi.Game]) -> None:
    async def run() -> None:
        game = shogi.new_game()
        decision, report = await asyncio.gather(shogi.aplay(game, SHORT), shogi.aanalyse(game, SHORT))
        assert decision.move in game.legal_moves()
        assert report.visits >= 20
        assert len(await shogi.aevaluate(game)) == 1
        async with shogi.analysis(game, interval=0.02) as analysis:
            visits = []
            async for found in analysis:
                visits.append(found.visits)
                if len(visits) == 3:
                    break
        assert visits == sorted(visits)
        task = asyncio.create_task(shogi.aplay(game, yomi.Limit(seconds=600.0)))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        begin = time.monotonic()
        assert (await shogi.aplay(game, SHORT)).move is not None
        assert time.monotonic() - begin < 300.0
        with pytest.raises(OptionError):
            await shogi.aplay(yomi.go.Game(9))  # type: ignore[arg-type]  # the wrong game

    asyncio.run(run())


def test_errors_are_one_tree() -> None:
    for kind in (ClosedError, EvaluatorError, NetworkError, OptionError, yomi.IllegalMove):
        assert issubclass(kind, yomi.Error)
    for name, options in (("go", {"visits": 0}), ("go", {"sice": 9}), ("chess", {}), ("shogi", {"net": "none.onnx"})):
        with pytest.raises(yomi.Error):
            yomi.Engine(name, **options)  # type: ignore[arg-type]  # a mapping of several kinds of values
    with pytest.raises(AttributeError):
        yomi.no_such_name  # noqa: B018


def test_type_checkers_see_the_names_of_the_library() -> None:
    for name in yomi.__all__:
        assert getattr(yomi, name) is not None
        assert name in dir(yomi)
    stub = ast.parse(Path(yomi.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    found = [alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted([*map(str, found), "__version__"]) == sorted(yomi.__all__)


# -- to look at --------------------------------------------------------------------------------------------------------


def test_the_notes_of_decisions_are_documented() -> None:
    root = Path(__file__).parents[2]
    sources = [path.read_text("utf-8") for path in (root / "engine").rglob("player.py")]
    notes = {note for text in sources for note in re.findall(r'\bDecision\(.*note="([^"]+)"', text)}
    assert len(notes) == 4
    documented = (root / "yomi" / "library" / "values.py").read_text("utf-8")
    assert [note for note in notes if f'"{note}"' not in documented] == []


def test_notebooks_see_boards_and_tables(go: yomi.Engine[yomi.go.Game]) -> None:
    game = go.new_game().play("C3")
    assert game._repr_svg_().startswith("<svg")
    assert yomi.shogi.Game().play("7g7f")._repr_svg_().startswith("<svg")
    assert "A&lt;" in game.svg(labels={"D4": "A<"}, heat=np.zeros((5, 5)))
    report = go.analyse(game, yomi.Limit(visits=50))
    html = report._repr_html_()
    assert report.best is not None
    assert f"<td>{report.best.move}</td>" in html
    assert html.count("<svg") == min(10, len(report.moves))


# -- commands ----------------------------------------------------------------------------------------------------------


def test_selfplay_returns_games_and_writes_records(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[object] = []
    games = yomi.selfplay("go", 2, size=5, evaluator="uniform", visits=4, out=tmp_path, on_game=seen.append)
    assert seen == games
    assert len(list(tmp_path.glob("*.sgf"))) == 2
    (record,) = yomi.go.parse(games[0].files[".sgf"])
    assert record.moves == games[0].game.moves
    assert record.result == games[0].result.text
    assert capfd.readouterr() == ("", "")
    with pytest.raises(yomi.Error, match="did you mean size"):
        yomi.selfplay("go", sise=5)


@pytest.mark.slow
def test_a_match_and_its_ratings(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    players = ["yomi:evaluator=uniform,visits=2 ;; name=a", {"engine": "yomi:evaluator=uniform,visits=3", "name": "b"}]
    out = tmp_path / "match"
    results = yomi.match(players, game="go", size=5, games=2, max_moves=10, out=out, progress=lines.append)
    assert [(each.black, each.white) for each in results] == [("a", "b"), ("b", "a")]
    assert len([line for line in lines if "/2  game" in line]) == 2
    assert yomi.match(players, game="go", size=5, games=2, max_moves=10, out=out) == results
    assert {row.player for row in yomi.rate(results).rows} == {"a", "b"}
    assert yomi.rate([out]).games == 2
    assert "PLAYER" in str(yomi.rate([("a", "b", yomi.BLACK), ("b", "a", 0)]))
    assert capfd.readouterr() == ("", "")
    with pytest.raises(yomi.Error, match="unknown setting"):
        yomi.match(players, game="go", gammes=1)
    with pytest.raises(yomi.Error, match="no games"):
        yomi.rate([])
