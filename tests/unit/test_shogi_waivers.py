"""Waived promotions: which of them a search tries, and what the rest of the engine makes of those it does not."""

import numpy as np
import pytest

from tests.naive import shogi_waivers as slow
from tests.unit.test_shogi_mate import sharp_walk
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.search.read_tree import root_priors
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_usi, parse_usi
from yomi.native.shogi import waivers
from yomi.native.shogi.spec import shogi_spec

KEPT = [
    # the promoted piece could take the pawn that White, then Black, drops before the king of the side to move
    ("3RGg2l/4Ssg2/lk2p1np1/p4p2p/1nb1B1p2/K1P4PP/PP1PPPPR1/5GS1L/LNS4N1 w 3P 68", "7e9g"),
    # the promoted piece would make a pawn's drop mate
    ("1n5p1/l1g3bk1/pp+SP1s1bl/1g1p1npR1/2p1p4/N1G1P4/P1PG3KL/1S1R2SP1/LN7 b 2P4p 183", "2d2c"),
    ("p2b2+N2/lr3Gr1l/nppkss3/g2ppp3/3P2p1P/PgP2P1pL/1GN1P2P1/3S2+l1K/b1N1S4 w P2p 148", "2f2g"),
    ("2s1k4/bG4S2/l6+Rl/ppPpPBppp/6PPP/1P1Pp3L/+n1+r6/NS2G3N/L5SK1 b 2G2Pn2p 145", "4d6b"),
    ("l2sg1s1b/n2k4l/4gp2+S/4p4/5PP1n/P1Pp4P/1PBP2+pP1/Lr1SP4/2K1g1R1L w 2N5Pg 144", "8h8g"),
    ("2g2l1+P1/ps1r1k3/+Pppp5/1G2pb2s/1PG1Lp1p1/L2P4P/4PGPP1/7K1/+n1S2LSN1 w 2NPrb2p 94", "4d1g"),
]
"""Positions of random games, each with a waived promotion that decides about the drop of a pawn."""
PIECES = "4k4/9/7R1/L2B4P/9/9/9/9/4K4 b rb4g4s4n3l17p 1"
"""A lance, a bishop, a rook and a pawn may waive their promotion, and nobody's pawn can be dropped to mate."""


def usi(moves: list[int]) -> set[str]:
    return {format_usi(move) for move in moves}


def test_the_moves_tried_are_those_of_a_slow_search() -> None:
    left_out = 0
    for sfen in [sfen for seed in range(4) for sfen in sharp_walk(seed + 30, 120)[::2]] + [sfen for sfen, _ in KEPT]:
        game = ShogiGame(sfen)
        assert game.searched_moves() == slow.searched_moves(sfen), sfen
        left_out += len(game.legal_moves()) - len(game.searched_moves())
    assert left_out > 50


@pytest.mark.parametrize(("sfen", "move"), KEPT)
def test_a_waived_promotion_that_decides_about_a_dropped_pawn_is_tried(sfen: str, move: str) -> None:
    game = ShogiGame(sfen)
    assert waivers.waives(game.position, parse_usi(move))
    assert move in usi(game.searched_moves())
    before = game.history.copy(), game.position.tobytes()
    game.searched_moves()
    length = int(game.position["history_length"])
    assert (game.history[:length] == before[0][:length]).all()
    assert game.position.tobytes() == before[1]


def test_what_is_left_out() -> None:
    game = ShogiGame(PIECES)
    left_out = usi(game.legal_moves()) - usi(game.searched_moves())
    rook = {move for move in usi(game.legal_moves()) if move.startswith("2c") and not move.endswith("+")}
    assert len(rook) == 16
    assert left_out == rook | {"9d9b", "1d1c", "6d5c", "6d4b", "6d3a", "6d7c", "6d8b", "6d9a"}
    assert {move + "+" for move in left_out} <= usi(game.searched_moves())
    assert {"9d9c", "6d5e"} <= usi(game.searched_moves())
    game.position["all_moves"] = 1
    assert game.searched_moves() == game.legal_moves()


def test_a_bishop_promotes() -> None:
    """What the issue saw: after 7g7f 3c3d the search played 8h2b."""
    game = ShogiGame()
    for text in ("7g7f", "3c3d"):
        game.play(parse_usi(text))
    assert usi(game.legal_moves()) - usi(game.searched_moves()) == {"8h2b", "8h3c"}
    game.play(parse_usi("8h2b"))  # a record may have it all the same
    assert "3a2b" in usi(game.searched_moves())


def test_a_search_goes_on_after_a_move_that_it_left_out() -> None:
    settings = SearchSettings(workers=1, memory=2**24, cache_size=2**20, symmetry="none", seed=1, ownership=False)
    search = Search(shogi_spec(), InlineQueue(UniformEvaluator(4)), settings)
    game = ShogiGame()
    for text in ("7g7f", "3c3d"):
        game.play(parse_usi(text))
    search.set_position(game)
    search.run(Limits(playouts=300))
    assert sorted(root_priors(search.tree)) == sorted(game.searched_moves())
    game.play(parse_usi("8h2b"))
    search.set_position(game)
    report = search.run(Limits(playouts=50))
    assert report.playouts == 50
    assert sorted(root_priors(search.tree)) == sorted(game.searched_moves())


def test_a_full_history_is_left_alone() -> None:
    """Where there is no room for two positions more, nothing is looked at and nothing written."""
    sfen, move = KEPT[1]
    game = ShogiGame(sfen)
    history = np.zeros(int(game.position["history_length"]), np.uint64)
    moves = np.zeros(593, np.uint16)
    game.position["history_length"] = len(game.history) - 2
    count = int(waivers.searched_moves(game.position, history, moves))
    assert parse_usi(move) not in moves[:count]
