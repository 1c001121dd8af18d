"""What every game owes to the search: the functions of yomi.native.game, on random games.

A module of tests for another game imports these and has a fixture `case` of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.engine.shogi.game import ShogiGame
from yomi.native.game import IMPLEMENTATIONS, ONGOING, OVER, OVER_UNSCORED
from yomi.native.go.spec import go_spec
from yomi.native.shogi.position import FORM_ALPHAZERO, FORM_DLSHOGI
from yomi.native.shogi.spec import shogi_spec
from yomi.native.spec import GameSpec, packed_words


@dataclass(frozen=True)
class Case:
    """A game to test."""

    spec: GameSpec
    begin: Callable[[], tuple[Any, Any]]
    """Returns the first position's record, in an array of one, and its history."""
    symmetries: int
    plies: int
    """Moves of a random game."""

    @property
    def rules(self) -> Any:
        """The game's kernels, under the names in yomi.native.game."""
        return SimpleNamespace(**IMPLEMENTATIONS[self.spec.position_dtype])


def _go(size: int, rules: str) -> Case:
    def begin() -> tuple[Any, Any]:
        first = GoGame(square(size), PRESETS[rules])
        records = go_spec(size).positions(1)
        records[0] = first.position
        return records, first.history.copy()

    return Case(go_spec(size), begin, 8, 3 * size * size)


def _shogi(form: int, extras: int, max_moves: int = 0, mate_depth: int = 0) -> Case:
    def begin() -> tuple[Any, Any]:
        first = ShogiGame(max_moves=max_moves)
        records = shogi_spec(form, extras).positions(1)
        records[0] = first.position
        records[0]["form"], records[0]["mate_depth"] = form, mate_depth
        return records, first.history.copy()

    return Case(shogi_spec(form, extras), begin, 1, 400)


