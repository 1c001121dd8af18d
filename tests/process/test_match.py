"""Matches as real processes: engines that go wrong, kills of the runner, and what a user sees."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.process.match_process import kill_and_go_on, run_match, scripted
from yomi.engine.cli.main import main
from yomi.engine.go.record_files import load_record
from yomi.engine.matches.results import JOURNAL_NAME, GameResult, read_journal, read_results
from yomi.engine.play import FAILURE, ILLEGAL, TIME
from yomi.engine.registry import GAMES
from yomi.engine.shogi.records.files import load_records

pytestmark = pytest.mark.slow

FINE, FINE_USI = scripted("gtp", "fine"), scripted("usi", "fine")
FAST = ("--byoyomi", "60", "--timeout", "5", "--at-once", "8", "--games", "2")
"""Time enough for engines that are only slow on a busy machine; those that are late or hang have their own limits."""
OWN_LIMITS = {"late": " byoyomi=1", "hang": " seconds=0.5"}


def tournament(protocol: str, *conducts: str) -> list[str]:
    """Return the players of a tournament."""
    return [scripted(protocol, conduct) + OWN_LIMITS.get(conduct, "") for conduct in conducts]


def check_blame(results: list[GameResult], reasons: dict[str, tuple[str, str]]) -> None:
    """Check that every game with a bad engine was lost by it, for its own reason.

    Args:
        results: the games.
        reasons: ending and part of the detail by the name of each bad engine.
    """
    for result in results:
        guilty = [name for name in (result.black, result.white) if name in reasons]
        if not guilty:
            assert not result.blamed, result
            continue
        assert result.blamed in guilty, result
        ending, detail = reasons[result.blamed]
        assert result.ending == ending, result
        assert detail in result.detail, result


def test_a_tournament_of_go_with_engines_that_go_wrong(tmp_path: Path) -> None:
    players = tournament("gtp", "fine", "crash", "hang", "illegal", "flood", "late", "nonsense")
    done, results = run_match(tmp_path, *players, *FAST, "--size", "9")
    assert done.returncode == 0, done.stderr
    assert len(results) == 42
    check_blame(
        results,
        {
            "crash": (FAILURE, "exited with status 3; stderr: Traceback: out of luck"),
            "hang": (FAILURE, "no answer to 'genmove"),
            "illegal": (ILLEGAL, "A1 at move"),
            "late": (TIME, "s were left"),
            "nonsense": (ILLEGAL, "'Z99' found, expected a vertex"),
        },
    )
    assert "out of luck" in next(result.errors for result in results if result.blamed == "crash")
    assert sum(result.ending == "score" for result in results) == 2
    assert "faults" in done.stdout
    assert done.stderr.count("[fault of ") == 40
    record = load_record(tmp_path / next(result.files[0] for result in results if result.blamed == "illegal"))
    assert record.result in ("B+F", "W+F")
    assert "illegal move A1" in record.root.comment


def test_a_tournament_of_shogi_with_engines_that_go_wrong(tmp_path: Path) -> None:
    players = tournament("usi", "fine", "crash", "hang", "illegal", "flood", "declare", "killed")
    done, results = run_match(tmp_path, *players, *FAST)
    assert done.returncode == 0, done.stderr
    assert len(results) == 42
    check_blame(
        results,
        {
            "crash": (FAILURE, "exited with status 3"),
            "hang": (FAILURE, "no answer to 'go movetime 500'"),
            "illegal": (ILLEGAL, "no piece on 5e"),
            "declare": (ILLEGAL, "declared a win that is none"),
            "killed": (FAILURE, "killed by signal 15"),
        },
    )
    draws = [result for result in results if result.ending == "repetition"]
    assert {(draw.black, draw.white) for draw in draws} == {("fine", "flood"), ("flood", "fine")}
    for name in draws[0].files:
        record = load_records(tmp_path / name)[0]
        assert (record.ending, record.winner, len(record.moves)) == ("SENNICHITE", 0, 12)
    assert [move.score for move in load_records(tmp_path / draws[0].files[0])[0].moves[:2]] == [50, -50]


def answering(folder: Path, sfen: str, answer: str) -> list[str]:
    """Return two engines that always give the same answer, and the option for a match from a position."""
    engine, openings = folder / "engine.py", folder / "openings.txt"
    engine.write_text(
        "import sys\n"
        f"answers = {{'usi': 'id name one\\nusiok', 'isready': 'readyok', 'go': 'bestmove {answer}'}}\n"
        "for line in sys.stdin:\n"
        "    if text := answers.get(line.split()[0]):\n"
        "        print(text, flush=True)\n"
    )
    openings.write_text(f"sfen {sfen}\n")
    players = [f"'{sys.executable}' -S -E '{engine}' ;; name={name}" for name in "ab"]
    return ["shogi", *players, "--openings", str(openings), "--games", "2", "--seconds", "1"]


@pytest.mark.parametrize(("rule", "ending"), [("24", "impasse"), ("27", "declaration"), ("none", ILLEGAL)])
def test_an_engine_declares_with_30_points(rule: str, ending: str, tmp_path: Path) -> None:
    words = answering(tmp_path, "KGGGGSSSS/9/NNNN5/9/9/9/9/9/4k4 b RB8P 1", "win")
    done, results = run_match(tmp_path / "out", *words, "--entering-king", rule)
    assert done.returncode == 0, done.stderr
    assert [result.ending for result in results] == [ending] * 2
    record = load_records(tmp_path / "out" / results[0].files[0])[0]
    assert (record.ending, record.winner) == {
        "24": ("JISHOGI", 0), "27": ("KACHI", 1), "none": ("ILLEGAL_MOVE", 2)
    }[rule]  # fmt: skip


def test_a_match_is_won_by_a_try(tmp_path: Path) -> None:
    words = answering(tmp_path, "9/9/9/9/9/9/9/4k4/K8 w 2r2b4g4s4n4l18p 1", "5h5i")
    done, results = run_match(tmp_path / "out", *words, "--entering-king", "try")
    assert done.returncode == 0, done.stderr
    assert [(result.ending, result.winner, result.plies) for result in results] == [("try", 2, 1)] * 2
    record = load_records(tmp_path / "out" / results[0].files[0])[0]
    assert (record.ending, record.winner) == ("TORYO", 2)


def test_no_finished_game_is_lost_when_the_runner_is_killed(tmp_path: Path) -> None:
    kills, games = kill_and_go_on(tmp_path / "match", times=3, games=30, seed=2)
    assert kills >= 1  # a quick machine may have played all games before the later ones
    assert games >= 1


def test_a_match_from_a_file_goes_on_and_is_rated_from_its_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engines = [scripted("gtp", conduct, name=name).split(" ;; ")[0] for conduct, name in
               (("fine", "a"), ("resign", "b"), ("resign", "c"))]  # fmt: skip
    config = tmp_path / "match.toml"
    tables = [f'[[players]]\nname = "{n}"\nengine = """{engine}"""\n' for n, engine in zip("abc", engines, strict=True)]
    cpu = min(os.sched_getaffinity(0))
    settings = f'game = "go"\nsize = 9\nkomi = 0.5\nform = "gauntlet"\nseconds = 0.1\ncpus = [{cpu}]\n'
    config.write_text(settings + "".join(tables))
    folder = tmp_path / "out"
    done, results = run_match(folder, "--config", str(config), "--games", "2")
    assert done.returncode == 0, done.stderr
    assert [(result.black, result.white) for result in results] == [("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")]
    done, results = run_match(folder, "--config", str(config), "--games", "4")
    assert re.search(r"4 of 8 games are in .*\nyomi: 4 games begin; records in ", done.stderr)
    assert done.stderr.count("resignation") == 4
    assert len(results) == 8
    assert all({result.black, result.white} != {"b", "c"} for result in results)
    done, _ = run_match(folder, "--config", str(config), "--komi", "6.5")
    assert done.returncode == 2
    assert "another match: komi was 0.5, now 6.5" in done.stderr
    assert main(["rate", str(folder)]) == 0
    from_journal = capsys.readouterr().out
    assert main(["rate", *map(str, sorted(folder.glob("*.sgf"))), "--format", "markdown"]) == 0
    from_records = capsys.readouterr().out
    assert re.search(r"^1 a +:", from_journal, re.MULTILINE)
    assert "| 1 | a |" in from_records
    assert "8 games: resignation 8" in from_journal
    for paths in ([folder], folder.glob("*.sgf")):
        assert len(read_results(paths, GAMES.values())) == 8
    assert main(["rate", str(folder), "--unique", "--format", "json"]) == 0
    assert '"duplicates": 4' in capsys.readouterr().out


def test_an_sprt_ends_a_match(tmp_path: Path) -> None:
    players = (scripted("gtp", "fine"), scripted("gtp", "resign"))
    done, results = run_match(tmp_path, *players, "--size", "9", "--games", "1000", "--sprt", "0,100")
    assert done.returncode == 0, done.stderr
    assert 4 < len(results) < 100
    assert "SPRT 0 100: LLR" in done.stderr
    assert ": at least 100 Elo" in done.stderr
    again, same = run_match(tmp_path, *players, "--size", "9", "--games", "1000", "--sprt", "0,100")
    assert again.returncode == 0
    assert len(same) == len(results)


def test_openings_and_a_scorer(tmp_path: Path) -> None:
    (tmp_path / "opening.sgf").write_text("(;SZ[9];B[ee];W[cc];B[gg])")
    done, results = run_match(
        tmp_path / "out", scripted("gtp", "fine", name="a"), scripted("gtp", "fine", name="b"), "--size", "9",
        "--openings", str(tmp_path / "opening.sgf"), "--opening-moves", "2",
        "--scorer", scripted("gtp", "fine"), "--restart",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [(result.detail, result.plies) for result in results] == [("W+7.5", 20)] * 2
    record = load_record(tmp_path / "out" / "game-00001.sgf")
    assert [node.comment for node in record.line() if node.move][:2] == ["opening", "opening"]


def test_a_scorer_that_fails(tmp_path: Path) -> None:
    """What is wrong with it from the start costs no game, and what it cannot score is not lost."""
    players = (scripted("gtp", "resign", name="a"), scripted("gtp", "resign", name="b"), "--size", "9")
    done, _ = run_match(tmp_path / "absent", *players, "--scorer", "no-such-engine")
    assert done.returncode == 2
    assert "error: --scorer no-such-engine: cannot be started: no-such-engine: No such file" in done.stderr
    players = (FINE, FINE.replace("name=fine", "name=other"), "--size", "9")
    done, _ = run_match(tmp_path / "failing", *players, "--scorer", scripted("gtp", "unscored"))
    assert done.returncode == 2
    record = tmp_path / "failing" / "game-00001-unscored.sgf"
    assert f"refused 'final_score': cannot score; the game is in {record}" in done.stderr
    assert len(list(load_record(record).line())) == 19
    assert load_record(record).result == "Void"


def test_a_match_goes_on_with_more_openings(tmp_path: Path) -> None:
    words = (scripted("gtp", "resign", name="a"), scripted("gtp", "resign", name="b"), "--size", "9")
    drawn = ("--openings", "policy", "--opening-moves", "2", "--games")
    _, few = run_match(tmp_path, *words, *drawn, "2")
    done, results = run_match(tmp_path, *words, *drawn, "6")
    assert done.returncode == 0, done.stderr
    assert "2 of 6 games are in" in done.stderr
    assert [result.opening for result in results] == [0, 0, 1, 1, 2, 2]
    assert results[:2] == few
    openings = read_journal(tmp_path / JOURNAL_NAME)[0]["kept"]["openings"]
    assert len(set(openings)) == 3


def test_a_match_goes_on_without_more_openings(tmp_path: Path) -> None:
    words = (scripted("gtp", "resign", name="a"), scripted("gtp", "resign", name="b"), "--size", "4")
    drawn = ("--openings", "policy", "--opening-moves", "1", "--games")
    run_match(tmp_path, *words, *drawn, "2")
    done, results = run_match(tmp_path, *words, *drawn, "20")
    assert done.returncode == 0, done.stderr
    openings = read_journal(tmp_path / JOURNAL_NAME)[0]["kept"]["openings"]
    assert 1 < len(openings) < 10
    assert f"found only {len(openings)} different openings" in done.stderr
    done, more = run_match(tmp_path, *words, *drawn, "24")
    assert done.returncode == 0, done.stderr
    assert more[:20] == results
    assert [result.opening for result in more] == [number // 2 % len(openings) for number in range(24)]
    assert "different openings" not in done.stderr  # they come again, so that none may be added


@pytest.mark.parametrize(
    ("players", "message"),
    [
        (("no-such-engine", "no-such-engine"), "no-such-engine: No such file or directory"),
        ((FINE, scripted("gtp", "dead")), "player dead: exited with status 1; stderr: no such network"),
        ((FINE, scripted("gtp", "refuse")), "player refuse: refused 'komi 7.5': no komi here"),
        ((scripted("gtp", "mute"), FINE, "--timeout", "1", "--game", "go"), "no answer to 'name' within 1 s"),
        ((FINE, f"{FINE} visits=7"), "knows no command for visits"),
        ((FINE_USI, f"{FINE_USI} option.Hash=7"), "has no option Hash: expected one of Level"),
        ((FINE,), "players: 1 found, expected at least 2"),
    ],
    ids=["absent", "dead", "refuse", "mute", "visits", "option", "alone"],
)  # fmt: skip
def test_a_match_that_cannot_begin(tmp_path: Path, players: tuple[str, ...], message: str) -> None:
    done, _ = run_match(tmp_path, *players)
    assert done.returncode == 2
    *before, last = done.stderr.splitlines()
    assert message in last
    assert before == [] or (len(before) == 1 and "games begin; records in" in before[0])
