"""What the set-up of all games' players has in common: what judges, how many threads, the search's settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.default_network import check_network, has_network, network_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import make_device_queue
from yomi.engine.evaluators.load import load
from yomi.engine.evaluators.queue import EvaluationQueue, InlineQueue
from yomi.engine.evaluators.uniform import UniformEvaluator
from yomi.engine.evaluators.workers import EvaluationWorkers
from yomi.engine.machine import usable_cores
from yomi.engine.options import SearchOptions, rows_for
from yomi.engine.players.precision import Sampling, with_suitable_precision
from yomi.engine.search.settings import SearchSettings
from yomi.native.spec import Inputs
from yomi.nets.load import FOR_PROCESSORS, open_file

if TYPE_CHECKING:
    from yomi.engine.evaluators.base import Evaluator
    from yomi.engine.evaluators.network import FileEvaluator, FileFormat
    from yomi.engine.options import Options
    from yomi.engine.players.request import PlayableGame


@dataclass(frozen=True, slots=True)
class Judges:
    """What judges positions of a game."""

    game: str
    """The game's name."""
    title: str
    """For messages."""
    plain: str
    """What needs no network, as the option `evaluator` names it."""
    make_plain: Callable[[Options], Evaluator]
    formats: Sequence[type[FileFormat]]
    """Of the networks."""

    def check(self, options: Options) -> None:
        """See that evaluator and network of the options go together.

        Raises:
            EvaluatorError: the evaluator does not know the game, or a network is named that it has no use for.
        """
        kind = options.evaluator
        if has_network(options):
            return
        if kind not in (self.plain, "uniform"):
            raise EvaluatorError(
                f"evaluator {kind} does not know {self.title}: expected auto, onnx, {self.plain} or uniform"
            )
        if options.net is not None:
            raise EvaluatorError(f"evaluator {kind} uses no network: leave out --net (DNN_Model), or --evaluator")

    def make_queue(
        self,
        options: Options,
        size: int,
        begin: Callable[[], PlayableGame],
        finish: Callable[[FileEvaluator, str], Evaluator] = lambda network, device: network,
    ) -> EvaluationQueue:
        """Return the evaluation queue that the options describe.

        Args:
            options: the settings.
            size: length of the board's side.
            begin: returns a game on such a board at its beginning; on games from there precisions are compared.
            finish: makes of a network on a device what judges.

        Raises:
            NetworkError: the network's file cannot be used.
            EvaluatorError: the evaluator or the device cannot, or see `check`.
        """
        self.check(options)
        if options.evaluator == "uniform":
            return InlineQueue(UniformEvaluator(options.batch_size or 16))
        net = network_file(options, self.game)
        if net is None:
            return InlineQueue(self.make_plain(options))
        check_network(Path(net), self.game)

        def network(device: str) -> Evaluator:
            def in_precision(precision: str) -> FileEvaluator:
                # What is made only to be compared with is not worth the place on the disk.
                keep = precision == options.precision
                how = device, options.backend, options.batch_size, precision
                return load(self.formats, net, size, *how, keep=keep)

            made = with_suitable_precision(in_precision, options.precision, lambda each: Sampling(each.spec, begin))
            return finish(made, device)

        if open_file(net).kind in FOR_PROCESSORS:
            return InlineQueue(network(options.device))
        return make_device_queue(network, options)


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
