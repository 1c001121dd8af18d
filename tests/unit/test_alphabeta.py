"""The alpha-beta search: moves and exchanges against slow twins, the table, and what the search finds."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.naive.nnue import random_tensors
from tests.naive.shogi_exchange import gain
from tests.unit.nnue_values import value_of
from tests.unit.shogi_boards import walk
from yomi.engine.records import CENTIPAWNS, usi_centipawns
from yomi.engine.search.alphabeta import MAX_SHARE, MIN_SHARE, AlphaBetaSearch, _Line, winrate_of
from yomi.engine.search.types import Limits, RootMoves, SearchReport, SearchSettings
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_usi, parse_usi
from yomi.engine.shogi.players.mate import MateSearch
from yomi.native.alphabeta.correction import UNIT as CORRECTION_UNIT
from yomi.native.alphabeta.correction import correction, learn_correction
from yomi.native.alphabeta.nnue import NnueNetwork, begin, make_inputs, make_scratch, network_of
from yomi.native.alphabeta.node import INFINITE, MATE
from yomi.native.alphabeta.ordering import after_table_move, begin_moves, next_move, skip_quiets
from yomi.native.alphabeta.statistics import follow_rows, quiet_score, reward_quiet
from yomi.native.alphabeta.table import EXACT, LOWER, NO_VALUE, lookup, make_table, store
from yomi.native.alphabeta.thread import (
    ARGUMENTS,
    BEFORE,
    CHANGES,
    CORRECTION_LIMIT,
    FOLLOW_LIMIT,
    IS_STOPPED,
    MOVE_LIMIT,
    SHARED,
    key_after,
    make_thread,
    static_at,
)
from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load
from yomi.native.jit import kernel
from yomi.native.shogi.effects import gains
from yomi.native.shogi.movegen import generate, generate_captures, generate_quiets
from yomi.native.shogi.position import MAX_MOVES, POSITION_DTYPE
from yomi.native.shogi.spec import shogi_spec
from yomi.nets.nnue import FEATURES, Architecture

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"
MATE_IN_THREE = "7nl/5+P1k1/6ppp/9/9/9/9/9/4K4 b 2G2r2b2g4s3n3l14p 1"
HANGING = "4k4/9/9/9/4r4/9/9/4R4/4K4 b - 1"


def material_network() -> NnueNetwork:
    """Return a network whose value is about that of the pieces: a sum for the own side's, as far as it fits."""
    features = next(row for row in FEATURES if row.name == "K-P")
    tensors: dict[str, Any] = random_tensors(Architecture(features, 128, (8, 32)), 1)
    for name in ("rows", "bias", "first", "second", "last", "first_bias", "second_bias", "last_bias"):
        tensors[name] = np.zeros_like(tensors[name])
    for first, last, count in (
        (1, 20, 1),
        (39, 44, 3),
        (49, 54, 3),
        (59, 64, 5),
        (69, 74, 5),
        (79, 82, 8),
        (85, 88, 9),
    ):
        tensors["rows"][first:last, 0] = count
    for first, count in ((90, 1), (252, 3), (414, 3), (576, 5), (738, 5), (900, 8), (1062, 10), (1224, 9), (1386, 12)):
        tensors["rows"][first : first + 81, 0] = count
    tensors["first"][0, 0, 0], tensors["first"][0, 1, 128] = 64, 64
    tensors["second"][0, 0, 0], tensors["second"][0, 1, 1] = 64, 64
    tensors["last"][0, 0, :2] = 90, -90
    return network_of(make_inputs("K-P"), tensors, 1)


@pytest.fixture(scope="module")
def network() -> NnueNetwork:
    return material_network()


def worth_trying(pos: Any) -> list[int]:
    """Return the legal moves without waivers of a promotion by pawns, bishops and rooks."""
    moves = np.zeros(MAX_MOVES, np.uint16)
    legal = [int(move) for move in moves[: generate(pos, moves)]]
    kinds = {move: int(pos["board"][move >> 7 & 127]) % 16 if move >> 7 & 127 <= 80 else 0 for move in legal}
    return [move for move in legal if kinds[move] not in (1, 5, 6) or move | 1 << 14 not in legal or move >> 14]


