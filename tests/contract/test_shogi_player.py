"""What the player of shogi owes to the protocol (engine.players.shogi_base.ShogiThinker)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine.players.shogi_base import LoadingError, Progress, Task, Times

from engine.evaluators.base import EvaluatorError
from engine.evaluators.queue import InlineQueue
from engine.games.shogi.book import BookMove
from engine.games.shogi.notation import format_usi, parse_usi
from engine.games.shogi.sfen import STARTPOS, parse_sfen
from engine.options import TABLE, Options, rows_for
from engine.players.shogi import ShogiPlayer
from engine.players.shogi_setup import LOADED
from engine.protocols.usi.serve import SHOWN
from engine.search.limits import Limits
from native.tree.arrays import Batch
from nets.dlshogi.definition import NetworkShape, write_network
from tests.fakes.books import write_yaneuraou
from tests.fakes.evaluators import ScriptedEvaluator
from tests.waiting import wait_until

MATE = "4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"
"""Black mates by G*5b."""
FORCED = "4k4/9/9/9/9/9/9/4r4/4K4 b 2b4g4s4n4lr18p 1"
"""White's rook gives check and can only be taken."""
MATED = "4k4/4G4/4P4/9/9/9/9/9/4K4 w 2r2b3g4s4n4l17p 2"
ENTERED = "+P+P+PGKG+P+P+P/+R+R+B+B5/9/9/9/9/9/9/4k4 b 2g4s4n4l12p 1"
"""Black may declare a win."""
Make = Callable[..., ShogiPlayer]


@pytest.fixture
def make() -> Iterator[Make]:
    """Give what makes players; all are closed at the end."""
    made: list[ShogiPlayer] = []

    def maker(kind: str = "uniform", **options: Any) -> ShogiPlayer:
        chosen = {"evaluator": kind, "memory": 2**24, "cache_size": 2**20, "workers": 1, "seed": 1}
        settings = Options.for_game("shogi")
        for name, value in {**chosen, **options}.items():
            settings.set(name, value)
        made.append(ShogiPlayer(settings))
        return made[-1]

    yield maker
    for player in made:
        player.close()
        player.close()  # twice is harmless


def ignore(_: Progress) -> None:
    """Take a report."""


def in_background(player: ShogiPlayer, task: Task, reports: list[Progress] | None = None) -> Callable[[], Any]:
    """Let a player think in a thread of its own; return what waits for the decision."""
    found: list[Any] = []
    seen = reports if reports is not None else []
    thread = threading.Thread(target=lambda: found.append(player.think(task, seen.append)))
    thread.start()

    def wait() -> Any:
        thread.join(60)
        assert found, "no decision"
        return found[0]

    return wait


@pytest.mark.parametrize("kind", ["uniform", "material"])
def test_moves_are_legal(make: Make, kind: str) -> None:
    player = make(kind, playouts=30)
    assert player.description
    moves: list[str] = []
    for _ in range(12):
        player.set_position("startpos", moves)
        decision = player.think(Task(), ignore)
        assert decision.move in player.legal_moves()
        assert decision.progress.playouts == 30
        assert decision.progress.lines[0].pv[0] == decision.move
        assert 0 < decision.progress.fullness < 1
        assert decision.progress.seldepth >= 1
        moves.append(format_usi(decision.move))


def test_positions(make: Make) -> None:
    player = make(playouts=10)
    player.set_position("startpos", ["7g7f", "3c3d"])
    game = player.game
    player.set_position("startpos", ["7g7f", "3c3d", "2g2f"])
    assert [format_usi(move) for _, move in player.game.moves] == ["7g7f", "3c3d", "2g2f"]
    assert len(game.moves) == 2
    for sfen, moves in (("startpos", ["7g7e"]), ("startpos", ["7g7f", "huh"]), ("nonsense b - 1", [])):
        with pytest.raises(ValueError, match=r".+"):
            player.set_position(sfen, moves)
        assert len(player.game.moves) == 3
    player.set_position("startpos", ["2g2f"])
    assert len(player.game.moves) == 1
    player.set_position(MATE, [])
    assert player.game.moves == []
    assert "G*5b" in [format_usi(move) for move in player.legal_moves()]
    assert MATE.split()[0] in player.diagram()


