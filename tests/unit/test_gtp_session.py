"""GTP: lines and answers as text, the table of commands, the session's loop, and the handlers' requests."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.player import FakePlayer
from tests.fakes.session import ScriptedSession
from tests.looping import looped
from yomi.engine.clock import TimeSystem
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.go.game import GoGame
from yomi.engine.go.gtp.codec import (
    COMMANDS,
    MAX_ERROR,
    Command,
    format_response,
    is_interrupt,
    parse_line,
)
from yomi.engine.go.gtp.engine import gtp_version
from yomi.engine.go.gtp.session import Session
from yomi.engine.levels import level_settings
from yomi.engine.options import Options
from yomi.engine.players.request import Decision, Request
from yomi.engine.protocols.session import KEEPS, LoadError
from yomi.engine.protocols.streams import MAX_LINE, Inbox, OutputClosedError, encode
from yomi.engine.search.types import SearchReport
from yomi.native.go.board import BLACK, PASS


def test_a_command_is_one_function_with_a_decorator() -> None:
    session = ScriptedSession()
    assert session.send("double 3") == "? unknown command double\n\n"

    @COMMANDS.command("double", background=KEEPS, usage="NUMBER")
    def double(session: Session, request: Command) -> str:
        return str(2 * int(request.arguments[0]))

    try:
        assert session.send("double 3") == "= 6\n\n"
        assert session.send("double") == "? syntax error: expected double NUMBER\n\n"
        assert session.send("known_command double") == "= true\n\n"
        assert session.send("list_commands").splitlines()[-2] == "double"
        with pytest.raises(ValueError, match="double has a handler"):
            COMMANDS.command("double")(double)
    finally:
        del COMMANDS._rows["double"]


@pytest.mark.parametrize(
    ("version", "expected"), [("0.1.0", "0.110"), ("0.1.2", "0.112"), ("0.2.0", "0.120"), ("1.0.0", "1.100")]
)
def test_version_suits_lizzie(version: str, expected: str) -> None:
    first, rest = gtp_version(version).split(" ", 1)
    assert (first, rest) == (expected, f"(yomi {version})")
    assert int(first.split(".")[1]) >= 15


def test_the_player_is_loaded_once_for_the_size_of_the_first_boardsize(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.go.gtp.session.BOARD_PATIENCE", 60.0)
    options, sizes = Options(), []

    def make() -> FakePlayer:
        sizes.append((options.size, options.height))
        return FakePlayer(options)

    session = Session(options, make, lambda text: None)
    loading = session.start_loading()
    session.handle(b"name")
    session.handle(b"rectangular_boardsize 9 7")
    loading.join()
    assert (sizes, session.game.board.width, session.game.board.height) == ([(9, 7)], 9, 7)
    session.handle(b"boardsize 13")
    assert (options.size, session.game.board.size) == (9, 13)


def test_internal_errors_are_answered_and_the_session_goes_on() -> None:
    class Broken(FakePlayer):
        def decide(self, request: Request[GoGame]) -> Decision:
            raise ZeroDivisionError("on purpose\nin two lines")

    session = ScriptedSession(Broken(Options(size=9)))
    assert session.send("7 genmove b") == "?7 internal error: ZeroDivisionError: on purpose; in two lines\n\n"
    assert session.send("8 name") == "=8 yomi\n\n"
    # the header of an analysing command is out already: the answer is ended, the error is in the log
    assert session.send("9 kata-genmove_analyze b") == "=9\n\n"


def test_a_board_without_an_evaluator_is_refused_and_the_game_stays(tmp_path: Path) -> None:
    class Small(FakePlayer):
        def new_game(self, game: GoGame) -> None:
            if game.board.side != 9:
                raise EvaluatorError(f"board size {game.board.side} found, expected 9")
            super().new_game(game)

    record = tmp_path / "large.sgf"
    record.write_text("(;GM[1]FF[4]SZ[13];B[cc])")
    session = ScriptedSession(Small(Options(size=9)))
    session.send("play b e5")
    assert session.send("boardsize 19") == "? board size 19 found, expected 9\n\n"
    assert session.send(f"loadsgf {record}") == "? board size 13 found, expected 9\n\n"
    assert session.send("move_history") == "= black E5\n\n"


def test_broken_records_are_loaded_with_notes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    session = ScriptedSession(FakePlayer(Options(size=9)))
    record = tmp_path / "game.sgf"
    record.write_text("(;GM[1]FF[4]SZ[9];B[cc]\n;W[zz];B[dd]")
    assert session.send(f"loadsgf {record}") == "= white\n\n"
    assert session.send("move_history") == "= black C7\n\n"
    off_board = "move 2 of the record: W[zz]: expected a point of a 9x9 board: read up to there"
    assert caplog.messages == [f"{record}:2:13: the text ends: 1 ')' are missing", f"{record}:2:2: {off_board}"]
    record.write_text("\\HS\n\\[GAMEBLACKNAME=a\\]\n\\GS\nSTO 0 2 1 15 3\n\\GE\n")
    assert session.send(f"loadsgf {record}") == "= white\n\n"
    assert session.send("move_history") == "= black Q16\n\n"


def test_a_record_of_unknown_rules_is_loaded_under_the_present_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = tmp_path / "game.sgf"
    record.write_text("(;GM[1]FF[4]SZ[9]RU[Calvinball];B[cc])")
    session = ScriptedSession(FakePlayer(Options(size=9)))
    session.send("kata-set-rules aga")
    before = session.send("kata-get-rules")
    assert session.send(f"loadsgf {record}") == "= white\n\n"
    assert session.send("kata-get-rules") == before
    assert caplog.messages == [f"{record}: unknown rules 'Calvinball': keeping aga"]


@pytest.mark.parametrize(
    ("line", "warnings"),
    [
        (
            "kata-analyze b 5 movesOwnership true noResultValue true ownershipStdev true movesOwnershipStdev 1",
            ["movesOwnership", "noResultValue", "ownershipStdev", "movesOwnershipStdev"],
        ),
        ("kata-genmove_analyze b noResultValue true ownership true pvVisits true", ["noResultValue"]),
        ("kata-search_analyze b movesOwnership true rootInfo true pvEdgeVisits true", ["movesOwnership"]),
        ("lz-analyze b 5 ownership true", ["ownership"]),
        ("analyze b 5 ownership true pvVisits true", ["pvVisits"]),
        ("kata-analyze b 5 minmoves 3", ["minmoves"]),
        ("kata-analyze b 5 movesOwnership false noResultValue 0 minmoves 0", []),
    ],
)
def test_arguments_that_are_not_answered_get_one_warning(
    line: str, warnings: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    session = ScriptedSession(FakePlayer(Options(size=9)))
    for _ in range(2):
        assert session.send(line, ticks=1).startswith("=")
    name = line.split()[0]
    assert [message.split(" is ignored")[0] for message in caplog.messages] == [f"{name}: {each}" for each in warnings]


def test_rules_without_an_evaluator_are_refused_and_the_old_ones_stay() -> None:
    class AreaOnly(FakePlayer):
        def load(self, game: GoGame) -> None:
            if game.rules.scoring != "AREA":
                raise EvaluatorError("no evaluator for these rules")
            super().load(game)

    session = ScriptedSession(AreaOnly(Options(size=9)))
    before = session.send("kata-get-rules")
    assert session.send('kata-set-rules {"scoring":"TERRITORY","komi":5.5}').startswith("? no evaluator")
    assert session.send("get_komi") == "= 7.5\n\n"
    for line in ("kata-set-rules japanese", "kata-set-rule scoring TERRITORY", "kgs-rules japanese"):
        assert session.send(line) == "? no evaluator for these rules\n\n"
        assert session.send("kata-get-rules") == before
    for line in ("kata-set-rules aga", "kata-set-rule ko SIMPLE", "kgs-rules chinese"):
        session.fake.calls.clear()
        assert session.send(line) == "=\n\n"
        assert session.fake.calls == ["load"]  # before a clock runs


def test_rules_that_state_a_komi_set_it() -> None:
    session = ScriptedSession()
    for line, answer, komi in (
        ('kata-set-rules {"ko":"SIMPLE","komi":5.5}', "=", "5.5"),
        ("kata-set-rule komi 4.5", "=", "4.5"),
        ("kata-set-rules japanese", "=", "4.5"),
        ('kata-set-rules {"komi":3}', "=", "3"),
        ("kata-set-rules koSIMPLEscoreTERRITORYtaxSEKIsui0komi6", "=", "6"),
        ("komi 7", "=", "7"),
        ("kata-set-rule ko POSITIONAL", "=", "7"),
        ("kata-set-rule komi nan", "? komi 'nan' of the rules: expected a number", "7"),
        ('kata-set-rules {"komi":9999}', "? unacceptable komi 9999.0: expected a number from -400 to 400", "7"),
    ):
        assert session.send(line).strip() == answer
        assert session.send("get_komi") == f"= {komi}\n\n"


def test_an_illegal_move_of_the_player_is_not_played() -> None:
    class Cheat(FakePlayer):
        def decide(self, request: Request[GoGame]) -> Decision:
            return replace(super().decide(request), move=60)

    session = ScriptedSession(Cheat(Options(size=9)))
    session.send("play b e5")
    assert session.send("genmove w").startswith("?")
    assert session.send("move_history") == "= black E5\n\n"


def answer_all(session: ScriptedSession, *lines: str) -> None:
    """Let lines come all at once, and answer them."""
    session.inbox = Inbox()
    for line in lines:
        session.receive(line.encode())
    while session.inbox.wait(0):
        item = session.inbox.take()
        assert item is not None
        session.handle(item[0])


@pytest.mark.parametrize("line", ["time_left w 100 0", "time_left w soon", "cputime", "# comment", ""])
def test_pondering_begins_when_nothing_is_left_to_answer(line: str) -> None:
    session = ScriptedSession(FakePlayer(Options(size=9, ponder=True)))
    answer_all(session, "genmove b", line, line)
    assert session.fake.calls == ["decide", "ponder"]
    answer_all(session, line)
    assert session.fake.calls == ["decide", "ponder"]
    answer_all(session, "play w a1", line)
    assert not session.fake.is_searching
    answer_all(session, "genmove b", line, "play w a2", line)
    assert session.fake.calls == ["decide", "ponder", "decide"]
    answer_all(session, "genmove b", line, "undo", line)
    assert session.fake.calls == ["decide", "ponder", "decide", "decide"]
    answer_all(session, "genmove b", "quit")
    assert session.fake.calls[4:] == ["decide"]


@pytest.mark.parametrize("name", ["kata-search", "kata-search_cancellable", "kata-search_analyze"])
def test_pondering_begins_when_the_move_of_a_search_is_played(name: str) -> None:
    session = ScriptedSession(FakePlayer(Options(size=9, ponder=True)))
    for lines in ([f"{name} b"], ["time_left w 9 0", "showboard"]):
        answer_all(session, *lines)
        assert session.fake.calls == ["decide"]
    answer_all(session, "play b e5")
    assert session.fake.calls == ["decide", "ponder"]
    answer_all(session, "play w a1")
    assert not session.fake.is_searching
    answer_all(session, f"{name} b", "play b a9")
    assert not session.fake.is_searching
    answer_all(session, "undo", "play w e6", "play b d5")  # what the search found, but later
    assert session.fake.calls == ["decide", "ponder", "decide"]


QUESTIONS = (
    "showboard", "query_boardsize", "get_komi", "list_stones b", "color a1", "is_legal w a1", "all_legal w",
    "captures b", "move_history", "last_move", "printsgf", "kata-get-rules", "kata-get-param visits",
    "kata-get-param nonsense", "kata-list-params", "kata-get-params", "kata-get-models", "no_such_command", "7",
    "name", "cgos-opponent_name x",
)  # fmt: skip
INTERRUPTIONS = (
    "komi 7.5", "komi 6.5", "komi much", "final_score", "final_status_list dead", "final_status z9", "yomi-pv",
    "yomi-ownership", "kata-raw-nn 0", "kata-set-param visits 7", "yomi-param",
)  # fmt: skip


@pytest.mark.parametrize(("lines", "searches"), [(QUESTIONS, 1), (INTERRUPTIONS, 2)])
def test_pondering_goes_on_after_what_leaves_the_turn(lines: tuple[str, ...], searches: int) -> None:
    for line in lines:
        session = ScriptedSession(FakePlayer(Options(size=9, ponder=True)))
        answer_all(session, "genmove b")
        answer_all(session, line)
        assert session.fake.is_searching, line
        assert session.fake.calls.count("ponder") == searches, line
        answer_all(session, "play w a1", line)
        assert not session.fake.is_searching, line


class Breaking(FakePlayer):
    """A player whose search in the background fails, which `stop` says once."""

    def __init__(self, error: Exception) -> None:
        super().__init__(Options(size=9, ponder=True))
        self.error = error

    def stop(self) -> None:
        if self.is_searching:
            self.is_searching = False
            raise self.error


DEVICE_ERRORS = [EvaluatorError("the device is gone"), RuntimeError("the device is gone")]


@pytest.mark.parametrize("error", DEVICE_ERRORS, ids=["EvaluatorError", "RuntimeError"])
@pytest.mark.parametrize("line", ["play w d4", "play w z9"])
def test_pondering_that_fails_leaves_the_next_command(
    line: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    session = ScriptedSession(Breaking(error))
    session.script.wait = lambda timeout=None: False  # type: ignore[method-assign]
    session.send("genmove b")
    assert session.fake.is_searching
    is_legal = line.endswith("d4")
    assert session.send(line) == ("=\n\n" if is_legal else "? invalid vertex 'z9': expected A1 to J9 or pass\n\n")
    assert session.send("last_move") == f"= {'white D4' if is_legal else 'black E5'}\n\n"
    assert "the device is gone" in caplog.text


def test_only_analyses_are_widened_and_hide_the_moves_so_far() -> None:
    session = ScriptedSession(FakePlayer(Options(size=9)))
    session.send("kata-set-param analysisWideRootNoise 0.5")
    session.send("kata-analyze b 5", ticks=1)
    session.send("genmove b")
    analysis, move = (session.fake.requests[i] for i in (0, -1))
    assert analysis.options is not None
    assert (analysis.options.wide_root_noise, analysis.hide_history) == (0.5, True)
    assert (move.options or session.fake.options).wide_root_noise == 0.0
    assert not move.hide_history


def test_analyses_are_at_full_strength_at_any_level() -> None:
    session = ScriptedSession(FakePlayer(Options(size=9)))
    session.send("kata-set-param level 3")
    session.send("kata-analyze b 5", ticks=1)
    session.send("genmove b")
    analysis, move = (session.fake.requests[i].options or session.fake.options for i in (0, -1))
    assert (analysis.people_prior, analysis.people_loss, analysis.visits, analysis.use_lcb) == (0.0, 0.0, None, True)
    level = level_settings(GO, 3, Options(size=9))
    names = ("people_prior", "people_loss", "visits", "use_lcb")
    assert [move.get(name) for name in names] == [level[name] for name in names]
    assert move.people_prior > 0.0
    assert analysis.net == move.net


@pytest.mark.parametrize("error", DEVICE_ERRORS, ids=["EvaluatorError", "RuntimeError"])
def test_an_analysis_that_fails_is_ended(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    session = ScriptedSession(Breaking(error))
    answer = session.send("5 kata-analyze b 5", ticks=2)
    assert answer.startswith("=5\ninfo move E5")
    assert answer.endswith("\n\n")
    assert session.send("6 name") == "=6 yomi\n\n"
    assert "the device is gone" in caplog.text

    class Mute(FakePlayer):
        def report(self) -> SearchReport:
            raise error

    session = ScriptedSession(Mute(Options(size=9)))
    assert session.send("7 lz-analyze", ticks=2) == "=7\n\n"
    assert not session.fake.is_searching
    assert session.send("8 name") == "=8 yomi\n\n"


def test_clock_runs_for_moves_that_are_played() -> None:
    session = ScriptedSession(FakePlayer(Options(size=9, lag=0.5), seconds=0.05))
    session.send("time_settings 10 0 0")
    session.arrival = time.monotonic()
    session.send("genmove b")
    assert 0.0 < session.clock.clocks()[1].main < 9.46
    left = session.clock.clocks()[1].main
    session.send("reg_genmove b")
    assert session.clock.clocks()[1].main == left
    session.send("kata-time_settings fischer 20 3")
    assert session.clock.settings.system is TimeSystem.FISCHER
    session.send("time_left w 7 0")
    assert session.clock.clocks()[2].main == 7
    session.send("clear_board")
    assert session.clock.clocks()[2].main == 20


def test_reports_during_a_move() -> None:
    player = FakePlayer(Options(size=9), seconds=1.0)
    session = ScriptedSession(player)
    session.now = time.monotonic  # type: ignore[method-assign]
    session.arrival = begin = time.monotonic()
    lines = session.send("3 kata-genmove_analyze b 4 ownership true").splitlines()
    assert lines[0] == "=3"
    assert 1 <= len(lines) - 3 <= (time.monotonic() - begin) / 0.04
    assert all(line.startswith("info move E5") for line in lines[1:-2])
    assert all(len(line.partition("ownership ")[2].split()) == 81 for line in lines[1:-2])
    assert lines[-2:] == ["play E5", ""]


def test_a_line_cancels_a_cancellable_search() -> None:
    session = ScriptedSession(FakePlayer(Options(size=9), seconds=600))
    session.script.wait = lambda timeout=None: True  # type: ignore[method-assign]
    start = time.monotonic()
    assert session.send("kata-search_cancellable b") == "= cancelled\n\n"
    assert session.send("kata-search_analyze_cancellable b") == "=\nplay cancelled\n\n"
    assert time.monotonic() - start < 60


def test_too_long_a_line() -> None:
    answer = ScriptedSession().send(b"5 echo " + b"x" * MAX_LINE)
    assert answer.startswith("?5 line too long")


def test_a_player_that_cannot_be_made() -> None:
    def fail() -> FakePlayer:
        raise LoadError("no such network")

    written: list[str] = []
    session = Session(Options(), fail, written.append)
    session.receive(b"name")
    session.start_loading().join()
    with pytest.raises(LoadError, match="no such network"):
        session.run()
    assert written == ["= yomi\n\n"]


def test_the_loop_answers_everything_before_the_end_of_input(caplog: pytest.LogCaptureFixture) -> None:
    written: list[str] = []
    player = FakePlayer(Options(size=9), seconds=600)
    session = Session(player.options, lambda: player, written.append)
    for line in (b"1 genmove b", b"2 genmove w", b"3 kata-analyze 1", b"4 name"):
        session.receive(line)
    session.start_loading()
    threading.Thread(target=session.receive_end, args=(False,), daemon=True).start()
    start = time.monotonic()
    session.run()
    assert time.monotonic() - start < 60
    assert "".join(written) == "=1 E5\n\n=2 E6\n\n=3\n\n=4 yomi\n\n"
    (told,) = (record.getMessage() for record in caplog.records)  # once, for two moves
    assert "with quit at its end" in told


@pytest.mark.parametrize(
    ("command", "is_told"),
    [("genmove b", True), ("genmove w", False), ("yomi-ownership", True), ("final_status_list dead", False)],
)
def test_only_searches_are_cut_short(command: str, is_told: bool, caplog: pytest.LogCaptureFixture) -> None:
    class Hurried(FakePlayer):
        """White's moves need no search, and without a network dead stones do not."""

        @property
        def models(self) -> list[dict[str, Any]]:
            return [] if command == "final_status_list dead" else [{"name": "fake"}]

        def decide(self, request: Request[GoGame]) -> Decision:
            return super().decide(request) if request.game.side_to_move == BLACK else Decision(PASS)

        def final_ownership(self, game: GoGame) -> npt.NDArray[np.float32]:
            session.interrupt()
            return super().final_ownership(game)

    session = ScriptedSession(Hurried(Options(size=9, rules="japanese")))
    session.is_hurried = True
    session.send("play b e5")
    assert session.send(command).startswith("=")
    assert ["searches are cut short" in message for message in caplog.messages] == [True] * is_told


