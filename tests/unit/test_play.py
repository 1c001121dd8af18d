"""The terminal's levels, advice, and the game that is saved whatever ends it."""

import contextlib
import dataclasses
import re
import signal
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.player import FakePlayer
from tests.fakes.shogi_player import FakeShogiPlayer
from tests.unit.command_lines import error_of
from yomi import language
from yomi.bench.levels import rate, read_pairings
from yomi.engine import levels
from yomi.engine.cli.main import main
from yomi.engine.game import Game
from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.players.player import GoPlayer
from yomi.engine.go.record_files import load_record
from yomi.engine.go.terminal import GoTerminalGame
from yomi.engine.levels import Rating
from yomi.engine.matches.results import WinDrawLoss
from yomi.engine.options import OptionError, Options
from yomi.engine.players.request import Decision, Request
from yomi.engine.registry import GAMES, GO
from yomi.engine.screen import CLEAR
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.players.player import ShogiPlayer
from yomi.engine.shogi.records.files import load_records, read_records, to_bytes
from yomi.engine.shogi.terminal import ShogiTerminalGame
from yomi.engine.signals import NUMBERS, ended_by_a_signal
from yomi.engine.terminal import Terminal


@pytest.fixture(autouse=True)
def unprepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be compiled for players that are fake."""
    monkeypatch.setattr(Game, "prepare", lambda *_: None)


class Interrupted:
    """Types lines, then Ctrl-C."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def __call__(self, prompt: str) -> str:
        if not self.lines:
            raise KeyboardInterrupt
        return self.lines.pop(0)


def go_game() -> GoTerminalGame:
    """Return a game on 5×5 with a fake player."""
    options = Options(size=5)
    return GoTerminalGame(FakePlayer(options), new_game(options))


def test_a_game_is_saved_on_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    shown: list[str] = []
    terminal = Terminal(go_game(), 1, Interrupted("C3"), shown.append, str(path))
    with pytest.raises(KeyboardInterrupt):
        terminal.run()
    assert shown[-1] == f"saved {path}"
    record = load_record(path)
    assert (record.black, record.result, len(record.game().moves)) == ("you", "", 2)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record.date)


