"""What the set-up of both games' players has in common: which evaluator, how many threads, the search's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.evaluators.base import EvaluatorError
from engine.evaluators.workers import EvaluationWorkers
from engine.machine import usable_cores
from engine.search.parameters import SearchSettings

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
        EvaluatorError: onnx was asked for without a network, or something that the game does not know, or a network
            with an evaluator that has no use for one.
    """
    kind = options.evaluator
    if kind == "auto":
        return "onnx" if options.net else without_network
    if kind == "onnx" and not options.net:
        raise EvaluatorError("evaluator onnx needs a network: expected --net FILE (DNN_Model in USI)")
    if kind not in ("onnx", without_network, "uniform"):
        raise EvaluatorError(
            f"evaluator {kind} does not know {game}: expected auto, onnx, {without_network} or uniform"
        )
    if kind != "onnx" and options.net:
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


def common_settings(options: Options, queue: EvaluationQueue, c_puct: float) -> SearchSettings:
    """Return the settings of the search as far as both games have them; what is left open is chosen for the machine.

    Args:
        options: what the user wants.
        queue: what evaluates.
        c_puct: where the options leave it open.
    """
    workers, batches_in_flight = search_threads(options, queue)
    return SearchSettings(
        workers=workers,
        batches_in_flight=batches_in_flight,
        memory=options.memory,
        cache_size=options.cache_size if queue.evaluator.wants_planes else 0,
        c_puct=c_puct if options.c_puct is None else options.c_puct,
        c_puct_log=options.c_puct_log,
        c_puct_base=options.c_puct_base,
        fpu_reduction=options.fpu_reduction,
        root_fpu_reduction=options.root_fpu_reduction,
        virtual_loss=options.virtual_loss,
        policy_temperature=options.policy_temperature,
        root_policy_temperature=options.root_policy_temperature or options.policy_temperature,
        root_noise=options.root_noise,
        root_noise_total=options.root_noise_total,
        use_lcb=options.use_lcb,
        seed=options.seed,
    )
