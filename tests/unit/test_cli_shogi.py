"""Shogi on the command line in this process: the terminal game and self-play with a fake player."""

import errno
import io
import re
from pathlib import Path

import pytest

from tests.fakes.shogi_player import FakeShogiPlayer
from tests.unit.command_lines import error_of, play_at
from tests.unit.shogi_records import hcpe_rows
from yomi.engine.cli.main import main
from yomi.engine.game import Game, Say
from yomi.engine.options import Options
from yomi.engine.players.request import LoadingError
from yomi.engine.records import record_score
from yomi.engine.selfplay import Files
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.records.files import load_records
from yomi.engine.shogi.terminal import ShogiTerminalGame
from yomi.engine.terminal import Terminal

DECLARABLE = "KGGGGSSSS/9/NNNN5/9/9/9/9/9/4k4 b 2R2B8P 1"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[FakeShogiPlayer]:
    """Let the commands play with a fake player; the list holds those that were made."""
    made: list[FakeShogiPlayer] = []

    def make(game: str, options: Options, say: Say) -> FakeShogiPlayer:
        made.append(FakeShogiPlayer(options))
        return made[-1]

    monkeypatch.setattr(Game, "load_player", make)
    monkeypatch.setattr(Game, "prepare", lambda *_: None)
    return made


def play_with(
    lines: list[str],
    player: FakeShogiPlayer | None = None,
    human: int | None = 1,
    *,
    game: ShogiGame | None = None,
    japanese: bool = False,
) -> tuple[Terminal, str]:
    """Return the terminal and what it showed after the user typed `lines`."""
    return play_at(ShogiTerminalGame(player or FakeShogiPlayer(), game or ShogiGame(), japanese=japanese), lines, human)


def test_a_game_in_the_terminal(tmp_path: Path) -> None:
    player = FakeShogiPlayer()
    path = tmp_path / "game.csa"
    terminal, text = play_with(
        ["help", "7g7f", "2g2e", "x", "hint", "undo", "undo", "２六歩", "4746FU", "sfen", "board", "declare",
         f"save {path}", "save", f"save {tmp_path}/game.txt", f"save {tmp_path}/no/game.csa", "resign",
         f"save {tmp_path}/game.kifu", "7g7f", "undo", "quit"],
        player,
    )  # fmt: skip
    assert terminal.result == "White wins by resignation"
    assert "declare the win" in text
    assert "illegal move 2g2e: the piece on 2g does not move there" in text
    assert "not a move: 'x', expected USI (7g7f), CSA (7776FU), ７六歩 or P-7f" in text
    assert "cannot undo: no move has been played" in text
    assert "75.0%" in text
    assert "16 nodes" in text
    assert "the win cannot be declared here" in text
    assert "expected a file name after save" in text
    assert "ending in '.txt': expected one of .csa" in text
    assert "cannot write" in text
    assert "the game is over: expected save FILE or quit" in text
    assert "Black 1> " in text
    saved = load_records(path)[0]
    assert (saved.black, saved.white, saved.ending, len(saved.moves)) == ("you", "yomi", "", 4)
    after = load_records(tmp_path / "game.kifu")[0]
    assert (after.ending, after.winner, after.moves) == ("TORYO", 2, saved.moves)


def test_japanese_in_the_terminal() -> None:
    _, text = play_with(["７六歩", "hint", "quit"], japanese=True)
    assert "先手の持駒：なし" in text
    assert "△１二香 (1a1b)" in text
    assert re.search(r"75\.0%  ▲", text)


def test_the_engine_moves_first_where_the_user_is_white() -> None:
    game = ShogiGame()
    _, text = play_with(["quit"], human=2, game=game)
    assert len(game.moves) == 1
    assert "White 2> " in text


