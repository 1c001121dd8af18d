"""From the options to an evaluation queue and the search's settings, for Go."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from yomi.engine.default_network import has_network, named_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.load import load
from yomi.engine.evaluators.network import FileEvaluator, WithValues
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks import FORMATS
from yomi.engine.go.networks.rollouts import MixedEvaluator, RolloutEvaluator
from yomi.engine.go.players.network import spec_for
from yomi.engine.players.precision import Sampling
from yomi.engine.players.setup import EvaluatorFactory, common_settings
from yomi.engine.search.settings import SearchSettings
from yomi.native.spec import Inputs
from yomi.nets.errors import NetworkError
from yomi.nets.katago.outputs import has_no_result

if TYPE_CHECKING:
    from yomi.engine.evaluators.base import Evaluator
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.go.rules import Rules
    from yomi.engine.options import Options

ROLLOUTS_A_LEAF = 1
ROLLOUT_BATCH = 8
"""Leaves that a thread takes at once for rollouts: the cost of a call is shared, and the leaves are still good ones."""
ROLLOUT_C_PUCT = 1.8
"""What beat 1.1 by 58% ± 6 with rollouts, whose values are far noisier than a network's (9×9, 60 games)."""


QueueKey = tuple[int, bool]
"""Board size, and whether the rules know games without result: what one evaluator is made for."""


def queue_key(size: int, rules: Rules) -> QueueKey:
    """Return the key of the evaluator for these boards and rules; those of one key share an evaluator."""
    return size, has_no_result(rules.ko, rules.scoring)


EVALUATOR_FACTORY = EvaluatorFactory(
    "go",
    "Go",
    "rollouts",
    lambda options: RolloutEvaluator(ROLLOUTS_A_LEAF, options.batch_size or ROLLOUT_BATCH, options.seed),
    FORMATS,
)


def check_evaluator(options: Options) -> None:
    """See that what the options say of evaluators goes together.

    Raises:
        EvaluatorError: a mixture with rollouts was asked for without a network, or what EvaluatorFactory refuse.
    """
    if options.rollout_weight > 0.0 and not has_network(options):
        raise EvaluatorError(
            f"rollout_weight {options.rollout_weight:g} mixes rollouts into a network's values: expected evaluator "
            f"auto or onnx, not {options.evaluator}"
        )
    if options.value_net is not None and not has_network(options):
        raise EvaluatorError(f"evaluator {options.evaluator} uses no network: leave out --value-net, or --evaluator")
    EVALUATOR_FACTORY.check(options)


def make_queue(options: Options, size: int, rules: Rules) -> EvaluationQueue:
    """Return the evaluation queue that the options describe for boards of `size`; see EvaluatorFactory."""
    check_evaluator(options)

    def finish(network: FileEvaluator, device: str) -> Evaluator:
        _, network.format.may_have_no_result = queue_key(size, rules)
        evaluator: FileEvaluator | WithValues = network
        weight = options.rollout_weight if network.format.predicts_value else 1.0
        if options.value_net is not None:
            weight = options.rollout_weight
            evaluator = _with_values(network, options, size, device)
        return MixedEvaluator(evaluator, weight, ROLLOUTS_A_LEAF, options.seed) if weight > 0.0 else evaluator

    return EVALUATOR_FACTORY.make_queue(options, size, lambda: GoGame(size, rules), finish)


def _with_values(network: FileEvaluator, options: Options, size: int, device: str) -> WithValues:
    """Return a network with the values of the one that the options name for them, in half precision if that is.

    Raises:
        NetworkError: the file cannot be used, or has no values.
        EvaluatorError: the device cannot.
    """
    assert options.value_net is not None
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(network.close)
        path = named_file(options.value_net, "go", options)
        precision = "fp16" if network.precision == "fp16" else "fp32"
        values = load(FORMATS, path, size, device, options.backend, options.batch_size, precision)
        on_failure.callback(values.close)
        if not values.format.predicts_value:
            raise NetworkError(f"{path}: a network that says no values found, expected one that does for --value-net")
        on_failure.pop_all()
    return WithValues(network, values)


def go_sampling(size: int, rules: Rules, network: Evaluator) -> Sampling[GoGame]:
    """Return how games are played on which precisions are compared."""
    return Sampling(spec_for(size, network), lambda: GoGame(size, rules))


def search_settings(options: Options, queue: EvaluationQueue) -> SearchSettings:
    """Return the settings of the search; what the options leave open is chosen for the machine."""
    if queue.evaluator.inputs & Inputs.NETWORK:
        return common_settings(options, "go", queue, SearchSettings.c_puct)
    return common_settings(
        options,
        "go",
        queue,
        ROLLOUT_C_PUCT,
        symmetry="none",
        fpu_from_mean=True,
        spread_scale=0.0,
        bias_correction=0.0,
        noise_pruning=0.0,
        value_weighting=0.0,
    )