def test_the_tree_is_kept(make: Make) -> None:
    player = make(visits=200)
    player.set_position("startpos", [])
    first = player.think(Task(), ignore)
    assert first.ponder is not None
    player.set_position("startpos", [format_usi(first.move or 0), format_usi(first.ponder)])
    assert player.think(Task(), ignore).progress.playouts < 200
    player.new_game()
    assert player.think(Task(), ignore).progress.playouts == 200


def test_special_decisions(make: Make) -> None:
    player = make("material", playouts=300)
    player.set_position(MATE, [])
    assert player.think(Task(), ignore).move == parse_usi("G*5b")
    player.set_position(MATED, [])
    assert player.think(Task(), ignore).move is None
    player.set_position(ENTERED, [])
    assert player.think(Task(), ignore).win
    analysis = Task(infinite=True)
    wait = in_background(player, analysis)
    time.sleep(0.1)
    analysis.stop()
    assert not wait().win
    player.options.set("entering_king", "none")
    assert not player.think(Task(), ignore).win
    player.set_position(FORCED, [])
    begin = time.monotonic()
    decision = player.think(Task(times=Times(0, 0, 600)), ignore)
    assert time.monotonic() - begin < 60
    assert decision.move == parse_usi("5i5h")


def test_mates(make: Make) -> None:
    player = make(playouts=10**6)
    player.set_position(MATE, [])
    mate = (parse_usi("G*5b"),)
    assert player.find_mate(Task()).moves == mate
    for plies in (33, 0):
        player.options.set("root_mate_search", plies)
        player.new_game()
        decision = player.think(Task(times=Times(100, 100)), ignore)
        assert decision.move == mate[0]
        assert decision.progress.lines[0].mate == 1
        assert decision.progress.playouts < 10**6
    player.options.set("root_mate_search", 33)
    # a mate may be forbidden
    other = parse_usi("5i5h")
    player.options.set("playouts", 20)
    assert player.think(Task(moves=(other,)), ignore).move == other
    player.set_position("startpos", [])
    assert player.find_mate(Task()).is_refuted
    # and its search be stopped
    player.set_position("startpos", [])
    player.set_position(
        "lnsgk1snl/6gb1/p1pppp2p/6R2/9/1rP6/P2PPPP1P/1BG6/LNS1KGSNL b 3P2p 1".replace("3P2p", "2P3p"), []
    )
    task = Task(limits=Limits(seconds=0.3))
    begin = time.monotonic()
    player.find_mate(task)
    assert time.monotonic() - begin < 60


def test_searchmoves(make: Make) -> None:
    player = make("material", playouts=50)
    allowed = (parse_usi("9g9f"), parse_usi("1g1f"))
    for _ in range(2):
        assert player.think(Task(moves=allowed), ignore).move in allowed
    # none of them is legal: all may be played
    assert player.think(Task(moves=(parse_usi("5e5d"),)), ignore).move is not None
    player.new_game()
    assert player.think(Task(), ignore).move not in allowed


def test_searchmoves_bind_the_search_for_a_mate(make: Make) -> None:
    player = make("uniform", playouts=100, multipv=9)
    player.set_position(MATE, [])
    mating, other = parse_usi("G*5b"), parse_usi("5i5h")
    reports: list[Progress] = []
    for _ in range(20):
        decision = player.think(Task(moves=(other,)), reports.append)
        assert decision.move == other
        assert not decision.note
        for progress in (*reports, decision.progress):
            assert {line.pv[0] for line in progress.lines} <= {other}
    assert player.think(Task(moves=(other, mating)), ignore).note == "mate"
    for moves, found in (((other,), ()), ((other, mating), (mating,)), (None, (mating,))):
        answer = player.find_mate(Task(moves=moves))
        assert answer is not None
        assert answer.moves == found
        assert answer.is_refuted == (not found)


def test_searchmoves_forbid_to_declare(make: Make) -> None:
    player = make("uniform", playouts=20)
    player.set_position(ENTERED, [])
    moves = tuple(player.legal_moves()[:2])
    decision = player.think(Task(moves=moves), ignore)
    assert not decision.win
    assert decision.move in moves


