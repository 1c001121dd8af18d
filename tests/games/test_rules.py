"""The rules of docs/games: the contract of games, numbers of lines that are known, and slow twins."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.contract.test_games import *  # noqa: F403
from tests.contract.test_games import Case
from tests.games import naive
from tests.games.examples import FOLDER, NAMES, example, move_named, othello
from yomi.engine.board_game.kernels import rules_of
from yomi.engine.board_game.play import BoardState
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.nets.data.symmetry import symmetries_of
from yomi.nets.metadata import feature_set


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest) -> Case:
    """Give all games and sizes, in place of the other games."""
    game = example(request.param).board_game
    return Case(rules_of(game).spec, lambda: (BoardState(game).record, np.zeros(1, np.uint64)), symmetries=1, plies=400)


def perft(rules: Any, position: Any, depth: int) -> int:
    """Return the number of lines of `depth` moves."""
    history, moves = np.zeros(1, np.uint64), np.zeros(rules.spec.max_moves, np.uint16)
    if rules.outcome(position, history)[0]:
        return 0
    count = rules.legal_moves(position, history, moves)
    if depth == 1:
        return int(count)
    total = 0
    for move in moves[:count].tolist():
        after = rules.spec.positions(1)
        after[0] = position
        rules.play(after[0], history, move)
        total += perft(rules, after[0], depth - 1)
    return total


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("connect_four.py:GAME", [7, 49, 343, 2401, 16807]),
        ("othello.py:EIGHT", [4, 12, 56, 244, 1396, 8200]),
        ("hex.py:FIVE", [25, 600, 13800]),
        ("minishogi.py:GAME", [14, 181, 2512]),
        pytest.param("minishogi.py:GAME", [14, 181, 2512, 35401], marks=pytest.mark.slow),
    ],
)
def test_lines_are_as_many_as_is_known(name: str, known: list[int]) -> None:
    start = BoardState(example(name).board_game)
    assert [perft(start.rules, start.position, depth) for depth in range(1, len(known) + 1)] == known


def rows(state: BoardState) -> naive.Board:
    return tuple(str(state).replace(" ", "").split())


@pytest.mark.parametrize("size", [4, 6, 8])
def test_random_games_of_othello_are_those_of_the_twin(size: int) -> None:
    rng, passes = np.random.default_rng(size), 0
    for _ in range(10):
        game = BoardState(othello(size).board_game)
        while not game.is_over:
            before, legal = rows(game), game.legal_moves()
            after = naive.moves(before, "XO"[game.side_to_move - 1])
            assert legal == (sorted(after) or [size**2])
            move = int(rng.choice(legal))
            game.push(move)
            passes += move == size**2
            assert rows(game) == after.get(move, before)
        assert game.legal_moves() == [*naive.moves(rows(game), "X"), *naive.moves(rows(game), "O")] == []
        lead = str(game).count("X") - str(game).count("O")
        assert game.winner == (BLACK if lead > 0 else WHITE if lead < 0 else DRAW)
    assert passes


@pytest.mark.parametrize(
    ("name", "has_won"),
    [("connect_four.py:GAME", naive.has_four), ("hex.py:FIVE", naive.has_connected)],
)
def test_random_games_end_when_the_twin_says_so(name: str, has_won: Callable[[naive.Board, str], bool]) -> None:
    rng, winners = np.random.default_rng(1), set()
    for _ in range(30):
        game = BoardState(example(name).board_game)
        while not game.is_over:
            assert not any(has_won(rows(game), stone) for stone in "XO")
            game.push(int(rng.choice(game.legal_moves())))
        found = [color for color, stone in ((BLACK, "X"), (WHITE, "O")) if has_won(rows(game), stone)]
        assert found == [game.winner] if game.winner else not found and "." not in str(game)
        winners.add(game.winner)
    assert winners >= {BLACK, WHITE}


def test_minishogi_ends_by_repetition_and_forbids_mate_by_a_pawn() -> None:
    game = BoardState(example("minishogi.py:GAME").board_game)
    up, down = 5 * 3 + 1, 25 * 4 + 5 * 4 + 1  # the golds step up, and back
    for move in [up, up, down, down] * 3:
        assert game.winner is None
        game.push(move)
    assert game.winner == WHITE
    king, pawn, gold, rook = 6, 1, 3, 5
    drop = 400 + 5  # of a pawn before the king
    for has_rook in (True, False):
        game = BoardState(example("minishogi.py:GAME").board_game)
        position = game.position
        position["board"], position["hands"] = 0, 0
        position["hands"][0, pawn - 1] = 1
        position["board"][0, 0], position["board"][2, 0], position["board"][4, 4] = -king, gold, king
        position["board"][4, 1] = rook if has_rook else 0  # guards the king's way out
        assert (drop in game.legal_moves()) != has_rook
        position["board"][3, 0] = pawn  # two pawns in a column
        assert drop not in game.legal_moves()


def test_boards_are_turned_in_training_only_if_the_game_allows_it() -> None:
    for name, count in (("othello.py:SIX", 8), ("hex.py:FIVE", 1), ("minishogi.py:GAME", 1)):
        game = example(name).board_game
        tables = symmetries_of(feature_set(game.features), game.size)
        assert (len(tables.points), tables.moves.shape) == (count, (count, game.policy_size))
        assert (tables.points[0] == np.arange(game.size**2)).all()


def test_moves_are_made_and_taken_back() -> None:
    game = BoardState(othello(6).board_game)
    with pytest.raises(ValueError, match="illegal move a1"):
        game.push(0)
    game.push(move_named(game, "c2"))
    assert (str(game).split()[1:4], game.line()) == (["..X...", "..XX..", "..XO.."], "c2")
    game.undo()
    assert (game.moves, str(game)) == ([], str(BoardState(othello(6).board_game)))
    with pytest.raises(ValueError, match="no move has been played"):
        game.undo()


def test_the_page_shows_the_example() -> None:
    page = (FOLDER.parent / "how-to" / "games.md").read_text(encoding="utf-8")
    assert (FOLDER / "connect_four.py").read_text(encoding="utf-8") in page
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in FOLDER.glob("*.py")}
    assert max(lengths.values()) < 150
    assert f"Connect Four takes {lengths['connect_four.py']} lines" in page
