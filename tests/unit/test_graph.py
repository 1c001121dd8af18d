"""Graph search: which lines may share a node, and what a search makes of it."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import ScriptedEvaluator
from tests.unit.trees import check_tree, edges_of, new_game, new_search, search_at
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.points import square
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.networks import MaterialEvaluator
from yomi.engine.shogi.notation import parse_usi
from yomi.native.go import rules as go_rules
from yomi.native.go import spec as go_kernels
from yomi.native.go.spec import go_spec
from yomi.native.shogi import position as shogi_position
from yomi.native.shogi import spec as shogi_kernels
from yomi.native.shogi.spec import shogi_spec
from yomi.native.tree.arrays import NONE

GO = (go_rules.play, go_rules.legal_moves, go_kernels.outcome, go_kernels.graph_key, go_spec)
SHOGI = (
    shogi_position.play,
    shogi_kernels.waivers.searched_moves,
    shogi_kernels.outcome,
    shogi_kernels.graph_key,
    lambda size: shogi_spec(),
)
KO = "B3 E3 C4 D4 C2 D2 A1 C3"
"""Black may take a stone at C3 by a move to D3, where it may be taken back."""
SHUFFLES = "4k4/2s3g2/9/9/4p4/9/9/2G3S2/4K4 b 2P 1"
"""Pieces that go to and fro, and a few moves that cannot be taken back."""


class Walk:
    """Lines of moves from one position, played by kernels."""

    def __init__(self, game: Any, kernels: tuple[Callable[..., Any], ...], size: int = 9) -> None:
        self.play, self.legal, self.outcome, self.key, spec = kernels
        self.spec = spec(size)
        self.root, self.history = game.position.copy(), game.history.copy()
        self.scratch = np.zeros(1, self.spec.scratch_dtype)[0]
        self.buffer = np.zeros(self.spec.max_moves, np.uint16)

    def begin(self) -> tuple[Any, Any]:
        """Return the position, and its history."""
        return self.root.copy(), self.history.copy()

    def moves(self, pos: Any, history: Any) -> list[int]:
        """Return the legal moves."""
        return self.buffer[: int(self.legal(pos, history, self.buffer))].tolist()

    def after(self, line: list[int]) -> tuple[Any, Any, int]:
        """Return the position after a line, its history, and the key under which it is shared."""
        pos, history = self.begin()
        key = 0
        for move in line:
            key = self.step(pos, history, move, key)
        return pos, history, key

    def step(self, pos: Any, history: Any, move: int, key: int) -> int:
        """Play a move, and return the key that follows a key."""
        self.play(pos, history, move)
        return int(self.key(pos, history, move, np.uint64(key), self.scratch))

    def future(self, line: list[int], later: list[int]) -> list[Any]:
        """Return the legal moves and the outcome after each of `later`, until the game is over or one is illegal."""
        pos, history, _ = self.after(line)
        seen: list[Any] = []
        for move in later:
            moves, outcome = self.moves(pos, history), self.outcome(pos, history)
            seen.append((sorted(moves), outcome))
            if outcome[0] or move not in moves:
                break
            self.play(pos, history, move)
        return seen


Lines = list[list[int]]


def shared_lines(walk: Walk, rng: np.random.Generator, choose: Callable[[list[int]], list[int]]) -> list[Lines]:
    """Return groups of different lines under the same key, from random ones of moves that `choose` lets through."""
    found = defaultdict(list)
    for _ in range(1500):
        line: list[int] = []
        pos, history = walk.begin()
        key = 0
        for _ in range(int(rng.integers(2, 8))):
            moves = choose(walk.moves(pos, history))
            if not moves or walk.outcome(pos, history)[0]:
                break
            line.append(int(rng.choice(moves)))
            key = walk.step(pos, history, line[-1], key)
        group = found[key]
        if line not in group:
            group.append(line)
    return [group for group in found.values() if len(group) > 1]


def assert_same_futures(walk: Walk, group: list[list[int]], rng: np.random.Generator, plies: int) -> None:
    """Assert that lines of one key lead to the same legal moves and outcomes, whatever is played next."""
    for _ in range(6):
        pos, history, _ = walk.after(group[0])
        later: list[int] = []
        for _ in range(plies):
            moves = walk.moves(pos, history)
            if walk.outcome(pos, history)[0]:
                break
            # moves of the line, and their like, are those that may bring a position back
            near = [move for move in moves if any(abs(move - old) < 3 or move >> 7 == old & 127 for old in group[0])]
            later.append(int(rng.choice(near if near and rng.random() < 0.8 else moves)))
            walk.play(pos, history, later[-1])
        futures = [walk.future(line, later) for line in group]
        assert all(future == futures[0] for future in futures[1:]), (group, later)


@pytest.mark.parametrize("rules", ["tromp-taylor", "japanese", "aga"])
def test_lines_of_go_that_share_a_node_have_the_same_future(rules: str) -> None:
    rng = np.random.default_rng(5)
    walk = Walk(new_game(5, KO, rules), GO, 5)
    some = {square(5).parse_vertex(name) for name in ("C3", "D3", "A5", "E5", "E1", "B4")}
    groups = shared_lines(walk, rng, lambda moves: [move for move in moves if move in some])
    assert len(groups) > 20
    for group in groups[:60]:
        assert_same_futures(walk, group, rng, 11)


def test_lines_of_shogi_that_share_a_node_have_the_same_future() -> None:
    rng = np.random.default_rng(5)
    walk = Walk(ShogiGame(SHUFFLES), SHOGI)
    first = walk.moves(*walk.begin())
    some = {*first[::12], *walk.moves(*walk.after(first[:1])[:2])[::5]}
    groups = shared_lines(walk, rng, lambda moves: [move for move in moves if move in some])
    assert len(groups) > 20
    for group in groups[:60]:
        assert_same_futures(walk, group, rng, 8)


def test_a_ko_tells_lines_apart() -> None:
    # in the end the same stones stand, but White may take back after the first line only
    walk = Walk(new_game(5, KO), GO, 5)
    first, second = ([square(5).parse_vertex(name) for name in line.split()] for line in ("D3 A5 E5", "E5 A5 D3"))
    assert walk.after(first)[0]["hash"] == walk.after(second)[0]["hash"]
    assert walk.after(first)[2] != walk.after(second)[2]
    assert square(5).parse_vertex("C3") in walk.moves(*walk.after(first)[:2])
    assert square(5).parse_vertex("C3") not in walk.moves(*walk.after(second)[:2])


def test_moves_that_may_be_undone_tell_lines_of_shogi_apart() -> None:
    walk = Walk(ShogiGame(SHUFFLES), SHOGI)
    gold, silver, drop, other_drop, reply = map(parse_usi, ("7h7g", "3h3g", "P*9e", "P*1e", "5e5f"))
    for first, last, are_one in ((gold, silver, False), (drop, gold, False), (drop, other_drop, True)):
        there, back = walk.after([first, reply, last]), walk.after([last, reply, first])
        assert there[0]["key"] == back[0]["key"]
        assert (there[2] == back[2]) == are_one


def shogi_search(**settings: Any) -> Search:
    chosen = {"workers": 1, "memory": 2**24, "cache_size": 0, "symmetry": "none", "seed": 1, "ownership": False}
    search = Search(shogi_spec(), InlineQueue(MaterialEvaluator()), SearchSettings(**{**chosen, **settings}))
    search.set_position(ShogiGame())
    return search


def test_nodes_are_found_by_every_line_that_leads_to_their_position() -> None:
    search = shogi_search()
    report = search.run(Limits(playouts=6000))
    tree = search.tree
    nodes = check_tree(search)
    assert nodes == tree.counters[0].node_top < report.visits - 100
    walk = Walk(ShogiGame(), SHOGI)
    lines: dict[int, list[list[int]]] = defaultdict(list)
    waiting = [(int(tree.counters[0].root), list[int]())]
    for index, line in waiting:
        node = tree.nodes[index]
        lines[index].append(line)
        if len(line) > 5:
            continue
        for slot, (move, _) in enumerate(edges_of(tree, index)[: int(node["tried"])]):
            child = int(tree.stats[int(node["stats"]) + slot]["child"])
            if child != NONE:
                waiting.append((child, [*line, move]))
    shared = {index: found for index, found in lines.items() if len(found) > 1}
    assert len(shared) > 20
    for index, found in shared.items():
        assert {walk.after(line)[2] for line in found} == {int(tree.nodes[index]["key"])}
        assert len({int(walk.after(line)[0]["key"]) for line in found}) == 1


def test_a_graph_judges_as_a_tree_does() -> None:
    reports = [shogi_search(graph=graph).run(Limits(playouts=8000)) for graph in (False, True)]
    assert reports[1].evaluations < 0.99 * reports[0].evaluations
    assert reports[0].visits == reports[1].visits == 8000
    assert reports[1].winrate == pytest.approx(reports[0].winrate, abs=0.02)
    assert reports[1].moves[0].move in [move.move for move in reports[0].moves[:3]]


def test_a_position_that_other_lines_led_to_has_more_visits_than_its_move() -> None:
    game = ShogiGame()
    search = shogi_search()
    more = 0
    for _ in range(3):
        search.set_position(game)
        report = search.run(Limits(playouts=4000))
        for move in report.moves:
            assert (move.node_visits, move.visits) == (move.pv_node_visits[0], move.pv_visits[0])
            assert move.node_weight >= move.weight * (1.0 - 1e-6)
            assert all(node >= edge for node, edge in zip(move.pv_node_visits, move.pv_visits, strict=True))
            more += sum(move.pv_node_visits) - sum(move.pv_visits)
        game.play(report.moves[0].move)
        check_tree(search)
    assert more > 0


def test_a_pruned_graph_goes_on() -> None:
    search = shogi_search(memory=2**20, workers=2)
    report = search.run(Limits(playouts=60_000))
    assert report.visits == 60_000
    check_tree(search, pruned=True)


def test_settings_decide_whether_nodes_are_shared() -> None:
    search = search_at(ScriptedEvaluator(), 9, "E5 C4 G6 E3", graph=False)
    search.run(Limits(playouts=1500))
    assert check_tree(search) == 1500
    assert not search.tree.shared.any()


def test_a_shared_root_whose_line_forbids_a_move_is_searched_anew() -> None:
    # Black takes two stones, and White could play at D4 again, if no board of the line forbade it.
    game = new_game(9, "C4 D4 D3 E4 E3 A9 F4 B9 E5 C9")
    search = new_search(ScriptedEvaluator(), graph=True)
    search.set_position(game)
    search.run(Limits(playouts=300))
    d5, d4 = (game.board.parse_vertex(vertex) for vertex in ("D5", "D4"))
    game.play(game.side_to_move, d5)
    repeated = game.copy()
    repeated.play(repeated.side_to_move, d4)
    # Two lines of a graph may meet here, of which one has seen that board: boards between this one and the root.
    game.history[3] = repeated.history[int(repeated.position["history_length"]) - 1]
    search.set_position(game)
    report = search.run(Limits(playouts=100))
    assert d4 not in [move for move, _ in edges_of(search.tree, int(search.tree.counters[0].root))]
    assert report.visits == 100


@pytest.mark.parametrize(("moves", "depends"), [("E5 C4 pass", True), ("E5 C4 G6 E3", False)])
def test_a_key_depends_on_the_line_if_its_boards_may_repeat_soon(moves: str, depends: bool) -> None:
    game = new_game(9, moves)
    scratch = np.zeros(1, go_spec(9).scratch_dtype)[0]
    move = game.moves[-1][1]
    keys = {int(go_kernels.graph_key(game.position, game.history, move, np.uint64(above), scratch)) for above in (3, 5)}
    assert len(keys) == 1 + depends
