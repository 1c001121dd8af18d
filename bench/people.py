"""`bench people`: measures how well the model of people's choices predicts the moves in game records.

The model (`yomi.engine.players.people`) is fitted to every second record by maximum likelihood, and tested on the
others. It is a conditional logit in two weights, so the likelihood is concave and Newton's method finds its maximum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.bench.choices import ChoicesError, read_games
from yomi.engine.color import BLACK, WHITE
from yomi.engine.game import Game
from yomi.engine.levels import level_settings
from yomi.engine.options import Options
from yomi.engine.players.people import features
from yomi.engine.players.player import Player
from yomi.engine.search.types import Limits

MEMORY = 64 * 2**20  # bytes for the tree
FIRST = 4  # moves of a game before the first position
STEPS = 30  # of Newton's method, which needs about six
POLICY = np.array([1.0, 0.0])  # weights of the plain policy
# Share of moves drawn from all legal moves in every likelihood: a model that excludes a move has a likelihood, too.
UNIFORM = 0.01

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """A position in which a person chose a move."""

    features: Array  # [moves, 2]
    chosen: int  # index of the move


def run(
    options: Options, game: Game[Any, Any], groups: Sequence[Path], visits: int, step: int, without: str, limit: int
) -> list[dict[str, Any]]:
    """Fit the model of people's choices to each group of records. Return a row for each group.

    Args:
        options: settings of the search that the levels do not set.
        game: its descriptor.
        groups: records or folders of records, such as one folder for each rank.
        visits: visits of the search in each position.
        step: moves from one position of a game to the next.
        without: skip moves of players whose names contain this text, in any case; empty: skip none.
        limit: maximum number of positions of a group.

    Raises:
        ChoicesError: a file cannot be read, or a group has too few positions.
    """
    options = options.with_values({"visits": visits})  # which ask for a tree
    settings = {**level_settings(game, 1, options), "visits": visits, "memory": MEMORY}
    player: Player[Any] = game.make_player(options.with_values(settings))
    try:
        return [_row(path, *_halves(player, game, path, visits, step, without, limit)) for path in groups]
    finally:
        player.close()


def _row(path: Path, fitted_to: list[Choice], tested_on: list[Choice]) -> dict[str, Any]:
    if not fitted_to or not tested_on:
        raise ChoicesError(f"{path}: moves of fewer than 2 games found, expected more games of people")
    weights = fit(fitted_to)
    return {
        "records": path.name,
        "positions": len(fitted_to) + len(tested_on),
        "people_prior": float(weights[0]),
        "people_loss": float(weights[1]),
        "policy_agreement": agreement(tested_on, POLICY),
        "agreement": agreement(tested_on, weights),
        "policy_log_likelihood": log_likelihood(tested_on, POLICY),
        "log_likelihood": log_likelihood(tested_on, weights),
    }


def _halves(
    player: Player[Any], game: Game[Any, Any], path: Path, visits: int, step: int, without: str, limit: int
) -> tuple[list[Choice], list[Choice]]:
    halves: tuple[list[Choice], list[Choice]] = ([], [])
    kind = game.matches()
    rules = kind.rules(player.options, None, 0)
    for number, (record, opening) in enumerate(read_games(path, kind, rules)):
        whole = kind.begin(rules, opening(None))
        names = {BLACK: record.black.lower(), WHITE: record.white.lower()}
        for ply in range(FIRST, len(whole.moves), step):
            color, move = whole.moves[ply]
            if (without and without.lower() in names[color]) or move in game.pass_moves:
                continue
            found = choice_in(player, kind.begin(rules, opening(ply)), move, visits)
            if found is not None:
                halves[number % 2].append(found)
            if sum(map(len, halves)) >= limit:
                return halves
    return halves


def choice_in(player: Player[Any], game: Any, move: int, visits: int) -> Choice | None:
    """Search a position. Return the choice of `move` in it, or None if the search omits the move."""
    search = player.search
    search.set_position(game, keep_tree=False)
    report = search.run(Limits(visits=visits))
    priors = search.priors()
    return Choice(features(priors, report.moves), list(priors).index(move)) if move in priors else None


def probabilities(choice: Choice, weights: Array) -> Array:
    logits = choice.features @ weights
    shares: Array = np.exp(logits - logits.max())
    shares /= shares.sum()
    return shares


def fit(choices: Sequence[Choice]) -> Array:
    """Return the weights with the greatest likelihood."""
    weights = POLICY.copy()
    for _ in range(STEPS):
        gradient, curvature = np.zeros(2), 1e-6 * np.eye(2)
        for choice in choices:
            shares = probabilities(choice, weights)
            mean = shares @ choice.features
            spread = choice.features - mean
            gradient += choice.features[choice.chosen] - mean
            curvature += (spread * shares[:, None]).T @ spread
        change = np.linalg.solve(curvature, gradient)
        weights += change / max(1.0, float(np.abs(change).max()))
    return weights


def log_likelihood(choices: Sequence[Choice], weights: Array) -> float:
    """Return the mean logarithm of the probabilities of the chosen moves."""
    chances = [
        (1.0 - UNIFORM) * probabilities(choice, weights)[choice.chosen] + UNIFORM / len(choice.features)
        for choice in choices
    ]
    return float(np.mean(np.log(chances)))


def agreement(choices: Sequence[Choice], weights: Array) -> float:
    """Return the share of positions in which the chosen move is the most probable."""
    return float(np.mean([int(probabilities(choice, weights).argmax()) == choice.chosen for choice in choices]))