def test_searchmoves_bind_pondering(make: Make) -> None:
    player = make("uniform", stochastic_ponder=True, report_interval=0.01)
    player.set_position("startpos", ["7g7f"])
    allowed = (parse_usi("3c3d"),)
    reports: list[Progress] = []
    task = Task(ponder=True, moves=allowed)
    wait = in_background(player, task, reports)
    wait_until(lambda: len(reports) > 3)
    task.stop()
    decision = wait()
    assert decision.move in allowed
    for progress in (*reports, decision.progress):
        assert {line.pv[0] for line in progress.lines} <= set(allowed)


def test_waived_promotions_are_searched_where_they_are_asked_for(make: Make) -> None:
    player = make("uniform", playouts=400, multipv=593, root_mate_search=0)
    waived = {parse_usi("8h2b"), parse_usi("8h3c")}

    def searched(task: Task) -> set[int]:
        player.set_position("startpos", ["7g7f", "3c3d"])
        return {line.pv[0] for line in player.think(task, ignore).progress.lines}

    everything = searched(Task())
    assert not waived & everything
    assert everything | waived == set(player.legal_moves())
    assert searched(Task(moves=(parse_usi("8h2b"),))) == {parse_usi("8h2b")}
    assert not waived & searched(Task())
    player.options.set("all_legal_moves", True)
    assert searched(Task()) == set(player.legal_moves())
    # the opponent may play one; it needs no node in the tree
    player.options.set("all_legal_moves", False)
    searched(Task())
    player.set_position("startpos", ["7g7f", "3c3d", "8h2b"])
    assert player.think(Task(), ignore).move in player.legal_moves()


def test_to_promote_or_not_is_no_choice(make: Make) -> None:
    """Where the only legal moves are a promotion and its waiver there is nothing to search."""
    player = make("uniform", playouts=20_000, root_mate_search=0, leaf_mate_depth=0)
    player.set_position("1n1ksKB2/l4r1g1/p1pg2spn/2n2P2l/1P2p3p/2P+pP1PPP/P1SG4r/LB1P5/1N2S1+p1L b 2Pg 115", [])
    assert sorted(player.legal_moves()) == sorted((parse_usi("3a4b"), parse_usi("3a4b+")))
    decision = player.think(Task(), ignore)
    assert decision.move == parse_usi("3a4b+")
    assert decision.progress.playouts < 20_000


@pytest.mark.parametrize("workers", [1, 2])
def test_clocks(make: Make, workers: int) -> None:
    """The machine may be busy: one of twenty."""
    player = make("material", workers=workers)
    player.think(Task(limits=Limits(playouts=50)), ignore)

    def once(task: Task) -> float:
        begin = time.monotonic()
        decision = player.think(task, ignore)
        assert decision.move is not None
        return time.monotonic() - begin

    for times, most in (
        (Times(byoyomi=0.3), 0.3),
        (Times(0.0, 0.0), 0.1),
        (Times(2.0, 2.0), 0.5),
        (Times(0.5, 0.5, 0.0, 0.1, 0.1), 0.4),
    ):
        assert any(once(Task(times=times)) < most + 0.5 for _ in range(20)), times
    assert any(0.19 < once(Task(limits=Limits(seconds=0.2))) < 0.7 for _ in range(20))


def test_limits(make: Make) -> None:
    player = make("material")
    assert player.think(Task(limits=Limits(playouts=77)), ignore).progress.playouts == 77
    decision = player.think(Task(depth=3), ignore)
    assert len(decision.progress.lines[0].pv) >= 3
    player.options.set("playouts", 5)
    assert player.think(Task(limits=Limits(playouts=77)), ignore).progress.playouts == 5
    player.options.set("playouts", None)
    player.options.set("depth", 2)
    player.think(Task(), ignore)
    player.options.set("depth", None)
    player.options.set("seconds", 0.1)
    begin = time.monotonic()
    player.think(Task(), ignore)
    assert time.monotonic() - begin < 60  # without its limit it has no end


