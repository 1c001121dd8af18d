"""The pure parts of a match: schedule, limits, players, journal, openings, adjudication, evaluations, SPRT."""

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yomi.engine.cli.main import main
from yomi.engine.clients.client import Evaluation
from yomi.engine.clients.spec import SpecError, parse_spec
from yomi.engine.clusters.jobs import Run, Task, begin_run
from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.matches.games import Adjudicator
from yomi.engine.matches.match import as_described_now, described, find_game, make_openings, match, opening_source
from yomi.engine.matches.parts import check_journal, unit_of
from yomi.engine.matches.rating import PAIR_SCORES, Sprt, expected_score, pair_counts
from yomi.engine.matches.results import (
    JOURNAL_NAME,
    GameLog,
    GameResult,
    MatchError,
    MatchJournal,
    key_of,
    read_journal,
    write_journal,
)
from yomi.engine.matches.schedule import draw_openings, load_openings, openings_before, pairs_of, schedule, shuffled
from yomi.engine.matches.settings import MatchSettings, bounds, cpus
from yomi.engine.options import Options
from yomi.engine.play import RESIGNATION, SCORE, Ended, Referee
from yomi.engine.records import LeftOut
from yomi.engine.registry import GAMES

# -- schedule --------------------------------------------------------------------------------------------------------


def test_every_opening_is_played_with_both_colors() -> None:
    games = list(schedule(pairs_of(4), 6, 2))
    assert [game.number for game in games] == list(range(36))
    by_opening = Counter((game.black, game.white, game.opening) for game in games)
    for (black, white, opening), number in by_opening.items():
        assert by_opening[white, black, opening] == number
    assert {game.opening for game in games} == {0, 1}
    assert len(by_opening) == 24
    assert games[:12] == list(schedule(pairs_of(4), 2, 2))  # a longer match begins like a shorter one


def test_an_odd_number_of_games() -> None:
    games = list(schedule(pairs_of(2), 3, 5))
    assert [(game.black, game.white, game.opening) for game in games] == [(0, 1, 0), (1, 0, 0), (0, 1, 1)]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_game_has_its_number_whatever_is_asked_for(players: int) -> None:
    longest = {game.number: game for game in schedule(pairs_of(players), 8, 3)}
    for games in range(1, 8):
        shorter = list(schedule(pairs_of(players), games, 3))
        assert len(shorter) == games * len(pairs_of(players))
        assert all(longest[game.number] == game for game in shorter)


def test_pairs() -> None:
    assert pairs_of(4, "gauntlet") == [(0, 1), (0, 2), (0, 3)]
    assert len(pairs_of(5)) == 10
    with pytest.raises(ValueError, match="players: 1 found, expected at least 2"):
        pairs_of(1)
    with pytest.raises(ValueError, match="form 'swiss'"):
        pairs_of(2, "swiss")


