"""The model of people's choices: its probabilities, and players that draw by it."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from yomi.bench.people import Choice, agreement, fit, log_likelihood
from yomi.engine.cli.main import main
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.player import GoPlayer, people_prior_on
from yomi.engine.go.points import PASS, Board, square
from yomi.engine.go.rules import PRESETS
from yomi.engine.options import Options
from yomi.engine.players import people
from yomi.engine.search.types import MoveReport
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.players.player import ShogiPlayer


def chance_of(move: int, priors: dict[int, float], losses: dict[int, float], power: float, weight: float) -> float:
    """The formula of the module, one move at a time."""

    def share(each: int) -> float:
        return priors[each] ** power * math.exp(-weight * losses.get(each, people.UNSEEN))

    return share(move) / sum(map(share, priors))


@pytest.mark.parametrize(("power", "weight"), [(1.0, 0.0), (0.5, 3.0), (2.0, 20.0)])
def test_probabilities(power: float, weight: float) -> None:
    priors = {5: 0.5, 6: 0.3, 7: 0.15, 8: 0.05}
    visited = (MoveReport(6, visits=3, utility=0.4), MoveReport(5, visits=2, utility=0.1), MoveReport(7))
    found = people.probabilities(priors, visited, power, weight)
    for move in priors:
        assert found[move] == pytest.approx(chance_of(move, priors, {6: 0.0, 5: 0.3}, power, weight))


def test_a_prior_of_zero_and_a_position_without_visits_have_probabilities() -> None:
    found = people.probabilities({1: 1.0, 2: 0.0}, (), 0.5, 3.0)
    assert found[1] == pytest.approx(1.0 / (1.0 + math.sqrt(people.MIN_PRIOR)))
    assert sum(found.values()) == pytest.approx(1.0)


def test_draws_follow_the_probabilities() -> None:
    rng = np.random.default_rng(3)
    drawn = [people.draw({3: 0.2, 9: 0.8}, rng) for _ in range(1000)]
    assert set(drawn) == {3, 9}
    assert drawn.count(9) == pytest.approx(800, abs=60)


def test_errors_are_rarer_and_shares_of_the_policy_flatter_on_a_smaller_board() -> None:
    assert people_prior_on(square(19), 0.62) == pytest.approx(0.62)
    assert people_prior_on(square(9), 0.62) < people_prior_on(square(13), 0.62) < 0.62
    assert people_prior_on(square(9), 2.2) > people_prior_on(square(13), 2.2) > 2.2
    assert people_prior_on(square(9), 0.9) == pytest.approx(0.9)
    assert 0.62 > people_prior_on(Board(19, 13), 0.62) > people_prior_on(square(13), 0.62)


def small_player(**options: object) -> GoPlayer:
    values = {"evaluator": "rollouts", "size": 7, "memory": 2**24, "workers": 1, "seed": 1, "visits": 4}
    return GoPlayer(Options(**{**values, **options}))  # type: ignore[arg-type]


def test_a_player_of_go_may_choose_a_move_that_its_search_has_not_visited() -> None:
    player = small_player(people_prior=0.1, people_loss=0.0)
    try:
        chosen = []
        for _ in range(12):
            decision = player.choose(GoGame(square(7)))
            assert decision.move is not None
            chosen.append((decision.move, decision.move in {move.move for move in decision.report.moves}))
            player.clear()
    finally:
        player.close()
    assert len({move for move, _ in chosen}) > 4
    assert not all(is_visited for _, is_visited in chosen)
    assert PASS not in {move for move, _ in chosen}


def test_a_player_of_go_passes_when_passing_is_best() -> None:
    player = small_player(size=3, komi=0.5, people_prior=0.1, people_loss=0.0, visits=200)
    game = GoGame(square(3), komi=0.5)
    try:
        for color, vertex in ((1, "B1"), (1, "B2"), (1, "B3"), (2, "PASS")):
            game.play(color, PASS if vertex == "PASS" else game.board.point(*_xy(vertex)))
        found = [player.choose(game).move for _ in range(5)]
    finally:
        player.close()
    assert found == [PASS] * 5


def _xy(vertex: str) -> tuple[int, int]:
    return "ABC".index(vertex[0]), 3 - int(vertex[1])


def test_strong_people_play_the_best_move_and_weak_people_do_not() -> None:
    options = Options.for_game("shogi")
    for name, value in {"evaluator": "material", "memory": 2**24, "workers": 1, "seed": 1, "visits": 60}.items():
        options.set(name, value)
    options.set("root_mate_search", 0)
    options.set("people_prior", 0.05)
    player = ShogiPlayer(options)
    # A rook can be taken by a pawn.
    game = ShogiGame("lnsgkgsnl/7b1/ppppppppp/9/9/r8/P1PPPPPPP/1B5R1/LNSGKGSNL b P 1")
    counts = {}
    try:
        for loss in (0.0, 200.0):
            options.set("people_loss", loss)
            decisions = [player.choose(game) for _ in range(8)]
            counts[loss] = sum(found.move == found.report.moves[0].move for found in decisions)
    finally:
        player.close()
    assert counts[0.0] < 4
    assert counts[200.0] == 8


# -- the fit to records ------------------------------------------------------------------------------------------------


def drawn_choices(weights: tuple[float, float], count: int) -> list[Choice]:
    rng = np.random.default_rng(5)
    found = []
    for _ in range(count):
        table = np.stack([np.log(rng.dirichlet(np.full(9, 0.7)) + 1e-6), -rng.random(9) * 0.4], axis=1)
        shares = np.exp(table @ np.array(weights))
        found.append(Choice(table, int(rng.choice(9, p=shares / shares.sum()))))
    return found


@pytest.mark.slow
def test_the_fit_finds_the_weights_that_the_choices_were_drawn_with() -> None:
    choices = drawn_choices((0.7, 5.0), 4000)
    weights = fit(choices)
    assert weights == pytest.approx([0.7, 5.0], abs=0.4)
    best = log_likelihood(choices, weights)
    for other in ((weights[0] + 0.05, weights[1]), (weights[0], weights[1] - 0.5), (1.0, 0.0)):
        assert log_likelihood(choices, np.array(other)) < best


def test_likelihood_and_agreement_of_two_choices() -> None:
    table = np.array([[math.log(0.75), 0.0], [math.log(0.25), 0.0]])
    choices = [Choice(table, 0), Choice(table, 1)]
    policy = np.array([1.0, 0.0])
    expected = [0.99 * 0.75 + 0.005, 0.99 * 0.25 + 0.005]
    assert log_likelihood(choices, policy) == pytest.approx(np.log(expected).mean())
    assert agreement(choices, policy) == 0.5


def test_the_benchmark_leaves_programs_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moves = ";B[cc];W[bc];B[cd];W[bd];B[cb];W[bb];B[be];W[ae];B[ba];W[ab];B[ce];W[ad];B[]"
    for number in range(2):
        text = f"(;GM[1]FF[4]SZ[5]KM[7]PB[A person]PW[GNU Go]{moves})"
        (tmp_path / f"{number}.sgf").write_text(text, encoding="utf-8")
    out = tmp_path / "people.json"
    words = ["people", "go", str(tmp_path), "--size", "5", "--evaluator", "rollouts", "--every", "1"]
    for extra, positions in (([], 16), (["--without", "gnu go"], 8)):
        assert main(["bench", *words, *extra, "--json", str(out)]) == 0
        (row,) = json.loads(out.read_text(encoding="utf-8"))["results"]
        assert row["positions"] == positions
    assert main(["bench", "people", "go", str(tmp_path / "0.sgf"), "--size", "5", "--evaluator", "rollouts"]) == 2
    assert "fewer than 2 games found" in capsys.readouterr().err


# -- handicap games ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_advantage_in_playouts_reaches_the_network() -> None:
    """KataGo's network knows the input: a side with more playouts wins more often."""
    options = Options(size=9, visits=1, memory=2**24, workers=1, seed=1, symmetry="none")
    player = GoPlayer(options)
    game = GoGame(square(9), PRESETS["chinese"])
    game.play(1, game.board.parse_vertex("E5"))
    found = {}
    try:
        for advantage, side in ((2.0, "root"), (2.0, "white"), (-2.0, "black"), (0.0, "root"), (-2.0, "root")):
            options.set("playout_doubling_advantage", advantage)
            options.set("playout_doubling_player", side)
            found[advantage, side] = player.choose(game).report.winrate
    finally:
        player.close()
    white = found[2.0, "root"]
    assert white == found[2.0, "white"] == found[-2.0, "black"]
    assert white > found[0.0, "root"] + 0.005
    assert found[-2.0, "root"] < found[0.0, "root"] - 0.005
