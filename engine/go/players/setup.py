"""Evaluators of Go: queues and search settings from options, and single evaluations by a network."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK
from yomi.engine.default_network import has_network, named_file
from yomi.engine.evaluators.base import Evaluator, EvaluatorError
from yomi.engine.evaluators.load import load
from yomi.engine.evaluators.network import FileEvaluator, NetworkEvaluator, WithValues, network_in
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks import FORMATS
from yomi.engine.go.networks.katago import ROOT_OPTIMISM, KataGo, encode, raw_outputs
from yomi.engine.go.networks.rollouts import MixedEvaluator, RolloutEvaluator
from yomi.engine.go.rules import Rules
from yomi.engine.options import Options
from yomi.engine.players.precision import Sampling
from yomi.engine.players.setup import EvaluatorFactory, common_settings
from yomi.engine.search.settings import SearchSettings
from yomi.engine.search.types import SearchReport
from yomi.native.go.planes import symmetry_table
from yomi.native.go.spec import go_spec
from yomi.native.spec import GameSpec, Inputs
from yomi.nets.errors import NetworkError
from yomi.nets.katago.outputs import has_no_result, post_process

ROLLOUTS_PER_LEAF = 1
ROLLOUT_BATCH = 8  # leaves of a rollout batch: they share the cost of a call without a worse selection
ROLLOUT_C_PUCT = 1.8  # won 58% ± 6 against 1.1 (9×9, 60 games): rollouts are far noisier than a network's values
# Search settings for evaluations by rollouts.
ROLLOUT_SETTINGS: Mapping[str, Any] = {
    "symmetry": "none",
    "fpu_from_mean": True,
    "spread_scale": 0.0,
    "bias_correction": 0.0,
    "noise_pruning": 0.0,
    "value_weighting": 0.0,
}

QueueKey = tuple[int, bool]  # (board size, whether the rules have games without result). Equal keys share an evaluator.


@dataclass(frozen=True, slots=True)
class Analysis:
    """The state of a position's analysis, during or after the search."""

    report: SearchReport
    # Priors of the root [area + 1], row by row from the top left, pass last, NaN for illegal moves.
    policy: npt.NDArray[np.float32]
    raw: RawEvaluation | None = None  # the network's outputs without search; None without a network
    # By move of the root: [area] ownership, +1 for the side to move at the root. Empty unless requested.
    moves_ownership: dict[int, npt.NDArray[np.float32]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawEvaluation:
    """A network's outputs for one position, from White's point of view, as in KataGo's `kata-raw-nn`."""

    # Symmetry of the evaluation, 0 to 7, or -1 for the average of all. The fields below are in the board's orientation.
    symmetry: int
    white_win: float  # probability; sums to 1 with `white_loss` and `no_result`
    white_loss: float
    no_result: float
    white_lead: float  # points
    white_score_selfplay: float  # mean final score of self-play, in points
    white_score_stdev: float  # points
    white_score_mean_square: float  # mean square of the final score
    policy: npt.NDArray[np.float32]  # [area + 1], row by row from the top left, pass last, NaN for illegal moves
    white_ownership: npt.NDArray[np.float32]  # [area], +1 for White
    extra: tuple[tuple[str, float], ...] = ()  # further outputs by KataGo's names, such as varTimeLeft


@dataclass(frozen=True, slots=True)
class Model:
    """A network's metadata, as `query_models` and `kata-get-models` report it."""

    name: str
    version: int  # KataGo's model version
    batch_size: int  # positions evaluated together
    precision: str  # fp32, int16, int8, bf16 or fp16

    def to_json(self, net: str | None) -> dict[str, Any]:
        """Return KataGo's JSON for a network read from the file `net`."""
        return {
            "name": Path(net or self.name).name,
            "internalName": self.name,
            "maxBatchSize": self.batch_size,
            "usesHumanSLProfile": False,
            "version": self.version,
            "usingFP16": str(self.precision == "fp16").lower(),
        }


def queue_key(size: int, rules: Rules) -> QueueKey:
    return size, has_no_result(rules.ko, rules.scoring)


EVALUATOR_FACTORY = EvaluatorFactory(
    "go",
    "Go",
    "rollouts",
    lambda options: RolloutEvaluator(ROLLOUTS_PER_LEAF, options.batch_size or ROLLOUT_BATCH, options.seed),
    FORMATS,
)


def check_evaluator(options: Options) -> None:
    """Raise EvaluatorError if options about evaluators contradict each other."""
    if options.rollout_weight > 0.0 and not has_network(options):
        raise EvaluatorError(
            f"rollout_weight {options.rollout_weight:g} mixes rollouts into a network's values: expected evaluator "
            f"auto or onnx, not {options.evaluator}"
        )
    if options.value_net is not None and not has_network(options):
        raise EvaluatorError(f"evaluator {options.evaluator} uses no network: leave out --value-net, or --evaluator")
    EVALUATOR_FACTORY.check(options)


def make_queue(options: Options, size: int, rules: Rules) -> EvaluationQueue:
    """Return the evaluation queue for boards of `size`; see `EvaluatorFactory`."""
    check_evaluator(options)

    def finish(network: FileEvaluator, device: str) -> Evaluator:
        _, network.format.may_have_no_result = queue_key(size, rules)
        evaluator: FileEvaluator | WithValues = network
        weight = options.rollout_weight if network.format.predicts_value else 1.0
        if options.value_net is not None:
            weight = options.rollout_weight
            evaluator = _with_values(network, options, size, device)
        return MixedEvaluator(evaluator, weight, ROLLOUTS_PER_LEAF, options.seed) if weight > 0.0 else evaluator

    return EVALUATOR_FACTORY.make_queue(options, size, lambda: GoGame(size, rules), finish)


def _with_values(network: FileEvaluator, options: Options, size: int, device: str) -> WithValues:
    """Return a network with the values of --value-net, in half precision if the network is."""
    assert options.value_net is not None
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(network.close)
        path = named_file(options.value_net, "go", options)
        precision = "fp16" if network.precision == "fp16" else "fp32"
        values = load(FORMATS, path, size, device, options.backend, options.batch_size, precision)
        on_failure.callback(values.close)
        if not values.format.predicts_value:
            raise NetworkError(f"{path}: a network without values found, expected one with values for --value-net")
        on_failure.pop_all()
    return WithValues(network, values)


def go_sampling(size: int, rules: Rules, network: Evaluator) -> Sampling[GoGame]:
    """Return the sampling of games for the comparison of precisions."""
    return Sampling(spec_for(size, network), lambda: GoGame(size, rules))


def search_settings(options: Options, queue: EvaluationQueue) -> SearchSettings:
    """Return the settings of a search. Open options get values for the machine."""
    if queue.evaluator.inputs & Inputs.NETWORK:
        return common_settings(options, "go", queue, SearchSettings.c_puct)
    return common_settings(options, "go", queue, ROLLOUT_C_PUCT, **ROLLOUT_SETTINGS)


def network_behind(evaluator: Evaluator) -> NetworkEvaluator | None:
    """Return the network in an evaluator if it has all outputs of KataGo's networks."""
    network = network_in(evaluator)
    if isinstance(network, NetworkEvaluator) and isinstance(network.format, KataGo):
        return network
    return None


def model_of(evaluator: Evaluator) -> Model | None:
    """Return the metadata of the network in an evaluator, or None without a network."""
    network = network_in(evaluator)
    if network is None:
        return None
    return Model(network.info.name, network.info.model_version, network.batch_size, network.precision)


def spec_for(size: int, evaluator: Evaluator) -> GameSpec:
    """Return the GameSpec for a search with this evaluator."""
    network = network_in(evaluator)
    return go_spec(size) if network is None else network.spec


def ask_network(
    queue: EvaluationQueue, game: GoGame, symmetry: int | None, optimism: float = ROOT_OPTIMISM
) -> RawEvaluation:
    """Evaluate a game by the network of a queue; see `evaluate_position`. Raises EvaluatorError without a network."""

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
    """Evaluate a game by a network, from White's point of view.

    Args:
        network: a network with KataGo's features.
        game: the position.
        symmetry: 0 to 7; None for the average over all eight.
        optimism: share of the optimistic policy, 0 to 1. Ignored by networks without that output.
    """
    symmetries = list(range(8)) if symmetry is None else [symmetry]
    planes, extras, legal = encode(network.spec, [(game.position, game.history, turn) for turn in symmetries])
    raw = raw_outputs(network, planes, extras)
    possible = has_no_result(game.rules.ko, game.rules.scoring)
    outputs = post_process(raw, legal, possible, network.info, optimism=optimism)
    # Undo the symmetries, average the rows and take White's point of view.
    black = int(game.position["side_to_move"]) == BLACK
    sign = -1.0 if black else 1.0
    policy = np.zeros(legal.shape[1], np.float32)
    ownership = np.zeros(game.size**2, np.float32)
    for row, turn in enumerate(symmetries):
        table = symmetry_table(game.size, turn)
        policy += outputs.policy[row][table] / len(symmetries)
        ownership += sign * outputs.ownership[row][table[:-1]] / len(symmetries)
    policy[~legal[0][symmetry_table(game.size, symmetries[0])]] = np.nan
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
