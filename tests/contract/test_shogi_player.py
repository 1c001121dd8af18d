"""What only players of shogi owe to the protocol: mates, declarations, books, waived promotions, a network's file."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import SHOGI, Make
from tests.fakes.books import write_yaneuraou
from tests.fakes.evaluators import FaultyEvaluator, ScriptedEvaluator
from tests.naive.shogi_networks import NetworkShape, write_network
from tests.waiting import in_background, wait_until
from yomi.engine.clock import Clock
from yomi.engine.color import BLACK, WHITE
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.options import TABLE, rows_for
from yomi.engine.players.request import Decision, LoadingError, Request
from yomi.engine.search.types import Limits, SearchReport
from yomi.engine.shogi.book import BookMove
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import STARTPOS, parse_sfen
from yomi.engine.shogi.players.setup import LOADED
from yomi.engine.shogi.usi.session import SHOWN_LOGS

MATE = "4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"
"""Black mates by G*5b."""
LONG_MATE = "lnsgk1snl/6gb1/p1pppp2p/6R2/9/1rP6/P2PPPP1P/1BG6/LNS1KGSNL b 2P3p 1"
"""Nobody knows whether there is one."""
FORCED = "4k4/9/9/9/9/9/9/8g/8K b 2r2b3g4s4n4l18p 1"
"""White's gold gives check and can only be taken."""
MATED = "4k4/4G4/4P4/9/9/9/9/9/4K4 w 2r2b3g4s4n4l17p 2"
ENTERED = "+P+P+PGKG+P+P+P/+R+R+B+B5/9/9/9/9/9/9/4k4 b 2g4s4n4l12p 1"
"""Black may declare a win."""
MATING, OTHER = parse_usi("G*5b"), parse_usi("5i5h")


@pytest.fixture
def descriptor() -> Any:
    return SHOGI


def game_after(line: str, sfen: str = STARTPOS) -> ShogiGame:
    game = ShogiGame(sfen)
    for text in line.split():
        game.play(parse_usi(text))
    return game


def moves_of(report: SearchReport) -> set[int]:
    return {move.move for move in report.moves}


def test_special_decisions(make: Make) -> None:
    player = make("bare", playouts=300)
    assert player.decide(Request(ShogiGame(MATE))).move == MATING
    lost = SearchReport(ShogiGame(MATED).side_to_move, winrate=0.0, utility=-1.0, proven=-1)
    assert player.decide(Request(ShogiGame(MATED))) == Decision(None, report=lost)
    entered = ShogiGame(ENTERED)
    decision = player.decide(Request(entered))
    assert (decision.move, decision.win) == (None, True)
    analysis = Request(entered, infinite=True)
    wait = in_background(player.decide, analysis)
    wait_until(lambda: player.search.is_running)
    analysis.stop()
    assert not wait().win
    allowed = entered.legal_moves()[:2]
    decision = player.decide(Request(entered, allow=allowed))
    assert not decision.win
    assert decision.move in allowed
    player.options.entering_king = "none"  # the rules are the game's
    assert player.decide(Request(entered)).win
    entered.set_rules(entering_king="none")
    assert not player.decide(Request(entered)).win


def test_a_try_is_played_at_once(make: Make) -> None:
    player, trying = make("bare", playouts=300), ShogiGame("9/4K4/9/9/9/9/9/9/k8 b 2r2b4g4s4n4l18p 1")
    trying.set_rules(entering_king="try")
    decision = player.decide(Request(trying))
    assert (decision.move, decision.win, decision.note) == (parse_usi("5b5a"), False, "try")
    assert decision.report.moves[0].mate == 1
    decision = player.decide(Request(trying, allow=[parse_usi("5b5a"), parse_usi("5b4b")]))
    assert (decision.move, decision.note) == (parse_usi("5b5a"), "")
    trying.set_rules(entering_king="27")
    assert player.decide(Request(trying)).note == ""


def test_a_forced_move_takes_no_time(make: Make) -> None:
    """Nor does one where a promotion and its waiver are the only legal moves: that is no choice."""
    player = make(playouts=10**7, root_mate_search=0, leaf_mate_depth=0)
    promotion = ShogiGame("1n1ksKB2/l4r1g1/p1pg2spn/2n2P2l/1P2p3p/2P+pP1PPP/P1SG4r/LB1P5/1N2S1+p1L b 2Pg 115")
    assert sorted(promotion.legal_moves()) == sorted((parse_usi("3a4b"), parse_usi("3a4b+")))
    for game, move in ((ShogiGame(FORCED), "1i1h"), (promotion, "3a4b+")):
        for clocks in (None, {color: Clock.of(0.0, byoyomi=600.0) for color in (BLACK, WHITE)}):
            decision = player.decide(Request(game, clocks=clocks))
            assert decision.move == parse_usi(move)
            assert decision.report.playouts < 10**6