@pytest.mark.linux  # a shell is the engine
def test_the_game_is_that_of_the_first_other_engine(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "process" / "scripted_engine.py"
    engine = [sys.executable, "-S", "-E", str(script), "usi", "fine"]
    assert find_game(None, [{"engine": ["yomi:resign", "--lag", "0"]}], GAMES).name == "go"
    assert find_game(None, [{"engine": "'yomi:net=my net'"}, {"engine": engine}], GAMES).name == "shogi"
    assert (
        find_game(None, [{"engine": "yomi:visits=2"}, {"engine": "yomi:visits=2,net=yomi-shogi-6x64"}], GAMES).name
        == "shogi"
    )
    (tmp_path / "engine").symlink_to(sys.executable)
    (tmp_path / "scripted").symlink_to(script)
    command = "/bin/sh -c 'exec ./engine -S -E scripted $PROTOCOL fine'"
    table = {"engine": command, "folder": str(tmp_path), "env": {"PROTOCOL": "usi"}}
    assert find_game(None, [table], GAMES).name == "shogi"
    with pytest.raises(SpecError, match="without engine"):
        find_game(None, [{"name": "nobody"}], GAMES)


# -- journal -----------------------------------------------------------------------------------------------------------


def result(number: int, winner: int = 1, **other: object) -> GameResult:
    return GameResult(number, "A", "B", winner, "score", "B+3", seconds=(1.0, 2.0), files=("x.sgf",), **other)  # type: ignore[arg-type]


def test_a_journal_goes_on_after_any_cut(tmp_path: Path) -> None:
    with MatchJournal(tmp_path, {"game": "go"}, lambda: {"openings": ["a", "b"]}) as journal:
        for number in range(3):
            journal.add(result(number))
    whole = (tmp_path / JOURNAL_NAME).read_bytes()
    ends = [position + 1 for position, byte in enumerate(whole) if byte == 10]
    for cut in sorted({*range(ends[1], len(whole) + 1, 23), *ends[1:]}):
        (tmp_path / JOURNAL_NAME).write_bytes(whole[:cut])
        with MatchJournal(tmp_path, {"game": "go"}, lambda: {"openings": []}) as journal:
            complete = sum(end <= cut for end in ends) - 1
            assert journal.results == [result(number) for number in range(complete)]
            assert journal.kept == {"openings": ["a", "b"]}
            journal.add(result(9))
        assert read_journal(tmp_path / JOURNAL_NAME)[1][-1] == result(9)


def test_another_match_is_not_mixed_in(tmp_path: Path) -> None:
    with MatchJournal(tmp_path, {"size": 9}):
        pass
    with MatchJournal(tmp_path, {"size": 13}) as journal:  # nothing had been played
        journal.add(result(0))
    with pytest.raises(MatchError, match="another match: size was 13, now 9"):
        MatchJournal(tmp_path, {"size": 9})


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("folder=old", "folder=new", 'players.0.folder was "old", now "new"'),
        ("env.OMP=2 env.X=1", "env.OMP=2 env.X=3", 'players.0.env.X was "6b86b273ff34fce1", now "4e07408562bedb8b"'),
        ("env.OMP=2", "", 'players.0.env was {"OMP": "d4735e3a265e16ee"}, now null'),
        ("", "evaluations=false", "players.0.evaluations was null, now false"),
        ("init=a", "init=b", 'players.0.init.0 was "a", now "b"'),
    ],
)
def test_another_player_is_another_match(tmp_path: Path, was: str, now: str, message: str) -> None:
    def of_players(settings: str) -> dict[str, object]:
        names = (f"prog ;; name=a {settings}", "prog ;; name=b")
        return {"players": [described(parse_spec(name, "go", "gtp")) for name in names]}

    with MatchJournal(tmp_path, of_players(was)) as journal:
        journal.add(result(0))
    with MatchJournal(tmp_path, of_players(was)) as journal:
        assert journal.results == [result(0)]
    with pytest.raises(MatchError) as error:
        MatchJournal(tmp_path, of_players(now))
    assert f"another match: {message}; use the same settings" in str(error.value)


def test_a_journal_from_before_all_of_a_player_was_told() -> None:
    assert set(described(parse_spec("prog", "go", "gtp"))) == {
        "name",
        "command",
        "limits",
        "options",
        "init",
    }


def test_the_place_of_python_is_no_part_of_a_match() -> None:
    player = described(parse_spec("yomi:visits=7", "go", "gtp"))
    command = player["command"]
    assert isinstance(command, list)
    assert command[0] == "yomi"
    assert sys.executable not in command
    before = {**player, "command": ["/other/bin/python3", "-m", *command]}  # as versions until now wrote it
    foreign = described(parse_spec("/other/bin/python3 -m yomi gtp --visits 7", "go", "gtp"))
    now = {"players": [player, foreign]}
    assert as_described_now({"players": [before, foreign]}, now)["players"] == [player, foreign]
    assert "players" not in as_described_now({"options": []}, now)  # the journal of a duel


