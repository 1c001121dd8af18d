"""Games that a USI engine plays with itself: their positions, and the files that they are kept in."""

import dataclasses
import itertools
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.units import FakeUnitPool
from tests.unit.shogi_records import hcpe_rows
from yomi.engine.cli.main import main
from yomi.engine.clients.client import EngineError, EngineMove, Evaluation
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.clock import Clocks
from yomi.engine.clusters.actors import ClusterOptions
from yomi.engine.color import BLACK, WHITE
from yomi.engine.play import ADJUDICATION, MAX_MOVES, RESIGNATION
from yomi.engine.shogi.datasets import played as shogi_played
from yomi.engine.shogi.datasets.played import (
    SENT_PLIES,
    PlayedPositions,
    ShogiPlayOptions,
    play_positions,
    play_shogi_positions,
)
from yomi.engine.shogi.datasets.rows import read_rows, records_of
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.records.packed import HCPE_DTYPE, pack_game, read_hcpe, unpack
from yomi.engine.shogi.records.record import GameRecord, parse_usi_line
from yomi.engine.shogi.settings import ShogiDataOptions
from yomi.nets.data.shards import open_dataset
from yomi.nets.errors import NetworkError

OPTIONS = ShogiPlayOptions("fake", 1, opening_moves=3, random_moves=0.1, max_moves=60, shard_rows=150)
SPEC = EngineSpec("fake", ("fake",))


class FakeEngine:
    """Plays a legal move that the position decides, and takes its score from a function of color and ply."""

    def __init__(self, score: Callable[[int, int], float | None] = lambda color, ply: 10 * ply - 5) -> None:
        self.score = score
        self.answers: dict[int, str] = {}
        """By ply, what it answers instead of a legal move."""
        self.shown: list[str] = []
        self.games = 0
        self.process = self

    def new_game(self) -> None:
        self.games += 1

    def choose(self, sfen: str, moves: Sequence[str], color: int, clocks: Clocks) -> EngineMove:
        position = " ".join(["sfen", sfen, "moves", *moves] if moves else ["sfen", sfen])
        self.shown.append(position)
        game = parse_usi_line(position).game()
        assert game.side_to_move == color
        moves = sorted(game.legal_moves())
        move = self.answers.get(game.ply, format_usi(moves[zlib.crc32(game.sfen().encode()) % len(moves)]))
        score = self.score(color, game.ply)
        return EngineMove(move, 0.0, None if score is None else Evaluation(1 / (1 + np.exp(-score / 600)), score))

    def kill(self) -> None:
        pass

    def close(self) -> None:
        pass


def play(
    engine: FakeEngine, number: int = 0, openings: Sequence[GameRecord] = (), **changes: object
) -> PlayedPositions:
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    return play_positions(engine, options, openings, number)


def test_rows_are_what_the_engine_saw_and_said() -> None:
    engine = FakeEngine()
    played = play(engine)
    data = pack_game(played.rows, played.winner)
    positions = hcpe_rows(data)
    assert len(positions) == len(engine.shown) < played.plies
    for (placement, recorded), shown in zip(positions, engine.shown, strict=True):
        game = parse_usi_line(shown).game()
        assert len(game.moves) <= SENT_PLIES
        assert placement == dataclasses.replace(game.placement, number=placement.number)
        assert recorded.score == 10 * game.ply - 5
    assert played.ending == MAX_MOVES
    assert played.winner == 0
    assert {record.ending for record in read_hcpe(data)} == {"HIKIWAKE"}
    assert played.plies == 60


def test_random_moves_are_made_and_leave_no_row() -> None:
    engine = FakeEngine()
    plies = [played.plies - len(played.rows) for played in (play(engine, number) for number in range(12))]
    assert 1 + 0.02 * 57 < np.mean(plies) < 3 + 0.2 * 59
    assert len(set(plies)) > 2
    none = play(engine, opening_moves=0, random_moves=0.0)
    assert len(none.rows) == none.plies == 60
    # The number decides, and nothing else.
    assert play(FakeEngine(), 3) == play(FakeEngine(), 3) != play(FakeEngine(), 4)


