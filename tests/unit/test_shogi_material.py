"""Play without a network: attacks, exchanges, values and priors."""

import cshogi
import numpy as np
import pytest

from tests.naive.shogi_rules import SlowShogi
from tests.unit.shogi_boards import walk
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.networks import MaterialEvaluator
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import format_sfen, parse_sfen, turned
from yomi.native.shogi import material
from yomi.native.shogi.effects import CAPTURE, EFFECTS_DTYPE, RANK, find_attacks, find_losses
from yomi.native.shogi.pieces import PAWN, SILVER
from yomi.native.shogi.spec import shogi_spec
from yomi.native.shogi.squares import NO_SQUARE
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import SCORE, VALUE
from yomi.native.tree.buffers import make_batch


@pytest.fixture(scope="module")
def effects() -> np.void:
    return np.zeros(1, EFFECTS_DTYPE)[0]


def turned_sfen(sfen: str) -> str:
    """Return the same position with the colors changed."""
    return format_sfen(parse_sfen(sfen).turned())


def logit(sfen: str, move: str, effects: np.void) -> float:
    game = ShogiGame(sfen)
    material.evaluate(game.position, effects)
    return float(material.prior_logit(game.position, effects, parse_usi(move)))


def test_attacks_are_those_of_a_board(effects: np.void) -> None:
    for board in list(walk(3, 120))[::10]:
        pieces = np.array(board.pieces, np.uint8)
        kings = [int(np.flatnonzero(pieces == code)[0]) for code in (8, 24)]
        find_attacks(pieces, kings[0], kings[1], effects)
        slow = SlowShogi(pieces.tolist(), [[0] * 7, [0] * 7], 1)
        for origin in np.flatnonzero(pieces).tolist():
            color, kind = divmod(int(pieces[origin]), 16)
            for square in slow.reach(origin):
                word = int(effects["attackers"][color, square])
                assert word >> 4 * int(RANK[kind]) & 15 > 0, (board.sfen(), origin, square)


@pytest.mark.parametrize(
    ("sfen", "square", "loss"),
    [
        ("4k4/9/9/4p4/9/4P4/4L4/9/4K4 b - 1", "5d", 0),  # nothing attacks it yet
        ("4k4/9/9/4p4/4P4/9/9/9/4K4 b - 1", "5d", CAPTURE[PAWN]),
        ("4k4/9/4g4/4p4/4P4/9/9/9/4K4 b - 1", "5d", 0),  # pawn takes, gold takes: even
        ("4k4/9/4g4/4s4/4P4/9/9/9/4K4 b - 1", "5d", CAPTURE[SILVER] - CAPTURE[PAWN]),
        ("4k4/9/4p4/4s4/9/9/9/4R4/4K4 b - 1", "5d", 0),  # a rook for a silver is no bargain
        ("4k4/9/9/4s4/9/9/9/4R4/4K4 b - 1", "5d", CAPTURE[SILVER]),
        # the silver does not take the lance, as a second one stands behind it
        ("4k4/9/4s4/4p4/9/9/4L4/4L4/4K4 b - 1", "5d", CAPTURE[PAWN]),
        ("4k4/9/4s4/4p4/9/9/4L4/9/4K4 b - 1", "5d", 0),
    ],
)
def test_exchanges(sfen: str, square: str, loss: int, effects: np.void) -> None:
    position = ShogiGame(sfen).position
    find_attacks(position["board"], int(position["king"][0]), int(position["king"][1]), effects)
    find_losses(position["board"], effects)
    number = (int(square[0]) - 1) * 9 + "abcdefghi".index(square[1])
    assert int(effects["loss"][number]) == loss


@pytest.mark.slow
def test_colors_are_alike(effects: np.void) -> None:
    for seed in range(3):
        for board in list(walk(seed, 150))[::7]:
            ours, theirs = ShogiGame(board.sfen()), ShogiGame(turned_sfen(board.sfen()))
            first = material.evaluate(ours.position, effects)
            logits = [material.prior_logit(ours.position, effects, move) for move in ours.legal_moves()]
            moves = [turned(move) for move in ours.legal_moves()]
            second = material.evaluate(theirs.position, effects)
            assert first == pytest.approx(second, abs=1e-4)
            other = [material.prior_logit(theirs.position, effects, move) for move in moves]
            np.testing.assert_allclose(logits, other, atol=1e-4)


@pytest.mark.parametrize("sfen", ["4k4/9/4P4/9/9/9/9/9/9 b G2r2b3g4s4n4l17p 1", "4k4/4r4/9/9/9/9/9/9/4L4 w P 1"])
def test_a_side_without_a_king_is_not_in_check(sfen: str, effects: np.void) -> None:
    values = [float(material.evaluate(ShogiGame(each).position, effects)) for each in (sfen, turned_sfen(sfen))]
    assert values[0] == pytest.approx(values[1], abs=1e-4)
    assert not effects["attackers"][:, NO_SQUARE].any()
    assert abs(values[0]) <= 1.0


def test_material_decides(effects: np.void) -> None:
    start = ShogiGame()
    assert abs(float(material.evaluate(start.position, effects))) < 0.15
    rook_down = ShogiGame("lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b R 1")
    assert float(material.evaluate(rook_down.position, effects)) > 0.8
    hers = ShogiGame("lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w R 1")
    assert float(material.evaluate(hers.position, effects)) < -0.8


def test_priors_like_what_gains_and_dislike_what_loses(effects: np.void) -> None:
    hanging = "4k4/9/9/4r4/9/9/9/4R4/3K5 b - 1"
    assert logit(hanging, "5h5d", effects) > logit(hanging, "5h6h", effects) + 3.0
    assert logit(hanging, "5h5e", effects) < logit(hanging, "5h5d", effects) - 3.0
    zone = "4k4/9/9/9/9/9/9/R8/3K5 b - 1"
    assert logit(zone, "9h9c+", effects) > logit(zone, "9h9c", effects) + 3.0
    start = cshogi.STARTING_SFEN
    assert logit(start, "7g7f", effects) > logit(start, "1g1f", effects)
    assert logit(start, "7g7f", effects) > logit(start, "5i5h", effects)


def test_the_evaluator_fills_a_batch() -> None:
    batch = make_batch(shogi_spec(), 2, Inputs.POSITIONS)
    evaluator = MaterialEvaluator()
    boards = list(walk(5, 60))
    for row, board in enumerate((boards[20], boards[50])):
        game = ShogiGame(board.sfen())
        moves = game.legal_moves()
        batch.positions[row] = game.position
        batch.move_count[row] = len(moves)
        batch.moves[row, : len(moves)] = moves
        batch.indices[row, : len(moves)] = np.arange(len(moves))
    batch.values[:] = np.nan
    evaluator.evaluate(batch, 2)
    assert np.all(np.abs(batch.values[:, VALUE]) <= 1.0)
    assert not batch.values[:, SCORE:].any()
    first = batch.logits.copy()
    evaluator.evaluate(batch, 2)
    np.testing.assert_array_equal(first, batch.logits)
    evaluator.close()
    assert "material" in evaluator.description