def test_what_is_kept_may_change_while_a_match_goes_on(tmp_path: Path) -> None:
    with MatchJournal(tmp_path, {"game": "go"}, lambda: {"openings": ["a"]}) as journal:
        journal.add(result(0))
        journal.keep({"openings": ["a", "b"]})
        assert journal.kept == {"openings": ["a", "b"]}
        journal.add(result(1))
    whole = (tmp_path / JOURNAL_NAME).read_bytes()
    kept_at = whole.index(b'{"kept"')
    for cut, games, kept in ((len(whole), 2, ["a", "b"]), (kept_at + 10, 1, ["a"]), (kept_at, 1, ["a"])):
        (tmp_path / JOURNAL_NAME).write_bytes(whole[:cut])
        with MatchJournal(tmp_path, {"game": "go"}) as journal:
            assert journal.results == [result(number) for number in range(games)]
            assert journal.kept == {"openings": kept}


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """The match ends with an error, and the journal holds whole games only."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with MatchJournal(tmp_path, {}) as journal:
        journal.add(result(0))
    size = (tmp_path / JOURNAL_NAME).stat().st_size
    try:
        with MatchJournal(tmp_path, {}) as journal:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
            with pytest.raises(MatchError, match=f"{JOURNAL_NAME}: File too large"):
                journal.add(result(1))
        assert (tmp_path / JOURNAL_NAME).stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with MatchJournal(tmp_path, {}) as journal:
        assert journal.results == [result(0)]


def test_two_programs_cannot_write_one_journal(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with MatchJournal(tmp_path, {}), pytest.raises(MatchError, match="in use by another match"):
        MatchJournal(tmp_path, {})


def test_files_that_are_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text in ("", "{}\n", "[1]\n", '{"yomi-match": 1}\n{"number": 1}\n', '{"yomi-match": 99}\n'):
        path.write_text(text)
        with pytest.raises(MatchError, match="expected the journal of a match"):
            read_journal(path)
    with pytest.raises(MatchError, match="No such file"):
        read_journal(tmp_path / "none")
    path.write_text('{"yomi-match": 1}\n{"number": 1, "number": 2}\n')
    with pytest.raises(MatchError, match=r"line 2: expected the journal of a match \(a field twice"):
        read_journal(path)
    for winner in (7, None):
        game = json.dumps(asdict(result(0)) | {"winner": winner})
        path.write_text(f'{{"yomi-match": 1}}\n{game}\n')
        with pytest.raises(MatchError, match=f"expected the journal of a match .winner {winner}: expected 1, 2 or 0"):
            read_journal(path)
    for name, wrong in (
        ("number", "1"), ("number", True), ("black", 1), ("files", ["x", 1]), ("files", "x"), ("seconds", [1.0]),
        ("seconds", ["1", "2"]), ("chosen", [1, 2, 3]), ("plies", 1.5), ("plies", None), ("files", ["x\0"]),
    ):  # fmt: skip
        game = json.dumps(asdict(result(0)) | {name: wrong})
        path.write_text(f'{{"yomi-match": 1}}\n{game}\n')
        with pytest.raises(MatchError, match=f"expected the journal of a match .({name} |file name)"):
            read_journal(path)
    for line in ("[1]", "null", "[" * 5000 + "]" * 5000, '{"number": 1e999}'):
        path.write_text(f'{{"yomi-match": 1}}\n{line}\n')
        with pytest.raises(MatchError, match="expected the journal of a match"):
            read_journal(path)


# -- openings ----------------------------------------------------------------------------------------------------------


def test_openings_from_records(tmp_path: Path) -> None:
    go, nine = GAMES["go"].matches(), {"size": 9}
    said: list[str] = []

    def load(path: Path, moves: int | None, kind: Any = go, rules: Any = nine) -> list[str]:
        said.clear()
        return load_openings(path, moves, kind, rules, LeftOut(said.append))

    (tmp_path / "a.sgf").write_text("(;SZ[9];B[ee];W[cc];B[gg])")
    (tmp_path / "b.sgf").write_text("(;SZ[9];B[ee];W[cc];B[aa])")
    assert load(tmp_path, None) == ["E5 C7 G3", "E5 C7 A9"]
    assert load(tmp_path, 2) == ["E5 C7"]
    with pytest.raises(MatchError, match=r"a.sgf: a board of 9x9, expected 13x13"):
        load(tmp_path, None, rules={"size": 13})
    for name, text in (("c.sgf", "(;SZ[13];B[aa])"), ("d.sgf", "no game"), ("e.sgf", "(;SZ[9];B[bb];W[zz])")):
        (tmp_path / name).write_text(text)
    assert load(tmp_path, 1) == ["E5", "B8"]
    assert [Path(line.partition(": ")[0]).name for line in said[:-1]] == ["c.sgf", "d.sgf"]
    assert said[-1] == "2 left out, of 5 files"
    with pytest.raises(MatchError, match=r"--openings .*d.sgf: no game"):
        load(tmp_path / "d.sgf", None)
    for name in ("c.sgf", "d.sgf", "e.sgf"):
        (tmp_path / name).unlink()
    (tmp_path / "b.sgf").write_text("(;SZ[9];B[aa])\n(;SZ[9];B[bb])")
    assert load(tmp_path / "b.sgf", None) == ["A9", "B8"]
    (tmp_path / "b.sgf").write_text("(;SZ[9]AB[aa];W[cc])")
    with pytest.raises(MatchError, match="expected moves in turn from an empty board"):
        load(tmp_path / "b.sgf", None)
    lines = tmp_path / "lines.sfen"
    lines.write_text("startpos moves 7g7f 3c3d\nposition startpos moves 2g2f\n4k4/9/9/9/9/9/9/9/4K4 b G 1\n")
    found = load(lines, 1, GAMES["shogi"].matches(), {})
    assert found == ["startpos moves 7g7f", "startpos moves 2g2f", "sfen 4k4/9/9/9/9/9/9/9/4K4 b G 1"]
    lines.write_text("startpos moves 7g7e\n")
    with pytest.raises(MatchError, match="7g7e"):
        load(lines, None, GAMES["shogi"].matches(), {})
    assert sorted(shuffled("abcdef", 3)) == list("abcdef")
    assert shuffled("abcdef", 3) == shuffled("abcdef", 3) != list("abcdef")


def test_drawing_openings_tells_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.matches.schedule.INTERVAL", 0.0)
    said: list[str] = []
    draw_openings(iter("aab").__next__, 3, said.append, ["x"])
    assert said == ["2 of 3 openings drawn", "2 of 3 openings drawn", "3 of 3 openings drawn"]


def test_drawn_openings_differ() -> None:
    rng = random.Random(1)
    assert len(set(draw_openings(lambda: str(rng.randrange(9)), 5, print))) == 5
    with pytest.raises(MatchError, match="1 different openings found, expected 2"):
        draw_openings(lambda: "same", 2, print)
    rng = random.Random(1)
    more = draw_openings(lambda: str(rng.randrange(9)), 5, print, ["3", "x"])
    assert (more[:2], len(set(more))) == (["3", "x"], 5)
    assert draw_openings(lambda: "same", 3, print, ["x"]) == ["x", "same"]


@pytest.mark.parametrize("game", ["go", "shogi"])
def test_a_match_with_more_games_has_the_openings_of_one_with_so_many(game: str) -> None:
    settings = argparse.Namespace(openings="policy", opening_moves=2, opening_seed=1, opening_net=None, size=9, games=4)
    kind = GAMES[game]
    few = make_openings(settings, kind, {}, print)
    settings.games = 7
    more = make_openings(settings, kind, {}, print, few)
    assert (more[:2], len(set(more))) == (few, 4)
    assert more == make_openings(settings, kind, {}, print)
    assert make_openings(argparse.Namespace(openings="policy", games=4), kind, {}, print, more) == more


@pytest.mark.slow
def test_a_longer_match_does_with_the_openings_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    settings = argparse.Namespace(openings="policy", opening_moves=1, opening_seed=1, opening_net=None, size=2, games=2)
    first = make_openings(settings, GAMES["go"], {}, print)
    settings.games = 100
    more = make_openings(settings, GAMES["go"], {}, print, first)
    assert more[:1] == first
    assert 1 < len(set(more)) == len(more) <= 5
    assert f"found only {len(more)} different openings of 1 moves" in capsys.readouterr().out
    with pytest.raises(MatchError, match="different openings found, expected 50; increase --opening-moves"):
        make_openings(settings, GAMES["go"], {}, print)


def test_openings_come_again_in_the_order_of_the_schedule() -> None:
    for pairs in (1, 3):
        games = list(schedule([(0, each) for each in range(1, pairs + 1)], 11, 3))
        assert all(openings_before(game.number, pairs) % 3 == game.opening for game in games)
        assert openings_before(games[-1].number, pairs) == 5


def test_the_network_is_told_where_openings_are_drawn_from_it() -> None:
    settings = MatchSettings(openings="policy", opening_moves=2, opening_seed=1)
    assert opening_source(settings) == ["policy", 2, 1, None]
    assert opening_source(replace(settings, opening_net="net.onnx")) == ["policy", 2, 1, "net.onnx"]
    assert opening_source(replace(settings, opening_net="net.onnx", openings="lines.sfen")) == ["lines.sfen", 2, 1]


# -- adjudication ------------------------------------------------------------------------------------------------------


class Patient(Referee[Any]):
    def judge(self, game: Any) -> None:
        """Let every game go on."""


def loser(threshold: float | None, moves: int, views: Iterable[tuple[int, float | None]]) -> int:
    """Return who has lost by the last of what the engines of these colors see; 0 if the game goes on."""
    adjudicator = Adjudicator(Patient(), threshold, moves)
    for color, winrate in views:
        assert adjudicator.judge(None) is None
        adjudicator.add_evaluation(color, None if winrate is None else Evaluation(winrate))
    ended = adjudicator.judge(None)
    return 0 if ended is None else opponent(ended.winner)


def test_both_must_see_it() -> None:
    views = [(1, 0.9), (2, 0.04), (1, 0.97), (2, 0.04), (1, 0.97)]
    assert loser(0.05, 2, views) == 2
    assert loser(0.05, 2, ((1 + ply % 2, 0.01 if ply % 2 else 0.8) for ply in range(20))) == 0
    assert loser(0.05, 1, ((1 + ply % 2, None) for ply in range(20))) == 0
    assert loser(None, 1, ((1 + ply % 2, float(ply % 2)) for ply in range(20))) == 0


# -- SPRT --------------------------------------------------------------------------------------------------------------


def play_out(test: Sprt, elo: float, seed: int) -> str:
    """Return the verdict on simulated pairs of games with 30% draws."""
    rng = random.Random(seed)
    counts = [0] * len(PAIR_SCORES)
    win, draw = expected_score(elo) - 0.15, 0.3
    for number in range(100_000):
        points = 0.0
        for _ in range(2):
            chance = rng.random()
            points += 1.0 if chance < win else 0.5 if chance < win + draw else 0.0
        counts[round(2 * points)] += 1
        if number % 20 == 0 and (verdict := test.verdict(counts)):
            return verdict
    return ""


def test_error_rates() -> None:
    test = Sprt(0.0, 50.0)
    verdicts = {elo: Counter(play_out(test, elo, seed) for seed in range(60)) for elo in (0.0, 50.0)}
    assert verdicts[0.0]["elo1"] <= 7  # 3 expected
    assert verdicts[50.0]["elo0"] <= 7
    assert play_out(test, 150.0, 1) == "elo1"
    assert play_out(test, -100.0, 1) == "elo0"


def test_an_sprt_says_how_it_stands() -> None:
    test = Sprt(0.0, 10.0)
    assert test.ratio([0] * 5) == 0.0
    assert (test.lower, test.upper) == pytest.approx((-2.944, 2.944), abs=0.001)
    assert "LLR 0.00 [-2.94, 2.94] after 0 pairs" in test.line([0] * 5)
    assert test.line([0, 0, 0, 0, 1000]).endswith(": at least 10 Elo")
    step, variance = expected_score(10.0) - 0.5, 0.075  # of a pair's score, in the counts below
    normal = 100 * step * -step / (2 * variance)
    assert test.ratio([10, 20, 40, 20, 10]) == pytest.approx(normal, rel=0.01)
    with pytest.raises(ValueError, match="expected the first below"):
        Sprt(5.0, 5.0)
    with pytest.raises(ValueError, match="error rates"):
        Sprt(0.0, 5.0, 0.6)


def test_pairs_of_games_are_what_counts() -> None:
    games = [
        GameResult(0, "A", "B", 1, "score"),
        GameResult(1, "B", "A", 2, "score"),  # A has won both
        GameResult(2, "A", "B", 2, "score"),
        GameResult(3, "B", "A", DRAW, "score"),
        GameResult(5, "B", "A", 1, "score"),  # without its partner
    ]
    assert pair_counts(games, "A") == [0, 1, 0, 0, 1]


# -- settings ----------------------------------------------------------------------------------------------------------


def test_words_of_settings() -> None:
    assert cpus("0,1") == (frozenset({0}), frozenset({1}))
    assert cpus("0-1, 2-3") == (frozenset({0, 1}), frozenset({2, 3}))
    assert bounds("0,5,0.1,0.1") == (0.0, 5.0, 0.1, 0.1)
    assert cpus("4095") == (frozenset({4095}),)
    for text in ("a", "1-", "", "5-3", "4096", "0-4096", "9" * 5000):
        with pytest.raises(ValueError, match="expected processors"):
            cpus(text)
    with pytest.raises(ValueError, match="expected ELO0,ELO1"):
        bounds("1")


# -- parts that contradict themselves ----------------------------------------------------------------------------------

MOVES = {"go": ("C3", "D4", "pass", "pass"), "shogi": ("7g7f", "3c3d", "2g2f", "resign")}
PLAYERS = ("A", "B", "C")
Entries = list[dict[str, Any]]


def write_match(folder: Path, name: str = "go", games: int = 2) -> Run:
    """Write a match of three players, without engines, and return its description."""
    kind, options = GAMES[name].matches(), Options.for_game(name)
    if name == "go":
        options.set("size", 5)
    rules = kind.rules(options, None, 0)
    players = [{"name": each, "limits": "visits 2", "options": {}, "init": []} for each in PLAYERS]
    header = {"game": name, "players": players, "form": "round-robin", **rules}
    opening = GAMES[name].format_opening(kind.begin(rules, ""))
    pairings = list(schedule(pairs_of(3), games, 1))
    run = Run("match", ["match"], Task(1, 1), unit_of(pairings[-1].number) + 1, "pairs", {**header, "games": games}, {})
    folder.mkdir(exist_ok=True)
    begin_run(folder, run, 0, is_new=True)
    results = []
    for pairing in pairings:
        names = {BLACK: PLAYERS[pairing.black], WHITE: PLAYERS[pairing.white]}
        game = kind.begin(rules, opening)
        moves = [text for text in MOVES[name] if text != "resign"]
        if pairing.number % 2:
            moves = moves[:2] if name == "shogi" else ["B2", *moves]
        for text in moves:
            game.push(kind.read_answer(game, text).move)
        ended = Ended(WHITE, SCORE, "W+7.5") if name == "go" else Ended(opponent(game.side_to_move), RESIGNATION)
        clients: Any = {
            color: SimpleNamespace(spec=SimpleNamespace(name=each), title=each) for color, each in names.items()
        }
        written = kind.records(GameLog(game, clients, [None] * len(moves)), ended, "game")
        files = tuple(f"game-{pairing.number + 1:05d}{suffix}" for suffix in written)
        for file, content in zip(files, written.values(), strict=True):
            (folder / file).write_bytes(content)
        key = key_of(f"{opening}|{' '.join(moves)}")
        played = {"plies": len(moves), "chosen": (1, 1), "key": key, "files": files, "seconds": (1.0, 1.0)}
        results.append(GameResult(pairing.number, *names.values(), ended.winner, ended.ending, ended.detail, **played))
    write_journal(folder, {**header, "kept": {"openings": [opening]}}, results)
    return run


def swap_records(folder: Path, entries: Entries) -> None:
    one, other = (folder / entries[number]["files"][0] for number in (1, 2))
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0]), one.write_bytes(contents[1])


def edit_record(old: str, new: str) -> Callable[[Path, Entries], None]:
    def edit(folder: Path, entries: Entries) -> None:
        path = folder / entries[1]["files"][0]
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return edit


def link(make: Callable[[Path, Path], Any]) -> Callable[[Path, Entries], None]:
    def replace_record(folder: Path, entries: Entries) -> None:
        path = folder / entries[1]["files"][0]
        path.rename(folder.parent / "elsewhere")
        make(path, folder.parent / "elsewhere")

    return replace_record


def game(**changes: Any) -> Callable[[Path, Entries], None]:
    return lambda folder, entries: entries[1].update(changes)


def header(**changes: Any) -> Callable[[Path, Entries], None]:
    return lambda folder, entries: entries[0].update(changes)


TAMPERED: dict[str, tuple[Callable[[Path, Entries], Any], str]] = {
    "a game twice": (lambda folder, entries: entries.append(entries[1]), "line 8: game 1 is also in line 2"),
    "twice with opposite winners": (
        lambda folder, entries: entries.append({**entries[1], "winner": BLACK, "detail": "B+7.5"}),
        "line 8: game 1 is also in line 2",
    ),
    "a second header": (lambda folder, entries: entries.insert(2, entries[0]), "line 3: expected the journal"),
    "another winner": (game(winner=BLACK), "the winner 1 and the score 'W.7.5', which contradict"),
    "another winner and score": (game(winner=BLACK, detail="B+7.5"), "the winner 1 and 2 in game-00001.sgf"),
    "no winner": (game(winner=DRAW), "the winner 0 and the score"),
    "no winner after a resignation": (game(winner=DRAW, ending="resignation"), "winner 0 and the ending 'resignation'"),
    "a winner after no result": (game(ending="no result"), "winner 2 and the ending 'no result'"),
    "an impossible winner": (game(winner=3), "line 2: expected the journal of a match .winner 3"),
    "an unknown player": (game(black="D"), "the player 'D', expected one of A, B, C"),
    "a player against itself": (game(white="A"), "is A against A, expected A against B"),
    "exchanged colors": (game(black="B", white="A"), "is B against A, expected A against B"),
    "another pair": (game(white="C"), "is A against C, expected A against B"),
    "a negative number": (game(number=-2), "is of another task"),
    "a number beyond the match": (game(number=10_000), "is of another task"),
    "the number of another game": (game(number=3), "is A against B, expected C against A"),
    "another opening": (game(opening=1), "opening 2, expected 1 to 1"),
    "a negative opening": (game(opening=-1), "an impossible number"),
    "more moves": (game(plies=9), "other moves than game-00001.sgf"),
    "negative moves": (game(plies=-1), "an impossible number"),
    "negative time": (game(seconds=[-1.0, 0.0]), "an impossible number"),
    "more chosen moves than moves": (game(chosen=[9, 9]), "an impossible number"),
    "another key": (game(key="0" * 16), "other moves than game-00001.sgf"),
    "no key": (game(key=""), "an impossible number"),
    "no record": (game(files=[]), "moves and no record"),
    "the record of another game": (game(files=["game-00002.sgf"]), "the record 'game-00002.sgf', expected game-00001"),
    "a record elsewhere": (game(files=["../elsewhere/game-00001.sgf"]), "expected game-00001"),
    "a record twice": (game(files=["game-00001.sgf"] * 2), "names a record twice"),
    "an absent record": (game(files=["game-00001.csa"]), "game-00001.csa: .*(No such file|not found|cannot find)"),
    "exchanged records": (swap_records, "line 2: game 1"),
    "a symbolic link as a record": (link(lambda path, other: path.symlink_to(other)), "a link, folder or device found"),
    "a pipe as a record": (link(lambda path, other: os.mkfifo(path)), "a link, folder or device found"),
    "a folder as a record": (link(lambda path, other: path.mkdir()), "a link, folder or device found"),
    "an empty record": (edit_record("(;", ""), "line 2: game 1"),
    "two games in a record": (link(lambda path, other: path.write_bytes(2 * other.read_bytes())), "2 games in game-"),
    "another result in the record": (edit_record("W+7.5", "B+7.5"), "the winner 2 and 1 in game-00001.sgf"),
    "no result in the record": (edit_record("RE[W+7.5]", ""), "the winner 2 and no result in game-00001.sgf"),
    "another move in the record": (edit_record(";B[cc]", ";B[ba]"), "other moves than game-00001.sgf"),
    "another player in the record": (edit_record("PB[A]", "PB[D]"), "the player 'A' and 'D' in game-00001.sgf"),
    "another player in the header": (
        header(players=[{"name": each, "limits": "visits 2", "options": {}, "init": []} for each in "DBC"]),
        "line 1: players.0.name 'D' found, expected 'A' as in run.json",
    ),
    "another limit in the header": (
        header(players=[{"name": each, "limits": "visits 9", "options": {}, "init": []} for each in PLAYERS]),
        "line 1: players.0.limits 'visits 9' found, expected 'visits 2'",
    ),
    "another komi in the header": (header(komi=0.5), "line 1: komi 0.5 found, expected"),
    "another board in the header": (header(size=9), "line 1: size 9 found, expected 5"),
    "other openings in the header": (header(kept={"openings": ["A1"]}), "other moves than game-00001.sgf"),
    "no openings in the header": (header(kept={}), "line 1: a broken description"),
}  # fmt: skip


# Windows lets few users make links, and has no pipes in folders.
UNIX = ("a symbolic link as a record", "a pipe as a record")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.linux] * (name in UNIX)) for name in TAMPERED])
def test_a_journal_that_contradicts_itself_is_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "part"
    run = write_match(folder)
    assert len(check_journal(folder, run, GAMES)) == 6
    path = folder / JOURNAL_NAME
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    tamper, message = TAMPERED[name]
    tamper(folder, entries)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    with pytest.raises(MatchError, match=message) as error:
        check_journal(folder, run, GAMES)
    assert str(error.value).startswith(f"{path}, line ")
    assert "\n" not in str(error.value)
    for command in (["status", str(folder)], ["merge", str(folder), "--out", str(tmp_path / "merged")]):
        assert main(command) == 2
    assert not (tmp_path / "merged").exists()


@pytest.mark.linux  # as above
def test_a_journal_elsewhere_is_refused(tmp_path: Path) -> None:
    run = write_match(tmp_path / "part")
    (tmp_path / "part" / JOURNAL_NAME).rename(tmp_path / "elsewhere")
    (tmp_path / "part" / JOURNAL_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MatchError, match="a link, folder or device found"):
        check_journal(tmp_path / "part", run, GAMES)


@pytest.mark.parametrize("suffix", [".csa", ".kifu"])
def test_both_records_of_a_game_of_shogi_are_checked(suffix: str, tmp_path: Path) -> None:
    run = write_match(tmp_path / "part", "shogi")
    assert len(check_journal(tmp_path / "part", run, GAMES)) == 6
    (tmp_path / "part" / f"game-00003{suffix}").replace(tmp_path / "part" / f"game-00001{suffix}")
    with pytest.raises(MatchError, match=f"line 2: game 1 has the player 'B' and 'C' in game-00001{suffix}"):
        check_journal(tmp_path / "part", run, GAMES)


def test_a_match_that_contradicts_itself_is_not_continued(tmp_path: Path) -> None:
    players = [{"engine": f"{sys.executable} -c pass", "name": name} for name in "AB"]
    settings = MatchSettings(game="go", size=5, games=2, visits=2, out=str(tmp_path))
    noted: dict[str, Any] = {}

    def note(folder: Path, description: dict[str, Any], *others: Any) -> None:
        noted.update(json.loads(json.dumps(description)))
        raise MatchError("noted")

    def play() -> None:
        match(settings, players, GAMES, lambda line: None, lambda lines, results: None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("yomi.engine.matches.series.MatchJournal", note)
        with pytest.raises(MatchError, match="noted"):
            play()
    game = GameResult(0, "A", "B", BLACK, "failure", key=key_of("|"))
    write_journal(tmp_path, {**noted, "kept": {"openings": [""]}}, [game, game])
    with pytest.raises(MatchError, match="line 3: game 1 is also in line 2"):
        play()
