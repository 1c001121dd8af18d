"""Games by file as the engine plays them: the contract of players, the solver, networks, self-play, a match, faults."""

import pickle
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import yomi
from tests.contract.test_players import *  # noqa: F403
from tests.games import naive
from tests.games.examples import FOLDER, NAMES, example, move_named, othello, othello_state, write_network
from yomi.engine.board_game.descriptor import game_of_file
from yomi.engine.board_game.kernels import _reason
from yomi.engine.board_game.play import BoardState
from yomi.engine.cli import main
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.evaluators.network import open_network
from yomi.engine.matches.report import report
from yomi.engine.matches.results import GameResult
from yomi.engine.matches.schedule import draw_openings, pairs_of, schedule
from yomi.engine.play import SCORE, FirstMoves, play_game
from yomi.engine.players.request import Request
from yomi.nets.errors import NetworkError


def new_game(name: str = "othello.py:SIX") -> BoardState:
    return BoardState(example(name).board_game)


@pytest.mark.slow
def test_small_endgames_are_solved(make: Any) -> None:
    player, rng = make("bare", visits=4000), np.random.default_rng(6)
    found: list[int] = []
    while len(found) < 12:
        game = new_game()
        while not game.is_over and str(game).count(".") > 6:
            game.push(int(rng.choice(game.legal_moves())))
        if len(game.legal_moves()) < 2:  # nothing to search
            continue
        best, scores = naive.solve(tuple(str(game).split()), "XO"[game.side_to_move - 1])
        decision = player.decide(Request(game))
        assert decision.report.proven == np.sign(best)
        assert np.sign(scores[decision.move]) == np.sign(best)
        found.append(np.sign(best))
    assert {-1, 1} <= set(found)


def test_what_needs_no_search(make: Any) -> None:
    player, rest = make(visits=None, seconds=600.0), "\n......" * 5
    assert player.decide(Request(othello_state(6, f"XO....{rest}", WHITE))).move == 36  # the pass
    assert player.decide(Request(othello_state(6, f"X.O...{rest}", WHITE))).move is None


@pytest.mark.parametrize("name", NAMES)
def test_backends_agree(name: str, tmp_path: Path) -> None:
    game, other = example(name), example("hex.py:ELEVEN" if "FIVE" in name else "hex.py:FIVE")
    described, path = game.board_game, write_network(tmp_path / "net.onnx", game)
    shape = 6, described.planes, described.size, described.size
    planes = np.random.default_rng(4).integers(0, 2, shape).astype(np.float32)
    network = open_network(game.formats, path, described.size)
    ours, theirs = (
        network.load(backend=backend).run(planes, np.zeros((6, 0), np.float32)) for backend in ("native", "onnx")
    )
    assert max(np.abs(first - second).max() for first, second in zip(ours, theirs, strict=True)) < 1e-4
    assert np.ptp(ours[1]) > 0.01
    with pytest.raises(NetworkError, match=f"expected a network for {other.title}"):
        open_network(other.formats, path, other.board_game.size)


def test_self_play_repeats_itself(kind: str, make: Any) -> None:
    played = []
    for _ in range(2):
        player, game = make(kind, visits=30, temperature=1.0, root_noise=0.25, resign=False), new_game()
        ended = play_game(game, {BLACK: player, WHITE: player}, othello(6).referee(player))
        assert (ended.winner, ended.ending) == (game.winner, SCORE)
        played.append(game.moves[:16])  # later, a proof ends a search whenever the player looks
    assert played[0] == played[1]


def test_a_match_from_paired_openings(make: Any) -> None:
    players = {"strong": make("bare", visits=400), "weak": make(visits=2, seed=2)}
    side = make("bare", visits=4, temperature=1.0, seed=3)

    def draw() -> str:
        game = new_game()
        play_game(game, {BLACK: side, WHITE: side}, FirstMoves(6))
        return othello(6).format_opening(game)

    names, openings, results = list(players), draw_openings(draw, 4, print), []
    for pairing in schedule(pairs_of(2), 8, len(openings)):
        game = new_game()
        for text in openings[pairing.opening].split():
            game.push(move_named(game, text))
        black, white = names[pairing.black], names[pairing.white]
        sides = {color: players[name] for color, name in ((BLACK, black), (WHITE, white))}
        ended = play_game(game, sides, othello(6).referee(players[black]))
        results.append(GameResult(pairing.number, black, white, ended.winner, ended.ending))
    rows = report(results).rows
    assert [(row.player, row.score.games) for row in rows] == [("strong", 8), ("weak", 8)]
    assert rows[0].score.points >= 6


