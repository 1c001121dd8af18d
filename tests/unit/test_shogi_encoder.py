"""What sparse networks see of shogi: the encoder of data sets against a slow twin, from placements."""

import numpy as np
import pytest

from tests.naive.shogi_rules import SlowShogi
from tests.naive.shogi_sparse import FIRST, TABLES, SlowRows
from yomi.engine.shogi.datasets.encoder import ShogiEncoder
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.placement import Placement
from yomi.native.shogi.planes import policy_index
from yomi.nets.errors import NetworkError
from yomi.nets.sparse import SparseRows

ENCODER = ShogiEncoder()
LIVELY = (
    "l2g3nl/1r3kg2/2Bsppsp1/p1pp2p2/1p1n1P1Pp/P1P2+BP2/1PSPPSN1P/LG1K1R3/gN6L w - 1",
    "ln1gk2nl/1r1s3b1/p1pppp1pp/6p2/1p7/2P4R1/P+B1PPPP1P/9/LNSGKGSNL b Psgp 1",
    "4k4/9/9/3SGS3/3S1S3/9/2+P+P+P4/2+P1+P4/4K4 b Gp 1",
    "8k/4R1R2/9/9/3N1N3/9/9/3L5/K8 b 10PNLbgsnl 1",
    "1k1S3R1/1p7/9/L8/B8/9/9/9/R6K1 b 2G 1",  # several pieces behind each other, and one that checks by moving away
)


def seen(placement: Placement) -> tuple[list[int], list[int]]:
    """Return board and hands as data sets keep them."""
    side = placement if placement.side == 1 else placement.turned()
    return list(side.board), [count for hand in side.hands for count in hand]


def encoded(placements: list[Placement]) -> SparseRows:
    """Return what the encoder makes of placements, all at once."""
    boards, hands = zip(*map(seen, placements), strict=True)
    return ENCODER.encode(np.array(boards, np.uint8)[:, None], np.array(hands, np.float16))


def games(seed: int, plies: int) -> list[ShogiGame]:
    """Return the positions of a game of random moves, captures first among two."""
    rng = np.random.default_rng(seed)
    game, found = ShogiGame(), []
    for _ in range(plies):
        moves = game.legal_moves()
        if not moves:
            break
        found.append(ShogiGame(game.sfen()))
        drawn = rng.choice(moves, 2)
        game.play(int(max(drawn, key=lambda move: bool(game.position["board"][move & 127]))))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_the_slow_twin(seed: int) -> None:
    positions = games(seed, 120)[seed::7] + [ShogiGame(sfen) for sfen in LIVELY[seed::3]]
    found = encoded([game.placement for game in positions])
    seen_deeds = []
    for index, game in enumerate(positions):
        placement = game.placement
        twin = SlowRows(SlowShogi(list(placement.board), [list(hand) for hand in placement.hands], placement.side))
        active = found.active[slice(*found.active_starts[index : index + 2])].tolist()
        assert len(active) == len(set(active))
        assert set(active) == twin.active()
        own = slice(*found.starts[index : index + 2])
        rows = dict(zip(found.labels[own].tolist(), map(tuple, found.rows[own].tolist()), strict=True))
        expected = {int(policy_index(game.position, move, 0)): twin.of_move(move) for move in game.searched_moves()}
        assert rows == expected
        assert own.stop - own.start == len(rows)
        seen_deeds += [deed - FIRST[1] for _, deed, *_ in rows.values()]
    checks, threats = np.array(seen_deeds) % 2, np.array(seen_deeds) // 2 % 3
    assert checks.sum() > 10
    assert (np.bincount(threats, minlength=3) > 10).all()


def test_rows_fill_the_tables() -> None:
    assert ENCODER.tables == TABLES
    found = encoded([game.placement for game in games(9, 150)])
    ends = np.cumsum(ENCODER.tables)
    assert (found.rows < ends).all()
    assert (found.rows >= ends - ENCODER.tables).all()
    assert found.active.max() < ENCODER.inputs
    assert np.diff(found.active_starts).max() <= ENCODER.max_active


def test_boards_that_cannot_be_are_refused() -> None:
    board, hands = seen(ShogiGame().placement)
    for square, number, hand, message in (
        (40, 15, 0, "1 squares with a number that is no piece"),
        (40, 31, 0, "1 squares with a number that is no piece"),
        (40, 8, 0, "3 pieces of kind 8 found, expected at most 2"),
        (40, 9, 0, "19 pieces of kind 1 found, expected at most 18"),
        (40, 0, 1, "19 pieces of kind 1 found, expected at most 18"),
    ):
        changed, held = np.array([[board]], np.uint8), np.array([hands], np.float16)
        changed[0, 0, square], held[0, 0] = number, hand
        with pytest.raises(NetworkError, match=message):
            ENCODER.encode(changed, held)