def test_the_debug_log_has_every_line(caplog: pytest.LogCaptureFixture) -> None:
    session = ScriptedSession()
    with caplog.at_level("DEBUG", "yomi.gtp"):
        for line in ("1 play b e5", "2 nonsense", "3 captures b", "showboard"):
            session.send(line)
        session.send("4 lz-analyze b", ticks=1)
    logged = [record.getMessage() for record in caplog.records]
    assert logged[:6] == [
        "< 1 play b e5", "> =1", "< 2 nonsense", "> ?2 unknown command nonsense", "< 3 captures b", "> =3 0",
    ]  # fmt: skip
    assert [line.strip() for line in logged[7:9]] == ["> =", ">     A B C D E F G H J"]
    assert logged[-3:-1] == ["< 4 lz-analyze b", "> =4"]
    assert logged[-1].startswith("> info move E6")


class Undertaker(FakePlayer):
    """Takes all stones for dead."""

    def final_ownership(self, game: GoGame) -> npt.NDArray[np.float32]:
        return -super().final_ownership(game)


@pytest.mark.parametrize(("rules", "agreed"), [("tromp-taylor", False), ("chinese", True), ("japanese", True)])
def test_a_finished_game_is_scored_by_its_rules(rules: str, agreed: bool) -> None:
    session = ScriptedSession(Undertaker(Options(size=5, rules=rules, komi=0.5)))

    def verdict() -> list[str]:
        lines = ("final_score", "final_status_list dead", "final_status_list alive", "final_status c3")
        return [session.send(line).strip() for line in lines]

    session.send("play b c3")
    assert verdict() == ["= W+1.5", "= C3", "=", "= dead"], "the expected score"
    session.send("play w pass")
    session.send("play b pass")
    dead = {"chinese": "W+0.5", "japanese": "W+1.5"}.get(rules)
    assert verdict() == ([f"= {dead}", "= C3", "=", "= dead"] if agreed else ["= B+24.5", "=", "= C3", "= alive"])
    text = session.send("printsgf")
    assert f"RE[{dead or 'B+24.5'}]" in text
    assert ";W[];B[]" in text.replace("\n", ""), "programs for FF[4] take tt for a point"


