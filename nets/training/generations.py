"""Trains a network again and again while its data set grows. Each time the window of newest rows gives the next
network.

The network may grow, too. New blocks follow the last block, and begin as the identity.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from yomi.nets.data.batches import WindowSource, newest, window_rows
from yomi.nets.data.shards import Dataset
from yomi.nets.definitions.base import Network, ResidualBlock, check_options
from yomi.nets.definitions.catalog import NETWORKS, first_network
from yomi.nets.definitions.export import export_file
from yomi.nets.errors import NetworkError
from yomi.nets.sparse import FindEncoder, no_encoder
from yomi.nets.training.config import Config, parse_config
from yomi.nets.training.loop import CHECKPOINT, Trainer
from yomi.nets.training.losses import Total, loss_weights, weighted
from yomi.nets.training.optimizers import make_optimizer
from yomi.nets.training.weights import load_checkpoint, save_checkpoint

# See yomi.nets.training.loop.
Progress = Callable[[int, dict[str, float]], None]

# Steps of growth, both numbers ascending: the rows of the run, and the network's blocks from then on.
Growth = Sequence[tuple[int, int]]

# Kinds whose new blocks can begin as the identity, and the keys of [network] with which they cannot.
GROWING: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "go": {"start": (), "trunk": ()},
    # Swish changes the trunk once more in each block. ReLU leaves it as the last ReLU made it.
    "dlshogi-resnet": {"activation": ("relu",)},
    "alphazero-shogi": {},
}
BLOCKS, POOLING = "blocks", "pooling_blocks"


class Generations:
    """A network with its optimizer and averaged weights, which continue from one generation to the next."""

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
        """Check the configuration. If a run continues, its checkpoint is loaded at the first `run`.

        Args:
            folder: folder of the checkpoint and the network's file.
            tables: a training configuration without steps and data folders.
            window: number of rows for the first networks. It grows by `window_rows`.
            find_encoder: see Trainer.
            total: see Trainer.
            growth: see `Growth`.
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
        """Train on the window. Return the network's file and the number of rows in the window.

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


def check_growth(network: Mapping[str, Any], growth: Growth) -> None:
    """Check that the network of a table [network] can grow.

    Raises:
        NetworkError: it cannot, or it has as many blocks already.
    """
    if not growth:
        return
    kind = str(network["kind"])
    options = {key: value for key, value in network.items() if key not in ("kind", "name")}
    refused = GROWING.get(kind, {})
    found = [key for key in refused if options.get(key) and options[key] not in refused[key]]
    if kind not in GROWING or found:
        with_keys = f" with {', '.join(found)}" if found else ""
        raise NetworkError(
            f"grow: network of kind {kind}{with_keys} found, expected go without start and trunk, dlshogi-resnet with "
            "relu, or alphazero-shogi: use such a network, or leave out --grow"
        )
    check_options(f"network {kind}", NETWORKS[kind], options)
    first, (_, blocks) = _option(kind, options, BLOCKS), growth[0]
    if blocks <= first:
        raise NetworkError(f"grow: blocks = {blocks} found, expected more than the {first} of [network]")


def grown(config: Config, growth: Growth, rows: int, least: int = 0) -> Config:
    """Return the configuration for a network at `rows` rows of data. It has at least `least` blocks."""
    if config.kind not in GROWING or not (growth or least):
        return config
    options = dict(config.options)
    first = _option(config.kind, options, BLOCKS)
    if (blocks := max(first, least, *(blocks for begin, blocks in growth if rows >= begin))) > first:
        options[BLOCKS] = blocks
    if POOLING in options:  # it may name blocks to come
        options[POOLING] = [index for index in options[POOLING] if index < blocks]
    elif config.kind == "go" and blocks > first:
        # As a new network's, but no block changes its kind because others follow it.
        options[POOLING] = [*range(2, first - 1, 2), *range(max(2, first + first % 2), blocks, 2)]
    return replace(config, options=options)


def grow(path: Path, config: Config, growth: Growth, rows: int) -> tuple[Config, int]:
    """Add blocks to the network in a checkpoint, if it should have more at `rows` rows of data.

    The network's outputs stay the same, for the weights and for their average. The optimizer's state stays for old
    weights and begins for new ones. A network with more blocks keeps them.

    Returns:
        The configuration of the network, and its number of blocks if any were added, otherwise 0.

    Raises:
        NetworkError: the checkpoint cannot be read.
        OSError: it cannot be written.
    """
    if config.kind not in GROWING or not path.exists():
        return grown(config, growth, rows), 0
    state = load_checkpoint(path)
    stored = json.loads(state["config"])
    before = _option(config.kind, stored["options"], BLOCKS)
    is_left_out = config.kind == "go" and POOLING not in config.options
    config = grown(config, growth, rows, before)
    if is_left_out:
        config = replace(config, options=_with_pooling_of(stored["options"], before, config.options))
    if (blocks := _option(config.kind, config.options, BLOCKS)) == before:
        return config, 0
    torch.manual_seed(config.training.seed)
    network = first_network(config)
    old = state["network"]
    for name, module in network.named_modules():
        if isinstance(module, ResidualBlock) and f"{name}.first.0.weight" not in old:
            nn.init.zeros_(module.second[1].weight)
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    optimizer = make_optimizer(network, config.training)
    # An optimizer numbers its parameters through all groups, which contain them in the network's order.
    order = [names[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]
    numbers = {name: number for number, name in enumerate(name for name in order if name in old)}
    found = state["optimizer"]["state"]
    kept = {number: found[numbers[name]] for number, name in enumerate(order) if name in old and numbers[name] in found}
    state["optimizer"] = {"state": kept, "param_groups": optimizer.state_dict()["param_groups"]}
    for weights in filter(None, ("network", "average" if state["average"] else "")):
        state[weights] = {**network.state_dict(), **state[weights]}
    state["config"] = json.dumps({**stored, "options": config.options}, sort_keys=True)
    save_checkpoint(path, state)
    return config, blocks


def _with_pooling_of(stored: Mapping[str, Any], before: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options whose first blocks pool as the `before` blocks of a checkpoint with the options `stored`.

    Version 0.2.0 named other blocks than `grown` if the user named none.
    """
    found = {name: value for name, value in options.items() if name != POOLING}
    blocks = _option("go", options, BLOCKS)
    if blocks == before:
        return {**found, **({POOLING: stored[POOLING]} if POOLING in stored else {})}
    kept = stored.get(POOLING, range(2, before - 1, 2))
    new = options.get(POOLING, range(2, blocks - 1, 2))
    return {**found, POOLING: [*kept, *(index for index in new if index >= before)]}


def _option(kind: str, options: Mapping[str, Any], name: str) -> Any:
    return options.get(name, inspect.signature(NETWORKS[kind]).parameters[name].default)