def test_captures_and_quiet_moves_are_those_of_all_moves() -> None:
    captures, quiets = np.zeros((2, MAX_MOVES), np.uint16)
    for seed in range(6):
        for board in walk(seed, 150):
            pos = ShogiGame(board.sfen()).position
            if pos["in_check"]:
                continue
            wanted = set()
            for move in worth_trying(pos):
                origin = move >> 7 & 127
                promotes_pawn = move >> 14 and pos["board"][origin] % 16 == 1
                if pos["board"][move & 127] or promotes_pawn:
                    wanted.add(move)
            found = captures[: generate_captures(pos, captures)].tolist()
            # The promotion of a pawn on a line with its king is among the other moves.
            assert wanted - set(found) <= {move for move in wanted if not pos["board"][move & 127]}
            assert set(found) <= wanted, board.sfen()
            others = quiets[: generate_quiets(pos, quiets)].tolist()
            assert sorted(found + others) == sorted(worth_trying(pos))


def test_exchanges_are_those_of_the_twin() -> None:
    moves = np.zeros(MAX_MOVES, np.uint16)
    boards = [board.sfen() for seed in range(3) for board in walk(seed + 50, 120)][::5]
    for sfen in boards:
        game = ShogiGame(sfen)
        board = game.position["board"].tolist()
        for move in map(int, moves[: generate(game.position, moves)][::3]):
            worth = gain(board, move, game.side_to_move)
            assert gains(game.position, move, worth), (sfen, format_usi(move), worth)
            assert not gains(game.position, move, worth + 1), (sfen, format_usi(move), worth)


@kernel
def key_of(pos, move):  # type: ignore[no-untyped-def]
    return key_after(pos, move)


def test_keys_are_known_before_a_move() -> None:
    moves = np.zeros(MAX_MOVES, np.uint16)
    for board in list(walk(70, 120))[::10]:
        game = ShogiGame(board.sfen())
        for move in map(int, moves[: generate(game.position, moves)]):
            after = game.copy()
            after.play(move)
            assert key_of(game.position, move) == after.position["key"]


# -- the order of moves ------------------------------------------------------------------------------------------------


@entry(ARGUMENTS)
def order_moves_again(address, table_move):  # type: ignore[no-untyped-def]
    """The same as `order_moves`, with searches of the same position after the table's move."""
    _, thread, _ = load(address, ARGUMENTS)
    begin_moves(address, 0, table_move, 0, 5)
    thread.scores[U(1), U(0)] = next_move(address, 0)
    begin_moves(address, 0, table_move, 1, 0)
    next_move(address, 0)
    skip_quiets(address, 0)
    after_table_move(address, 0, table_move, 5)
    count = U(1)
    while True:
        move = next_move(address, 0)
        thread.scores[U(1), count] = move
        if move == 0:
            break
        count += U(1)


@entry(ARGUMENTS)
def order_moves(address, table_move):  # type: ignore[no-untyped-def]
    """Write the moves of ply 0 into the line of ply 1, in the order of the search."""
    _, thread, _ = load(address, ARGUMENTS)
    begin_moves(address, 0, table_move, 0, 5)
    count = U(0)
    while True:
        move = next_move(address, 0)
        thread.scores[U(1), count] = move
        if move == 0:
            break
        count += U(1)