@pytest.mark.parametrize(
    ("lead", "komi", "rules", "answer"),
    [
        (1.5, 7.5, "chinese", "W+1.5"),  # White is to move
        (4.2, 6.5, "japanese", "W+4.5"),
        (-4.2, 6.5, "japanese", "B+4.5"),
        (0.2, 7.0, "chinese", "0"),
        (-0.2, 6.5, "japanese", "B+0.5"),
        (13.3, 3.75, "chinese", "W+13.75"),
    ],
)
def test_an_unfinished_game_has_the_searched_score(lead: float, komi: float, rules: str, answer: str) -> None:
    class Searching(FakePlayer):
        def decide(self, request: Request[GoGame]) -> Decision:
            decision = super().decide(request)
            return replace(decision, report=replace(decision.report, score_lead=lead))

    session = ScriptedSession(Searching(Options(size=9, rules=rules, komi=komi)))
    session.send("play b e5")
    assert session.send("final_score").strip() == f"= {answer}"
    assert "RE[" not in session.send("printsgf")


def test_quit_leaves_the_rest() -> None:
    written: list[str] = []
    session = Session(Options(size=9), FakePlayer, written.append)
    for line in (b"1 quit", b"2 name"):
        session.receive(line)
    session.run()
    assert written == ["=1\n\n"]


