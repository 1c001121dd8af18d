"""`bench gpu`: what one GPU reaches in search and alone, and how the tree scales: the table of the GPU's marks."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import tree
from bench.go_network import write_go_network
from bench.measure import evaluator_rate
from bench.options import GPU_OPTIONS
from engine.evaluators.base import EvaluatorError
from engine.evaluators.devices import choose_devices
from engine.evaluators.providers import choose_backend
from engine.options import Options
from engine.search.search import Search
from engine.tuning.subjects import go_subject, measured, shogi_subject
from engine.tuning.tuner import search_counts
from nets.dlshogi.definition import NetworkShape, write_network

if TYPE_CHECKING:
    from engine.evaluators.queue import EvaluationQueue
    from engine.search.parameters import SearchSettings

SHARE = 0.9
"""Of the evaluator alone, which the search is to reach."""
TREE_PLAYOUTS = 400_000
TREE_WORKERS = (1, 2, 4, 8)
TREE_MARK = 5.0
"""Times as fast with 8 workers as with one, on 16 cores."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """One row of the table."""

    game: str
    size: int
    blocks: int
    channels: int
    evaluations: int
    """Each second in search, to be reached on one data-centre GPU."""

    @property
    def name(self) -> str:
        """What the row is called."""
        board = "shogi" if self.game == "shogi" else f"Go {self.size}x{self.size}"
        return f"{board} {self.blocks}x{self.channels}"

    def write(self, folder: Path) -> Path:
        """Write a network of this size with random weights, which are as fast as any."""
        path = folder / f"{self.name.replace(' ', '-')}.onnx"
        if self.game == "shogi":
            return write_network(path, NetworkShape(blocks=self.blocks, channels=self.channels))
        return write_go_network(path, self.size, self.blocks, self.channels)


MARKS = (
    Mark("shogi", 9, 10, 192, 100_000),
    Mark("go", 9, 10, 128, 100_000),
    Mark("go", 19, 10, 128, 50_000),
)


def run(options: Options, seconds: float) -> list[dict[str, Any]]:
    """Measure all marks.

    Args:
        options: those of GPU_OPTIONS count; device auto is TensorRT itself where it is installed.
        seconds: of search for each position, and for the evaluator alone.

    Raises:
        EvaluatorError: there is no GPU, or it cannot be used.
    """
    chosen = choose_gpu(options)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for mark in MARKS:
            own = Options.for_game(mark.game)
            for name in GPU_OPTIONS:
                own.set(name, chosen.get(name))
            own.net, own.size = str(mark.write(Path(folder))), mark.size
            with measured(own, mark.game) as (subject, queue, settings):
                rows.append(_row(mark, subject, queue, settings, seconds))
    return [*rows, *tree_rows(TREE_PLAYOUTS, TREE_WORKERS)]


def choose_gpu(options: Options) -> Options:
    """Return the options with the best GPU device that works here, and fp16 where nothing else is asked for.

    Raises:
        EvaluatorError: none does, or the processor was asked for.
    """
    device = options.device
    if device == "cpu":
        raise EvaluatorError("device cpu found, expected a GPU: cuda or tensorrt")
    if device == "auto":
        device = "tensorrt"
        try:
            choose_backend(device, options.backend)
        except EvaluatorError:
            device = "cuda"
    precision = "fp16" if options.precision == "auto" else options.precision  # random weights need no comparison
    chosen = dataclasses.replace(options, device=device, precision=precision)
    choose_devices(chosen)
    return chosen


def _row(mark: Mark, subject: Any, queue: EvaluationQueue, settings: SearchSettings, seconds: float) -> dict[str, Any]:
    """Measure one network: alone, in search, alone, in turns on each position."""
    search = Search(subject.spec, queue, settings)
    rows = max(settings.rows_per_leaf, queue.evaluator.batch_size)
    search_counts(search, subject.games[0], 0.5)  # warms caches and clocks up
    alone, found = [], []
    for game in subject.games:
        rate = evaluator_rate(queue, subject, game, rows, settings.workers, seconds, settings.batches_in_flight)
        alone.append(rate)
        found.append(search_counts(search, game, seconds)["evaluations_per_second"])
    rate, evaluations = statistics.median(alone), statistics.median(found)
    return {
        "what": mark.name,
        "how": queue.evaluator.description.partition(" on ")[2],
        "batch": rows,
        "workers": settings.workers,
        "per_second": evaluations,
        "alone_per_second": rate,
        "share": evaluations / rate,
        "mark": mark.evaluations,
        "reached": evaluations >= mark.evaluations and evaluations >= SHARE * rate,
    }


def tree_rows(playouts: int, workers: Sequence[int]) -> list[dict[str, Any]]:
    """Measure the tree without an evaluator's cost; `share` is the ratio to one worker."""
    rows = []
    for subject in (shogi_subject(), go_subject(9), go_subject(19)):
        found = [row for row in tree.run([subject], playouts, workers) if row["planes"]]
        first = found[0]["playouts_per_second"]
        for row in found:
            ratio = row["playouts_per_second"] / first
            rows.append(
                {
                    "what": f"tree, {subject.name}",
                    "how": "no evaluator",
                    "batch": 16,
                    "workers": row["workers"],
                    "per_second": row["playouts_per_second"],
                    "alone_per_second": None,
                    "share": ratio,
                    "mark": TREE_MARK if row["workers"] == max(TREE_WORKERS) else None,
                    "reached": ratio >= TREE_MARK if row["workers"] == max(TREE_WORKERS) else None,
                }
            )
    return rows
