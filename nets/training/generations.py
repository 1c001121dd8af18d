"""Train again and again while the data grow: from the window of the newest rows to the next network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from yomi.nets.data.shards import Dataset
from yomi.nets.data.window import WindowSource, newest, window_rows
from yomi.nets.definitions.base import Network
from yomi.nets.definitions.catalog import first_network
from yomi.nets.definitions.export import export_file
from yomi.nets.sparse import FindEncoder, no_encoder
from yomi.nets.training.config import Config, parse_config
from yomi.nets.training.growth import Growth, grow, grown
from yomi.nets.training.loop import CHECKPOINT, Trainer
from yomi.nets.training.losses import Total, loss_weights, weighted

# See yomi.nets.training.loop.
Progress = Callable[[int, dict[str, float]], None]


class Generations:
    """A network with its optimizer and averaged weights, from one generation to the next."""

    def __init__(
        self,
        folder: Path,
        tables: Mapping[str, Any],
        window: int,
        find_encoder: FindEncoder = no_encoder,
        total: Total = weighted,
        growth: Growth = (),
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Check the configuration. A run that resumes loads its checkpoint at the first `run`.

        Args:
            folder: folder of the checkpoint and the network's file.
            tables: a training configuration without steps and data folders.
            window: number of rows for the first networks. It grows by `window_rows`.
            find_encoder: see Trainer.
            total: see Trainer.
            growth: see `yomi.nets.training.growth`.
            say: receives a line when the network grows.

        Raises:
            NetworkError: the configuration is wrong.
        """
        data = {"folders": [], **tables.get("data", {})}
        training = {"steps": 1, **tables.get("training", {})}
        config = parse_config({**tables, "data": data, "training": training})
        self._config = replace(config, training=replace(config.training, steps=0))
        self._folder, self._window, self._find_encoder, self._total = folder, window, find_encoder, total
        self._growth, self._say = growth, say
        self._due: Config | None = None  # the trainer's configuration, as planned by `growth`
        self._trainer: Trainer | None = None

    def first(self) -> Path:
        """Write the untrained network, and return its file.

        Raises:
            NetworkError: there is no such network.
            OSError: it cannot be written.
        """
        network = self.check()
        self._folder.mkdir(parents=True, exist_ok=True)
        return export_file(network, self._config.name, self._folder, {"step": "0"})

    def check(self) -> Network:
        """Return the untrained network. Raises NetworkError if there is no such network or loss."""
        config = grown(self._config, self._growth, 0)
        torch.manual_seed(config.training.seed)
        network = first_network(config)
        loss_weights(config, network)
        return network

    def run(
        self, dataset: Dataset, generation: int, rows: int, before: int, steps: int, progress: Progress
    ) -> tuple[Path, int]:
        """Train on the window, and return the network's file and the rows of the window.

        After a kill the same generation is trained again from the last checkpoint, with the same result.

        Args:
            dataset: all rows.
            generation: number of the network. With the seed it determines which rows are drawn.
            rows: size of the whole set when this generation was planned.
            before: number of steps up to the last network.
            steps: number of steps up to this one.
            progress: called from time to time.

        Raises:
            NetworkError: a shard is broken, or the losses are not finite.
            OSError: the folder cannot be written.
        """
        training = self._config.training
        shards = newest(dataset.shards, window_rows(rows, self._window))
        source = WindowSource(
            dataset.manifest.features, shards, training.batch, steps - before, training.seed, generation
        )
        due = grown(self._config, self._growth, rows)
        if self._trainer is None or due != self._due:
            config, blocks = grow(self._folder / CHECKPOINT, self._config, self._growth, rows)
            if blocks:
                self._say(f"network {generation} grows to {blocks} blocks")
            self._trainer = Trainer(
                config, self._folder, source=source, find_encoder=self._find_encoder, total=self._total
            )
            self._due = due
        else:
            self._trainer.use(source)
        self._trainer.run(progress, steps)
        return self._trainer.export(), source.positions
