"""One evaluation of a position by the network, without search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from yomi.engine.color import BLACK
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.network import NetworkEvaluator, network_in
from yomi.engine.go.networks.katago import ROOT_OPTIMISM, KataGo, raw_outputs
from yomi.engine.go.players.raw_evaluation import Model, RawEvaluation
from yomi.native.go.planes import policy_index, symmetry_table, write_planes
from yomi.native.go.spec import go_spec
from yomi.nets.katago.outputs import Outputs, has_no_result, post_process

if TYPE_CHECKING:
    from yomi.engine.evaluators.base import Evaluator
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.go.game import GoGame
    from yomi.native.spec import GameSpec


def network_behind(evaluator: Evaluator) -> NetworkEvaluator | None:
    """Return the network in an evaluator if it says all that KataGo's do."""
    network = network_in(evaluator)
    if isinstance(network, NetworkEvaluator) and isinstance(network.format, KataGo):
        return network
    return None


def model_of(evaluator: Evaluator) -> Model | None:
    """Return what to tell of the network in an evaluator; None if there is none."""
    network = network_in(evaluator)
    if network is None:
        return None
    return Model(network.info.name, network.info.model_version, network.batch_size, network.precision)


def spec_for(size: int, evaluator: Evaluator) -> GameSpec:
    """Return what a search with an evaluator has to know of Go on a `size` × `size` board."""
    network = network_in(evaluator)
    return go_spec(size) if network is None else network.spec


def ask_network(
    queue: EvaluationQueue, game: GoGame, symmetry: int | None, optimism: float = ROOT_OPTIMISM
) -> RawEvaluation:
    """Return the opinion of the network behind a queue on a game; see `evaluate_position`.

    Raises:
        EvaluatorError: there is none.
    """

    def ask(evaluator: Evaluator) -> RawEvaluation:
        network = network_behind(evaluator)
        if network is None:
            if network_in(evaluator) is not None:
                raise EvaluatorError(f"{evaluator.description} does not tell all that KataGo's networks do")
            raise EvaluatorError(
                f"{evaluator.description} plays without a network: expected yomi to be started with --net FILE"
            )
        return evaluate_position(network, game, symmetry, optimism)

    return queue.call(ask)


def evaluate_position(
    network: NetworkEvaluator, game: GoGame, symmetry: int | None, optimism: float = ROOT_OPTIMISM
) -> RawEvaluation:
    """Return the network's opinion of a game for White.

    Args:
        network: with KataGo's features.
        game: the position.
        symmetry: 0 to 7; None averages over all eight.
        optimism: share of the optimistic policy, 0 to 1; without effect on a network that has none.
    """
    chosen = list(range(8)) if symmetry is None else [symmetry]
    spec = network.spec
    position = spec.with_flags(game.position)
    planes = np.zeros((len(chosen), *spec.planes_shape), np.float32)
    extras = np.zeros((len(chosen), *spec.extras_shape), np.float32)
    legal = np.zeros((len(chosen), spec.policy_size), np.bool_)
    scratch = np.zeros(1, spec.scratch_dtype)[0]
    for row, each in enumerate(chosen):
        write_planes(position, game.history, each, scratch, planes[row], extras[row])
        for move in game.legal_moves():
            legal[row, policy_index(game.size, move, each)] = True
    raw = raw_outputs(network, planes, extras)
    possible = has_no_result(game.rules.ko, game.rules.scoring)
    outputs = post_process(raw, legal, possible, network.info, optimism=optimism)
    return _for_white(outputs, legal, chosen, game, symmetry)


def _for_white(
    outputs: Outputs,
    legal: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    chosen: list[int],
    game: GoGame,
    symmetry: int | None,
) -> RawEvaluation:
    """Turn the rows back to the board, average them and take White's point of view."""
    black = int(game.position["side_to_move"]) == BLACK
    sign = -1.0 if black else 1.0
    policy = np.zeros(legal.shape[1], np.float32)
    ownership = np.zeros(game.size**2, np.float32)
    for row, each in enumerate(chosen):
        table = symmetry_table(game.size, each)
        policy += outputs.policy[row][table] / len(chosen)
        ownership += sign * outputs.ownership[row][table[:-1]] / len(chosen)
    policy[~legal[0][symmetry_table(game.size, chosen[0])]] = np.nan
    win, loss = float(outputs.win.mean()), float(outputs.loss.mean())
    extra = []
    for name, values in (
        ("varTimeLeft", outputs.variance_time),
        ("shorttermWinlossError", outputs.shortterm_winloss_error),
        ("shorttermScoreError", outputs.shortterm_score_error),
    ):
        if values is not None:
            extra.append((name, float(values.mean())))
    return RawEvaluation(
        symmetry=-1 if symmetry is None else symmetry,
        white_win=loss if black else win,
        white_loss=win if black else loss,
        no_result=float(outputs.no_result.mean()),
        white_lead=sign * float(outputs.lead.mean()),
        white_score_selfplay=sign * float(outputs.score_mean.mean()),
        white_score_stdev=float(outputs.score_stdev.mean()),
        white_score_mean_square=float(outputs.score_mean_square.mean()),
        policy=policy,
        white_ownership=ownership,
        extra=tuple(extra),
    )
