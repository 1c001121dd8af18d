"""The USI session without a process: when it loads, what it shows, and how it ends."""

import re
import threading
from pathlib import Path

import pytest

from tests.fakes.shogi_player import FakeShogiPlayer
from tests.looping import looped
from tests.waiting import wait_until
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.levels import level_settings
from yomi.engine.options import Options
from yomi.engine.protocols.session import LoadError
from yomi.engine.shogi.descriptor import GAME
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.players.player import BookLoadingError
from yomi.engine.shogi.usi.session import SHOWN_LOGS, Session

ROOT = Path(__file__).parents[2]
GOES = ("go byoyomi 100", "go infinite", "go ponder byoyomi 100", "go ponder infinite")
MIDDLES = (
    *("", "stop", "ponderhit", "gameover lose", "usinewgame", "position startpos", "isready", "go nodes 1"),
    *("setoption name MultiPV value 2", "nonsense"),
)


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, the last answer is waited for."""
    monkeypatch.setattr("yomi.engine.shogi.usi.session.PATIENCE", 60.0)


class Talk:
    """A session that is spoken to line by line."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.player = FakeShogiPlayer(Options.for_game("shogi"), seconds)
        self.written: list[str] = []
        self.session = Session(self.player.options, lambda _: self.player, self.written.append)

    def say(self, *lines: str) -> None:
        for line in lines:
            assert self.session.handle(line.encode())
            with self.session.lock:  # a turn counts as answered a moment before its answer is written
                pass

    @property
    def answers(self) -> list[str]:
        return [line for line in "".join(self.written).splitlines() if line.startswith("bestmove")]


def test_what_has_to_be_loaded_waits_for_isready() -> None:
    talk = Talk()
    talk.say("isready", "position startpos", "setoption name DNN_Model value other.onnx")
    talk.player.error = "no such network"
    talk.say("position startpos moves 7g7f", "d", "moves", "go nodes 1", "stop", "usinewgame", "go infinite", "stop")
    assert len(talk.answers) == 2
    assert talk.player.calls.count("load") == 1
    with pytest.raises(LoadError, match="no such network"):
        talk.say("isready")
    assert talk.player.calls.count("load") == 2


def test_a_device_that_is_not_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    talk = Talk()

    def fail(player: FakeShogiPlayer, game: ShogiGame) -> None:
        raise EvaluatorError("device cuda: no driver")

    monkeypatch.setattr(FakeShogiPlayer, "load", fail)
    with pytest.raises(LoadError, match=r"^device cuda: no driver$"):
        talk.say("isready")
    assert not any(record.exc_info for record in caplog.records)


def test_signs_of_life_while_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.shogi.usi.session.KEEP_ALIVE", 0.05)
    talk, load = Talk(), FakeShogiPlayer.load

    def load_after_a_sign(player: FakeShogiPlayer, game: ShogiGame) -> None:
        wait_until(lambda: talk.written)
        load(player, game)

    monkeypatch.setattr(FakeShogiPlayer, "load", load_after_a_sign)
    talk.say("isready", "position startpos", "go nodes 1")
    lines = "".join(talk.written).splitlines()
    assert re.fullmatch(r"info string loading, \d+ s \.\.\.", lines[0])
    talk.session.receive(b"quit")
    talk.session.run()
    assert talk.answers == ["bestmove 1g1f ponder 1a1b"]


@pytest.mark.parametrize("first", ["isready", "position startpos", "go nodes 1", "d", "moves"])
def test_what_needs_the_player_first_loads_it(first: str) -> None:
    talk = Talk()
    talk.say("usi", "setoption name MultiPV value 2", first, "stop")
    assert talk.player.calls == ["load", *["decide"] * first.startswith("go")]


@looped("go", GOES)
@looped("seconds", [0.0, 60.0])
def test_every_go_gets_one_answer_before_the_end(go: str, seconds: float) -> None:
    for middle in (None, *MIDDLES):
        talk = Talk(seconds)
        talk.say("isready", "position startpos moves 7g7f", go, *([] if middle is None else [middle]))
        talk.session.receive(b"quit")
        talk.session.receive(b"go nodes 1")  # nobody reads this
        talk.session.run()
        assert len(talk.answers) == 1 + (middle == "go nodes 1"), middle