def test_interrupt_ends_a_move() -> None:
    player = FakePlayer(Options(size=9), seconds=600)
    session = ScriptedSession(player)
    decide = player.decide

    def decide_and_interrupt(request: Request[GoGame]) -> Decision:
        threading.Timer(0.1, session.receive, [b"# interrupt"]).start()
        return decide(request)

    player.decide = decide_and_interrupt  # type: ignore[method-assign]
    start = time.monotonic()
    assert session.send("genmove b") == "= E5\n\n"
    assert time.monotonic() - start < 60


def test_an_interrupt_counts_for_what_was_asked_for_before_it() -> None:
    session = ScriptedSession(FakePlayer(Options(size=9), seconds=600))
    session.arrival = start = time.monotonic()
    session.receive(b"# interrupt")
    assert session.send("genmove b") == "= E5\n\n"
    assert time.monotonic() - start < 60
    session.fake.seconds = 0.3
    session.arrival = start = time.monotonic()
    assert session.send("genmove w") == "= E6\n\n"
    assert time.monotonic() - start >= 0.3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("avoid b c3,c4 1", None),
        ("avoid b c3 20", "avoid: depth 20 is read as 1: only the first move is restricted"),
        ("allow w c3 1", "allow w is ignored: only the first move, B's, is restricted"),
    ],
)
def test_restrictions_that_are_not_met_are_told(words: str, told: str | None, caplog: pytest.LogCaptureFixture) -> None:
    session = ScriptedSession()
    assert session.send(f"kata-analyze b {words}").startswith("=")
    assert [record.getMessage() for record in caplog.records] == ([told] if told else [])