def test_mates_are_found_beside_the_search_or_by_it(make: Make) -> None:
    player, game = make(playouts=10**6), ShogiGame(MATE)
    for plies, note in ((33, "mate"), (0, "")):
        player.options.root_mate_search = plies
        player.new_game(game)
        decision = player.decide(Request(game, clocks={color: Clock.of(100.0) for color in (BLACK, WHITE)}))
        assert (decision.move, decision.note) == (MATING, note)
        assert decision.report.moves[0].mate == 1
        assert decision.report.playouts < 10**6
    # nothing of it shows in another search
    player.options.root_mate_search = 33
    player.decide(Request(game))
    player.start(Request(ShogiGame()))
    wait_until(lambda: player.report().visits >= 10)
    player.stop()
    assert {move.mate for move in player.report().moves} == {None}


def test_allowed_moves_bind_the_search_for_a_mate(make: Make) -> None:
    player, game = make(playouts=100), ShogiGame(MATE)
    reports: list[SearchReport] = []
    for _ in range(20):
        decision = player.decide(Request(game, allow=[OTHER], on_report=reports.append, interval=0.01))
        assert decision.move == OTHER
        assert not decision.note
        assert all(moves_of(report) <= {OTHER} for report in (*reports, decision.report))
    assert player.decide(Request(game, avoid=[MATING])).move != MATING
    assert player.decide(Request(game, allow=[OTHER, MATING])).note == "mate"
    for allow, found in (([OTHER], ()), ([OTHER, MATING], (MATING,)), (None, (MATING,))):
        answer = player.find_mate(Request(game, allow=allow))
        assert answer.moves == found
        assert answer.is_refuted == (not found)


def test_a_search_for_a_mate_ends_in_time_or_is_stopped(make: Make) -> None:
    player = make()
    answer = player.find_mate(Request(ShogiGame()))
    assert answer.is_refuted
    begin = time.monotonic()
    player.find_mate(Request(ShogiGame(LONG_MATE), limits=Limits(seconds=0.3)))
    request = Request(ShogiGame(LONG_MATE))
    wait = in_background(player.find_mate, request)
    request.stop()
    wait()
    assert time.monotonic() - begin < 60


def test_a_mate_that_begins_with_the_last_of_a_perpetual_check_is_not_played(make: Make) -> None:
    cycle = "4b4c 1c2b 4c4b 2b1c "
    player = make("bare", root_mate_search=33, visits=500)
    game = game_after("2b1c " + 3 * cycle, "9/5+R1k1/9/9/7S1/9/9/9/1K7 w S 2")
    decision = player.decide(Request(game))
    assert decision.move is not None
    game.play(decision.move)
    assert game.outcome() is None
    assert player.decide(Request(game)).report.moves  # the game goes on


def test_moves_that_leave_nothing_are_no_restriction(make: Make) -> None:
    player, game = make("bare", playouts=50), ShogiGame()
    everything = moves_of(player.decide(Request(game)).report)
    for request in (Request(game, allow=[parse_usi("5e5d")]), Request(game, avoid=game.legal_moves())):
        player.clear()
        assert moves_of(player.decide(request).report) == everything


def test_waived_promotions_are_searched_if_they_are_asked_for(make: Make) -> None:
    player, game = make(playouts=400, root_mate_search=0), game_after("7g7f 3c3d")
    waived = {parse_usi("8h2b"), parse_usi("8h3c")}

    def searched(**values: Any) -> set[int]:
        return moves_of(player.decide(Request(game, **values)).report)

    everything = searched()
    assert not waived & everything
    assert everything | waived == set(game.legal_moves())
    assert searched(allow=[parse_usi("8h2b")]) == {parse_usi("8h2b")}
    assert searched() == everything
    assert searched(options=player.options.with_values({"all_legal_moves": True})) == set(game.legal_moves())
    # the opponent may play one; it needs no node in the tree
    searched()
    game.play(parse_usi("8h2b"))
    assert player.decide(Request(game)).move in game.legal_moves()


def test_draws_are_worth_what_the_options_say(make: Make) -> None:
    player, game = make(playouts=50), ShogiGame(max_moves=1)

    def winrate() -> float:
        return player.decide(Request(game)).report.moves[0].winrate

    assert winrate() == pytest.approx(0.5)
    player.options.draw_value_black = 0.3
    assert winrate() == pytest.approx(0.3, abs=1e-3)
    game.set_rules(max_moves=2)
    game.play(parse_usi("7g7f"))
    player.options.draw_value_white = 0.9
    assert winrate() == pytest.approx(0.9, abs=1e-3)