@pytest.mark.slow
def test_every_move_comes_once_and_the_tables_first(network: NnueNetwork) -> None:
    thread = make_thread(network, np.zeros(1, np.int64))
    calls = order_moves.bind(network, thread, make_table(0))
    for seed in range(4):
        for board in walk(seed + 30, 120):
            pos = ShogiGame(board.sfen()).position
            thread.positions[0] = pos
            wanted = ShogiGame(board.sfen()).legal_moves() if pos["in_check"] else worth_trying(pos)
            for table_move in (0, wanted[len(wanted) // 2]) if wanted else ():
                calls.run(table_move)
                found = thread.scores[1][: int(np.argmin(thread.scores[1] != 0))].tolist()
                assert sorted(found) == sorted(wanted), board.sfen()
                assert table_move in (0, found[0])


# -- the table ---------------------------------------------------------------------------------------------------------


@kernel
def read(table, key):  # type: ignore[no-untyped-def]
    return lookup(table, key)


@pytest.mark.slow
def test_a_search_of_the_same_position_changes_no_order(network: NnueNetwork) -> None:
    """A singular search once left its limits behind: no quiet move came after it."""
    thread = make_thread(network, np.zeros(1, np.int64))
    table = make_table(0)
    for board in walk(33, 60):
        game = ShogiGame(board.sfen())
        moves = game.legal_moves() if game.position["in_check"] else worth_trying(game.position)
        if not moves:
            continue
        thread.positions[0] = game.position
        found = []
        for calls in (order_moves.bind(network, thread, table), order_moves_again.bind(network, thread, table)):
            thread.scores[1] = -1
            calls.run(moves[len(moves) // 2])
            found.append(thread.scores[1, : len(moves) + 1].tolist())
        assert found[0] == found[1]
        assert sorted(found[0]) == sorted([0, *moves])


def test_the_table_returns_what_was_stored() -> None:
    table = make_table(1024)
    store(table, np.uint64(5), 77, -31990, 12, 9, LOWER, False, 3)
    assert read(table, np.uint64(5)) == (77, -31990, 12, 9, LOWER, False)
    assert read(table, np.uint64(6))[4] == 0
    # A shallower bound of the same search does not replace it, an exact value does. The move stays.
    store(table, np.uint64(5), 0, 1, 2, 1, LOWER, False, 3)
    assert read(table, np.uint64(5))[3] == 9
    store(table, np.uint64(5), 0, 1, 2, 1, EXACT, False, 3)
    assert read(table, np.uint64(5)) == (77, 1, 2, 1, EXACT, False)


def test_a_torn_entry_counts_as_empty() -> None:
    table = make_table(64)
    store(table, np.uint64(5), 77, 100, 12, 9, LOWER, False, 3)
    table[0, 1] ^= np.uint64(1)  # another thread's word
    assert read(table, np.uint64(5)) == (0, 0, NO_VALUE, 0, 0, False)


def test_shallow_and_old_entries_are_replaced_first() -> None:
    table = make_table(64)  # one bucket
    for key, depth, generation in ((1, 9, 3), (2, 4, 3), (3, 8, 3), (4, 9, 0)):
        store(table, np.uint64(key), 1, 0, 0, depth, EXACT, False, generation)
    store(table, np.uint64(5), 1, 0, 0, 1, EXACT, False, 3)  # over the old one
    assert [read(table, np.uint64(key))[4] != 0 for key in range(1, 6)] == [True, True, True, False, True]
    store(table, np.uint64(6), 1, 0, 0, 7, EXACT, False, 3)  # over the shallowest
    assert read(table, np.uint64(5))[4] == 0


# -- the search --------------------------------------------------------------------------------------------------------


def search_of(network: NnueNetwork, workers: int = 1, best_moves: int = 1) -> AlphaBetaSearch:
    queue = SimpleNamespace(evaluator=SimpleNamespace(batch_size=1))
    settings = SearchSettings(workers=workers, memory=2**20, best_moves=best_moves)
    return AlphaBetaSearch(shogi_spec(), queue, settings, network)  # type: ignore[arg-type]


def searched(search: AlphaBetaSearch, sfen: str, nodes: int, **restrictions: Any) -> SearchReport:
    search.set_position(ShogiGame(sfen), keep_tree=False)
    return search.run(Limits(visits=nodes), RootMoves(**restrictions))


def test_mates_and_hanging_pieces_are_found(network: NnueNetwork) -> None:
    search = search_of(network)
    report = searched(search, MATE_IN_ONE, 3000)
    assert (report.moves[0].mate, report.proven, report.winrate) == (1, 1, 1.0)
    assert searched(search, MATE_IN_THREE, 3000).moves[0].mate == 3
    report = searched(search, HANGING, 300)
    assert format_usi(report.moves[0].move) == "5h5e"
    assert report.winrate > 0.85


def test_a_side_that_will_be_mated_knows_the_length(network: NnueNetwork) -> None:
    search = search_of(network)
    game = ShogiGame(MATE_IN_THREE)
    game.play(searched(search, MATE_IN_THREE, 3000).moves[0].move)
    report = searched(search, game.sfen(), 3000)
    assert (report.moves[0].mate, report.winrate) == (-2, 0.0)


def test_mates_are_those_of_the_mate_search(network: NnueNetwork) -> None:
    search, solver, claimed = search_of(network), MateSearch(), 0
    for seed in range(12):
        for board in list(walk(seed + 200, 130))[60::7]:
            game = ShogiGame(board.sfen())
            report = searched(search, board.sfen(), 2000)
            if report.proven > 0:
                claimed += 1
                answer = solver.solve(game.position, max_ply=report.moves[0].mate or 0, nodes=2_000_000)
                assert answer.moves, board.sfen()
    assert claimed >= 10


def test_a_mate_in_one_is_stored(network: NnueNetwork) -> None:
    search = search_of(network)
    game = ShogiGame(MATE_IN_THREE)
    report = searched(search, game.sfen(), 3000)
    for move in report.moves[0].pv[:2]:
        game.play(move)
    move, value, _, _, bound, _ = read(search._table, game.position["key"])
    assert value == MATE - 1
    assert bound & LOWER
    assert move in game.legal_moves()


def test_a_limited_search_repeats_itself(network: NnueNetwork) -> None:
    for board in list(walk(9, 60))[::15]:
        found = []
        for _ in range(2):
            report = searched(search_of(network), board.sfen(), 5000)
            assert report.depth >= 3
            assert 0 < report.visits <= 5001
            assert report.moves[0].move in ShogiGame(board.sfen()).legal_moves()
            found.append((report.visits, report.moves))
        assert found[0] == found[1]


def test_a_search_with_one_node_has_a_move(network: NnueNetwork) -> None:
    report = searched(search_of(network), next(walk(3, 1)).sfen(), 1)
    assert report.depth == 1
    assert len(report.moves) == 1


def test_values_of_failed_windows_are_bounds(network: NnueNetwork) -> None:
    search = search_of(network)
    assert searched(search, HANGING, 3000).moves[0].bound == 0
    (worker,) = search._workers
    value = worker._data.root_scores[0] = 50
    for alpha, beta, bound in ((value, value + 9, -1), (value - 9, value, 1), (value - 9, value + 9, 0)):
        worker._counters[IS_STOPPED] = 0
        worker._publish(0, 1, alpha, beta)
        assert search.report().moves[0].bound == bound
    worker._counters[IS_STOPPED] = 1
    worker._publish(0, 1, value, value + 9)
    assert search.report().moves[0] == worker.settled[0].report(0, 60), "a fall of unknown size"


def test_a_line_without_an_answer_takes_that_of_the_last_depth(network: NnueNetwork) -> None:
    search = search_of(network)
    line = searched(search, next(walk(5, 1)).sfen(), 3000).moves[0].pv
    assert len(line) > 1
    (worker,) = search._workers
    worker._data.root_scores[0] = 50
    worker._data.root_lines[0] = 0
    worker._data.root_lines[0, 0] = line[0]
    worker._counters[IS_STOPPED] = 0
    worker._publish(0, 1, 0, INFINITE)
    assert search.report().moves[0].pv[:2] == line[:2]


def test_a_search_measures_how_steady_it_is(network: NnueNetwork) -> None:
    search = search_of(network)
    search.set_position(ShogiGame(HANGING))
    report = search.run(Limits(depth=6))
    values = search._workers[0].values
    assert len(values) == report.depth == 6
    assert report.winrate == winrate_of(values[-1])
    assert report.spread == (winrate_of(min(values[2:])), winrate_of(max(values[2:])))


def test_an_open_choice_takes_more_time(network: NnueNetwork) -> None:
    search = search_of(network)
    usual = searched(search, HANGING, 3000).time_share
    (worker,) = search._workers
    value = worker.values[-1]
    worker.values[:] = [value] * 5
    worker._before = (1, value, 1.0)
    steady = worker._measure_time(30, value)
    assert MIN_SHARE <= steady < usual <= MAX_SHARE
    assert worker._measure_time(30, value - 60) > steady, "a falling value"
    worker._counters[CHANGES] = 3
    assert worker._measure_time(30, value) > steady, "other moves became the best"


def test_several_best_moves_are_ranked(network: NnueNetwork) -> None:
    search = search_of(network, best_moves=4)
    report = searched(search, next(iter(walk(5, 1))).sfen(), 20000)
    moves = [move.move for move in report.moves]
    assert len(set(moves)) == 4
    winrates = [move.winrate for move in report.moves]
    assert winrates == sorted(winrates, reverse=True)
    assert all(move.pv[0] == move.move for move in report.moves)


def test_moves_are_avoided_and_allowed(network: NnueNetwork) -> None:
    search = search_of(network)
    game = ShogiGame(HANGING)
    capture = parse_usi("5h5e")
    report = searched(search, HANGING, 500, avoid=[capture])
    assert report.moves[0].move != capture
    assert capture not in [move.move for move in report.moves]
    other = next(move for move in game.legal_moves() if move != capture)
    report = searched(search, HANGING, 500, allow=[other])
    assert [move.move for move in report.moves] == [other]


def after(sfen: str, moves: str, network: NnueNetwork, allow: str) -> SearchReport:
    """Search one root move after the moves of a game."""
    game, search = ShogiGame(sfen), search_of(network)
    for text in moves.split():
        game.play(parse_usi(text))
    search.set_position(game)
    return search.run(Limits(visits=2000), RootMoves(allow=[parse_usi(allow)]))


def test_the_fourth_occurrence_of_a_position_of_the_game_is_a_draw(network: NnueNetwork) -> None:
    sfen, cycle = "4k4/9/9/9/9/9/9/9/4K4 b R 1", "5i5h 5a5b 5h5i 5b5a"
    assert after(sfen, f"{cycle} {cycle} 5i5h 5a5b 5h5i", network, "5b5a").winrate == 0.5
    assert after(sfen, "5i5h 5a5b 5h5i", network, "5b5a").winrate < 0.2  # White has lost a rook


def test_a_perpetual_check_is_lost_with_the_fourth_occurrence(network: NnueNetwork) -> None:
    sfen = "lnsg1gsnl/1r5b1/ppppppppp/4k4/9/5R3/PPPPPPPPP/1B7/LNSGKGSNL b - 1"
    cycle = "4f5f 5d4d 5f4f 4d5d"
    once = after(sfen, "4f5f 5d4d 5f4f", network, "4d5d")
    alone = after("lnsg1gsnl/1r5b1/ppppppppp/5k3/9/5R3/PPPPPPPPP/1B7/LNSGKGSNL w - 4", "", network, "4d5d")
    assert once.winrate == pytest.approx(alone.winrate, abs=0.1)
    assert after(sfen, f"{cycle} {cycle} 4f5f 5d4d 5f4f", network, "4d5d").winrate > 0.99


def test_a_draw_is_worth_what_the_options_say(network: NnueNetwork) -> None:
    game = ShogiGame()
    game.set_rules(max_moves=1)
    for share in (0.0, 0.2, -0.6, 1.0):
        game.position["draw_value"] = (share, -share)
        search = search_of(network)
        search.set_position(game)
        assert search.run(Limits(visits=300)).winrate == pytest.approx(0.5 + share / 2.0, abs=0.001)


# Positions with results, of SuishoPetite against itself from balanced lines: at 10,000 nodes a move, and at 1,000; see
# docs/how-to/networks.md. Mean of the values in YaneuraOu's centipawns (a pawn: 100), positions, 1,000 times the wins.
RESULTS = [
    [
        (-1870, 1991, 32), (-1619, 2618, 61), (-1374, 2794, 58), (-1122, 3296, 77), (-871, 4181, 118),
        (-618, 5560, 190), (-363, 8331, 297), (-104, 21283, 450), (104, 22186, 542), (364, 8825, 692),
        (617, 5825, 805), (869, 4373, 870), (1120, 3407, 917), (1372, 2830, 942), (1622, 2666, 944), (1869, 2103, 968),
    ],
    [
        (-1873, 2127, 105), (-1623, 2705, 135), (-1372, 3078, 137), (-1120, 3590, 171), (-870, 4351, 205),
        (-620, 5781, 276), (-365, 7906, 358), (-105, 17828, 454), (107, 19670, 526), (363, 8861, 597),
        (619, 6528, 691), (869, 4896, 768), (1121, 4036, 809), (1369, 3319, 837), (1622, 2910, 852), (1870, 2391, 886),
    ],
]  # fmt: skip


def test_winrates_agree_with_results() -> None:
    """The two sets have their own scales (470 and 780 for these values). One scale serves both."""
    errors = []
    for strong, weak in zip(*RESULTS, strict=True):
        centipawns = (strong[0] * strong[1] + weak[0] * weak[1]) / (strong[1] + weak[1])
        won = (strong[2] * strong[1] + weak[2] * weak[1]) / (strong[1] + weak[1]) / 1000.0
        line = _Line(round(0.9 * centipawns), 1, (1,)).report(0, 1)
        errors.append(abs(line.winrate - won))
        assert usi_centipawns(line.winrate, CENTIPAWNS) == pytest.approx(centipawns, abs=1.0)
    assert max(errors) < 0.05
    assert sum(errors) / len(errors) < 0.02


def test_a_king_tries_where_the_rule_says_so(network: NnueNetwork) -> None:
    for rule, proven in (("try", 1), ("27", 0)):
        game = ShogiGame("9/4K4/9/9/9/9/9/9/k8 b - 1", entering_king=rule)
        search = search_of(network)
        search.set_position(game)
        report = search.run(Limits(visits=500), RootMoves(allow=[parse_usi("5b5a"), parse_usi("5b5c")]))
        assert report.proven == proven
        if proven:
            assert (format_usi(report.moves[0].move), report.moves[0].mate) == ("5b5a", 1)
        game.play(parse_usi("5b4b"))  # White is two moves from its own try
        search.set_position(game)
        assert search.run(Limits(visits=500)).proven == -proven


def test_a_used_table_is_cleared_in_place(network: NnueNetwork) -> None:
    """A new table's pages come from the system one by one: a search with 1 GiB had half of its nodes a second."""
    search = search_of(network)
    table = search._table
    search.set_position(ShogiGame())
    first = search.run(Limits(visits=500))
    assert table.any()
    search.clear()
    assert search._table is table
    assert not table.any()
    assert not search._workers[0]._data.by_move.any()
    search.set_position(ShogiGame())
    again = search.run(Limits(visits=500))
    assert [move.pv for move in again.moves] == [move.pv for move in first.moves]


def test_a_table_that_is_empty_costs_the_clock_nothing(network: NnueNetwork) -> None:
    search = search_of(network)
    search.rehearse()
    search._table[0, 0] = 1  # what a second clearing would remove
    search.clear()
    search.set_position(ShogiGame(), keep_tree=False)
    assert search._table[0, 0] == 1


def test_the_timer_of_an_earlier_search_ends_no_later_one(network: NnueNetwork) -> None:
    search = search_of(network)
    search.set_position(ShogiGame())
    search.start(Limits(visits=1, seconds=1000.0))
    timer: Any = search._timer
    search.stop()
    search.start(Limits(seconds=1000.0))
    timer.function(*timer.args)  # it had fired before it was cancelled
    assert not search._stop[0]
    timer = search._timer
    timer.function(*timer.args)
    assert search.wait(10.0)
    search.stop()


def test_two_threads_end_together(network: NnueNetwork) -> None:
    search = search_of(network, workers=2)
    search.set_position(ShogiGame())
    search.start(Limits())
    while not search.report().moves:
        assert not search.wait(0.01)
    search.interrupt()
    assert search.wait(300.0)
    search.stop()
    assert search.report().moves[0].move in ShogiGame().legal_moves()


def test_threads_vote_for_the_best_move(network: NnueNetwork) -> None:
    search = search_of(network, workers=3)
    searched(search, HANGING, 300)

    def best(*found: tuple[int, int, int]) -> int:
        for worker, (move, value, depth) in zip(search._workers, found, strict=True):
            worker.found, worker.depth = (_Line(value, 1, (move,)),), depth
        return search.report().moves[0].move

    assert best((1, 50, 10), (2, 40, 10), (2, 45, 10)) == 2
    assert best((1, 50, 30), (2, 40, 10), (2, 45, 10)) == 1
    assert best((1, 50, 30), (1, 40, 10), (2, MATE - 5, 10)) == 2
    assert best((1, 50, 30), (2, MATE - 7, 30), (3, MATE - 5, 10)) == 3


def test_threads_share_statistics(network: NnueNetwork) -> None:
    first, second = (worker._data for worker in search_of(network, workers=2)._workers)
    assert all(np.shares_memory(getattr(first, name), getattr(second, name)) for name in SHARED)
    assert not np.shares_memory(first.captures, second.captures)


@pytest.mark.slow
def test_values_after_a_search_are_those_computed_afresh(network: NnueNetwork) -> None:
    search = search_of(network)
    searched(search, next(walk(12, 1)).sfen(), 3000)
    thread = search._workers[0]._data
    arguments = network, thread, search._table
    scratch = make_scratch(network, 1)
    for ply in range(3):  # the line that was searched last
        static_row.bind(*arguments).run(ply)
        alone = np.array([thread.positions[ply]], POSITION_DTYPE)
        begin(network, scratch, alone[0])
        assert thread.scores[0, 0] == value_of(network, scratch, alone, 0)


@entry(ARGUMENTS)
def static_row(address, ply):  # type: ignore[no-untyped-def]
    _, thread, _ = load(address, ARGUMENTS)
    thread.scores[U(0), U(0)] = static_at(address, ply)


def test_a_correction_learns_and_stays_bounded(network: NnueNetwork) -> None:
    thread = make_thread(network, np.zeros(1, np.int64))
    pos, other = ShogiGame().position, ShogiGame(MATE_IN_ONE).position
    thread.frames[BEFORE]["move"], thread.frames[BEFORE]["piece_square"] = 1, 2
    assert correction(thread, pos, 0) == 0
    for _ in range(1000):
        learn_correction(thread, pos, 0, 300, 10, True)
    assert 0 < correction(thread, pos, 0) // CORRECTION_UNIT <= 6 * CORRECTION_LIMIT
    for errors in (thread.corrections, thread.errors):
        assert 0 < abs(errors).max() <= CORRECTION_LIMIT
    thread.frames[BEFORE]["piece_square"] = 3
    assert correction(thread, other, 0) == 0


@entry(ARGUMENTS)
def reward_row(address, bonus):  # type: ignore[no-untyped-def]
    """Reward the first root move at the root, and write its order into the scores."""
    _, thread, _ = load(address, ARGUMENTS)
    move = np.int64(thread.root_moves[U(0)])
    reward_quiet(thread, 0, move, bonus)
    thread.scores[U(0), U(0)] = quiet_score(thread, thread.positions[U(0)], 0, follow_rows(thread, 0), move)


def test_statistics_follow_rewards_and_stay_bounded(network: NnueNetwork) -> None:
    thread = make_thread(network, np.zeros(1, np.int64))
    calls = reward_row.bind(network, thread, make_table(0))
    thread.positions[0] = ShogiGame().position
    thread.frames[BEFORE]["move"], thread.frames[BEFORE]["played"] = 1, 1
    thread.root_moves[0] = parse_usi("7g7f")
    scores = []
    for bonus in (100, -300, *[2000] * 200, *[-30000] * 200):
        calls.run(bonus)
        scores.append(int(thread.scores[0, 0]))
    assert scores[0] > 0 > scores[1]
    assert scores[201] > scores[0]
    assert scores[-1] < scores[1]
    for statistics, limit in ((thread.by_move, MOVE_LIMIT), (thread.follows, FOLLOW_LIMIT), (thread.with_pawns, 8192)):
        assert 0 < abs(statistics.astype(int)).max() <= limit
