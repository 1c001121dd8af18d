"""Make an evaluation queue from the options: in the search's own threads on a processor, with workers on GPUs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.plugins import PLUGINS
from yomi.engine.evaluators.providers import check_backend, choose_backend, chooses_cpu
from yomi.engine.evaluators.queue import EvaluationQueue, InlineQueue
from yomi.engine.evaluators.workers import EvaluationWorkers

if TYPE_CHECKING:
    from yomi.engine.evaluators.base import Evaluator
    from yomi.engine.options import Options

WORKERS_PER_DEVICE = 2  # one worker's batch is computed while the other's is copied


def make_device_queue(make: Callable[[str], Evaluator], options: Options) -> EvaluationQueue:
    """Return the queue for a network on the devices of the options.

    Args:
        make: makes an evaluator for a device such as cpu, cuda:0 or tensorrt:1, in the thread that uses it. Called once
            for each worker, and again after a failure.
        options: device, devices, device_workers and backend are used.

    Raises:
        EvaluatorError: options contradict each other, or a device cannot be used.
    """
    devices = choose_devices(options)
    if devices == ["cpu"]:
        return InlineQueue(make("cpu"))
    # Sessions of a plug-in that share a device take turns, so that a second worker would only wait.
    is_shared = (plugin := PLUGINS.get(options.device)) is not None and plugin.is_shared
    count = options.device_workers or (1 if is_shared else WORKERS_PER_DEVICE)
    return EvaluationWorkers(
        # One worker of each device first, so that the first batches are spread.
        [functools.partial(make, device) for _ in range(count) for device in devices]
    )


def choose_devices(options: Options) -> list[str]:
    """Return the devices of the options: cpu alone, or GPUs such as cuda:0 or webgpu:0.

    All faults of devices are found here, before any long computation.

    Raises:
        EvaluatorError: options contradict each other, or a device cannot be used. The message contains the remedy.
    """
    check_backend(options.device, options.backend, options.precision)
    if options.backend == "native" or chooses_cpu(options.device):
        if options.devices is not None:
            raise EvaluatorError(f"devices {options.devices} name GPUs: expected --device cuda or the like with them")
        return ["cpu"]
    kind = "cuda" if options.device == "auto" else options.device
    devices = [f"{kind}:{number}" for number in device_numbers(options.devices)]
    for device in devices:
        choose_backend(device, options.backend)
    return devices


def device_numbers(text: str | None) -> list[int]:
    """Return the numbers in a text such as `0,1`, by default the first GPU, or raise EvaluatorError."""
    if text is None:
        return [0]
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) < 4 for word in words):
        raise EvaluatorError(f"devices: {text!r} found, expected numbers of GPUs such as 0,1")
    numbers = [int(word) for word in words]
    if len(set(numbers)) < len(numbers):
        raise EvaluatorError(f"devices: {text!r} names a GPU twice: expected each once (and --device-workers)")
    return numbers
