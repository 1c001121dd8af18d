"""Balanced openings of shogi out of games with evaluations."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.looping import looped
from yomi.engine.cli.main import main
from yomi.engine.matches.schedule import load_openings
from yomi.engine.records import LeftOut
from yomi.engine.shogi.datasets.openings import BalanceLimits, balanced_openings, why_unbalanced
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.matches import ShogiMatches
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.records.csa import format_csa_records
from yomi.engine.shogi.records.files import load_records
from yomi.engine.shogi.records.packed import write_hcpe
from yomi.engine.shogi.records.record import GameRecord, parse_usi_line, record_of

LIMITS = BalanceLimits(rating=3000.0)
RATINGS = "black_rate:a+1:3100.0\nwhite_rate:b+2:3000.0"


def balanced(seed: int, first: str = "", plies: int = 60) -> GameRecord:
    """Return a game that gives an opening: random moves, after some of one's own."""
    rng = np.random.default_rng(seed)
    game = ShogiGame()
    for text in first.split():
        game.play(parse_usi(text))
    while len(game.moves) < plies and (moves := game.legal_moves()):
        game.play(int(rng.choice(moves)))
    record = record_of(game, ending="TORYO", comment=RATINGS)
    for ply, recorded in enumerate(record.moves):
        recorded.score = (100 if ply in (24, 36) else 170) * (-1 if ply % 4 < 2 else 1)
    return record


def scored(ply: int, score: int | None) -> Callable[[GameRecord], None]:
    def change(record: GameRecord) -> None:
        record.moves[ply].score = score

    return change


def without_scores_of(color: int) -> Callable[[GameRecord], None]:
    def change(record: GameRecord) -> None:
        for recorded in record.moves[color::2]:
            recorded.score = None

    return change


def with_field(name: str, value: object) -> Callable[[GameRecord], None]:
    return lambda record: setattr(record, name, value)


CASES: list[tuple[Callable[[GameRecord], None], str]] = [
    (lambda record: None, ""),
    (scored(0, None), ""),
    (scored(36, 171), "an evaluation beyond 170"),
    (scored(3, -171), "an evaluation beyond 170"),
    (scored(37, 5000), ""),
    (scored(24, -101), "an evaluation beyond 100 after 24 or 36 moves"),
    (scored(36, 101), "an evaluation beyond 100 after 24 or 36 moves"),
    (scored(24, None), "evaluations unknown"),
    (without_scores_of(0), "evaluations unknown"),
    (without_scores_of(1), "evaluations unknown"),
    (with_field("ending", "TIME_UP"), "no end by the rules"),
    (with_field("ending", ""), "no end by the rules"),
    (with_field("ending", "KACHI"), ""),
    (with_field("comment", RATINGS.replace("3000", "2999")), "a rating too low, or unknown"),
    (with_field("comment", "black_rate:a+1:3100.0"), "a rating too low, or unknown"),
    (with_field("initial", parse_usi_line("startpos moves 7g7f").placements()[-1]), "another first position"),
    (lambda record: record.moves.__delitem__(slice(49, None)), "too short"),
    (lambda record: record.moves.__delitem__(slice(50, None)), ""),
]


@looped(("change", "why"), CASES)
def test_rules(change: Callable[[GameRecord], None], why: str) -> None:
    record = balanced(1)
    change(record)
    assert why_unbalanced(record, LIMITS) == why


def test_lines_differ_at_the_first_ply(tmp_path: Path) -> None:
    ways = "7g7f 3c3d 2g2f 8c8d", "2g2f 8c8d 7g7f 3c3d"
    records = [balanced(seed, first) for seed in (1, 2) for first in ways]
    assert records[0].moves[:4] != records[1].moves[:4]
    (tmp_path / "a.csa").write_text(format_csa_records(records))
    lines, refused = balanced_openings([tmp_path / "a.csa"], LIMITS, LeftOut(print))
    assert refused == {"the same position after 24 moves": 2}
    for line, record in zip(lines, (records[0], records[2]), strict=True):
        assert [recorded.move for recorded in parse_usi_line(line).moves] == [m.move for m in record.moves[:36]]


def test_games_in_hcpe_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "a.hcpe"
    games = [balanced(seed) for seed in range(4)]
    games[1].moves[30].score = 900
    games[2].moves[7].score = None  # left out of the file, so that the game falls apart
    path.write_bytes(write_hcpe(games))
    lines, refused = balanced_openings([path], BalanceLimits(), LeftOut(print))
    assert balanced_openings([path.rename(tmp_path / "A.HCPE")], BalanceLimits(), LeftOut(print)) == (lines, refused)
    assert len(lines) == 2
    assert refused == {"an evaluation beyond 170": 1, "another first position": 1, "too short": 1}


def test_the_command_writes_what_matches_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "a.csa", tmp_path / "balanced.sfen"
    source.write_text(format_csa_records([balanced(seed) for seed in range(3)]))
    words = ["dataset", "openings", str(source), "--out", str(target)]
    assert main([*words, "--rating", "3001"]) == 2
    assert "3 games ignored: a rating too low, or unknown" in capsys.readouterr().err
    assert main(words) == 0
    assert "3 openings written" in capsys.readouterr().out
    assert [len(record.moves) for record in load_records(target)] == [36, 36, 36]
    assert len(load_openings(target, 24, ShogiMatches(), {}, LeftOut(pytest.fail))) == 3
    assert main(words) == 2
    assert main([*words, "--plies", "36", "24"]) == 2
    assert "expected the second after the first" in capsys.readouterr().err


def test_broken_files_do_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"empty.csa": b"", "half.hcpe": b"123"}
    for name, content in names.items():
        (tmp_path / name).write_bytes(content)
    lines: list[str] = []
    left_out = LeftOut(lines.append)
    assert balanced_openings([tmp_path / name for name in names], LIMITS, left_out) == ([], Counter())
    assert [Path(line.partition(": ")[0]).name for line in lines] == list(names)
    assert main(["dataset", "openings", str(tmp_path), "--out", str(tmp_path / "out.sfen")]) == 2
    assert "2 left out, of 2 files" in capsys.readouterr().err