@pytest.mark.parametrize("task", [Task(infinite=True), Task(ponder=True), Task(ponder=True, infinite=True)])
@pytest.mark.parametrize("stochastic", [True, False])
def test_stop(make: Make, task: Task, stochastic: bool) -> None:
    player = make("material", stochastic_ponder=stochastic, multipv=3, report_interval=0.05)
    player.set_position("startpos", ["7g7f", "3c3d"])
    reports: list[Progress] = []
    task = Task(infinite=task.infinite, ponder=task.ponder)
    wait = in_background(player, task, reports)
    wait_until(lambda: bool(reports))
    task.stop()
    decision = wait()
    assert decision.move in player.legal_moves()
    for progress in reports:
        for line in progress.lines:
            assert line.pv[0] in player.legal_moves()
            assert 0 <= line.winrate <= 1
    # stopped before it has begun
    task = Task(infinite=True)
    task.stop()
    assert player.think(task, ignore).move in player.legal_moves()


@pytest.mark.parametrize("stochastic", [True, False])
def test_ponderhit(make: Make, stochastic: bool) -> None:
    player = make("material", stochastic_ponder=stochastic)
    player.set_position("startpos", ["7g7f", "3c3d"])

    def once() -> float:
        task = Task(ponder=True, times=Times(byoyomi=0.1))
        wait = in_background(player, task)
        time.sleep(0.3)
        task.ponderhit(Times(byoyomi=0.5), time.monotonic())
        begin = time.monotonic()
        decision = wait()
        assert decision.move in player.legal_moves()
        assert len(player.game.moves) == 2
        return time.monotonic() - begin

    assert any(once() < 1 for _ in range(20))  # the machine may be busy


