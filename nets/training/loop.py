"""The training loop turns batches into a network. It can be stopped at any step, and resumes from the last checkpoint.

Start reading at `Trainer.run`. A run's folder contains checkpoint.pt, train.csv, test.csv, curves.png if matplotlib is
installed, and at the end the network's file.
"""

import contextlib
import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from yomi.nets.data.batches import Batch, BatchSource, Reader, Source
from yomi.nets.data.metrics import NAMES, Table
from yomi.nets.data.shards import check_columns, check_rows, open_dataset
from yomi.nets.definitions.base import Network
from yomi.nets.definitions.catalog import first_network
from yomi.nets.definitions.export import export_file
from yomi.nets.definitions.sparse import SparseShogi
from yomi.nets.errors import NetworkError
from yomi.nets.files import remove_drafts
from yomi.nets.sparse import FindEncoder, SparseEncoder, no_encoder
from yomi.nets.training import losses
from yomi.nets.training.config import DECAYS, Config
from yomi.nets.training.losses import Teacher
from yomi.nets.training.optimizers import make_optimizer, restore_optimizer
from yomi.nets.training.processes import Group
from yomi.nets.training.progress import CsvLog, EarlyStopping, can_plot, learning_rate, plot_curves
from yomi.nets.training.tensors import Decoder, Example
from yomi.nets.training.weights import Average, load_checkpoint, renew_statistics, save_checkpoint

_log = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.pt"
# Steps over which losses are averaged for the log.
LOG_EVERY = 50
# Batches from which the batch norms' statistics of averaged weights are computed.
STATISTICS_BATCHES = 32

# Called with the number of steps and the means since the last call: losses by name, positions_per_second,
# learning_rate.
Progress = Callable[[int, dict[str, float]], None]


