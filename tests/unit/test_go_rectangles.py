"""Boards that are not square: rules against a slow twin, planes, symmetries, coordinates, and searches."""

import itertools
import random

import numpy as np
import pytest

from tests.looping import looped
from tests.naive.go_area import area_balance
from tests.naive.go_rectangle import Rectangle
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import Board, SetupError
from yomi.engine.go.rules import Rules
from yomi.native.go.board import BLACK, EMPTY, MAX_SIZE, MIN_SIZE, PASS, WHITE
from yomi.native.go.planes import policy_index, symmetry_table, write_planes
from yomi.native.go.rules import area_points
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.native.go.spec import go_spec

SHAPES = list(itertools.product(range(MIN_SIZE, MAX_SIZE + 1), repeat=2))
RULES = "ko=POSITIONAL,scoring=AREA,suicide={}"


def random_game(board: Board, seed: int, moves: int) -> tuple[GoGame, Rectangle]:
    """Play legal moves at random, and compare the board and the legal moves with the twin's."""
    rng = random.Random(seed)
    suicide = bool(seed & 1)
    rules = Rules.parse(f'{{"ko":"POSITIONAL","scoring":"AREA","tax":"NONE","suicide":{str(suicide).lower()}}}')
    game, twin = GoGame(board, rules), Rectangle(board.width, board.height, suicide=suicide)
    for _ in range(moves):
        color = game.side_to_move
        legal = [move for move in game.legal_moves() if move != PASS]
        wanted = [point for point in twin.points() if twin.after(color, point) is not None]
        assert sorted(map(board.coordinates, legal)) == sorted(wanted)
        if not legal:
            break
        move = rng.choice(legal)
        game.play(color, move)
        twin.play(color, board.coordinates(move))
        found = {board.coordinates(point): game.color_at(point) for point in board.points}
        assert {point: stone for point, stone in found.items() if stone != EMPTY} == twin.stones
    return game, twin


@looped("width", range(MIN_SIZE, MAX_SIZE + 1))
def test_rules_against_the_twin(width: int) -> None:
    """All small boards fill up and capture; of every second large one the beginning is compared."""
    for height in range(MIN_SIZE, MAX_SIZE + 1):
        if width * height > 100 and (width + height) % 2:
            continue
        board = Board(width, height)
        game, _ = random_game(board, width * 20 + height, 60 if board.area <= 30 else 12)
        assert area_points(game.position) == area_balance(game.position)


def test_a_long_board_is_played_to_its_end() -> None:
    for seed in range(2):
        game, _ = random_game(Board(19, 2), seed, 200)
        assert len(game.moves) > 60
        game, _ = random_game(Board(3, 11), seed, 200)
        assert len(game.moves) > 60


@pytest.mark.parametrize(("width", "height"), [(19, 13), (13, 19), (2, 19), (19, 2), (7, 9), (6, 5)])
def test_planes(width: int, height: int) -> None:
    """The planes are KataGo's for a network of the board's own width and height: no point is off the board."""
    board = Board(width, height)
    game, twin = random_game(board, 7, 40)
    spec = go_spec(width, height)
    planes, extras = np.zeros(spec.planes_shape, np.float32), np.zeros(19, np.float32)
    scratch = np.zeros(1, SCRATCH_DTYPE)[0]
    write_planes(game.position, game.history, 0, scratch, planes, extras)
    assert planes.shape == (22, height, width)
    assert (planes[0] == 1.0).all()
    own = game.side_to_move
    for x, y in twin.points():
        stone = twin.stones.get((x, y), EMPTY)
        assert (planes[1, y, x], planes[2, y, x]) == (stone == own, stone == 3 - own)
        if stone != EMPTY:
            liberties = len(twin.chain(twin.stones, (x, y))[1])
            assert [planes[2 + n, y, x] for n in (1, 2, 3)] == [liberties == n for n in (1, 2, 3)]
    for number, (_, move) in enumerate(reversed(game.moves[-5:])):
        x, y = board.coordinates(move)
        assert planes[9 + number].sum() == planes[9 + number, y, x] == 1.0
    # A triangular wave of the komi: 7.5 is half a point beside a draw on an odd area, and on an even one, too.
    komi = 7.5 if own == WHITE else -7.5
    assert extras[5] == pytest.approx(komi / 20.0)
    assert abs(extras[18]) == 0.5
    for symmetry in range(1, 8):
        turned = np.zeros_like(planes)
        write_planes(game.position, game.history, symmetry, scratch, turned, extras)
        wanted = planes[:, ::-1] if symmetry & 1 else planes
        wanted = wanted[:, :, ::-1] if symmetry & 2 else wanted
        np.testing.assert_array_equal(turned, wanted)
        table = symmetry_table(width, height, symmetry)
        np.testing.assert_array_equal(turned.reshape(22, -1)[:, table[:-1]], planes.reshape(22, -1))
        assert [policy_index(width, height, move, symmetry) for move in (*board.points, PASS)] == table.tolist()


def test_boards_beyond_the_limits() -> None:
    for width, height in ((1, 9), (9, 1), (20, 9), (9, 20)):
        with pytest.raises(SetupError, match=f"unacceptable size {width}x{height}: expected 2 to 19"):
            GoGame(Board(width, height))
    with pytest.raises(SetupError, match="board 9x7 is not square"):
        _ = Board(9, 7).side
    assert (BLACK, WHITE) == (1, 2)