def test_the_raw_network_is_asked_for_a_color_with_optimism() -> None:
    session = ScriptedSession()
    for line in ("kata-raw-nn 3", "kata-raw-nn w 3", "kata-raw-nn black 3 0.5", "kata-raw-nn 3 1"):
        assert session.send(line).startswith("= symmetry 3")
    assert session.fake.calls == [
        "evaluate 3 1 None",
        "evaluate 3 2 None",
        "evaluate 3 1 0.5",
        "evaluate 3 1 1.0",
    ]


def test_several_parameters_are_set_or_none() -> None:
    class Stubborn(FakePlayer):
        def load(self, game: GoGame) -> None:
            super().load(game)
            if self.options.rollout_weight:
                raise EvaluatorError("expected a network")

    session = ScriptedSession(Stubborn(Options(size=9, visits=100)))
    line = 'kata-set-params {"visits": 5, "maxTime": 3.0, "rollout_weight": 0.5, "playouts": 7}'
    assert session.send(line) == "? expected a network\n\n"
    assert session.options == Options(size=9, visits=100)


def test_closed_output_ends_an_analysis() -> None:
    session = ScriptedSession()

    def write(text: str) -> None:
        if text.startswith("info"):
            raise OutputClosedError("gone")

    session.write = write
    with pytest.raises(OutputClosedError):
        session.send("kata-analyze b 5", ticks=2)
    assert not session.fake.is_searching


