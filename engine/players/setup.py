"""What the set-up of both games' players has in common: which evaluator, how many threads, the search's settings."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from engine.evaluators.base import EvaluatorError
from engine.evaluators.workers import EvaluationWorkers
from engine.machine import usable_cores
from engine.options import SearchOptions, rows_for
from engine.own_network import has_network
from engine.search.parameters import SearchSettings
from native.spec import Inputs

if TYPE_CHECKING:
    from engine.evaluators.queue import EvaluationQueue
    from engine.options import Options


def kind_of_evaluator(options: Options, game: str, without_network: str) -> str:
    """Return onnx, uniform, or what plays the game without a network.

    Args:
        options: evaluator and network.
        game: for messages.
        without_network: rollouts or material.

    Raises:
        EvaluatorError: the evaluator does not know the game, or a network is named that it has no use for.
    """
    kind = options.evaluator
    if has_network(options):
        return "onnx"
    if kind not in (without_network, "uniform"):
        raise EvaluatorError(
            f"evaluator {kind} does not know {game}: expected auto, onnx, {without_network} or uniform"
        )
    if options.net is not None:
        raise EvaluatorError(f"evaluator {kind} uses no network: leave out --net (DNN_Model), or --evaluator")
    return kind


def search_threads(options: Options, queue: EvaluationQueue) -> tuple[int, int]:
    """Return how many search workers there are, and how many batches each has under way.

    On a processor every core evaluates its own batches, and more workers than cores would only take time from each
    other. GPUs get twice as many search workers as evaluation workers, with two batches each, so that there is always
    one that waits for the device.
    """
    cores = usable_cores()
    if isinstance(queue, EvaluationWorkers):
        workers, batches = options.workers or max(2, min(cores, 2 * queue.worker_count)), 2
    else:
        workers, batches = min(options.workers or cores, cores), 1
    return workers, options.batches_in_flight or batches


def common_settings(
    options: Options, game: str, queue: EvaluationQueue, c_puct: float, **decided: Any
) -> SearchSettings:
    """Return the settings of the search: the options, and what they leave open as it suits machine and evaluator.

    Args:
        options: what the user wants; those that mean nothing to the game do not count.
        game: go or shogi.
        queue: what evaluates.
        c_puct: if the options leave it open.
        decided: settings that the game or the evaluator decides, whatever the options say.
    """
    known = {row.name for row in fields(SearchOptions)}
    chosen: dict[str, Any] = {row.name: options.get(row.name) for row in rows_for(game) if row.name in known}
    chosen["workers"], chosen["batches_in_flight"] = search_threads(options, queue)
    if options.c_puct is None:
        chosen["c_puct"] = c_puct
    if not queue.evaluator.inputs & Inputs.NETWORK:
        chosen["cache_size"] = 0
    return SearchSettings(**chosen | decided)