@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize("end", ["stop", "ponderhit"])
def test_pondering_that_fails_leaves_the_move(
    make: Make, end: str, noise: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    player = make("material", playouts=50, root_noise=noise)
    player.set_position("startpos", ["7g7f", "3c3d"])
    failed = threading.Event()

    def fail(*_: object) -> None:
        failed.set()
        raise RuntimeError("the device is gone")

    task = Task(ponder=True, times=Times(10, 10))
    with monkeypatch.context() as patch:
        patch.setattr("engine.search.search.advance", fail)
        wait = in_background(player, task)
        assert failed.wait(60)
        assert player.search.wait(60)
    if end == "stop":
        task.stop()
    else:
        task.ponderhit(None, time.monotonic())
    decision = wait()
    assert decision.move in player.legal_moves()
    assert (decision.progress.playouts, decision.resign) == (0 if end == "stop" else 50, False)
    assert "the device is gone" in caplog.text


def test_a_failure_after_the_answer_leaves_the_next_one(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    player = make("material", playouts=50)
    player.think(Task(), ignore)

    def fail(*_: object) -> None:
        raise RuntimeError("the device is gone")

    with monkeypatch.context() as patch:
        patch.setattr("engine.search.search.advance", fail)
        player.search.start(Limits())
        assert player.search.wait(60)
    assert player.think(Task(), ignore).progress.playouts == 50


def test_stochastic_pondering_helps_whatever_comes(make: Make) -> None:
    player = make("material", playouts=200)
    player.set_position("startpos", ["7g7f", "3c3d"])
    task = Task(ponder=True)
    wait = in_background(player, task)
    wait_until(lambda: player.search.root_visits >= 500)
    task.stop()
    wait()
    reply = player.search.report().moves[1].move
    player.set_position("startpos", ["7g7f", format_usi(reply)])
    player.options.set("playouts", None)
    player.options.set("visits", 300)
    assert player.think(Task(), ignore).progress.playouts < 300


def test_lost_games_are_resigned(make: Make) -> None:
    player = make("material", playouts=60, resign_threshold=0.2, resign_moves=2)
    sfen = "4k4/9/9/9/9/9/9/9/4K4 w 2R2B4G4S4N4L18P 1"
    player.set_position(sfen, [])
    first = player.think(Task(), ignore)
    assert not first.resign
    assert not player.think(Task(), ignore).resign  # asked twice for one move
    moves = [format_usi(first.move or 0)]
    player.set_position(sfen, moves)
    moves.append(format_usi(player.think(Task(), ignore).move or 0))
    player.set_position(sfen, moves)
    assert player.think(Task(), ignore).resign
    player.options.set("resign", False)
    assert not player.think(Task(), ignore).resign
    player.options.set("resign", True)
    player.new_game()
    assert not player.think(Task(), ignore).resign


def test_draws_are_worth_what_the_options_say(make: Make) -> None:
    player = make("uniform", playouts=50, max_moves=1)
    assert player.think(Task(), ignore).progress.lines[0].winrate == pytest.approx(0.5)
    player.options.set("draw_value_black", 0.3)
    assert player.think(Task(), ignore).progress.lines[0].winrate == pytest.approx(0.3, abs=1e-3)
    player.options.set("max_moves", 2)
    player.set_position("startpos", ["7g7f"])
    player.options.set("draw_value_white", 0.9)
    assert player.think(Task(), ignore).progress.lines[0].winrate == pytest.approx(0.9, abs=1e-3)


def test_a_book_is_played(make: Make, tmp_path: Path) -> None:
    player = make(playouts=20)
    path = tmp_path / "book.db"
    moves = [BookMove(parse_usi("9g9f"), 10, 50, 3, parse_usi("9c9d"))]
    write_yaneuraou(path, [(player.game.placement, moves)])
    player.options.set("book_file", str(path))
    assert player.needs_loading
    player.load()
    assert not player.needs_loading
    decision = player.think(Task(times=Times(10, 10)), ignore)
    assert (decision.move, decision.ponder, decision.note) == (parse_usi("9g9f"), parse_usi("9c9d"), "book move")
    assert decision.progress.lines[0].winrate > 0.5
    for name, value in (
        ("own_book", False),
        ("book_moves", 0),
        ("book_ignore_rate", 1.0),
        ("book_depth_limit", 4),
        ("book_eval_black_limit", 51),
    ):
        player.options.set(name, value)
        assert not player.think(Task(), ignore).note
        player.options.set(name, TABLE[name].shogi)
    player.options.set("book_eval_white_limit", 51)
    assert player.think(Task(), ignore).note
    # with the colors exchanged the book knows the position, at the move that it has it for alone if that is asked for
    passed = STARTPOS.replace(" b ", " w ")
    player.options.set("book_eval_white_limit", 50)
    for flipped, number, expected in ((True, 1, "book move"), (False, 1, ""), (True, 2, "")):
        player.options.set("book_flipped", flipped)
        player.options.set("book_ignore_ply", False)
        player.load()
        player.set_position(f"{passed[:-1]}{number}", [])
        assert player.think(Task(), ignore).note == expected
    player.set_position("startpos", ["7g7f"])
    assert not player.think(Task(), ignore).note


@pytest.mark.parametrize("score", [-99_999, 99_999])
def test_extreme_scores_of_a_book_are_winrates(make: Make, tmp_path: Path, score: int) -> None:
    path = tmp_path / "book.db"
    write_yaneuraou(path, [(parse_sfen(STARTPOS), [BookMove(parse_usi("9g9f"), 1, score)])])
    player = make(book_file=str(path), centipawns=1.0)
    decision = player.think(Task(), ignore)
    assert decision.note == "book move"
    assert decision.progress.lines[0].winrate == (score > 0)


def test_a_broken_book_is_put_away(make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "book.db"
    path.write_text(f"#YANEURAOU-DB2016 1.00\nsfen {STARTPOS}\n9g9f none many\n")
    player = make(playouts=20, book_file=str(path))
    for _ in range(2):
        decision = player.think(Task(times=Times(10, 10)), ignore)
        assert (decision.note, decision.resign, decision.progress.playouts) == ("", False, 20)
    assert caplog.text.count("broken line '9g9f none many'") == 1
    assert {record.name for record in caplog.records} <= set(SHOWN)
    # loaded anew, it is used again
    path.write_text(path.read_text().replace("many", "10"))
    player.options.set("book_flipped", False)
    player.load()
    assert player.think(Task(), ignore).note == "book move"


def test_what_waits_for_loading_is_marked() -> None:
    """What USI can change is live, or takes effect with the next `isready`, as docs/OPTIONS.md says."""
    for row in rows_for("shogi"):
        assert row.usi is None or row.live == (row.name not in LOADED), row.name


def test_what_cannot_be_loaded_leaves_what_was(make: Make, tmp_path: Path) -> None:
    player = make(playouts=20)
    (tmp_path / "net.onnx").write_bytes(b"nonsense")
    for name, value in (
        ("net", str(tmp_path / "missing.onnx")),
        ("net", str(tmp_path / "net.onnx")),
        ("book_file", str(tmp_path / "missing.db")),
        ("book_file", str(tmp_path / "net.onnx")),
        ("evaluator", "rollouts"),
    ):
        old = player.options.get(name)
        if name == "net":
            player.options.set("evaluator", "auto")
        player.options.set(name, value)
        with pytest.raises(LoadingError) as caught:
            player.load()
        assert "\n" not in str(caught.value)
        player.options.set(name, old)
        player.options.set("evaluator", "uniform")
        assert player.think(Task(), ignore).move is not None


def test_what_cannot_evaluate_is_not_loaded(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    write_yaneuraou(path, [(parse_sfen(STARTPOS), [BookMove(parse_usi("9g9f"), 1, 50)])])

    def broken(_: Options) -> InlineQueue:
        evaluator = ScriptedEvaluator(4, fail_at=3)
        evaluator.error = EvaluatorError("the device is gone")
        evaluators.append(evaluator)
        return InlineQueue(evaluator)

    player, evaluators = make(playouts=20), list[ScriptedEvaluator]()
    with monkeypatch.context() as patch:
        patch.setattr("engine.players.shogi.make_queue", broken)
        player.options.set("memory", 2**25)
        player.options.set("book_file", str(path))
        for _ in range(2):
            with pytest.raises(LoadingError, match="the device is gone"):
                player.load()
        assert player.needs_loading
        with pytest.raises(LoadingError, match="the device is gone"):
            make()
    assert [evaluator.closed_in is not None for evaluator in evaluators] == [True] * 3
    decision = player.think(Task(), ignore)
    assert (decision.progress.playouts, decision.note) == (20, "")
    player.load()
    assert not player.needs_loading
    assert player.think(Task(), ignore).note == "book move"


@pytest.mark.parametrize("name", [row.name for row in rows_for("shogi") if row.live])
def test_every_live_option_may_be_changed(make: Make, name: str) -> None:
    player = make(playouts=15)
    row = TABLE[name]
    old = player.options.get(name)
    if row.kind == "flag":
        values: list[Any] = [not old]
    elif row.kind == "choice":
        values = list(row.choices)
    else:
        values = [row.check(row.low), row.check(row.high)]
    for value in (*values, old):
        player.options.set(name, value)
        task = Task(limits=Limits(seconds=0.2))
        assert player.think(task, ignore).move in player.legal_moves()


def test_a_network_and_its_defaults(make: Make, tmp_path: Path) -> None:
    path = write_network(tmp_path / "net.onnx", NetworkShape(blocks=1, channels=8))
    Path(f"{path}.ini").write_text(
        "C_init=150\nSoftmax_Temperature=120\nResign_Threshold=20\nC_init_root=116\nC_base_root=25617\nNo_Such=99\n"
        "DNN_Batch_Size=4\n"
    )
    player = make(playouts=20, device="cpu", resign_threshold=0.3)
    player.options.set("evaluator", "auto")
    player.options.set("net", str(path))
    assert player.needs_loading
    player.load()
    assert not player.needs_loading  # although the network sets an option that counts when it is loaded
    search = player.search
    player.load()
    assert player.search is search
    assert player.options.batch_size == 4
    assert "net on cpu" in player.description
    assert player.options.c_puct == pytest.approx(3.0)
    assert (player.options.root_c_puct, player.options.root_c_puct_base) == (pytest.approx(2.32), 25617)
    assert player.options.policy_temperature == pytest.approx(1.2)
    assert player.options.resign_threshold == 0.3  # the user's goes before the network's
    assert player.think(Task(), ignore).progress.playouts == 20
    player.options.set("net", None)
    player.options.set("evaluator", "material")  # which sets nothing
    player.load()
    assert (player.options.c_puct, player.options.root_c_puct) == (TABLE["c_puct"].shogi, None)
    assert player.think(Task(), ignore).progress.playouts == 20
    Path(f"{path}.ini").write_text("C_init=much\n")
    player.options.set("evaluator", "auto")
    player.options.set("net", str(path))
    with pytest.raises(LoadingError, match=r"net\.onnx\.ini: C_init: expected a number"):
        player.load()


class Held(ScriptedEvaluator):
    """Has an opinion, but gives it only while `released` is set."""

    def __init__(self) -> None:
        super().__init__(1)
        self.released, self.asked = threading.Event(), threading.Event()
        self.released.set()

    def evaluate(self, batch: Batch, rows: int) -> None:
        self.asked.set()
        self.released.wait(60)
        super().evaluate(batch, rows)


@pytest.fixture
def held(make: Make, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ShogiPlayer, Held]]:
    """Give a player whose evaluator takes as long as the test wants."""
    evaluator = Held()
    monkeypatch.setattr("engine.players.shogi.make_queue", lambda _: InlineQueue(evaluator))
    yield make(root_mate_search=0), evaluator
    evaluator.released.set()


@pytest.mark.parametrize("times", [None, Times(600.0, 600.0)])
def test_the_first_evaluation_is_waited_for(held: tuple[ShogiPlayer, Held], times: Times | None) -> None:
    player, evaluator = held
    favourite = player.think(Task(limits=Limits(playouts=2)), ignore).move
    assert favourite != player.legal_moves()[0]
    player.new_game()
    evaluator.released.clear()
    evaluator.asked.clear()
    wait = in_background(player, Task(times=times, limits=Limits(seconds=0.01)))
    assert evaluator.asked.wait(60)
    time.sleep(0.3)
    evaluator.released.set()
    decision = wait()
    assert decision.progress.lines
    assert decision.move == favourite


def test_a_clock_does_not_wait_for_the_first_evaluation(held: tuple[ShogiPlayer, Held]) -> None:
    player, evaluator = held
    evaluator.released.clear()
    decision = player.think(Task(times=Times(byoyomi=0.2)), ignore)
    assert not decision.progress.lines
    assert decision.move in player.legal_moves()
    evaluator.released.set()
    assert player.think(Task(limits=Limits(playouts=5)), ignore).progress.playouts == 5


def test_a_failing_search_is_told(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    player = make("material", playouts=100)

    def fail(*_: object) -> None:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr("engine.search.search.advance", fail)
    with pytest.raises(RuntimeError, match="the device is gone"):
        player.think(Task(), ignore)


def test_a_search_that_memory_does_not_suffice_for_leaves_what_was(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    player, evaluator = make(playouts=20), ScriptedEvaluator(4)
    search = player.search

    def fail(*_: object) -> None:
        raise MemoryError("Unable to allocate\n14.9 TiB")

    player.options.set("memory", 2**25)
    with monkeypatch.context() as patch:
        patch.setattr("engine.players.shogi.make_queue", lambda _: InlineQueue(evaluator))
        patch.setattr("engine.players.shogi.Search", fail)
        with pytest.raises(LoadingError, match=r"memory") as caught:
            player.load()
    assert "\n" not in str(caught.value)
    assert evaluator.closed_in is not None
    assert player.needs_loading
    assert player.search is search
    assert player.think(Task(), ignore).progress.playouts == 20
    player.load()
    assert not player.needs_loading
    assert player.search is not search


def test_a_mate_that_begins_with_the_last_of_a_perpetual_check_is_not_played(make: Make) -> None:
    cycle = "4b4c 1c2b 4c4b 2b1c"
    player = make("material", root_mate_search=33, visits=500)
    player.set_position("9/5+R1k1/9/9/7S1/9/9/9/1K7 w S 2", ["2b1c", *f"{cycle} {cycle} {cycle}".split()])
    decision = player.go()
    assert decision.move is not None
    player.game.play(decision.move)
    assert player.game.outcome() is None
    assert player.go().progress.lines  # the game goes on