@pytest.mark.parametrize("goes", [["go depth 300"], ["go nodes x"], ["go"], ["go mate 60000"], ["go nodes 5"] * 3])
def test_input_without_quit_gets_short_searches(goes: list[str]) -> None:
    talk = Talk(600.0)
    talk.say("isready", "position startpos")
    for go in goes:
        talk.session.receive(go.encode())
    talk.session.receive_end(False)
    thread = threading.Thread(target=talk.session.run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    lines = "".join(talk.written).splitlines()
    assert sum(line.startswith(("bestmove", "checkmate")) for line in lines) == len(goes)
    assert sum("with quit at its end searches are full" in line for line in lines) == len(goes)


REFUSED = (
    "position startpos moves 7g7f 7g7f",
    "position startpos moves 7g7f resign",
    "position sfen 8k/7p1/7pP/9/9/9/9/9/9 b G2r2b3g4s4n4l15p 1",
    "position nonsense",
    f"position startpos moves {'7g7f 3c3d ' * 50_000}",
    f"position startpos moves {'7g7f 3c3d ' * 110_000}",
)


@looped("refused", REFUSED)
@looped("go", [*GOES, "go nodes 1", "go mate 100", "go mate infinite"])
def test_a_refused_position_has_no_answer(refused: str, go: str) -> None:
    """Neither is there an answer for the position before, nor one before `stop` if that has to come first."""
    talk = Talk()
    talk.say("isready", "position startpos moves 7g7f", refused, go)
    assert talk.session.turn is not None
    if go in GOES[1:]:
        assert not talk.session.turn.join(0.05)
    talk.say("stop")
    lines = "".join(talk.written).splitlines()
    assert lines[-1] == ("checkmate timeout" if "mate" in go else "bestmove resign")
    assert re.match("info string Error! go: the last position was refused (.+)", lines[-2])
    assert re.match("info string Error! position: .*; no move is searched until", lines[-3])
    assert "decide" not in talk.player.calls
    talk.say("d", "moves", "usinewgame", "go nodes 1", "stop")
    lines = "".join(talk.written).splitlines()[len(lines) :]
    assert [line.split(": ")[1] for line in lines[:2]] == ["there is no position"] * 2
    assert lines[-1] == "bestmove resign"
    talk.say("position startpos", "go nodes 1", "stop")
    assert talk.answers[-1] == "bestmove 1g1f ponder 1a1b"


def test_a_book_that_cannot_be_used_does_not_end_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    talk, load = Talk(), FakeShogiPlayer.load

    def fail(player: FakeShogiPlayer, game: ShogiGame) -> None:
        if player.options.book_file is not None:
            raise BookLoadingError(f"{player.options.book_file}: no book")
        load(player, game)

    monkeypatch.setattr(FakeShogiPlayer, "load", fail)
    talk.say("setoption name BookFile value a.db", "isready", "position startpos", "go nodes 1", "stop")
    lines = "".join(talk.written).splitlines()
    assert lines[0] == "info string Error! a.db: no book; the engine plays without a book"
    assert "readyok" in lines
    assert len(talk.answers) == 1


def test_whatever_the_player_warns_of_is_shown() -> None:
    for folder in ("engine/players", "engine/evaluators", "engine/search", "nets"):
        for path in (ROOT / folder).rglob("*.py"):
            if "training" in path.parts:  # no player trains
                continue
            for name in re.findall(r'getLogger\("(yomi\.[a-z]+)"\)', path.read_text(encoding="utf-8")):
                assert name in SHOWN_LOGS, path


def test_a_level_limits_moves_and_no_endless_analysis() -> None:
    talk = Talk()
    talk.say("setoption name Level value 3", "setoption name UCT_NodeLimit value 500", "isready", "position startpos")
    talk.say("go nodes 1", "stop", "go infinite", "stop")
    move, analysis = (request.options or talk.player.options for request in talk.player.requests)
    level = level_settings(GAME, 3, Options.for_game("shogi").with_values({"visits": 500}))
    assert {name: move.get(name) for name in level} == level
    assert (analysis.visits, analysis.people_prior, analysis.people_loss) == (500, 0.0, 0.0)
    assert analysis.net == move.net
    talk.say("setoption name Level value 0")
    assert (talk.player.options.visits, talk.player.options.net) == (500, None)
    talk.say("setoption name Level value 99")
    assert "Level: expected a number from -1 to 20, found '99'; it stays 0" in talk.written[-1]


def test_the_options_are_the_rules_of_the_next_go() -> None:
    talk = Talk()
    talk.say("isready", "position startpos", "setoption name EnteringKingRule value TryRule")
    talk.say("setoption name MaxMovesToDraw value 100", "go nodes 1", "stop", "position startpos moves 7g7f")
    talk.say("setoption name EnteringKingRule value NoEnteringKing", "go nodes 1", "stop")
    games = [request.game for request in talk.player.requests]
    assert [(game.entering_king, game.max_moves) for game in games] == [("try", 100), ("none", 100)]
