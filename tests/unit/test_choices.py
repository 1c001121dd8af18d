"""`bench choices`: engines and a judge in positions of games, and what is kept of it."""

import contextlib
import json
from pathlib import Path
from unittest import mock

import pytest

from tests.process.match_process import scripted
from yomi.bench.choices import Asked, ChoicesError, Sayings, read_games, read_positions
from yomi.engine.cli.main import main
from yomi.engine.clients.client import EngineMove
from yomi.engine.clients.spec import parse_spec
from yomi.engine.clock import UNLIMITED, TimeSettings
from yomi.engine.color import WHITE
from yomi.engine.options import Options
from yomi.engine.registry import GAMES

PLAIN = "yomi:evaluator=material,workers=1,memory=16M,seed=1"
DRY = "yomi:evaluator=uniform,workers=1,memory=16M"
BLIND = f"{DRY},visits=1"
GAME = "startpos moves 7g7f 3c3d 8h2b+ 3a2b B*5e\n"
"""Black's bishop attacks a rook and a lance; before it, a bishop can be taken back."""


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Give a file with a game."""
    path = tmp_path / "game.sfen"
    path.write_text(GAME)
    return path


def test_positions_come_from_games(record: Path) -> None:
    kind = GAMES["shogi"].matches()
    rules = kind.rules(Options.for_game("shogi"), None, 0)
    assert list(read_positions(record, kind, rules, 1, 2)) == [
        "startpos moves 7g7f",
        "startpos moves 7g7f 3c3d 8h2b+",
    ]
    ((_, opening),) = read_games(record, kind, rules)
    assert [opening(1), opening(None)] == ["startpos moves 7g7f", GAME.strip()]
    record.write_text("startpos moves 7g7f 7g7f\n")
    with pytest.raises(ChoicesError, match=r"game\.sfen"):
        list(read_positions(record, kind, rules, 1, 2))


@pytest.mark.slow
def test_a_search_is_worth_more_than_none(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, table = tmp_path / "said.jsonl", tmp_path / "table.json"
    words = ["shogi", f"{PLAIN},visits=200 ;; name=search", f"{BLIND} ;; name=none"]
    words += ["--judge", f"{PLAIN},visits=400 ;; name=judge", "--positions", str(record)]
    words += ["--from", "3", "--every", "1", "--balance", "0", "--out", str(kept), "--json", str(table)]
    assert main(["bench", "choices", *words]) == 0
    first, second = json.loads(table.read_text())["results"]
    assert (first["player"], first["positions"], first["gained_per_10000"]) == ("search", 2, 0.0)
    assert second["gained_per_10000"] < -500
    said = kept.read_text().splitlines()
    assert json.loads(said[1])[2:] == ["choice", "3a2b"]
    assert main(["bench", "choices", *words]) == 0
    assert kept.read_text().splitlines() == said
    assert capsys.readouterr().err.count("positions") == 0


def test_a_file_of_something_else_is_told(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "said.jsonl"
    for text in (b"no json\n", b"5\n", b"[[1], 2, 3, 4]\n", b"\xf3\n"):
        kept.write_bytes(text)
        with pytest.raises(ChoicesError, match="line 1"):
            Sayings(kept)
    empty, board = tmp_path / "empty", tmp_path / "board.sgf"
    empty.mkdir()
    board.write_text("(;SZ[9];B[ee];W[cc];B[gg];W[cg];B[gc])")
    quick = f"{PLAIN},visits=2"
    shogi = ["shogi", quick, "--judge"]
    for words in (
        [*shogi, quick, "--positions", str(record), "--out", str(kept)],
        [*shogi, quick, "--positions", str(tmp_path / "none")],
        [*shogi, PLAIN, "--positions", str(record)],
        [*shogi, "no-such-engine", "--positions", str(record), "--from", "1"],
        [*shogi, quick, "--positions", str(empty)],
        [scripted("gtp", "fine"), "--size", "9", "--judge", scripted("gtp", "fine"), "--positions", str(board)],
    ):
        assert main(["bench", "choices", *words]) == 2
    errors = capsys.readouterr().err
    assert errors.count("yomi: error: ") == 6
    assert "expected a limit, such as visits=200" in errors
    assert "player no-such-engine: " in errors
    assert "none of 0 positions is even" in errors
    assert "--judge fine: expected an engine that reports winrates" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_what_is_kept_is_of_one_engine_and_its_rules(record: Path, tmp_path: Path) -> None:
    kept = tmp_path / "said.jsonl"
    words = ["--judge", f"{PLAIN},visits=9 ;; name=judge", "--positions", str(record), "--from", "1"]
    words += ["--every", "3", "--balance", "0", "--out", str(kept)]
    lines = []
    for seed, rule in ((1, "27"), (2, "27"), (1, "24"), (1, "24")):
        player = f"{BLIND},seed={seed} ;; name=none"
        assert main(["bench", "choices", "shogi", player, *words, "--entering-king", rule]) == 0
        lines.append(len(kept.read_text().splitlines()))
    assert lines[0] < lines[1] < lines[2] == lines[3]


@pytest.mark.parametrize("game", ["go", "shogi"])
def test_an_engine_searches_its_turns_before_as_in_a_game(game: str) -> None:
    kind = GAMES[game].matches()
    rules = kind.rules(Options.for_game(game), None, 0)
    position = {"go": "D4 Q16 Q4 D16 K10", "shogi": GAME.strip()}[game]
    begun = kind.begin(rules, position)
    moves = [kind.format_move(begun, move) for _, move in begun.moves]
    calls: list[list[str]] = []
    client = mock.MagicMock()
    client.search.side_effect = lambda start, played, color, clocks: calls.append(played)
    client.choose.return_value = EngineMove("resign", 0.0)
    for turns, ends in ((0, []), (1, [3]), (2, [1, 3]), (9, [1, 3])):
        calls.clear()
        asked = Asked(parse_spec("no-such-engine", game, GAMES[game].protocol), kind, rules, Sayings(None))
        asked._client, asked.turns = client, turns
        assert asked.choice(position, begun) == "resign"
        assert calls == [moves[:end] for end in ends]
        assert client.choose.call_args.args[1] == moves


@pytest.mark.slow
def test_a_search_without_a_move_leaves_its_tree() -> None:
    kind = GAMES["go"].matches()
    rules = kind.rules(Options.for_game("go").with_values({"size": 5}), None, 0)
    visits = []
    with contextlib.closing(kind.client(parse_spec(f"{DRY},playouts=200", "go", "gtp"), timeout=60)) as client:
        for searches in (False, True):
            kind.set_up(client, kind.begin(rules, ""), TimeSettings())
            if searches:
                client.search("", ["C3"], WHITE, UNLIMITED)
            answer = client.choose("", ["C3"], WHITE, UNLIMITED)
            assert answer.evaluation is not None
            visits.append(answer.evaluation.visits)
    assert visits == [200, 400]


@pytest.mark.parametrize(("answer", "choice"), [("c3", "C3"), ("PASS", "pass"), ("Resign", "resign")])
def test_a_choice_is_the_same_in_any_case(answer: str, choice: str) -> None:
    kind = GAMES["go"].matches()
    rules = kind.rules(Options.for_game("go").with_values({"size": 5}), None, 0)
    asked = Asked(parse_spec("no-such-engine", "go", "gtp"), kind, rules, Sayings(None))
    asked._client = mock.MagicMock()
    asked._client.choose.return_value = EngineMove(answer, 0.0)
    assert asked.choice("", kind.begin(rules, "")) == choice


def test_moves_that_end_the_game_take_no_judge() -> None:
    kind = GAMES["shogi"].matches()
    rules = kind.rules(Options.for_game("shogi"), None, 0)
    judge = Asked(parse_spec("no-such-engine", "shogi", "usi"), kind, rules, Sayings(None))
    position = "sfen 4k4/9/4P4/9/9/9/9/9/3K5 b G 1"
    game = kind.begin(rules, position)
    assert [judge.winrate(position, game, move) for move in ("G*5b", "resign")] == [1.0, 0.0]
    with pytest.raises(ChoicesError, match="player no-such-engine: "):
        judge.winrate(position, game, "G*4a")


@pytest.mark.slow
def test_an_illegal_choice_names_its_engine(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["shogi", f"{PLAIN},visits=2", scripted("usi", "fine"), "--judge", f"{PLAIN},visits=2"]
    assert main(["bench", "choices", *words, "--positions", str(record), "--from", "3", "--balance", "0"]) == 2
    assert "yomi: error: player fine: at move 4: illegal move" in capsys.readouterr().err
