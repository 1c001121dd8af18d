"""`yomi.env`: batches of games against the library's own games, and the shapes of pgx."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yomi

GAMES = Path(__file__).parents[2] / "docs" / "games"


def chosen(state: yomi.EnvironmentState, rng: np.random.Generator) -> Any:
    """Return a random legal action of each game."""
    return (rng.random(state.legal_action_mask.shape) * state.legal_action_mask).argmax(1)


def stones(board: list[list[int]], side: int) -> list[list[bool]]:
    return [[color == side for color in row] for row in board]


@pytest.mark.parametrize("max_steps", [None, 30])
def test_random_games_of_go_are_those_of_the_library(max_steps: int | None) -> None:
    count, size, rng = 6, 5, np.random.default_rng(1)
    env = yomi.env("go", count, size=size, komi=0.5, max_steps=max_steps)
    assert (env.num_actions, env.observation_shape) == (26, (5, 5, 17))
    games = [yomi.go.Game(size, komi=0.5) for _ in range(count)]
    boards = [[game.board] for game in games]
    state = env.reset()
    for _ in range(60):
        for row, game in enumerate(games):
            if state.terminated[row]:
                assert state.legal_action_mask[row].all()
                continue
            side, history = game.side_to_move, boards[row][::-1][:8]
            assert state.current_player[row] == side - 1
            legal = {game.move_index(move) for move in game.legal_moves()}
            assert set(np.flatnonzero(state.legal_action_mask[row]).tolist()) == legal
            for number, board in enumerate(history):
                planes = state.observation[row, :, :, 2 * number : 2 * number + 2]
                assert planes.transpose(2, 0, 1).tolist() == [stones(board, side), stones(board, 3 - side)]
            assert not state.observation[row, :, :, 2 * len(history) : 16].any()
            assert (state.observation[row, :, :, 16] == (side == yomi.WHITE)).all()
        before, actions = state, chosen(state, rng)
        state = env.step(actions)
        for row, game in enumerate(games):
            if before.terminated[row]:
                assert state.terminated[row]
                assert not state.rewards[row].any()
                continue
            game.play(int(actions[row]))
            boards[row].append(game.board)
            assert state.terminated[row] == (game.is_over or game.ply >= (max_steps or 50))
            result = np.sign(game.lead()) if state.terminated[row] else 0.0
            assert state.rewards[row].tolist() == [result, -result]
    assert state.terminated.all()
    begun = env.reset(np.arange(count) < 2)
    assert begun.terminated.tolist() == [False, False, True, True, True, True]
    assert not begun.observation[:2].any()
    assert begun.legal_action_mask[:2].all()


def test_games_by_file() -> None:
    rng, env = np.random.default_rng(2), yomi.env(f"{GAMES / 'connect_four.py'}:GAME", 20)
    state, winners = env.reset(), np.zeros(2, int)
    assert state.observation.shape == (20, *env.observation_shape) == (20, 7, 7, 3)
    for ply in range(42):
        assert (state.current_player[~state.terminated] == ply % 2).all()
        state = env.step(chosen(state, rng))
        assert (state.rewards.sum(1) == 0.0).all()
        winners += (state.rewards == 1.0).sum(0)
    assert state.terminated.all()
    assert winners.min() > 0
    assert winners.sum() <= 20


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"game": "shogi"}, "game 'shogi' found, expected go, or FILE.py:NAME"),
        ({"game": "chess"}, "game 'chess' found, expected one of go, shogi, or FILE.py:NAME"),
        ({"count": 0}, "count 0 found, expected an integer of at least 1"),
        ({"max_steps": 1001}, "max_steps 1001 found, expected an integer from 1 to 1000"),
        ({"rules": "japanese"}, "expected rules that score the board"),
        ({"sise": 9}, "did you mean size"),
        ({"net": "/nowhere", "visits": 3}, "unknown option 'net'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(yomi.Error, match=expected):
        yomi.env(**{"game": "go", **arguments})


def test_wrong_actions_change_nothing() -> None:
    env = yomi.env("go", 2, size=5)
    env.step([12, 12])
    for actions, expected in (
        ([3, 12], "action 12 of game 1 found"),
        ([26, 3], "action 26 of game 0"),
        ([-1, 3], "action -1 of game 0"),
        ([1.0, 2.0], "expected 2 integers"),
        ([1], "expected 2 integers"),
    ):
        with pytest.raises(yomi.Error, match=expected):
            env.step(actions)
    with pytest.raises(yomi.Error, match="expected 2 truth values"):
        env.reset([1, 0])
    state = env.step([3, 3])
    assert state.observation[:, :, :, :2].sum((1, 2, 3)).tolist() == [2, 2]