def test_a_game_is_kept_after_every_move(tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    lines, kept, shown = ["C3", "B2", "undo", "resign", "quit"], [], list[str]()

    def read(prompt: str) -> str:
        kept.append(len(load_record(path).game().moves) if path.exists() else 0)
        return lines.pop(0)

    Terminal(go_game(), 1, read, shown.append, str(path)).run()
    assert kept == [0, 2, 4, 2, 2]
    assert sum(line.startswith("saved") for line in shown) == 1
    assert load_record(path).result == "W+R"


def test_a_game_that_cannot_be_kept_is_played_on(tmp_path: Path) -> None:
    path, shown = tmp_path / "gone" / "game.sgf", list[str]()
    lines = ["C3", "B2", f"save {tmp_path / 'game.sgf'}", "quit"]
    terminal = Terminal(go_game(), 1, lambda _: lines.pop(0), shown.append, str(path))
    terminal.run()
    complaints = [line for line in shown if line.startswith("the game is not saved yet: cannot write")]
    assert len(complaints) == 1
    assert len(load_record(tmp_path / "game.sgf").game().moves) == 4


@pytest.mark.parametrize("word", ["%CHUDAN", "%MATTA", "%ERROR"])
@pytest.mark.parametrize("suffix", [".csa", ".kif", ".kifu"])
def test_an_interrupted_game_of_shogi_is_resumed(
    word: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"game{suffix}"
    path.write_bytes(to_bytes(read_records(f"N+you\nN-yomi\nPI\n+\n+7776FU\n-3334FU\n{word}\n"), suffix))
    monkeypatch.setattr(Game, "load_player", lambda game, options, say: FakeShogiPlayer(options))
    monkeypatch.setattr("builtins.input", Interrupted("2g2f", "quit"))
    assert main(["play", "shogi", "--resume", str(path)]) == 0
    (record,) = load_records(path)
    assert (len(record.moves), record.ending, record.notes) == (4, "", [])


@pytest.mark.parametrize(
    ("game", "name", "text", "words", "error"),
    [
        ("go", "a.sgf", "(;GM[1]SZ[5]RE[W+R];B[cc])", [], "the game has ended (W+R)"),
        ("go", "a.sgf", "(;GM[1]SZ[5];B[cc])", ["--size", "9"], "--size with --resume"),
        ("go", "a.sgf", "(;GM[1]SZ[5];B[zz])", [], "B[zz]: expected a point"),
        ("shogi", "a.csa", "PI\n+\n+7776FU\n%TORYO\n", [], "the game has ended (TORYO)"),
        ("shogi", "a.csa", "nonsense", [], "line 1: "),
    ],
)
def test_what_cannot_be_resumed(
    game: str, name: str, text: str, words: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert error in error_of(capsys, "play", game, "--resume", str(tmp_path / name), *words)


def test_an_interrupt_while_a_game_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, game = tmp_path / "game.sgf", go_game()
    save = game.save

    def interrupted(*of_game: Any) -> None:
        monkeypatch.setattr(game, "save", save)
        raise KeyboardInterrupt

    monkeypatch.setattr(game, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Terminal(game, 1, Interrupted("C3", "quit"), [].append, str(path)).run()
    assert len(load_record(path).game().moves) == 1


@pytest.mark.parametrize("number", NUMBERS)
def test_a_game_is_saved_on_a_signal(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, lines = tmp_path / "game.sgf", ["C3"]

    def read(prompt: str) -> str:
        if not lines:
            signal.raise_signal(number)
            raise AssertionError("went on after a signal")
        return lines.pop()

    def write(text: str) -> None:
        if text.startswith("saved"):
            signal.raise_signal(number)  # a second one changes nothing
            raise OSError(5, "Input/output error")  # the terminal has gone

    monkeypatch.setattr(Game, "load_player", lambda game, options, say: FakePlayer(options))
    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr("builtins.print", write)
    before = signal.signal(number, lambda *of_signal: None)
    try:
        with pytest.raises(SystemExit) as ended:
            main(["play", "go", "--size", "5", "--save", str(path)])
        assert ended.value.code == 128 + number
        assert signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL)
    finally:
        signal.signal(number, before)
    assert len(load_record(path).game().moves) == 2


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(NUMBERS[-1], signal.SIG_IGN)
    try:
        with ended_by_a_signal():
            signal.raise_signal(NUMBERS[-1])
    finally:
        signal.signal(NUMBERS[-1], before)


def test_a_game_is_saved_where_the_user_saved_it(tmp_path: Path) -> None:
    chosen = tmp_path / "chosen.kifu"
    read = Interrupted("7g7f", f"save {chosen}", "2g2f", "resign", "quit")
    shown: list[str] = []
    Terminal(
        ShogiTerminalGame(FakeShogiPlayer(), ShogiGame()), 1, read, shown.append, str(tmp_path / "auto.kifu")
    ).run()
    record = load_records(chosen)[0]
    assert (len(record.moves), record.ending) == (4, "TORYO")
    assert re.fullmatch(r"\d{4}/\d\d/\d\d", record.info["START_TIME"])
    assert len(load_records(tmp_path / "auto.kifu")[0].moves) == 2  # from before
    assert shown.count(f"saved {chosen}") == 2


@pytest.mark.parametrize(
    ("words", "lines", "left"),
    [
        ("", ["C3", "save b.sgf", "B2", "quit"], {"b.sgf"}),
        ("", ["save b.sgf", "C3", "quit"], {"b.sgf"}),
        ("", ["C3", "save b.sgf", "B2"], {"b.sgf"}),  # ended by Ctrl-C
        ("", ["C3", "save gone/b.sgf", "quit"], {"yomi-0.sgf"}),
        ("", ["C3", "save ./yomi-0.sgf", "quit"], {"yomi-0.sgf"}),
        ("--save a.sgf", ["C3", "save b.sgf", "quit"], {"a.sgf", "b.sgf"}),
        ("--resume old.sgf", ["C3", "save b.sgf", "quit"], {"old.sgf", "b.sgf"}),
    ],
)
def test_the_file_that_yomi_named_goes_away_once_the_user_has_saved_the_game(
    words: str, lines: list[str], left: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "old.sgf" in left:
        Path("old.sgf").write_text("(;GM[1]SZ[5];B[aa];W[bb])")
    monkeypatch.setattr("time.strftime", lambda form: "yomi-0")
    monkeypatch.setattr(Game, "load_player", lambda game, options, say: FakePlayer(options))
    monkeypatch.setattr("builtins.input", Interrupted(*lines))
    with contextlib.suppress(KeyboardInterrupt):
        main(["play", "go", "--color", "black", *(words.split() or ["--size", "5"])])
    assert {path.name for path in tmp_path.iterdir()} == left
    last = max(left, key=lambda name: len(load_record(name).game().moves))
    assert len(load_record(last).game().moves) >= 2


@pytest.mark.parametrize("lines", [["quit"], ["board", "hint", "score", "quit"]])
def test_a_game_without_moves_is_not_saved(tmp_path: Path, lines: list[str]) -> None:
    game = go_game()
    Terminal(game, 1, Interrupted(*lines), [].append, str(tmp_path / "a.sgf")).run()
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    shown: list[str] = []
    path = tmp_path / "folder.sgf"
    path.mkdir()
    Terminal(go_game(), 1, Interrupted("C3", "quit"), shown.append, str(path)).run()
    assert shown[-1] == f"cannot write {path}: Is a directory"


def test_the_default_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Game, "load_player", lambda game, options, say: FakePlayer(options))
    monkeypatch.setattr("builtins.input", Interrupted("C3", "quit"))
    assert main(["play", "go", "--size", "5"]) == 0
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("yomi-2")
    assert len(load_record(path).game().moves) == 2


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("go --save game.kif", "expected a name ending in .sgf"),
        ("shogi --save game.sgf", "expected a name ending in .kifu .kif .csa"),
        ("go --save no/such/folder/game.sgf", "no folder no/such/folder"),
        ("go --resume game.txt", "--resume game.txt: expected a name ending in .sgf"),
        ("go --resume .", "--resume .: is a folder, expected a name ending in .sgf"),
        ("--resume .", "--resume .: is a folder, expected a name ending in .sgf .kifu .kif .csa"),
        ("go --level 21", "--level: expected an integer from -1 to 20, or max, or off, or auto, found 21"),
    ],
)
def test_errors(words: str, error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error in error_of(capsys, "play", *words.split())


@pytest.mark.parametrize(
    ("options", "name"), [([], "yomi-go-b6c96.bin.gz"), (["--evaluator", "rollouts"], "no network")]
)
def test_a_level_is_told_and_set(
    options: list[str], name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[FakePlayer] = []
    monkeypatch.setattr(Game, "load_player", lambda game, options, say: made.append(FakePlayer(options)) or made[-1])
    monkeypatch.setattr("builtins.input", Interrupted("hint", "quit"))
    assert main(["play", "go", "--no-save", "--size", "5", "--level", "3", "--people-loss", "0.5", *options]) == 0
    expected = levels.level_settings(GO, 3, Options(evaluator=options[-1] if options else "auto"))
    assert made[0].options.visits == expected["visits"]
    assert made[0].options.people_loss == 0.5
    assert f"Level 3 of 20 (Elo not measured for go 5x5, {name}), changed by people_loss" in capsys.readouterr().out
    advice = made[0].requests[0].options
    assert advice is not None
    assert (advice.visits, advice.seconds, made[0].options.visits) == (None, 1.0, expected["visits"])


def test_advice_in_shogi_is_given_at_full_strength() -> None:
    options = Options.for_game("shogi")
    options.visits = 4
    player = FakeShogiPlayer(options)
    game = ShogiTerminalGame(player, ShogiGame(), advice={"visits": None})
    head, *lines = game.hint()
    assert head == "winrate  line"
    assert len(lines) == 5
    assert game.score().startswith("Black wins 75.0%, +659 centipawns: ")
    assert [(request.options.visits, request.options.own_book) for request in player.requests] == [(None, False)] * 2
    assert player.calls == ["decide", "clear"] * 2
    assert (options.visits, options.own_book) == (4, True)


def test_a_level_gets_nothing_of_a_hint_in_go() -> None:
    player = GoPlayer(Options(evaluator="rollouts", size=5, memory=2**24, workers=1, seed=1, visits=4))
    game = GoTerminalGame(player, new_game(player.options), {"visits": 300})
    try:
        game.play(game.hint()[1].split()[3])
        assert ", 4 visits, " in game.obey(game.player.choose(game.game)).text
        game.score()
        assert player.search.root_visits == 0
    finally:
        game.player.close()


def test_a_level_gets_nothing_of_a_hint_in_shogi() -> None:
    options = Options.for_game("shogi")
    for name, value in {"evaluator": "material", "memory": 2**24, "workers": 1, "seed": 1, "visits": 4}.items():
        options.set(name, value)
    player = ShogiPlayer(options)
    game = ShogiTerminalGame(player, ShogiGame(), advice={"visits": 300})
    try:
        game.play(game.hint()[1].split()[1])
        text = game.obey(game.player.choose(game.game)).text
        assert re.search(r"^White \w+: White's winrate [\d.]+%, 4 playouts, ", text)
        assert player.report().visits == 4
    finally:
        game.player.close()


def test_alpha_beta_searches_nodes() -> None:
    options = Options.for_game("shogi")
    with language.within(language.JAPANESE):
        game = ShogiTerminalGame(FakeShogiPlayer(options), ShogiGame())
        text = game.obey(game.player.choose(game.game)).text
    assert re.fullmatch(r"▲\S+: 先手の勝率 75.0%、\d+ ノード、[\d.]+秒", text)


def test_a_board_in_place() -> None:
    shown: list[str] = []
    Terminal(go_game(), 1, Interrupted("C3", "zz", "hint", "quit"), shown.append, in_place=True).run()
    frames = "\n".join(shown).split(CLEAR)
    assert frames[0] == ""
    assert "fake. Type help" in frames[1]
    assert [".(X)." in frame for frame in frames[2:]] == [True, False, False, False]
    assert frames[2].endswith("yomi is thinking ...\n")
    assert [".(O)." in frame for frame in frames[3:]] == [True] * 3
    assert "winrate 50.0%, lead +1.5" in frames[3]
    assert "invalid vertex 'zz'" in frames[4]
    assert "winrate    lead   visits  line\n  50.0%    +1.5        8  " in frames[5]


class Critic(FakePlayer):
    """Thinks little of every move of the user."""

    opinion: dict[str, float] = {"winrate": 0.2, "score_lead": -2.0}  # noqa: RUF012

    def decide(self, request: Request[GoGame]) -> Decision:
        decision = super().decide(request)
        if request.allow is None:
            return decision
        return dataclasses.replace(decision, report=dataclasses.replace(decision.report, **self.opinion))


@pytest.mark.parametrize(("answer", "moves"), [("y", 0), ("", 0), ("what?", 0), ("no", 2)])
def test_a_blunder_may_be_taken_back(answer: str, moves: int) -> None:
    shown: list[str] = []
    game = GoTerminalGame(Critic(Options(size=5, visits=4)), new_game(Options(size=5)))
    lines = ["B2", answer, "y", "quit"] if answer == "what?" else ["B2", answer, "quit"]
    Terminal(game, 1, Interrupted(*lines), shown.append, warns=True).run()
    assert "B2 may lose 30% of the winrate and 3.5 points." in shown
    assert len(game.game.moves) == moves
    first, second = game.player.requests[:2]
    assert [request.options.seconds for request in (first, second)] == [0.4, 0.4]
    assert (first.options.visits, first.game.moves, second.allow) == (None, [], [game.game.board.parse_vertex("B2")])
    assert [request.game.side_to_move for request in (first, second)] == [1, 1]


def test_points_warn_of_a_blunder_in_a_won_game() -> None:
    shown: list[str] = []
    critic = Critic(Options(size=5, visits=4))
    critic.opinion = {"winrate": 0.49, "score_lead": -5.0}
    game = GoTerminalGame(critic, new_game(Options(size=5)))
    Terminal(game, 1, Interrupted("B2", "no", "quit"), shown.append, warns=True).run()
    assert "B2 may lose 1% of the winrate and 6.5 points." in shown


def test_the_best_move_is_no_blunder() -> None:
    player, shown = Critic(Options(size=5)), list[str]()
    Terminal(
        GoTerminalGame(player, new_game(player.options)), 1, Interrupted("C3", "quit"), shown.append, warns=True
    ).run()
    assert not any("may lose" in text for text in shown)
    assert len(player.requests) == 2


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("B+R", "B+R, Black wins by resignation"),
        ("W+0.5", "W+0.5, White wins by 0.5 points"),
        ("B+1", "B+1, Black wins by 1 point"),
        ("0", "0, a draw"),
        ("Void", "Void, no result"),
    ],
)
def test_results_in_words(result: str, words: str) -> None:
    assert go_game().in_words(result) == words


def test_score_of_go() -> None:
    player = FakePlayer(Options(size=3, komi=0.5))
    game = new_game(player.options)
    game.play(1, 5)
    text = GoTerminalGame(player, game).score()
    assert text.split("\n")[0] == "b . ."
    assert text.split("\n")[-1] == "expected: W+1.5, Black wins 50.0%"


# -- levels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["go", "shogi"])
@pytest.mark.parametrize("has_network", [False, True])
def test_every_level_is_made_of_options_and_stronger_than_the_last(game: str, has_network: bool) -> None:
    visits, heats, powers, losses = [], [], [], []
    assert levels.level_settings(GAMES[game], levels.COUNT, Options.for_game(game)) == {}, "full strength"
    for level in range(1, levels.COUNT):
        options = Options.for_game(game)
        options.evaluator = "auto" if has_network else GAMES[game].default_evaluator
        for name, value in levels.level_settings(GAMES[game], level, options).items():
            options.set(name, value)
        visits.append(options.visits or options.playouts or 0)
        heats.append(options.temperature)
        powers.append(options.people_prior)
        losses.append(options.people_loss)
    if has_network:
        assert visits == sorted(visits)
        assert powers == sorted(powers)
        assert losses == sorted(losses)
        assert not any(heats)
    else:
        assert visits == sorted(set(visits))
        assert heats == sorted(heats, reverse=True)
        assert not any(powers)


@pytest.mark.parametrize("game", ["go", "shogi"])
def test_options_at_a_level_come_back_at_full_strength(game: str) -> None:
    options = Options.for_game(game)
    options.visits = 400
    before = options.copy()
    switch = levels.LevelSwitch(GAMES[game], options)
    assert options == before
    for level in (3, 7):
        switch.set("level", level, wins=True)
        expected = levels.level_settings(GAMES[game], level, before)
        assert {name: options.get(name) for name in expected} == expected
        assert switch.own("visits") == 400
        assert (switch.full().visits, switch.full().root_noise) == (400, 0.0)
        assert switch.full().net == options.net
    switch.set("level", 0, wins=True)
    assert options == before


def test_a_value_of_a_level_is_changed_by_who_names_it_alone() -> None:
    options = Options(evaluator="rollouts", visits=400, temperature=0.5, level=3)
    switch = levels.LevelSwitch(GO, options, {"visits"})
    assert (options.visits, options.temperature) == (400, 1.0)
    switch.set("temperature", 0.25, wins=False)
    assert options.temperature == 1.0
    switch.set("temperature", 0.75, wins=True)
    assert options.temperature == 0.75
    switch.set("level", 3, wins=False)
    assert (options.visits, options.temperature) == (400, 0.75)
    state = switch.state()
    switch.set("level", 4, wins=False)
    assert (options.visits, options.temperature) == (8, 1.0)
    with pytest.raises(OptionError):
        switch.set("visits", -1, wins=True)
    assert (options.visits, options.temperature) == (8, 1.0)
    switch.restore(state)
    assert (options.level, options.visits, options.temperature) == (3, 400, 0.75)


def test_levels_play_with_a_small_network_unless_one_is_named(tmp_path: Path) -> None:
    own = tmp_path / "own.bin.gz"
    own.touch()
    assert Path(str(levels.level_settings(GO, 3, Options())["net"])).name == "yomi-go-b6c96.bin.gz"
    shogi = Options.for_game("shogi")
    assert "net" not in levels.level_settings(GAMES["shogi"], 3, shogi), "the strongest evaluation of the device"
    assert "net" not in levels.level_settings(GO, 3, Options(net=str(own)))
    assert "net" not in levels.level_settings(GO, 3, Options(evaluator="rollouts"))


def test_ratings_of_a_ladder() -> None:
    pairings = {2: WinDrawLoss(75, 0, 25), 3: WinDrawLoss(50, 0, 50), 5: WinDrawLoss(90, 0, 10)}
    ratings = rate(pairings)
    assert set(ratings) == {1, 2, 3}  # nothing leads to the fifth
    assert (ratings[1].elo, ratings[1].error) == (0.0, 0.0)
    assert ratings[2].elo == pytest.approx(190.8, abs=3)
    assert ratings[2].error == pytest.approx(1.96 * 40.1, abs=4)
    assert ratings[3].elo == pytest.approx(ratings[2].elo, abs=3)
    assert ratings[3].error > ratings[2].error
    assert (ratings[2].games, ratings[3].games) == (100, 200)
    assert rate({3: WinDrawLoss(1, 0, 1)}) == {}


def test_only_what_was_measured_gets_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"go 9x9, no network": {1: Rating(0.0, 0.0, 0), 2: Rating(190.8, 78.6, 100)}}
    monkeypatch.setattr(levels, "read_ratings", lambda: table)
    options = Options(size=9, evaluator="rollouts")
    assert "(Elo 0 by definition: go 9x9, no network)" in levels.describe_level(GO, options, 1)
    assert "(Elo +191 ± 79 above level 1 in 100 games: go 9x9" in levels.describe_level(GO, options, 2)
    assert "Elo not measured" in levels.describe_level(GO, options, 3)
    with language.within(language.JAPANESE):
        found = levels.describe_level(GO, options, 2)
    assert found == "レベル 2／20（レベル1に対して Elo +191 ± 79、100局での目安：go 9x9, no network）"
    assert "Elo not measured" in levels.describe_level(GO, Options(size=13, evaluator="rollouts"), 2)


def test_the_table_of_the_package() -> None:
    path = Path(str(resources.files("yomi.engine") / levels.TABLE))
    games, ratings = read_pairings(path), levels.read_ratings()
    assert set(games) == set(ratings)
    for subject, pairings in games.items():
        assert ratings[subject] == rate(pairings)
        assert set(ratings[subject]) == {1, *pairings}, "an unbroken ladder"
        assert all(pairing.games >= 20 for pairing in pairings.values())
        elos = [ratings[subject][level].elo for level in sorted(ratings[subject])]
        assert elos == sorted(elos), f"{subject}: every level is stronger than the last"


@pytest.mark.slow
@pytest.mark.parametrize("game", ["go", "shogi"])
def test_the_ladder_is_played(game: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "levels.json"
    words = ["levels", game, "--games", "2", "--levels", "2", "--out", str(out)]
    words += ["--size", "5"] if game == "go" else []
    for games in (2, 4):
        assert main(["bench", *words]) == 0
        (pairings,) = read_pairings(out).values()
        assert pairings[2].games == games
    assert "elo_above_level_1" in capsys.readouterr().out


def test_without_a_file_the_ladder_is_only_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from yomi.bench import levels as ladder

    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    monkeypatch.setattr(ladder, "play_pairing", lambda *arguments: WinDrawLoss(1, 0, 1))
    monkeypatch.setattr(ladder, "_write", lambda path, subject, known: pytest.fail(f"{path} was written"))
    assert main(["bench", "levels", "--games", "2", "--levels", "2", "--size", "5"]) == 0
    assert "elo_above_level_1" in capsys.readouterr().out


def test_a_damaged_record_is_resumed_with_a_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "game.sgf"
    path.write_text("(;GM[1]SZ[5]RU[Chinese]KM[7];B[cc];W[bb]")
    game, _ = GO.resume_play(str(path), Options(), ())
    assert len(game.moves) == 2
    assert caplog.messages == [f"{path}:1:41: the text ends: 1 ')' are missing"]