CASES = {
    f"go {size} {rules}": _go(size, rules)
    for size, rules in [(2, "tromp-taylor"), (5, "japanese"), (9, "aga"), (4, "stone-scoring")]
}
CASES["go 8 japanese"] = _go(8, "japanese")  # whose planes are whole words
CASES["go 13 tromp-taylor"] = _go(13, "tromp-taylor")
CASES["go 19 chinese"] = _go(19, "chinese")
CASES["shogi"] = _shogi(FORM_DLSHOGI, 57)
CASES["shogi, entering kings, mates, 100 moves"] = _shogi(FORM_DLSHOGI, 119, 100, 3)
CASES["shogi, alphazero"] = _shogi(FORM_ALPHAZERO, 0)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Give each game."""
    return CASES[request.param]


def moves_of(case: Case, pos: Any, history: Any) -> list[int]:
    found = np.zeros(case.spec.max_moves, np.uint16)
    count = case.rules.legal_moves(pos, history, found)
    assert 0 <= count <= case.spec.max_moves
    return [int(move) for move in found[:count]]


def key_of(case: Case, pos: Any, history: Any) -> int:
    moves = np.zeros(case.spec.max_moves, np.uint16)
    return int(case.rules.position_key(pos, history, moves, case.rules.legal_moves(pos, history, moves)))


def random_game(case: Case, seed: int) -> tuple[list[int], list[bytes], list[int]]:
    """Return the moves of a random game, its positions and their keys, and check the contract on the way."""
    rng = np.random.default_rng(seed)
    records, history = case.begin()
    pos = records[0]
    spare = case.spec.positions(1)
    moves, positions, keys = [], [records.tobytes()], [key_of(case, pos, history)]
    for _ in range(case.plies):
        state, value, _ = case.rules.outcome(pos, history)
        legal = moves_of(case, pos, history)
        assert len(set(legal)) == len(legal)
        if state != ONGOING or not legal:
            break
        move = legal[int(rng.integers(len(legal)))]
        before, length = records.tobytes(), int(pos["history_length"])
        entries = history[:length].copy()
        # a copy that shares the history may be played on
        case.rules.copy(spare[0], pos)
        assert moves_of(case, spare[0], history) == legal
        case.rules.play(spare[0], history, move)
        assert records.tobytes() == before
        assert (history[:length] == entries).all()
        case.rules.play(pos, history, move)
        assert key_of(case, pos, history) == key_of(case, spare[0], history)
        moves.append(move)
        positions.append(records.tobytes())
        keys.append(key_of(case, pos, history))
    state, value, score = case.rules.outcome(pos, history)
    assert state in (ONGOING, OVER, OVER_UNSCORED)
    assert -1.0 <= value <= 1.0
    if state == OVER and score:
        assert np.sign(value) == np.sign(score)
    return moves, positions, keys


def test_random_games_obey_the_contract(case: Case) -> None:
    for seed in range(3):
        moves, positions, keys = random_game(case, seed)
        assert moves
        assert all(before != after for before, after in pairwise(keys))
        # the same moves give the same records and keys
        records, history = case.begin()
        for move, expected in zip(moves, positions[1:], strict=True):
            case.rules.play(records[0], history, move)
            assert records.tobytes() == expected
        assert key_of(case, records[0], history) == keys[-1]


def test_policy_indices_are_one_for_each_move(case: Case) -> None:
    records, history = case.begin()
    rng = np.random.default_rng(1)
    for _ in range(6):
        legal = moves_of(case, records[0], history)
        for symmetry in range(case.symmetries):
            indices = {int(case.rules.policy_index(records[0], move, symmetry)) for move in legal}
            assert len(indices) == len(legal)
            assert min(indices) >= 0
            assert max(indices) < case.spec.policy_size
        if case.rules.outcome(records[0], history)[0] != ONGOING:
            break
        case.rules.play(records[0], history, legal[int(rng.integers(len(legal)))])


def test_inputs_are_finite_and_repeat_themselves(case: Case) -> None:
    records, history = case.begin()
    scratch = np.zeros(1, case.spec.scratch_dtype)[0]
    rng = np.random.default_rng(2)
    for _ in range(5):
        legal = moves_of(case, records[0], history)
        if case.rules.outcome(records[0], history)[0] != ONGOING:
            break
        case.rules.play(records[0], history, legal[int(rng.integers(len(legal)))])
        before = records.tobytes()
        for symmetry in range(case.symmetries):
            # what stood in the arrays before must not matter
            planes = np.full((2, *case.spec.planes_shape), np.nan, np.float32)
            extras = np.full((2, *case.spec.extras_shape), np.nan, np.float32)
            planes[1], extras[1] = 7.0, 7.0
            for row in range(2):
                case.rules.write_planes(records[0], history, symmetry, scratch, planes[row], extras[row])
            assert np.isfinite(planes).all()
            assert np.isfinite(extras).all()
            assert (planes[0] == planes[1]).all()
            assert (extras[0] == extras[1]).all()
        assert records.tobytes() == before


def test_bits_are_the_numbers(case: Case) -> None:
    if not case.spec.bits:
        pytest.skip("its planes have other numbers than 0 and 1")
    spec, (records, history) = case.spec, case.begin()
    scratch = np.zeros(1, spec.scratch_dtype)[0]
    planes, extras = np.zeros(spec.planes_shape, np.float32), np.zeros(spec.extras_shape, np.float32)
    rng = np.random.default_rng(6)
    for ply in range(case.plies):
        legal = moves_of(case, records[0], history)
        if case.rules.outcome(records[0], history)[0] != ONGOING or not legal:
            break
        case.rules.play(records[0], history, legal[int(rng.integers(len(legal)))])
        symmetry = ply % case.symmetries
        case.rules.write_planes(records[0], history, symmetry, scratch, planes, extras)
        bits, others = np.full(spec.words, 2**64 - 1, np.uint64), np.full(spec.extras_shape, np.nan, np.float32)
        case.rules.write_bits(records[0], history, symmetry, scratch, bits, others)
        begin = 0
        for count, numbers in zip(spec.bits, (planes, extras), strict=False):
            words = bits[begin : begin + packed_words(count)]
            found = np.unpackbits(words.view(np.uint8), bitorder="little")
            assert (found[:count] == numbers.reshape(-1)).all(), (ply, symmetry)
            assert not found[count:].any()
            begin += len(words)
        assert begin == spec.words
        if len(spec.bits) == 1:
            assert (others == extras).all()
    assert ply > 5


def test_ownership_is_turned_back_to_the_board(case: Case) -> None:
    if not case.spec.area:
        pytest.skip("nobody owns its squares")
    records, history = case.begin()
    moves = moves_of(case, records[0], history)
    seen = np.arange(case.spec.area, dtype=np.float32)
    added = 1.0 - 0.5 * seen
    for symmetry in range(case.symmetries):
        total = np.ones(case.spec.area + 1)
        case.rules.add_ownership(records[0], seen, symmetry, -0.5, total)
        assert sorted(total[:-1]) == sorted(added)
        assert total[-1] == 1.0
        for move in moves:
            at, plain = (int(case.rules.policy_index(records[0], move, each)) for each in (symmetry, 0))
            assert plain == case.spec.area or total[plain] == added[at]