# -- lines and answers as text ---------------------------------------------------------------------------------------


@looped(
    ("line", "expected"),
    [
        (b"name", Command(None, "name", ())),
        (b"name\r", Command(None, "name", ())),
        (b"12 play B D4\r", Command("12", "play", ("B", "D4"))),
        (b"  007\tPLAY\tb   pass  ", Command("007", "play", ("b", "pass"))),
        (b"genmove b # think", Command(None, "genmove", ("b",))),
        (b"3 # nothing", Command("3", "", ())),
        (b"99999999999999999999 name", Command("99999999999999999999", "name", ())),
        (b"-1 name", Command(None, "-1", ("name",))),
        (b"na\x00me\x07", Command(None, "name", ())),
        (b"loadsgf \xff.sgf", Command(None, "loadsgf", ("\udcff.sgf",))),
        ("٣ name".encode(), Command(None, "٣", ("name",))),
        ("play b d4\u00a0x".encode(), Command(None, "play", ("b", "d4\u00a0x"))),
    ],
)
def test_lines(line: bytes, expected: Command) -> None:
    assert parse_line(line) == expected


@pytest.mark.parametrize("line", [b"", b"\r", b"   \t", b"# 12 name", b" # x", b"\x01\x02"])
def test_lines_without_a_command(line: bytes) -> None:
    assert parse_line(line) is None


