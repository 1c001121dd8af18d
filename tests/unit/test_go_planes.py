"""Areas, ladders and symmetries of the network's input against slow twins on random boards.

KataGo's own positions are in tests/golden.
"""

import itertools
from typing import Any

import numpy as np
import pytest

from tests.naive import go_board
from tests.naive.go_board import BLACK, PASS, WHITE
from tests.naive.go_ladder import TooLongError, ladders
from tests.unit.go_twins import bits, board_points, new_position, point, random_game
from yomi.native.go import area
from yomi.native.go.board import MAX_POINTS, TAX_ALL, TAX_NONE, TAX_SEKI, copy
from yomi.native.go.ladder import read_ladders
from yomi.native.go.planes import GLOBALS, PLANES, policy_index, symmetry_table, write_bits, write_planes
from yomi.native.go.rules import play
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.native.go.spec import go_spec
from yomi.native.spec import packed_words


@pytest.fixture(scope="module")
def scratch() -> Any:
    return np.zeros(1, SCRATCH_DTYPE)[0]


@pytest.mark.parametrize(("suicide", "tax"), list(itertools.product((False, True), (TAX_NONE, TAX_SEKI, TAX_ALL))))
def test_areas(suicide: bool, tax: int, scratch: Any) -> None:
    out = np.zeros(MAX_POINTS, np.uint8)
    alive = 0
    for seed in range(7):
        size = (3, 4, 5, 5, 6, 7, 8)[seed]
        # random games fill the board and then their own eyes: all kinds of regions come up
        for ply, (pos, _, game) in enumerate(random_game(size, 0, suicide, seed, 3 * size * size, 0.0, tax=tax)):
            if (ply + seed) % 6 and size > 3:
                continue
            for color in (BLACK, WHITE):
                area.pass_alive(pos, scratch, color, out)
                marked = {p for p, q in enumerate(board_points(size)) if out[q]}
                expected = go_board.pass_alive(game.board, color, suicide)
                assert marked == expected, game.board
                alive += len(expected)
            area.load_sets(scratch, pos)
            area.find_areas(scratch, pos, pos["suicide"])
            owner = go_board.area(game.board, suicide, tax != TAX_NONE)
            for color, name in ((BLACK, "owned_black"), (WHITE, "owned_white")):
                assert bits(scratch[name], size) == {p for p, each in enumerate(owner) if each == color}, game.board
    assert alive > 60


def test_ladders(scratch: Any) -> None:
    compared = skipped = found = 0
    for seed in range(8):
        size = (5, 7, 9, 9)[seed % 4]
        for ply, (pos, _, game) in enumerate(random_game(size, seed % 3, False, seed, size * size, 0.0)):
            if ply < size or (ply + seed) % 5:
                continue
            for prey in (BLACK, WHITE):
                try:
                    laddered, working = ladders(game.board, game.simple_ko, prey)
                except TooLongError:
                    skipped += 1
                    continue
                before = pos.tobytes()
                read_ladders(pos, scratch, prey, False)
                assert pos.tobytes() == before
                assert bits(scratch["laddered"], size) == laddered, game.board
                assert bits(scratch["working"], size) == working, game.board
                compared += 1
                found += len(working)
    assert compared > 5 * skipped
    assert found > 50


def seen_under(values: Any, size: int, symmetry: int) -> Any:
    """Return planes [n, size, size] as the symmetry shows them: flips of rows, of columns, then the transposition."""
    values = values[:, ::-1] if symmetry & 1 else values
    values = values[:, :, ::-1] if symmetry & 2 else values
    return values.transpose(0, 2, 1) if symmetry & 4 else values


def planes_of(pos: Any, history: Any, symmetry: int, scratch: Any) -> tuple[Any, Any]:
    size = int(pos["size"])
    spatial = np.full((PLANES, size, size), np.nan, np.float32)
    numbers = np.full(GLOBALS, np.nan, np.float32)
    write_planes(pos, history, symmetry, scratch, spatial, numbers)
    return spatial, numbers


