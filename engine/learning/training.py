"""Training in the loop: from the window of the newest rows to the next network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nets.data.window import WindowSource, newest, window_rows
from nets.definitions.catalog import make
from nets.training.config import Config, parse_config
from nets.training.export import export_file
from nets.training.loop import Trainer

if TYPE_CHECKING:
    from engine.learning.settings import LearnSettings
    from nets.data.shards import Dataset

NAME = "yomi-learn"
Progress = Callable[[int, dict[str, float]], None]


class Training:
    """The network that learns, its optimizer and the mean of its weights, from one generation to the next."""

    def __init__(
        self,
        folder: Path,
        settings: LearnSettings,
        network: Mapping[str, Any],
        tables: Mapping[str, Any],
        threads: int = 0,
    ) -> None:
        """Make it; a run that goes on takes up its checkpoint with the first `run`.

        Args:
            folder: of the checkpoint.
            settings: of the run.
            network: [network] of a training configuration.
            tables: its other tables, which are put over what the settings say.
            threads: that compute on the processor; 0 for PyTorch's choice.
        """
        self._settings, self._folder = settings, folder
        training = {
            "steps": 1,
            "batch": settings.batch,
            "learning_rate": settings.learning_rate,
            "optimizer": settings.optimizer,
            "schedule": "constant",
            "warmup": 100,
            "average": "ema",
            "decay": 0.998,
            "seed": settings.seed,
            "threads": threads,
            **tables.get("training", {}),
        }
        config = parse_config(
            {
                "network": {"name": NAME, **network},
                "data": {"folders": [], "search_value": settings.search_value},
                "loss": tables.get("loss", {"lead": 0.25, "score_mean": 0.25, "ownership": 1.0}),
                "training": training,
            },
            Path(),
        )
        self._config: Config = replace(config, training=replace(config.training, steps=0))  # there is no last one
        self._trainer: Trainer | None = None

    def first(self) -> Path:
        """Write the network before any training, and return its file."""
        import torch

        torch.manual_seed(self._settings.seed)
        self._folder.mkdir(parents=True, exist_ok=True)
        network = make(self._config.kind, self._config.options, self._config.folder)
        return export_file(network, NAME, self._folder, {"step": "0"})

    def run(
        self, dataset: Dataset, generation: int, rows: int, before: int, steps: int, progress: Progress
    ) -> tuple[Path, int]:
        """Train on the window, and return the network's file and the rows of the window.

        Args:
            dataset: all rows.
            generation: number of the network; what is drawn from the window depends on it.
            rows: how many there were when this was planned.
            before: steps of the run up to the last network.
            steps: of the run up to this one.
            progress: see nets.training.loop.
        """
        settings = self._settings
        wanted = window_rows(rows, settings.window)
        shards = newest(dataset.shards, wanted)
        source = WindowSource(
            dataset.manifest.features, shards, settings.batch, steps - before, settings.seed, generation
        )
        if self._trainer is None:
            self._trainer = Trainer(self._config, self._folder, source=source)
        else:
            self._trainer.use(source)
        self._trainer.run(progress, steps)
        return self._trainer.export(), sum(shard.rows for shard in shards)