def choose_device(name: str) -> torch.device:
    """Return the device that a configuration names.

    Raises:
        NetworkError: the configuration asks for cuda, which is not available.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise NetworkError("device cuda found in the configuration, but PyTorch sees no GPU: expected auto or cpu")
    return torch.device("cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu")


def _precision(name: str, device: torch.device) -> torch.dtype | None:
    """Return the number type for convolutions; None for float32. `auto` is bf16 if the device multiplies it."""
    if name == "auto":
        cpu = device.type == "cpu"
        has_bf16 = torch.cpu._is_avx512_bf16_supported() if cpu else torch.cuda.is_bf16_supported()
        return torch.bfloat16 if has_bf16 else None
    return {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[name]


def add_dropout(network: nn.Module, share: float, kind: str) -> None:
    """In training, set a share of the outputs of activations to zero. Raises NetworkError if there are none."""
    layers = [each for each in network.modules() if isinstance(each, nn.ReLU | nn.Mish | nn.SiLU)] if share else []
    if share and not layers:
        why = f"expected 0 for network {kind}: it has no layers ReLU, Mish or SiLU"
        raise NetworkError(f"[training] dropout = {share} found, {why}")
    for layer in layers:
        layer.register_forward_hook(lambda module, _, output: functional.dropout(output, share, module.training))


class Trainer:
    """A training, with its network, data and progress."""

    def __init__(
        self,
        config: Config,
        folder: Path,
        device: str | None = None,
        *,
        source: Source | None = None,
        group: Group | None = None,
        find_encoder: FindEncoder = no_encoder,
        total: losses.Total = losses.weighted,
    ) -> None:
        """Begin, or resume from the checkpoint in `folder`.

        Args:
            config: configuration of the training.
            folder: folder of the run; created if necessary.
            device: auto, cpu or cuda; None for the configuration's.
            source: batches to train on, instead of the configuration's data sets, which are then used for tests only.
            group: the processes that train together, all with the same arguments; None: this one alone.
            find_encoder: finds a game's encoder, which sparse networks need.
            total: computes the loss to minimize from the losses by name.

        Raises:
            NetworkError: the data or the configuration cannot be used, or the checkpoint belongs to another one.
        """
        settings = config.training
        self.config = config
        self.folder = folder
        self._total = total
        self.group = group or Group()
        self.device = self.group.device(choose_device(device or settings.device))
        if settings.threads:
            torch.set_num_threads(settings.threads)
        datasets = [open_dataset(config.folder / name) for name in config.data.folders]
        self._given = source is not None
        if source is None:
            if not datasets:
                raise NetworkError("[data] folders = [] found, expected data sets")
            if not settings.steps:
                raise NetworkError("[training] steps = 0 found, expected at least 1")
            source = BatchSource(datasets, "train", settings.batch, settings.seed)
        if not settings.steps and settings.schedule == "cosine":
            raise NetworkError("[training] schedule = 'cosine' found without a last step, expected constant or steps")
        has_test = any(dataset.rows("test") for dataset in datasets)
        self.tests = BatchSource(datasets, "test", settings.batch, settings.seed) if has_test else None
        torch.manual_seed(settings.seed)
        self.network: Network = first_network(config)
        add_dropout(self.network, settings.dropout, config.kind)
        self.weights = losses.loss_weights(config, self.network)
        for dataset in datasets:
            check_rows(dataset, config.kind, self.network.feature_set, self.network.board_size)
        if not self._given:
            check_columns(datasets, config.needed_columns())
        self._check(source)
        self.source: Source = source
        self.begun = 0  # the step with the source's first batch
        self.network.to(self.device, memory_format=torch.channels_last)
        taught = config.teacher.network
        self.teacher = Teacher(config.folder / taught, self.network, self.device) if taught else None
        self.optimizer = make_optimizer(self.network, settings)
        averaged = settings.average != "none" and self.group.is_first
        self.average = Average(self.network, settings) if averaged else None
        self.stopping = EarlyStopping(settings.patience)
        self.step = 0
        self.seconds = 0.0
        self.dtype = _precision(settings.precision, self.device)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.dtype is torch.float16)
        features, data = source.features, config.data
        encoder = self._encoder(find_encoder) if self.network.is_sparse else None
        decay = DECAYS[data.label_decay]
        self.decoder = Decoder(features, self.device, data.symmetries, settings.seed, data.search_value, encoder, decay)
        folder.mkdir(parents=True, exist_ok=True)
        if self.checkpoint.exists():
            self._restore(load_checkpoint(self.checkpoint))
        self._learning = self.group.shared(self.network)

    def use(self, source: Source) -> None:
        """Continue with the batches of another source, from its first batch.

        Raises:
            NetworkError: it has other features.
        """
        self._check(source)
        self.source, self.begun = source, self.step

    def _check(self, source: Source) -> None:
        if source.features.name != self.network.feature_set:
            raise NetworkError(
                f"source: feature set {source.features.name} found, "
                f"expected {self.network.feature_set} for network {self.config.kind}"
            )

    def _encoder(self, find: FindEncoder) -> SparseEncoder:
        """Return the encoder of a sparse network.

        Raises:
            NetworkError: there is none, or its rows do not fit.
        """
        assert isinstance(self.network, SparseShogi)
        encoder = find(self.network.feature_set)
        if encoder is None:
            raise NetworkError(
                f"network {self.config.kind} of feature set {self.network.feature_set} found without an encoder, "
                "expected a game that has one"
            )
        self.network.check_encoder(encoder)
        return encoder

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT

    def run(self, progress: Progress, stop_at: int | None = None, stops: Callable[[], bool] = lambda: False) -> None:
        """Train to the last step of the configuration or source, to `stop_at`, or until `stops` returns True.

        A checkpoint is written at the end.

        Args:
            progress: called from time to time.
            stop_at: last step, counted over all sources.
            stops: called after each step; True ends the training.

        Raises:
            NetworkError: losses or weights are not finite.
            OSError: the folder cannot be written.
        """
        settings, group = self.config.training, self.group
        if group.is_first:
            remove_drafts(self.folder)
        # 0 means no limit.
        ends = (settings.steps, stop_at, self.source.steps and self.begun + self.source.steps)
        last = min((end for end in ends if end), default=sys.maxsize)
        extra = ("learning_rate", "positions_per_second", "total", *vars(self.weights))
        log = CsvLog(self.folder / "train.csv", extra, self.step) if group.is_first else None
        tests = CsvLog(self.folder / "test.csv", tuple(NAMES), self.step) if group.is_first else None
        means = _Means(group)
        self.network.train()
        with self.reader(self.step - self.begun, last - self.begun) as reader:
            for example in reader:
                if self.stopping.stops:
                    break
                means.add(self.train_step(example), example.rows)
                is_last = self.step == last or group.any(stops())
                is_shown = self.step % LOG_EVERY == 0 or is_last
                is_tested = self.step % settings.test_every == 0 or self.step == settings.steps
                is_saved = self.step % settings.checkpoint_every == 0
                if is_shown or is_tested or is_saved:
                    means.check(self.step)
                if is_shown:
                    values = {**means.take(), "learning_rate": learning_rate(settings, self.step - 1)}
                    self.seconds += values["seconds"]
                    progress(self.step, values)
                if log is not None and is_shown:
                    log.add(self.step, values)
                if tests is not None and self.tests is not None and is_tested:
                    self._note_test(tests)
                    # The time of the test is no time of training.
                    means.restart()
                if is_saved:
                    self.save()
                if is_last or (is_tested and group.any(self.stopping.stops)):
                    break
        self.save()

    def reader(self, first: int, last: int) -> Reader[Example]:
        """Return a reader of the examples of batches `first` to `last` - 1, prepared in the loaders' threads."""

        def make(batch: Batch) -> Example:
            return self.decoder.example(batch, part=self.group.part(batch.rows))

        return Reader(self.source, first, last, make, self.config.training.loaders)

    def train_step(self, example: Example) -> dict[str, Tensor]:
        """Train on one batch. Return its losses as tensors on the device."""
        settings = self.config.training
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(settings, self.step)
        # Dropout depends on seed and step only, so a resumed training has the same.
        draws = np.random.default_rng([settings.seed, self.step, self.group.rank])
        torch.manual_seed(int(draws.integers(2**63)))
        self.optimizer.zero_grad(set_to_none=True)
        found: dict[str, Tensor] = {}
        maps: list[Tensor] = []
        wanted: list[Tensor] = []
        with self._autocast():
            if self.teacher is None:
                outputs = self._learning(*example.inputs)
            else:
                outputs = self._learning(*example.inputs, maps=maps)
                wanted = self.teacher.maps(example)
        if wanted:
            found["hints"] = losses.hints(maps, wanted)
        found |= losses.losses(outputs, example) | self.network.losses(outputs, example)
        loss = self._total(found, self.weights, outputs, example)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            form = getattr(loss, "shape", type(loss).__name__)
            raise NetworkError(f"loss: {form} found, expected a tensor with one number")
        self.scaler.scale(loss).backward()
        if settings.clip:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), settings.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.network.constrain()
        if self.average is not None:
            self.average.update(self.network, self.step)
        self.step += 1
        return {name: each.detach() for name, each in {**found, "total": loss}.items()}

    def test(self) -> Table:
        """Return the network's results on the test set, with averaged weights if there are any."""
        assert self.tests is not None
        table = Table()
        with self._evaluating(), torch.no_grad(), self._autocast():
            for batch in self.tests.in_order(self.config.training.test_batches):
                example = self.decoder.example(batch, turned=False)
                table.add(losses.judged(self.network(*example.inputs)), batch.columns)
        return table

    def export(self) -> Path:
        """Write the network's file, with averaged weights if there are any. Return its path."""
        info = {
            "step": str(self.step),
            "positions": str(self.step * self.config.training.batch),
            "data": ", ".join(self.config.data.folders),
            "recipe": json.dumps(self.config.to_dict(), sort_keys=True),
        }
        with self._evaluating():
            return export_file(self.network, self.config.name, self.folder, info)

    def save(self) -> None:
        """Write the checkpoint. In a group only the first process does this.

        Raises:
            NetworkError: weights are not finite; the last checkpoint stays.
            OSError: it cannot be written.
        """
        if not self.group.is_first:
            return
        weights = self.network.state_dict()
        if not all(bool(torch.isfinite(each).all()) for each in weights.values()):
            raise NetworkError(f"weights that are not finite at step {self.step} found, expected numbers")
        state = {
            "config": json.dumps(self.config.to_dict(), sort_keys=True),
            "data": self.source.digest(),
            "step": self.step,
            "begun": self.begun,
            "seconds": self.seconds,
            "network": weights,
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "average": self.average.state if self.average is not None else {},
            "averaged": self.average.count if self.average is not None else 0,
            "best": self.stopping.best,
            "failures": self.stopping.failures,
        }
        save_checkpoint(self.checkpoint, state)

    def _restore(self, state: dict[str, Any]) -> None:
        """Resume from a checkpoint. The optimizer's settings come from the configuration.

        Raises:
            NetworkError: it belongs to another network or optimizer.
        """
        stored, own = json.loads(state["config"]), json.loads(json.dumps(self.config.to_dict()))
        if any(stored.get(key, "") != own[key] for key in ("kind", "options", "start")):
            raise NetworkError(f"{self.checkpoint}: a run of another network found, expected a new folder")
        before, wanted = stored["training"]["optimizer"], own["training"]["optimizer"]
        if before != wanted:
            raise NetworkError(f"{self.checkpoint}: optimizer {before} found, expected {wanted}, or a new folder")
        if stored != own:
            _log.warning("%s: the configuration has changed since step %d", self.checkpoint, state["step"])
        same = state["data"] == self.source.digest()
        if self._given:
            # With the checkpoint's source, training continues where it stopped. Another source begins with its first
            # batch.
            self.begun = state.get("begun", 0) if same else state["step"]
        elif not same:
            _log.warning("%s: the data have changed since step %d", self.checkpoint, state["step"])
        for weights in filter(None, (state["network"], state["average"])):
            self.network.hold_untaught(weights)  # an older run may have random ones
        self.network.load_state_dict(state["network"])
        restore_optimizer(self.optimizer, state["optimizer"])
        if state["scaler"]:  # empty except for runs in fp16
            self.scaler.load_state_dict(state["scaler"])
        self.step, self.seconds = state["step"], state["seconds"]
        self.stopping.best, self.stopping.failures = state["best"], state["failures"]
        if self.average is not None and state["average"]:
            self.average.state = {name: each.to(self.device) for name, each in state["average"].items()}
            self.average.count = state["averaged"]
        elif self.average is not None:  # new in the configuration: the average must not contain the first weights
            self.average = Average(self.network, self.config.training)

    def _note_test(self, tests: CsvLog) -> None:
        values = self.test().values()
        tests.add(self.step, values)
        kept = [values[name] for name in ("policy_loss", "value_loss", "score_error") if name in values]
        self.stopping.update(sum(kept))
        shown = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
        _log.info("step %d: %s", self.step, shown)
        if can_plot():
            plot_curves(self.folder / "train.csv", self.folder / "test.csv", self.folder / "curves.png")

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self.dtype is None:
            return contextlib.nullcontext()
        autocast: contextlib.AbstractContextManager[object] = torch.autocast(self.device.type, self.dtype)
        return autocast

    @contextlib.contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Switch the network to evaluation inside the block, with averaged weights if there are any."""
        training = self.network.training
        kept = None
        if self.average is not None:
            kept = {name: each.detach().clone() for name, each in self.network.state_dict().items()}
        try:
            if self.average is not None:
                self.network.load_state_dict(self.average.state)
                renew_statistics(self.network, self._recent())
            self.network.eval()
            yield
        finally:
            if kept is not None:
                self.network.load_state_dict(kept)
            self.network.train(training)

    def _recent(self) -> Iterator[Example]:
        """Yield the source's last batches before this step; at the beginning, its first batches."""
        first = max(0, self.step - self.begun - STATISTICS_BATCHES)
        last = first + STATISTICS_BATCHES
        for step in range(first, min(last, self.source.steps or last)):
            yield self.decoder.example(self.source.batch(step))


class _Means:
    """Mean losses over the steps since the last call of `take`."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.restart()

    def restart(self) -> None:
        self._found: list[dict[str, Tensor]] = []
        self._positions = 0
        self._since = time.perf_counter()

    def add(self, found: dict[str, Tensor], positions: int) -> None:
        # Tensors on the device: only `check` and `take` wait for it.
        self._found.append(found)
        self._positions += positions * self._group.count

    def check(self, step: int) -> None:
        total = float(self._mean("total"))
        if not math.isfinite(total):
            raise NetworkError(f"loss {total} at step {step} found, expected a number")

    def take(self) -> dict[str, float]:
        """Return the means by name, with `seconds` and `positions_per_second`. Reset them."""
        names = sorted({name for found in self._found for name in found})  # in one order in all processes
        means = {name: float(self._mean(name)) for name in names}
        seconds = time.perf_counter() - self._since
        means |= {"seconds": seconds, "positions_per_second": self._positions / seconds}
        self.restart()
        return means

    def _mean(self, name: str) -> Tensor:
        return self._group.mean(torch.stack([found[name] for found in self._found if name in found]).mean())
