"""Trees side by side: each grows as it would alone, and as the ordinary search's does."""

from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import RootedEvaluator, ScriptedEvaluator
from tests.unit.trees import contents_of, new_game, new_search
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.game import GoGame
from yomi.engine.learning.searches import GameSearch, Searches
from yomi.engine.matches.duel import best_move, move_root
from yomi.engine.search.types import Limits, SearchSettings
from yomi.native.go.spec import go_spec

SIZE, PLAYOUTS = 5, 300
LINES = ("", "C3 B3", "C3 D3 C4 D4 C2")


def searches(evaluator: Any, count: int, playouts: int = PLAYOUTS, **settings: Any) -> Searches:
    chosen = SearchSettings(**{"cache_size": 0, "symmetry": "none", **settings})
    return Searches(go_spec(SIZE), InlineQueue(evaluator), chosen, count, playouts, 1)


def make_all(made: Searches) -> None:
    while made.is_busy:
        made.advance()


def alone(evaluator: Any, game: GoGame, playouts: int) -> dict[str, Any]:
    """Return the tree of the ordinary search, one leaf a batch."""
    search = new_search(evaluator, SIZE)
    search.set_position(game)
    search.run(Limits(playouts=playouts))
    return contents_of(search.tree)


@pytest.mark.parametrize("evaluator", [UniformEvaluator(1), ScriptedEvaluator(1)], ids=lambda each: each.description)
def test_every_tree_is_that_of_the_ordinary_search(evaluator: Any) -> None:
    games = [new_game(SIZE, line) for line in LINES]
    made = searches(evaluator, len(games))
    for number, (search, game) in enumerate(zip(made.slots, games, strict=True)):
        search.begin(game)
        search.search(PLAYOUTS - 50 * number)  # they end at different times
    make_all(made)
    for number, (search, game) in enumerate(zip(made.slots, games, strict=True)):
        assert contents_of(search.tree) == alone(evaluator, game, PLAYOUTS - 50 * number)
        assert search.visits == PLAYOUTS - 50 * number


def test_a_tree_goes_on_below_a_move() -> None:
    evaluator, game = ScriptedEvaluator(1), new_game(SIZE)
    made = searches(evaluator, 1, 2 * PLAYOUTS)
    small, search = made.slots[0], new_search(evaluator, SIZE)
    small.begin(game)
    small.search(PLAYOUTS)
    make_all(made)
    search.set_position(game)
    search.run(Limits(playouts=PLAYOUTS))
    children = small.children()
    move = int(children["move"][np.argmax(children["visits"])])
    game.play(game.side_to_move, move)
    small.begin(game, [move])
    small.prepare()
    small.search(50)
    make_all(made)
    search.set_position(game)
    assert search.root_visits > 10
    search.run(Limits(playouts=50))
    assert contents_of(small.tree) == contents_of(search.tree)


def test_a_cache_saves_evaluations_and_changes_no_search() -> None:
    evaluations, found = {}, {}
    for size in (0, 2**20):
        game, made, found[size] = new_game(SIZE), searches(UniformEvaluator(1), 1, cache_size=size), []
        for evaluator in (UniformEvaluator(1), ScriptedEvaluator(1)):
            made.use(InlineQueue(evaluator), made.settings)  # the evaluations of the other one are dropped
            for _ in range(2):
                made.slots[0].begin(game)
                made.slots[0].search(PLAYOUTS)
                make_all(made)
                children = made.slots[0].children()
                found[size].append(dict(zip(children["move"].tolist(), children["visits"].tolist(), strict=True)))
                game.play(game.side_to_move, best_move(made.slots[0]))
        evaluations[size] = made.evaluations
    assert found[0] == found[2**20]
    assert evaluations[2**20] < 0.9 * evaluations[0]


@pytest.mark.parametrize("kind", [ScriptedEvaluator, RootedEvaluator])
def test_a_duel_chooses_as_a_player_does(kind: type[ScriptedEvaluator]) -> None:
    evaluator, game, visits = kind(1), new_game(SIZE, komi=0.0), 80
    made = [searches(evaluator, 1, 2 * visits) for _ in range(2)]
    ordinary = [new_search(evaluator, SIZE) for _ in range(2)]
    rooted: list[int | None] = [None, None]
    unlike_most_visited = 0
    for ply in range(24):
        player = ply % 2
        small, search = made[player].slots[0], ordinary[player]
        move_root(small, game, rooted[player])
        rooted[player] = len(game.moves)
        search.set_position(game)
        assert small.visits == search.root_visits
        small.prepare()
        small.search(visits - small.visits)
        make_all(made[player])
        report = search.run(Limits(visits=visits))
        move = best_move(small)
        assert move == report.moves[0].move
        assert small.visits == report.visits == visits
        unlike_most_visited += report.moves[0].visits < max(each.visits for each in report.moves)
        game.push(move)
    assert unlike_most_visited  # confidence bounds did choose


def test_moves_that_are_allowed_are_searched_in_turn() -> None:
    made = searches(ScriptedEvaluator(1), 1)
    small = made.slots[0]
    small.begin(new_game(SIZE))
    small.search(1)
    make_all(made)
    moves = small.children()["move"].astype(np.int64)
    small.set(halving=True)
    for count, playouts in ((8, 20), (4, 21), (2, 60)):
        before = visits_of(small)
        small.allow(moves[3 : 3 + count])
        small.search(playouts)
        make_all(made)
        after = visits_of(small)
        grown = {move for move in after if after[move] > before[move]}
        assert sum(after.values()) == sum(before.values()) + playouts
        assert grown <= set(moves[3 : 3 + count].tolist())
        allowed = [after[move] for move in moves[3 : 3 + count].tolist()]
        assert max(allowed) - min(allowed) <= 1


def visits_of(search: GameSearch) -> dict[int, int]:
    return {int(each["move"]): int(each["visits"]) for each in search.children()}


def test_a_broken_tree_is_an_error() -> None:
    made = searches(ScriptedEvaluator(1), 2)
    for search in made.slots:
        search.begin(new_game(SIZE))
        search.search(50)
    make_all(made)
    tree = made.slots[1].tree
    tree.nodes[int(tree.counters[0].root)]["utility_sum"] = np.nan
    made.slots[1].search(50)
    with pytest.raises(EvaluatorError, match="values are not finite"):
        make_all(made)
