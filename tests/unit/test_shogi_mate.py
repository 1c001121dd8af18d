"""Checks, mates at leaves, df-pn and the thread at the root."""

import random
import threading
import time
from pathlib import Path

import cshogi
import numpy as np
import pytest

from tests.looping import looped
from tests.naive.shogi_mate import checks, gives_mate, mates
from tests.shared_data import shared_path
from tests.unit.shogi_boards import walk
from yomi.engine.color import WHITE
from yomi.engine.play import PERPETUAL_CHECK
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.players import mate as shogi_mate
from yomi.engine.shogi.players.mate import MateAnswer, MateSearch, can_be_played, whole_mate
from yomi.native.game import OVER
from yomi.native.shogi import mate, rules
from yomi.native.shogi.position import MAX_MOVES
from yomi.native.shogi.spec import outcome

GOLDEN = Path(__file__).parents[1] / "golden" / "shogi_mates.txt"
MATES = [
    (int(line.split(maxsplit=1)[0]), line.split(maxsplit=1)[1])
    for line in GOLDEN.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
DROP_PAWN = "6G2/l1p3Pk1/psn1K1n1L/3ppp1pS/3GS1pb1/2P1PR1N1/P2B1G3/L2R3+sp/LN4g2 b 3P3p 173"
"""A pawn dropped on 2c would mate, were that allowed; there is no other mate in three."""


PERPETUAL = [
    ("1kl6/9/3+R1G3/2N6/9/9/9/9/4K4 b - 1", "6c8c 8a9a 8c9c 9a8a 9c8c 8a9a 8c9c 9a8a 9c8c 8a9a 8c9d 9a8a", "9d8c"),
    ("9/k8/p8/1+B+R6/9/4N4/9/9/4K4 b - 1", "7d7b 9b9a 7b7a 9a9b 7a7b 9b9a 7b7a 9a9b 7a7b 9b9a 7b6a 9a9b", "6a7b"),
    ("2k3l2/9/1+R7/3+B2+P2/9/9/9/9/4K4 b P 1", "6d5c 7a6a 5c4c 6a7a 4c5c 7a6a 5c4c 6a7a 4c5c 7a6a 5c5b 6a7a", "5b5c"),
]
"""Games in which the last move would lead to a mate in three, were it not the fourth time and a perpetual check."""


@pytest.fixture(scope="module")
def search() -> MateSearch:
    return MateSearch(2**22)


def sharp_walk(seed: int, plies: int) -> list[str]:
    """Return the positions of a random game that likes checks."""
    rng = random.Random(seed)
    board = cshogi.Board()
    found = []
    for _ in range(plies):
        moves = list(board.legal_moves)
        if not moves:
            break
        found.append(board.sfen())
        sharp = checks(board)
        lively = [move for move in moves if cshogi.move16(move) in sharp]
        board.push(rng.choice(lively if lively and rng.random() < 0.4 else moves))
    return found


def replay(sfen: str, moves: tuple[int, ...]) -> None:
    """Play a mate on cshogi's board: checks, legal moves, and no way out at the end."""
    board = cshogi.Board(sfen)
    for i, move in enumerate(moves):
        legal = {cshogi.move16(each): each for each in board.legal_moves}
        assert move in legal
        board.push(legal[move])
        assert i % 2 == 1 or board.is_check()
    assert len(moves) % 2 == 1
    assert not list(board.legal_moves)


def assert_mates(search: MateSearch, board: cshogi.Board, budget: list[int]) -> None:
    """Follow every evasion, as cshogi has them, until the mates or the budget end."""
    answer = search.solve(ShogiGame(board.sfen()).position, max_ply=99, nodes=100_000, shorten=False)
    assert answer.moves, board.sfen()
    replay(board.sfen(), answer.moves)
    board.push(next(each for each in board.legal_moves if cshogi.move16(each) == answer.moves[0]))
    for evasion in list(board.legal_moves):
        budget[0] -= 1
        if budget[0] > 0:
            board.push(evasion)
            assert_mates(search, board, budget)
            board.pop()
    board.pop()


@pytest.mark.parametrize("seed", range(4))
def test_checking_moves_are_those_of_cshogi(seed: int) -> None:
    moves = np.zeros(MAX_MOVES, np.uint16)
    boards = [cshogi.Board(sfen) for sfen in sharp_walk(seed, 150)]
    boards += [cshogi.Board(each.sfen()) for each in walk(seed, 100)]
    for board in boards:
        game = ShogiGame(board.sfen())
        found = sorted(moves[: int(mate.checking_moves(game.position, moves, True))].tolist())
        extra = set(found) - set(checks(board))
        assert len(set(found)) == len(found)
        assert set(checks(board)) <= set(found), board.sfen()
        assert all(mate.is_pawn_drop(move) for move in extra), board.sfen()
        assert all(not game.is_legal(move) for move in extra)


def test_mates_at_leaves_are_those_of_a_slow_search() -> None:
    counts = {1: 0, 3: 0}
    for sfen in [each for seed in range(5) for each in sharp_walk(seed + 10, 120)]:
        game = ShogiGame(sfen)
        board = cshogi.Board(sfen)
        for depth in counts:
            move = int(mate.mate_in(game.position, game.history, depth))
            if move != 0:
                counts[depth] += 1
                legal = {cshogi.move16(each): each for each in board.legal_moves}
                assert mates(board, legal[move], depth), sfen
            elif depth == 1 or board.move_number % 5 == 0:
                assert not gives_mate(board, depth), sfen
    assert counts[1] > 5
    assert counts[3] > counts[1]


def test_every_depth_finds_its_mates() -> None:
    for plies, sfen in MATES:
        game = ShogiGame(sfen)
        assert bool(mate.mate_in(game.position, game.history, 5)) == (plies <= 5), sfen
        if plies == 5:
            assert not mate.mate_in(game.position, game.history, 3)


def test_a_pawn_drop_does_not_mate(search: MateSearch) -> None:
    game = ShogiGame(DROP_PAWN)
    moves = np.zeros(MAX_MOVES, np.uint16)
    drop = 11 | 81 << 7
    assert drop in moves[: int(mate.checking_moves(game.position, moves, True))]
    assert not game.is_legal(drop)
    assert mate.mate_in(game.position, game.history, 3) == 0
    assert not search.solve(game.position, max_ply=3, nodes=10_000).moves
    answer = search.solve(game.position, max_ply=99, nodes=10_000)
    assert answer.moves[:1] != (drop,)


def test_the_search_counts_a_leaf_mate_as_a_win() -> None:
    sfen = next(sfen for plies, sfen in MATES if plies == 3)
    game = ShogiGame(sfen)
    expected = {0: False, 1: False, 3: True, 5: True}
    for depth, is_won in expected.items():
        game.position["mate_depth"] = depth
        state, value, _ = outcome(game.position, game.history)
        assert (state == OVER and value == 1.0) == is_won
    game.position["max_moves"] = int(game.position["ply"]) + 2  # the mate comes one move too late
    assert outcome(game.position, game.history)[0] != OVER
    game.position["max_moves"] = int(game.position["ply"]) + 3
    assert outcome(game.position, game.history)[0] == OVER


@pytest.mark.parametrize(("sfen", "line", "check"), PERPETUAL)
def test_a_fourth_occurrence_is_no_mate(sfen: str, line: str, check: str) -> None:
    moves = [parse_usi(text) for text in line.split()]
    for played, is_mate in ((moves, False), (moves[:4] + moves[8:], True)):  # then a round shorter
        game = ShogiGame(sfen)
        for move in played:
            game.play(move)
        assert game.repetitions == 1
        game.position["mate_depth"] = 3
        assert (outcome(game.position, game.history)[:2] == (OVER, 1.0)) == is_mate
        game.play(parse_usi(check))
        ended = game.outcome()
        assert (ended is None) == is_mate
        assert ended is None or (ended.winner, ended.ending) == (WHITE, PERPETUAL_CHECK)


def test_a_game_ends_with_the_fourth_occurrence() -> None:
    rng = random.Random(5)
    ended = 0
    for _ in range(20):
        game = ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b - 1")
        for _ in range(150):
            moves = game.legal_moves()
            game.play(rng.choice([move for move in moves if move & 127 in (39, 40, 41, 48, 49)] or moves))
            assert rules.ends_by_repetition(game.position, game.history) == (game.repetitions >= 4)
            ended += game.repetitions >= 4
    assert ended > 20


@looped(("plies", "sfen"), MATES)
def test_dfpn_solves_problems(search: MateSearch, plies: int, sfen: str) -> None:
    answer = search.solve(ShogiGame(sfen).position, max_ply=99, nodes=200_000)
    replay(sfen, answer.moves)
    assert len(answer.moves) <= plies
    assert_mates(search, cshogi.Board(sfen), [40])


def test_dfpn_claims_no_false_mates_and_misses_none(search: MateSearch) -> None:
    theirs = cshogi.DfPn(31, 10_000, 10_000)
    mates_found = 0
    for sfen in [each for seed in range(4) for each in sharp_walk(seed + 20, 150)[20:]]:
        board = cshogi.Board(sfen)
        answer = search.solve(ShogiGame(sfen).position, max_ply=99, nodes=5_000, shorten=False)
        if answer.moves:
            mates_found += 1
            assert_mates(search, board, [15])
        elif answer.is_refuted:
            assert not theirs.search(board), sfen
    assert mates_found > 10


def test_a_line_gets_the_rest_of_its_mate(search: MateSearch) -> None:
    game = ShogiGame("7nl/5+P1k1/6ppp/9/9/9/9/9/4K4 b 2G2r2b2g4s3n3l14p 1")
    line = search.solve(game.position, max_ply=3, nodes=1000).moves
    for known in range(1, 3):  # the loser moves next, the winner moves next
        whole = whole_mate(game, line[:known], 3, search)
        assert (len(whole), whole[:known]) == (3, line[:known])
        assert can_be_played(game, whole)
    assert whole_mate(game, (), 1, search) == ()
    assert whole_mate(ShogiGame(), (parse_usi("7g7f"),), 4, search) == ()


def test_limits_hold(search: MateSearch) -> None:
    for plies, sfen in MATES:
        game = ShogiGame(sfen)
        answer = search.solve(game.position, max_ply=plies, nodes=500_000)
        assert 0 < len(answer.moves) <= plies
        if plies > 3:
            assert len(search.solve(game.position, max_ply=plies - 4, nodes=2_000).moves) <= plies - 4
        game.position["max_moves"] = int(game.position["ply"]) + plies - 1
        assert len(search.solve(game.position, max_ply=99, nodes=2_000).moves) < plies


def test_a_mate_begins_with_an_allowed_move(search: MateSearch) -> None:
    others = 0
    for plies, sfen in MATES:
        game = ShogiGame(sfen)
        first = search.solve(game.position, max_ply=99, nodes=200_000, shorten=False).moves[0]
        search.start(game.position, max_ply=99, nodes=200_000, moves=[first])
        assert search.wait(60.0)
        search.stop()
        assert search.answer.moves[0] == first
        replay(sfen, search.answer.moves)
        rest = [move for move in game.legal_moves() if move != first]
        search.start(game.position, max_ply=99, nodes=20_000, moves=rest)
        assert search.wait(60.0)
        search.stop()
        if search.answer.moves:
            others += 1
            assert search.answer.moves[0] != first, plies
            replay(sfen, search.answer.moves)
    assert 0 < others < len(MATES)


def test_the_start_position_has_no_mate(search: MateSearch) -> None:
    assert search.solve(ShogiGame().position, max_ply=99, nodes=1000) == MateAnswer(is_refuted=True)


def test_the_thread_stops_and_answers(search: MateSearch) -> None:
    plies, sfen = MATES[-1]
    game = ShogiGame(sfen)
    search.start(game.position, max_ply=99, nodes=10**9)
    game.play(game.legal_moves()[0])  # it has a copy
    assert search.wait(60.0)
    assert not search.is_running
    search.stop()
    answer = search.answer
    replay(sfen, answer.moves)
    assert len(answer.moves) <= plies
    # one without an end: both kings in the open, checks without number
    endless = "9/9/3k5/9/9/9/5K3/9/9 b 2R2B4G4S4N4L18P 1"
    search.start(ShogiGame(endless).position, max_ply=255, nodes=10**9)
    time.sleep(0.05)
    begin = time.monotonic()
    search.stop()
    assert time.monotonic() - begin < 60
    assert threading.active_count() < 20


def test_an_error_in_the_thread_is_raised_by_stop(search: MateSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no")

    with monkeypatch.context() as patch:
        patch.setattr(shogi_mate, "prove", fail)
        search.start(ShogiGame(MATES[0][1]).position, max_ply=9, nodes=1000)
        assert search.wait(60.0)
    with pytest.raises(ValueError, match="no"):
        search.stop()
    search.stop()
    assert search.answer == MateAnswer()


@pytest.mark.parametrize("plies", [3, 5, 7, 9, 11])
def test_shared_problems(search: MateSearch, plies: int) -> None:
    lines = shared_path("data", "shogi", f"mate-{plies}-ply.sfen").read_text(encoding="utf-8").splitlines()
    for line in lines[::20]:
        sfen = line.removeprefix("sfen ").strip()
        replay(sfen, search.solve(ShogiGame(sfen).position, max_ply=63, nodes=500_000, shorten=False).moves)