@pytest.mark.parametrize("size", range(2, 20))
def test_bits_are_the_numbers_on_every_board(size: int, scratch: Any) -> None:
    count = PLANES * size * size
    for pos, history, game in random_game(size, 1, False, size, 40, 0.05):
        symmetry = len(game.moves) % 8
        spatial, numbers = planes_of(pos, history, symmetry, scratch)
        bits, others = np.full(packed_words(count), 2**64 - 1, np.uint64), np.full(GLOBALS, np.nan, np.float32)
        write_bits(pos, history, symmetry, scratch, bits, others)
        found = np.unpackbits(bits.view(np.uint8), bitorder="little")
        assert (found[:count] == spatial.reshape(-1)).all()
        assert not found[count:].any()
        assert (others == numbers).all()


@pytest.mark.parametrize("symmetry", range(8))
def test_a_transformed_game_seen_plainly_is_the_game_seen_transformed(symmetry: int, scratch: Any) -> None:
    for size, plies in ((2, 6), (5, 30), (9, 70), (19, 150)):
        table = symmetry_table(size, size, symmetry)
        turned, turned_history = new_position(size, 1, True, komi=6.5)
        for pos, history, game in random_game(size, 1, True, size, plies, 0.02, komi=6.5):
            move = game.moves[-1]
            assert policy_index(size, size, point(size, move), symmetry) == table[size * size if move == PASS else move]
            seen_move = PASS if move == PASS else int(table[move])
            play(turned, turned_history, point(size, seen_move))
            if len(game.moves) % 7 and size > 2:
                continue
            spatial, numbers = planes_of(pos, history, symmetry, scratch)
            other, other_numbers = planes_of(turned, turned_history, 0, scratch)
            np.testing.assert_array_equal(spatial, other)
            np.testing.assert_array_equal(numbers, other_numbers)
            plain, _ = planes_of(pos, history, 0, scratch)
            np.testing.assert_array_equal(spatial, seen_under(plain, size, symmetry))
            flat = np.zeros(size * size + 1)
            flat[table] = np.append(plain[1].ravel(), 7.0)
            assert flat.tolist() == [*spatial[1].ravel().tolist(), 7.0]


def test_what_is_remembered_changes_nothing(scratch: Any) -> None:
    """Planes with a scratch record that has seen the game, and other sizes, equal those of a new one."""
    for size in (9, 5, 13):
        for pos, history, _ in random_game(size, 2, False, size, 60, 0.02, komi=0.5):
            warm, numbers = planes_of(pos, history, 3, scratch)
            cold, cold_numbers = planes_of(pos, history, 3, np.zeros(1, SCRATCH_DTYPE)[0])
            np.testing.assert_array_equal(warm, cold)
            np.testing.assert_array_equal(numbers, cold_numbers)


def test_areas_as_if_suicide_were_legal(scratch: Any) -> None:
    differ = 0
    for seed in range(4):
        spec = go_spec(5, suicide_areas=True)
        for ply, (pos, history, _) in enumerate(random_game(5, 0, False, seed, 75, 0.0)):
            if (ply + seed) % 4:
                continue
            plain, numbers = planes_of(pos, history, 0, scratch)
            lenient = pos.copy()
            lenient["suicide"] = 1
            shown, shown_numbers = planes_of(spec.with_flags(pos), history, 0, scratch)
            np.testing.assert_array_equal(shown_numbers, numbers)
            np.testing.assert_array_equal(shown[:18], plain[:18])
            np.testing.assert_array_equal(shown[18:20], planes_of(lenient, history, 0, scratch)[0][18:20])
            differ += not np.array_equal(shown, plain)
    assert differ


def test_the_advantage_in_playouts_is_that_of_the_side_to_move(scratch: Any) -> None:
    pos, history = new_position(5, 1, True, komi=6.5)
    _, plain = planes_of(pos, history, 0, scratch)
    assert plain[15:17].tolist() == [0.0, 0.0]
    pos["doubling_advantage"] = 1.5
    copied = np.zeros(1, pos.dtype)[0]
    copy(copied, pos)
    found = [planes_of(copied, history, 0, scratch)[1]]
    play(copied, history, point(5, 12))
    found.append(planes_of(copied, history, 0, scratch)[1])
    assert [numbers[15:17].tolist() for numbers in found] == [[1.0, 0.75], [1.0, -0.75]]
    assert (np.delete(found[0], (15, 16)) == np.delete(plain, (15, 16))).all()