@looped(
    ("number", "text", "ok", "expected"),
    [
        (None, "", True, "=\n\n"),
        ("5", "", True, "=5\n\n"),
        ("5", "D4", True, "=5 D4\n\n"),
        (None, "a\n\n\nb\n", True, "= a\nb\n\n"),
        (None, "\n  A B\n 1 . .", True, "=\n  A B\n 1 . .\n\n"),
        ("1", "illegal move", False, "?1 illegal move\n\n"),
        (None, "two\n\nlines", False, "? two; lines\n\n"),
        (None, "\nx", False, "? x\n\n"),
    ],
)
def test_answers(number: str | None, text: str, ok: bool, expected: str) -> None:
    assert format_response(number, text, ok) == expected


def test_long_errors_are_cut() -> None:
    assert len(format_response(None, "x" * 10000, ok=False)) < MAX_ERROR + 20


def test_bytes_that_are_not_text_come_back_unchanged() -> None:
    command = parse_line(b"echo \xff\xfe")
    assert command is not None
    assert encode(command.text) == b"\xff\xfe"


def test_interrupt() -> None:
    assert is_interrupt(b"# interrupt\r")
    assert not is_interrupt(b"# interrupted")
    assert not is_interrupt(b"interrupt")


@given(st.binary(max_size=200))
def test_any_line_can_be_read(line: bytes) -> None:
    command = parse_line(line)
    if command is not None:
        assert command.id is None or command.id.isdigit()
        encode(format_response(command.id, command.text))


@given(st.text(max_size=200), st.booleans())
def test_an_answer_ends_with_its_only_empty_line(text: str, ok: bool) -> None:
    answer = format_response("1", text, ok)
    assert answer.endswith("\n\n")
    assert answer.index("\n\n") == len(answer) - 2