@pytest.mark.parametrize(
    "name",
    [
        *("connect_four.py:GAME", "hex.py:ELEVEN", "othello.py:EIGHT"),  # other sizes: tests/games/test_rules.py
        pytest.param("minishogi.py:GAME", marks=pytest.mark.slow),  # compiles for ten seconds
    ],
)
def test_the_command_plays_it(name: str, tmp_path: Path) -> None:
    flags = "--evaluator rollouts --visits 5 --workers 1 --memory 16M --games 2 --seed 1"
    assert main.main(["selfplay", str(FOLDER / name), *flags.split(), "--out", str(tmp_path)]) == 0
    for number in (1, 2):
        moves, result = (tmp_path / f"game-{number:05d}.txt").read_text().splitlines()
        game = new_game(name)
        for text in moves.split():
            game.push(move_named(game, text))
        results = {BLACK: "1-0", WHITE: "0-1", DRAW: "1/2-1/2", None: "?"}
        assert result == f"{results[game.winner]} {SCORE}"


GOOD = """
import numpy as np
import yomi
def legal(state, moves):
    moves[state.ply] = 1
def play(state, move):
    state.number = move
def result(state):
    return state.ply == 3, -1.0
def encode(state, planes):
    planes[0, 0, 0] = 1
GAME = yomi.BoardGame(title="Counting", size=2, planes=1, state=[("number", np.uint8)],
    legal=legal, play=play, result=result, encode=encode)
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("GAME =", "OTHER =", "game.py: no GAME found, expected one of its names"),
        ("GAME =", "GAME = =", r"game.py, line 12: invalid syntax"),
        ("import numpy", "import nmpy", r"game.py, line 2: ModuleNotFoundError: No module named 'nmpy'"),
        ("yomi.BoardGame", "dict", "dict found, expected a yomi.BoardGame"),
        ("play=play, ", "", r"game.py, line 12: TypeError: .* missing 1 required .*argument: 'play'"),
        ('"Counting"', '"五目並べ"', "title '五目並べ' found, expected text with letters a-z or digits"),
        ('"Counting"', "3", "title 3 found, expected text with letters a-z or digits"),
        ("play=play", "play=print", "Counting: play is in no file: put the functions into a file"),
        ("play=play", "play=play, move_text=abs", "Counting: move_text returned 0, expected text"),
        ("play=play", "play=3", "play 3 found, expected a function"),
        ("size=2", "size=33", "size 33 found, expected a number from 2 to 32"),
        ("planes=1", "planes=0", "planes 0 found, expected a number from 1"),
        ('"Counting"', '"Go"', "expected the name of another game"),
        ('[("number", np.uint8)]', "np.uint8", "state uint8 found, expected a structured dtype"),
        ('[("number", np.uint8)]', "[('number', object)]", "expected a structured dtype of numbers"),
        ('[("number", np.uint8)]', "[('ply', np.uint8)]", "state has a field ply, which yomi adds"),
        ("moves[state.ply] = 1", "pass", "Counting: no legal move found after 0 moves, expected a result"),
        ("= 1", "= state.ply < 2", "Counting: no legal move found after 2 moves, expected a result"),
        ("moves[state.ply]", "moves[5 + state.ply]", "Counting: move 5 found, expected less than 5"),
        ("state.ply == 3", "state.ply >= 0", "Counting: a result found at the start, expected a move"),
        ("-1.0", "-2.0", "Counting: result -2 found, expected a value from -1 to 1"),
        ("planes[0, 0, 0] = 1", "planes[0, 0, 0] = 2", "Counting: encode wrote 2, expected zeros and ones"),
        ("state.number = move", "state.numbr = move", r"game.py: state has no field .numbr"),
        ("def play(state, move):", "def play(state):", r"game.py.*: .*argument"),
        ("state.number = move", "np.zeros(2)", r"game.py, line 7: No implementation of function .*zeros"),
        ("state.number = move", "state.number = mov", r"game.py: NameError: name 'mov' is not defined"),
        ("state.number = move", "raise ValueError('no move')", r"game.py, line 7: ValueError: no move"),
        ("play=play", "play=play, move_text=lambda m: 'a'[m]", r"game.py, line 13: IndexError: string index"),
        ("moves[state.ply] = 1", "moves[0] = (moves == 0).any()", r"game.py.*: an array is created, expected only"),
    ],
)
def test_faults_of_a_file_are_told_on_one_line(
    old: str, new: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in GOOD
    path = tmp_path / "game.py"
    path.write_text(GOOD.replace(old, new))
    assert main.main(["selfplay", f"{path}:GAME", "--games", "1", "--out", str(tmp_path / "games")]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("yomi: error: ")
    assert re.search(expected, error), error


def test_functions_without_a_file_are_told() -> None:
    with pytest.raises(yomi.Error, match=r"^Counting: play is in no file: put the functions into a file$"):
        exec(GOOD, {})


def test_an_array_is_named_in_both_of_numbas_messages() -> None:
    for message in (
        "Failed in yomi mode\nresolving callee _ol_array_allocate",
        "Failed in yomi mode\nNRT required but not enabled",
    ):
        assert "game.py: an array is created, expected only" in _reason(message, "game.py")


def test_an_edited_file_is_compiled_again(tmp_path: Path) -> None:
    path = tmp_path / "game.py"
    for moves in (3, 2, 3):
        path.write_text(GOOD.replace("state.ply == 3", f"state.ply == {moves}"))
        game = BoardState(game_of_file(f"{path}:GAME").board_game)
        while not game.is_over:
            game.push(game.legal_moves()[0])
        assert game.ply == moves


def test_an_edit_of_an_imported_number_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "game.py"
    imported: Any = ModuleType("yomi_test_numbers")
    path.write_text(
        GOOD.replace("import yomi", "import yomi\nfrom yomi_test_numbers import LAST").replace("== 3", "== LAST")
    )
    monkeypatch.setitem(sys.modules, imported.__name__, imported)
    for imported.LAST in (3, 2):
        game = BoardState(game_of_file(f"{path}:GAME").board_game)
        while not game.is_over:
            game.push(game.legal_moves()[0])
        assert game.ply == imported.LAST


def test_games_of_one_file_with_other_functions_are_other_games(tmp_path: Path) -> None:
    path, parts = tmp_path / "game.py", GOOD.partition("GAME = ")
    path.write_text(
        f"""{parts[0]}
