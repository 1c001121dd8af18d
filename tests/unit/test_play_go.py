"""Go in the terminal and self-play, with a fake player."""

import dataclasses
import io
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.player import FakePlayer
from tests.sgf import read_sgf
from tests.unit.command_lines import play_with
from tests.unit.test_go_game import take_kos_once_around, three_kos
from yomi.engine.cli.main import main
from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.learning import GoRecorder
from yomi.engine.go.record_files import load_record
from yomi.engine.go.rules import PRESETS
from yomi.engine.options import Options
from yomi.engine.players.request import Decision, Request
from yomi.engine.registry import GO
from yomi.engine.selfplay import Series
from yomi.native.go.board import BLACK, PASS


def test_a_game_in_the_terminal(tmp_path: Path) -> None:
    player = FakePlayer(Options(size=5))
    path = tmp_path / "game.sgf"
    terminal, text = play_with(
        ["help", "A1", "a1", "z9", "back", "score", "hint", "undo", "undo", "B2", "board", f"save {path}", "save",
         "resign", f"save {tmp_path}/no/such/game.sgf", "b1", "quit"],
        player,
    )  # fmt: skip
    assert terminal.result == "W+R"
    assert "illegal move B A1" in text
    assert "invalid vertex 'z9': expected A1 to E5 or pass\n" in text
    assert "invalid vertex 'back': expected A1 to E5 or pass; help lists the commands\n" in text
    assert "cannot undo" in text
    assert "expected a file name" in text
    assert "cannot write" in text
    assert "the game is over" in text
    assert "16 visits" in text
    record = load_record(path)
    assert (record.black, record.white) == ("you", "yomi")
    assert len(record.game().moves) == 2


def test_two_passes_end_a_game_in_the_terminal() -> None:
    player = FakePlayer(Options(size=2, komi=0.5))
    game = new_game(player.options)
    game.play(1, 4)
    game.play(2, 423)
    terminal, text = play_with(["pass", "quit"], player, game=game)
    assert terminal.result is not None
    assert "Result: B+" in text


def test_a_game_without_result_in_the_terminal(tmp_path: Path) -> None:
    game, tops = three_kos(PRESETS["japanese"])
    for _ in range(2):
        take_kos_once_around(game, tops)
    path = tmp_path / "game.sgf"
    terminal, text = play_with(["score", f"save {path}", "quit"], FakePlayer(), game=game)
    assert terminal.result == load_record(path).result == "Void"
    assert "Result: Void" in text
    assert "as the board stands, dead stones taken off: Void" in text


def test_the_engine_may_resign_and_watch() -> None:
    player = FakePlayer(Options(size=5), resign_at=4)
    terminal, text = play_with([], player, human=None)
    assert terminal.result == "W+R"
    assert "B resigns." in text


def test_end_of_input_leaves_the_terminal() -> None:
    terminal, _ = play_with(["C3"], FakePlayer(Options(size=5)))
    assert terminal.result is None


def test_play_with_handicap(
    fake_players: list[FakePlayer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("C3\nhint\nquit\n"))
    assert main(["play", "go", "--no-save", "--size", "9", "--color", "white", "--handicap", "2"]) == 0
    assert fake_players[0].requests[0].game.handicap == 2
    assert fake_players[0].requests[0].game.komi == 0.5
    monkeypatch.setattr("sys.stdin", io.StringIO("C3\nhint\nquit\n"))
    assert main(["play", "go", "--no-save", "--size", "9", "--color", "white", "--handicap", "2", "--komi", "3.5"]) == 0
    assert fake_players[-1].requests[0].game.komi == 3.5
    assert fake_players[0].calls[-1] == "close"
    assert "W> " in capsys.readouterr().out


def test_selfplay(tmp_path: Path, fake_players: list[FakePlayer], capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "games"
    words = ["selfplay", "go", "--games", "2", "--size", "5", "--komi", "2.5", "--out", str(folder)]
    assert main([*words, "--playouts", "7"]) == 0
    captured = capsys.readouterr()
    assert re.match(r"2 games in [\d.]+ s: Black won \d, White \d, drawn \d; [\d.]+ moves a game", captured.out)
    assert "2/2" in captured.err
    options = fake_players[0].options
    assert (options.visits, options.playouts, options.temperature, options.resign) == (None, 7, 1.0, False)
    records = [read_sgf(path.read_bytes()) for path in sorted(folder.iterdir())]
    assert len(records) == 2
    assert all(record.komi == 2.5 and record.result[:2] in ("B+", "W+") for record in records)
    assert all("16 visits" in node.comment for node in records[0].nodes() if node.move)
    assert records[0].game().is_over
    assert main([*words, "--games", "1"]) == 0
    assert fake_players[1].options.visits == 200
    assert len(list(folder.iterdir())) == 3


def series(player: FakePlayer) -> Series[GoGame]:
    """Return games of Go that a player plays against itself."""
    return Series(GO, player, GoRecorder(None, player.options))


def test_selfplay_scores_games_that_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.go.scoring.MOVES_PER_POINT", 0.2)
    game = series(FakePlayer(Options(size=5))).play(0)
    assert len(game.game.moves) == 5
    resigned = series(FakePlayer(Options(size=5), resign_at=3)).play(0)
    assert (len(resigned.game.moves), resigned.ended.winner) == (3, 1)
    assert b"RE[B+R]" in resigned.files[".sgf"]


def test_selfplay_gives_a_game_without_result_to_nobody() -> None:
    class TripleKo(FakePlayer):
        """Plays the stones of three kos, then takes them twice around."""

        def decide(self, request: Request[GoGame]) -> Decision:
            return dataclasses.replace(super().decide(request), move=moves.pop(0))

    game, tops = three_kos(PRESETS["japanese"])
    stones: dict[bool, list[int]] = {True: [], False: []}
    for color, point in game.stones():
        stones[color == BLACK].append(point)
    moves = [move for pair in zip([*stones[True], PASS], stones[False], strict=True) for move in pair]
    for _ in range(2):
        take_kos_once_around(game, tops)
    moves += [move for _, move in game.moves]
    played = series(TripleKo(Options(rules="japanese"))).play(0)
    assert (moves, len(played.game.moves), played.ended.winner) == ([], 34, 0)
    assert b"RE[Void]" in played.files[".sgf"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_selfplay_that_is_interrupted_tells_what_was_played(
    number: int, tmp_path: Path, fake_players: list[FakePlayer], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    played = Series.play

    def play(self: Series[Any], index: int) -> Any:
        if index == 2:
            signal.raise_signal(number)
        return played(self, index)

    monkeypatch.setattr(Series, "play", play)
    before = signal.signal(signal.SIGTERM, lambda *of_signal: None)
    words = ["selfplay", "go", "--games", "9", "--size", "5", "--out", str(tmp_path)]
    try:
        if number == signal.SIGINT:
            assert main(words) == 130
        else:
            with pytest.raises(SystemExit) as ended:
                main(words)
            assert ended.value.code == 128 + number
    finally:
        signal.signal(signal.SIGTERM, before)
    assert re.match(r"2 games in [\d.]+ s: Black won", capsys.readouterr().out)
    assert len(list(tmp_path.iterdir())) == 2
    assert fake_players[0].calls[-1] == "close"