def test_games_begin_with_openings_up_to_any_ply() -> None:
    line = "startpos moves 7g7f 3c3d 2g2f 8c8d 2f2e 8d8e"
    begun = set()
    for number in range(40):
        engine = FakeEngine()
        play(engine, number, [parse_usi_line(line)], opening_moves=0, random_moves=0.0, max_moves=7)
        begun.add(7 - len(engine.shown))
        game = parse_usi_line(line).game(7 - len(engine.shown))
        first = parse_usi_line(engine.shown[0]).game()
        assert first.sfen() == game.sfen()
    assert begun == set(range(7))


def test_hopeless_games_are_broken_off() -> None:
    for winner in (BLACK, WHITE):
        engine = FakeEngine(lambda color, ply, winner=winner: 5000 if color == winner else -5000)  # type: ignore[misc]
        played = play(engine, opening_moves=0, random_moves=0.0)
        assert (played.winner, played.ending) == (winner, ADJUDICATION)
        # Three moves of each, and the loser is to move.
        assert played.plies == (7 if winner == BLACK else 6)
    lone = FakeEngine(lambda color, ply: 5000)
    assert play(lone).ending == MAX_MOVES
    assert play(FakeEngine(lambda color, ply: None)).rows == []


def test_what_engines_answer_besides_moves() -> None:
    engine = FakeEngine()
    engine.answers = {20: "resign", 21: "resign"}
    for number in range(8):
        played = play(engine, number, random_moves=0.05)
        assert played.ending == RESIGNATION
        assert played.winner == (WHITE if played.plies == 20 else BLACK)
    for wrong in ("5a5i", "win", "7g7f+x", "0000"):
        engine.answers = dict.fromkeys(range(60), wrong)
        with pytest.raises(EngineError):
            play(engine)