from numba import njit
def ended(last, value=-1.0):
    def result(state):
        return state.ply == last, value
    return result
def calling(last):
    check = njit(lambda ply: ply == last)
    def result(state):
        return check(state.ply), -1.0
    return result
def other(state):
    return state.ply == 5, -1.0
"""
        + "".join(
            f"\n{name} = {parts[2].replace('result=result', f'result={result}')}"
            for name, result in (
                ("GAME", "result"),
                ("TWO", "ended(2)"),
                ("FOUR", "ended(4)"),
                ("OTHER", "other"),
                ("ONE", "calling(1)"),
                ("THREE", "calling(3)"),
            )
        )
    )
    for name, moves in (("GAME", 3), ("TWO", 2), ("FOUR", 4), ("OTHER", 5), ("ONE", 1), ("THREE", 3)):
        game = BoardState(game_of_file(f"{path}:{name}").board_game)
        while not game.is_over:
            game.push(game.legal_moves()[0])
        assert game.ply == moves


def test_a_game_can_be_sent_to_another_machine(tmp_path: Path) -> None:
    path = tmp_path / "game.py"
    path.write_text(GOOD)
    sent = pickle.dumps(game_of_file(f"{path}:GAME"))
    path.unlink()
    received = pickle.loads(sent)
    assert (received.name, BoardState(received.board_game).legal_moves()) == ("counting", [0])
    assert pickle.loads(pickle.dumps(received)).board_game.digest == received.board_game.digest


def test_a_missing_file_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["learn", "nowhere.py:GAME"]) == 2
    assert "nowhere.py: no such file, expected a Python file" in capsys.readouterr().err