def test_a_clock_does_not_wait_for_the_first_evaluation(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = FaultyEvaluator(ScriptedEvaluator(1), "hang", range(0), seconds=60.0)
    monkeypatch.setattr("yomi.engine.shogi.players.player.make_queue", lambda _: InlineQueue(evaluator))
    player, game = make(root_mate_search=0), ShogiGame()
    evaluator.faulty_calls = range(evaluator.calls + 1, evaluator.calls + 2)
    decision = player.decide(Request(game, clocks={color: Clock.of(0.0, byoyomi=0.2) for color in (BLACK, WHITE)}))
    assert not decision.report.moves
    assert decision.move in game.legal_moves()
    evaluator.released.set()
    assert player.decide(Request(game, limits=Limits(playouts=5))).report.playouts == 5


def test_stochastic_pondering_helps_whatever_comes(make: Make) -> None:
    player, game = make("bare", stochastic_ponder=True), game_after("7g7f 3c3d")
    request = Request(game, ponder=True)
    wait = in_background(player.decide, request)
    wait_until(lambda: player.search.report().visits >= 500)
    request.stop()
    wait()
    game.undo()
    game.play(player.search.report().moves[1].move)
    player.options.visits = 300
    assert player.decide(Request(game)).report.playouts < 300


@pytest.mark.parametrize("end", ["stop", "ponderhit", "infinite"])
def test_stochastic_pondering_tells_of_the_expected_move(make: Make, end: str) -> None:
    player, game = make("bare", stochastic_ponder=True, playouts=50), game_after("7g7f 3c3d")
    reports: list[SearchReport] = []
    for allow in (None, [parse_usi("2g2f")]):
        allowed = set(game.legal_moves() if allow is None else allow)
        reports.clear()
        request = Request(
            game, ponder=True, infinite=end == "infinite", allow=allow, on_report=reports.append, interval=0.01
        )
        wait = in_background(player.decide, request)
        wait_until(lambda: len(reports) > 3)
        if end == "ponderhit":
            request.ponderhit()
        else:
            request.stop()
        decision = wait()
        assert decision.move in allowed
        for report in (*reports, decision.report):
            assert report.side_to_move == BLACK
            assert moves_of(report) <= allowed
            assert all(0 <= move.winrate <= 1 for move in report.moves)


@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize("end", ["stop", "ponderhit"])
def test_pondering_that_fails_leaves_the_move(
    make: Make, end: str, noise: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    evaluator = ScriptedEvaluator(1)
    monkeypatch.setattr("yomi.engine.shogi.players.player.make_queue", lambda _: InlineQueue(evaluator))
    player, game = make(playouts=50, root_noise=noise, stochastic_ponder=True), game_after("7g7f 3c3d")
    evaluator.fail_at = evaluator.calls + 1
    request = Request(game, ponder=True, clocks={color: Clock.of(10.0) for color in (BLACK, WHITE)})
    wait = in_background(player.decide, request)
    wait_until(lambda: evaluator.calls >= evaluator.fail_at and not player.search.is_running)
    if end == "stop":
        request.stop()
    else:
        request.ponderhit()
    decision = wait()
    assert decision.move in game.legal_moves()
    assert (decision.report.playouts, decision.resign) == (0 if end == "stop" else 50, False)
    assert "the device is gone" in caplog.text


def test_a_book_is_played(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise EvaluatorError("the device is gone")

    player, game = make(playouts=20), ShogiGame()
    path = tmp_path / "book.db"
    move, reply = parse_usi("9g9f"), parse_usi("9c9d")
    write_yaneuraou(path, [(game.placement, [BookMove(move, 10, 50, 3, reply)])])
    player.options.book_file = str(path)
    with monkeypatch.context() as patch:  # it is loaded with the rest, or not at all
        patch.setattr("yomi.engine.players.player.warm_up", fail)
        with pytest.raises(LoadingError):
            player.load(game)
    assert not player.decide(Request(game)).note
    assert player.needs_loading(game)
    player.load(game)
    assert not player.needs_loading(game)
    decision = player.decide(Request(game, clocks={color: Clock.of(10.0) for color in (BLACK, WHITE)}))
    assert (decision.move, decision.ponder, decision.note) == (move, reply, "book move")
    assert decision.report.moves[0].winrate > 0.5
    for values in (
        {"own_book": False},
        {"book_moves": 0},
        {"book_ignore_rate": 1.0},
        {"book_depth_limit": 4},
        {"book_eval_black_limit": 51},
    ):
        assert not player.decide(Request(game, player.options.with_values(values))).note
    assert player.decide(Request(game, player.options.with_values({"book_eval_white_limit": 51}))).note
    assert not player.decide(Request(game, avoid=[move])).note
    # with the colors exchanged the book knows the position, at the move that it has it for alone if that is asked for
    passed = STARTPOS.replace(" b ", " w ")
    player.options.book_eval_white_limit = 50
    player.options.book_ignore_ply = False
    player.load(game)
    for flipped, number, expected in ((True, 1, "book move"), (False, 1, ""), (True, 2, "")):
        player.options.book_flipped = flipped
        assert player.decide(Request(ShogiGame(f"{passed[:-1]}{number}"))).note == expected
    assert not player.decide(Request(game_after("7g7f"))).note


@pytest.mark.parametrize("score", [-99_999, 99_999])
def test_extreme_scores_of_a_book_are_winrates(make: Make, tmp_path: Path, score: int) -> None:
    path = tmp_path / "book.db"
    write_yaneuraou(path, [(parse_sfen(STARTPOS), [BookMove(parse_usi("9g9f"), 1, score)])])
    decision = make(book_file=str(path), centipawns=1.0).decide(Request(ShogiGame()))
    assert decision.note == "book move"
    assert decision.report.moves[0].winrate == (score > 0)


def test_a_broken_book_is_put_away(make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, game = tmp_path / "book.db", ShogiGame()
    path.write_text(f"#YANEURAOU-DB2016 1.00\nsfen {STARTPOS}\n9g9f none many\n")
    player = make(playouts=20, book_file=str(path))
    for _ in range(2):
        decision = player.decide(Request(game, keep_tree=False))
        assert (decision.note, decision.resign, decision.report.playouts) == ("", False, 20)
    assert caplog.text.count("broken line '9g9f none many'") == 1
    assert {record.name for record in caplog.records} <= set(SHOWN_LOGS)
    # loaded anew, it is used again
    path.write_text(path.read_text().replace("many", "10"))
    player.options.book_ignore_ply = False
    player.load(game)
    assert player.decide(Request(game)).note == "book move"
    # a book that cannot be loaded leaves the one that was
    for name in ("missing.db", __file__):
        player.options.book_file = str(tmp_path / name)
        with pytest.raises(LoadingError) as caught:
            player.load(game)
        assert "\n" not in str(caught.value)
        assert player.decide(Request(game)).note == "book move"


def test_what_waits_for_loading_is_marked() -> None:
    """What USI can change is live, or takes effect with the next `isready`, as docs/reference/options.md says."""
    for row in rows_for("shogi"):
        assert row.usi is None or row.live == (row.name not in LOADED), row.name


def test_a_network_and_its_defaults(make: Make, tmp_path: Path) -> None:
    path, game = write_network(tmp_path / "net.onnx", NetworkShape(blocks=1, channels=8)), ShogiGame()
    Path(f"{path}.ini").write_text(
        "C_init=150\nSoftmax_Temperature=120\nResign_Threshold=20\nC_init_root=116\nC_base_root=25617\nNo_Such=99\n"
        "DNN_Batch_Size=4\n"
    )
    player = make(playouts=20, device="cpu", resign_threshold=0.3)
    options = player.options
    options.evaluator, options.net = "auto", str(path)
    assert player.needs_loading(game)
    player.load(game)
    assert not player.needs_loading(game)  # although the network sets an option that counts when it is loaded
    search = player.search
    player.load(game)
    assert player.search is search
    assert options.batch_size == 4
    assert "net on cpu" in player.description
    assert options.c_puct == pytest.approx(3.0)
    assert (options.root_c_puct, options.root_c_puct_base) == (pytest.approx(2.32), 25617)
    assert options.policy_temperature == pytest.approx(1.2)
    assert options.resign_threshold == 0.3  # the user's goes before the network's
    assert player.decide(Request(game)).report.playouts == 20
    options.evaluator, options.net = "material", None  # which sets nothing
    player.load(game)
    assert (options.c_puct, options.root_c_puct) == (TABLE["c_puct"].default_for("shogi"), None)
    assert player.decide(Request(game)).report.playouts == 20
    Path(f"{path}.ini").write_text("C_init=much\n")
    options.evaluator, options.net = "auto", str(path)
    with pytest.raises(LoadingError, match=r"net\.onnx\.ini: C_init: expected a number"):
        player.load(game)