def make(
    monkeypatch: pytest.MonkeyPatch, folder: Path, positions: int, processes: int = 1, **changes: object
) -> tuple[int, list[str]]:
    """Play into a folder with fake engines."""
    monkeypatch.setattr(shogi_played, "UsiClient", lambda *args, **kwargs: FakeEngine())
    lines: list[str] = []
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    return play_shogi_positions(folder, options, positions, SPEC, (), processes, lines.append), lines


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.slow
@pytest.mark.parametrize("actors", [1, 3])
def test_a_cluster_plays_the_same_games(actors: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total, _ = make(monkeypatch, tmp_path / "here", 900)
    monkeypatch.setattr(FakeUnitPool, "made", [], raising=False)
    monkeypatch.setattr(shogi_played, "UnitPool", FakeUnitPool)
    cluster, lines = ClusterOptions("local", actors), list[str]()
    for positions in (400, 900):  # a continued run
        found = play_shogi_positions(tmp_path / "there", OPTIONS, positions, SPEC, (), 1, lines.append, cluster)
    assert found == total
    assert FakeUnitPool.made[0].lost
    rows = [
        b"".join(path.read_bytes() for path in sorted((tmp_path / place).glob("*.hcpe"))) for place in ("here", "there")
    ]
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_files_do_not_depend_on_processes_and_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    total, _ = make(monkeypatch, tmp_path / "a", 500)
    assert 500 <= total < 560
    expected = files(tmp_path / "a")
    assert make(monkeypatch, tmp_path / "b", 500, processes=3)[0] == total
    assert files(tmp_path / "b") == expected
    # Killed while the third file was being written.
    last = sorted(expected)[2]
    (tmp_path / "b" / last).rename(tmp_path / "b" / f".{last}.part")
    for name in sorted(expected)[3:-1]:
        (tmp_path / "b" / name).unlink()
    again, lines = make(monkeypatch, tmp_path / "b", 500)
    assert (again, files(tmp_path / "b")) == (total, expected)
    assert "are there" in lines[0]
    assert make(monkeypatch, tmp_path / "b", 500) == (total, [f"{total} positions of 10 games are there"])
    with pytest.raises(NetworkError, match=r"random_moves 0\.1 found, expected 0\.3, or a new folder"):
        make(monkeypatch, tmp_path / "b", 500, random_moves=0.3)


def test_positions_come_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # All games are the same but for their first move.
    with pytest.raises(NetworkError, match="100 games without a new position"):
        make(monkeypatch, tmp_path, 200, opening_moves=1, random_moves=0.0, max_moves=3, shard_rows=20)
    total, _ = make(monkeypatch, tmp_path, 40, opening_moves=1, random_moves=0.0, max_moves=3, shard_rows=20)
    rows = np.concatenate([records_of(path, HCPE_DTYPE) for path in sorted(tmp_path.glob("*.hcpe"))])
    assert len(np.unique(rows["hcp"], axis=0)) == len(rows) == total


@pytest.mark.slow
def test_games_are_known_when_positions_are_held_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make(monkeypatch, tmp_path, 500, shard_rows=10_000)
    (path,) = tmp_path.glob("*.hcpe")
    rows = read_rows(path, ShogiDataOptions(min_moves=0), 7)
    lengths = [len(play(FakeEngine(), number).rows) for number in range(3)]
    # But for the positions that games share.
    assert np.bincount(rows["game"])[7:10].tolist() == pytest.approx(lengths, abs=3)
    assert rows["game"].max() == 7 + 9


def test_games_that_fail_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[FakeEngine] = []

    class Fails(FakeEngine):
        def new_game(self) -> None:
            super().new_game()
            if len(made) == 1 and self.games == 2:
                self.answers = {5: "5a5i"}

    def client(*args: object, **kwargs: object) -> FakeEngine:
        made.append(Fails())
        return made[-1]

    lines: list[str] = []
    monkeypatch.setattr(shogi_played, "UsiClient", client)
    play_shogi_positions(tmp_path, OPTIONS, 200, SPEC, (), 1, lines.append)
    assert lines[0].startswith("game 1 left out: illegal move 5a5i")
    assert len(made) == 2
    broken = FakeEngine()
    broken.answers = dict.fromkeys(range(60), "5a5i")
    monkeypatch.setattr(shogi_played, "UsiClient", lambda *args, **kwargs: broken)
    with pytest.raises(EngineError, match="illegal move 5a5i"):
        play_shogi_positions(tmp_path, OPTIONS, 900, SPEC, (), 2, lines.append)


def test_games_before_an_engine_gives_up_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    games = itertools.count()

    class Fails(FakeEngine):
        """Plays three games, and no other after them."""

        def new_game(self) -> None:
            if next(games) >= 3:
                raise EngineError("no more")

    monkeypatch.setattr(shogi_played, "UsiClient", lambda *args, **kwargs: Fails())
    options = dataclasses.replace(OPTIONS, shard_rows=10_000)
    with pytest.raises(EngineError, match="no more"):
        play_shogi_positions(tmp_path, options, 10_000, SPEC, (), 1, lambda text: None)
    (path,) = tmp_path.glob("*.hcpe")
    assert path.name == "games-000000-000002.hcpe"  # the games that failed behind it are tried again
    assert len(records_of(path, HCPE_DTYPE)) > 100


@pytest.mark.slow
def test_the_command_plays_and_makes_a_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dataset", "play", "shogi", "--engine", "yomi ;; option.Resign_Threshold=0", "--nodes", "4"]
    words += ["--positions", "40", "--processes", "1", "--max-moves", "70", "--out", str(tmp_path / "games")]
    assert main(words) == 0
    assert "positions in" in capsys.readouterr().out
    assert (
        main(
            ["dataset", "make", str(tmp_path / "games"), "--features", "dlshogi-62-57", "--out", str(tmp_path / "set")]
        )
        == 0
    )
    dataset = open_dataset(tmp_path / "set")
    rows = np.concatenate([records_of(path, HCPE_DTYPE) for path in (tmp_path / "games").glob("*.hcpe")])
    assert sum(shard.rows for shard in dataset.shards) == len(rows) >= 40
    assert all(unpack(row.tobytes()).side in (BLACK, WHITE) for row in rows["hcp"])


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.sfen").write_text("startpos moves 7g7e\n")
    common = ["dataset", "play", "shogi", "--positions", "9", "--processes", "1", "--out", str(tmp_path / "a")]
    cases = {
        ("--engine", "no-such-engine", "--nodes", "9"): "no-such-engine: cannot be started",
        ("--engine", "x", "--nodes", "0"): "--nodes: expected an integer of at least 1",
        ("--engine", "x", "--nodes", "9", "--random-moves", "2"): "--random-moves: expected a number from 0 to 1",
        ("--engine", "x", "--nodes", "9", "--openings", str(tmp_path / "bad.sfen")): "line 1: move 1 7g7e",
        ("--engine", "x ;; strength=3", "--nodes", "9"): "unknown key 'strength'",
    }
    for words, message in cases.items():
        assert main([*common, *words]) == 2
        error = capsys.readouterr().err
        assert message in error.splitlines()[-1]
