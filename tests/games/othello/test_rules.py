"""Othello's kernels: the contract of games, and their slow twins."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contract.test_games import *  # noqa: F403
from tests.contract.test_games import Case
from tests.games.othello import kernels, naive
from tests.games.othello.game import MOVES, OthelloGame
from tests.games.othello.kernels import PASS, SIZES, othello_spec
from yomi.native.jit import kernel


@pytest.fixture(params=SIZES)
def case(request: pytest.FixtureRequest) -> Case:
    """Give all boards, in place of the other games."""
    game = OthelloGame(request.param)
    return Case(othello_spec(game.size), lambda: (game.copy().record, game.history), symmetries=8, plies=100)


@kernel
def perft(positions, moves, ply, depth):  # type: ignore[no-untyped-def]
    """Return the lines of `depth` moves, passes included, from positions[ply]; moves[p] has room for those at ply p."""
    if depth == 0 or kernels.is_over(positions[ply]):
        return 1
    total = 0
    for i in range(kernels.legal_moves(positions[ply], moves[ply], moves[ply])):
        kernels.copy(positions[ply + 1], positions[ply])
        kernels.play(positions[ply + 1], moves[ply], moves[ply, i])
        total += perft(positions, moves, ply + 1, depth - 1)
    return total


def test_lines_are_as_many_as_is_known() -> None:
    positions, moves = np.zeros(12, kernels.POSITION_DTYPE), np.zeros((12, 64), np.uint16)
    positions[0] = OthelloGame(8).position
    known = [1, 4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288]
    assert [perft(positions, moves, 0, depth) for depth in range(len(known))] == known


def rows(game: OthelloGame) -> naive.Board:
    return tuple(str(game).split())


@pytest.mark.parametrize("size", SIZES)
def test_random_games_are_those_of_the_twin(size: int) -> None:
    rng, passes = np.random.default_rng(size), 0
    for _ in range(20):
        game = OthelloGame(size)
        while not game.is_over:
            before, legal = rows(game), game.legal_moves()
            after = naive.moves(before, "XO"[game.side_to_move - 1])
            assert legal == (sorted(after) or [PASS])
            move = int(rng.choice(legal))
            game.push(move)
            passes += move == PASS
            assert rows(game) == after.get(move, before)
        assert game.legal_moves() == [*naive.moves(rows(game), "X"), *naive.moves(rows(game), "O")] == []
        assert game.score == str(game).count("X") - str(game).count("O")
    assert passes


def test_planes_and_policies_turn_alike() -> None:
    game, seen = OthelloGame(6, "XO.... OXO... ...... ...... ...... .X...."), set()
    scratch = np.zeros(1, kernels.SCRATCH_DTYPE)
    for symmetry in range(8):
        planes = np.zeros((2, 6, 6), np.float32)
        kernels.write_planes(game.position, game.history, symmetry, scratch[0], planes, np.zeros(0, np.float32))
        for square in (8 * y + x for y in range(6) for x in range(6)):
            at = divmod(kernels.policy_index(game.position, square, symmetry), 6)
            found = [int(game.position[name]) >> square & 1 for name in ("own", "other")]
            assert planes[:, at[0], at[1]].tolist() == found
        seen.add(planes.tobytes())
    assert len(seen) == 8


def test_moves_are_made_and_taken_back() -> None:
    game = OthelloGame(6)
    with pytest.raises(ValueError, match="illegal move a1"):
        game.push(MOVES.index("a1"))
    game.push(MOVES.index("c2"))
    assert str(game).split()[1:4] == ["..X...", "..XX..", "..XO.."]
    game.undo()
    assert (game.moves, str(game)) == ([], str(OthelloGame(6)))