def test_watching_the_engine_resign_or_be_mated() -> None:
    terminal, text = play_with([], FakeShogiPlayer(resign_at=4), human=None)
    assert terminal.result == "White wins by resignation"
    assert "Black resigns." in text
    terminal, text = play_with(["G*5b", "quit"], game=ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1"))
    assert terminal.result == "Black wins: White is mated"


def test_declaring_the_win(tmp_path: Path) -> None:
    game = ShogiGame(DECLARABLE)
    terminal, _ = play_with([], human=None, game=game)
    assert terminal.result == "Black wins by declaration"
    terminal, text = play_with(["hint", "declare", f"save {tmp_path / 'game.csa'}", "quit"], game=game)
    assert terminal.result == "Black wins by declaration"
    assert "declare: the position is won" in text
    assert load_records(tmp_path / "game.csa")[0].ending == "KACHI"


def test_declaring_the_draw(tmp_path: Path) -> None:
    game = ShogiGame("KGGGGSSSS/9/NNNN5/9/9/9/9/9/4k4 b RB8P 1", entering_king="24")
    terminal, _ = play_with(["declare", f"save {tmp_path / 'game.csa'}", "quit"], game=game)
    assert terminal.result == "draw: Black declared it"
    record = load_records(tmp_path / "game.csa")[0]
    assert (record.ending, record.winner) == ("JISHOGI", 0)


def test_a_try_wins(tmp_path: Path) -> None:
    game = ShogiGame("9/4K4/9/9/9/9/9/9/k8 b 2r2b4g4s4n4l18p 1", entering_king="try")
    terminal, text = play_with(["declare", "5b5a", f"save {tmp_path / 'game.csa'}", "quit"], game=game)
    assert "expected 5b5a, which wins" in text
    assert terminal.result == "Black wins: the king has reached the start of the other king"
    record = load_records(tmp_path / "game.csa")[0]
    assert (record.ending, record.winner) == ("TORYO", 1)


def test_play_from_the_command_line(
    fake: list[FakeShogiPlayer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hint\nG*5b\nquit\n"))
    sfen = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    assert main(["play", "shogi", "--no-save", "--sfen", sfen, "--board", "letters", "--entering-king", "24"]) == 0
    out = capsys.readouterr().out
    assert "Result: Black wins: White is mated" in out
    assert "\x1b" not in out
    assert fake[0].requests[0].game.entering_king == "24"
    assert fake[0].calls[-1] == "close"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("play shogi --sfen nonsense", "--sfen: SFEN of 1 fields"),
        ("play shogi --handicap 2", "--handicap 2: expected one of 香落ち (lance)"),
        ("selfplay shogi --games 0", "--games: expected an integer of at least 1"),
        ("selfplay shogi --format pgn", "--format: expected one of csa, kif, usi, hcpe, hcpe3, found 'pgn'"),
        ("selfplay shogi --openings no/such/file", "--openings cannot read no/such/file"),
    ],
)
def test_errors_are_one_line(
    words: str, message: str, fake: list[FakeShogiPlayer], capsys: pytest.CaptureFixture[str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert message in error_of(capsys, *words.split())


def test_a_player_that_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(game: str, options: Options, say: Say) -> FakeShogiPlayer:
        raise LoadingError("device cuda: not here")

    monkeypatch.setattr(Game, "load_player", fail)
    monkeypatch.setattr(Game, "prepare", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    for command in ("play", "selfplay"):
        assert "device cuda: not here" in error_of(capsys, command, "shogi")


def test_selfplay(tmp_path: Path, fake: list[FakeShogiPlayer], capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "games"
    words = ["selfplay", "shogi", "--games", "2", "--out", str(folder), "--max-moves", "30"]
    assert main([*words, "--format", "csa", "kif", "hcpe", "usi"]) == 0
    captured = capsys.readouterr()
    assert re.match(r"2 games in [\d.]+ s: Black won \d, White \d, drawn \d; [\d.]+ moves a game", captured.out)
    assert "2/2" in captured.err
    options = fake[0].options
    assert (options.visits, options.temperature, options.resign, options.max_moves) == (200, 1.0, False, 30)
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        *("game-00001.csa", "game-00001.kifu", "game-00001.usi"),
        *("game-00002.csa", "game-00002.kifu", "game-00002.usi"),
        "games.hcpe",
    ]
    csa, kif, usi = (load_records(folder / f"game-00001{suffix}")[0] for suffix in (".csa", ".kifu", ".usi"))
    assert csa.ending in ("MAX_MOVES", "SENNICHITE", "TSUMI", "+ILLEGAL_ACTION", "-ILLEGAL_ACTION")
    assert [each.move for each in csa.moves] == [each.move for each in kif.moves] == [each.move for each in usi.moves]
    assert {each.score for each in csa.moves} == {record_score(0.75, None, options.centipawns)}
    assert [each.score for each in csa.moves] == [each.score for each in kif.moves]
    assert csa.black == "fake"
    assert csa.game().outcome() is not None or len(csa.moves) == 30
    positions = hcpe_rows((folder / "games.hcpe").read_bytes())
    assert len(positions) == 2 * len(csa.moves)
    assert main([*words, "--visits", "5"]) == 0
    assert fake[1].options.visits == 5
    assert (folder / "game-00004.csa").exists()
    assert (folder / "games.hcpe").stat().st_size == 38 * len(positions)


def test_selfplay_from_openings(tmp_path: Path, fake: list[FakeShogiPlayer]) -> None:
    lines = tmp_path / "lines.sfen"
    lines.write_text("startpos moves 7g7f 3c3d\nstartpos moves 2g2f\n" + f"sfen {DECLARABLE}\n")
    folder = tmp_path / "games"
    words = ["selfplay", "shogi", "--games", "4", "--max-moves", "12", "--openings", str(lines), "--out", str(folder)]
    assert main(words) == 0
    records = [load_records(path)[0] for path in sorted(folder.iterdir())]
    assert [record.moves[0].move for record in records if record.moves] == [
        parse_usi(text) for text in ("7g7f", "2g2f", "7g7f")
    ]
    assert records[2].ending == "KACHI"
    assert records[2].winner == 1
    assert records[0].moves[1].score is None
    assert records[0].moves[2].score is not None


def test_selfplay_appends_behind_whole_records(tmp_path: Path, fake: list[FakeShogiPlayer]) -> None:
    words = ["selfplay", "shogi", "--games", "1", "--out", str(tmp_path), "--max-moves", "12", "--format", "hcpe"]
    assert main(words) == 0
    path = tmp_path / "games.hcpe"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:17])
    assert main(words) == 0
    assert path.read_bytes() == 2 * whole
    assert len(hcpe_rows(path.read_bytes())) == 24


def test_records_of_selfplay_appear_when_they_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    files = Files(tmp_path, {})
    with monkeypatch.context() as patch:
        patch.setattr("yomi.nets.files.os.replace", fail)
        with pytest.raises(OSError, match="No space"):
            files.write({".csa": b"a game"})
    assert not list(tmp_path.iterdir())
    Files(tmp_path, {}).write({".csa": b"a game"})
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("game-00001.csa", b"a game")]


def test_openings_that_hcpe_cannot_hold(
    tmp_path: Path, fake: list[FakeShogiPlayer], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "lines.sfen"
    lines.write_text("startpos\nsfen 4k4/9/4P4/9/9/9/9/9/4K4 b G 1\n")
    words = ["selfplay", "shogi", "--games", "2", "--openings", str(lines), "--out", str(tmp_path / "games")]
    text = error_of(capsys, *words, "--max-moves", "4", "--format", "csa", "hcpe")
    assert f"--openings {lines}, opening 2: a position without all 40 pieces" in text
    assert not fake
    assert main([*words, "--max-moves", "4"]) == 0
