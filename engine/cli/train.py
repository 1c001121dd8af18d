"""`yomi train CONFIG`: training; `yomi train test NET DATA`: what a network is worth on held-out positions."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.cli.errors import CliError
from yomi.engine.cli.games import GAMES, find_encoder
from yomi.engine.cli.signals import stopped_by_a_signal
from yomi.engine.default_network import named_file
from yomi.nets.installation import missing_line

if TYPE_CHECKING:
    from yomi.nets.training.loop import Trainer

USAGE = "yomi train CONFIG | export CONFIG | test NET DATA [options]"
EPILOG = """\
examples:
  yomi train go --out runs/go             train by a recipe, or continue where it stopped
  yomi train my-network.toml              train by your own configuration
  yomi train export go --out runs/go      write the network's file from the last checkpoint
  yomi train test runs/go/yomi-go-b6c96.bin.gz data/9      policy and value on the test set, for any known network

Training needs PyTorch; yomi doctor says what installs it.
CONFIG is a TOML file, or the name of a recipe: a file of nets/recipes without its ending. A recipe that is given by its
name reads data and networks from the current folder.
The keys of a configuration: nets/training/config.py; configurations to begin with: nets/recipes/*.toml.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("words", nargs="+", metavar="CONFIG | export CONFIG | test NET DATA", help="see the examples")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="folder of the run (default: runs/NAME)")
    parser.add_argument("--steps", type=int, metavar="N", help="stop at this step; a later run goes on")
    text = "processes that train together, one for each GPU (default: 1)"
    parser.add_argument("--processes", type=int, default=1, metavar="N", help=text)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), help="device, instead of the configuration's")
    parser.add_argument(
        "--split", choices=("train", "test"), default="test", help="part of the data to test on (default: test)"
    )
    parser.add_argument(
        "--limit", type=int, default=0, metavar="N", help="positions to test on, at most (default: all)"
    )


def run(args: argparse.Namespace) -> int:
    """Train, export or test."""
    from yomi.engine.evaluators.base import EvaluatorError
    from yomi.nets.errors import NetworkError

    if args.limit < 0:
        raise CliError(f"--limit {args.limit}: expected at least 0 (all)")
    if args.steps is not None and args.steps < 1:
        raise CliError(f"--steps {args.steps}: expected at least 1")
    if args.processes < 1:
        raise CliError(f"--processes {args.processes}: expected at least 1")
    try:
        if args.words[0] == "test":
            _expect(args.words, 3, "yomi train test NET DATA")
            test(Path(named_file(args.words[1], None)), Path(args.words[2]), args)
        elif args.words[0] == "export":
            _expect(args.words, 2, "yomi train export CONFIG")
            return train(Path(args.words[1]), args, only_export=True)
        else:
            _expect(args.words, 1, "yomi train CONFIG")
            return train(Path(args.words[0]), args)
    except (NetworkError, EvaluatorError) as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"{error.filename or 'output'}: {error.strerror or error}") from None
    return 0


def _expect(words: list[str], count: int, usage: str) -> None:
    if len(words) != count:
        raise CliError(f"{' '.join(words)}: expected {usage}")


def train(path: Path, args: argparse.Namespace, *, only_export: bool = False) -> int:
    """Train to the end and export, or only export; return the exit status, 128 and a signal's number after that.

    Raises:
        CliError: PyTorch is not installed, or there is nothing to export.
        NetworkError: the configuration or its data cannot be used.
    """
    from yomi.nets.training.config import read_config

    config = read_config(path)
    for package in ("torch", "onnx"):
        if importlib.util.find_spec(package) is None:
            raise CliError(missing_line(package, "training"))
    # Threads that wait for each other in a loop make a busy machine several times slower (measured: 5 times).
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from yomi.nets.training.loop import Trainer
    from yomi.nets.training.processes import started

    logging.basicConfig(level=logging.INFO, format="yomi: %(message)s", stream=sys.stderr)
    folder = args.out or Path("runs") / config.name
    if only_export:
        trainer = Trainer(config, folder, args.device, find_encoder=find_encoder)
        if not trainer.step:
            raise CliError(f"{folder}: no checkpoint found, expected a run of {path}")
        print(trainer.export())
        return 0
    last = config.training.steps if args.steps is None else min(args.steps, config.training.steps)
    with started(args.processes, config, folder, args.device, last, find_encoder) as group:
        trainer = Trainer(config, folder, args.device, group=group, find_encoder=find_encoder)
        number = _train_to(trainer, last)
    if number:
        print(
            f"stopped after step {trainer.step}, kept in {trainer.checkpoint}: the same command goes on from there",
            file=sys.stderr,
        )
        return 128 + number
    if trainer.step >= config.training.steps or trainer.stopping.stops:
        print(trainer.export())
    return 0


def _train_to(trainer: Trainer, last: int) -> int:
    """Train to a step with a bar of progress; return the number of the signal that stopped it, or 0."""
    from tqdm import tqdm

    print(
        f"{trainer.config.name}: {trainer.network.count():,} parameters, {trainer.source.positions:,} positions, "
        f"{trainer.source.epoch_batches:,} batches an epoch, on {trainer.device}, from step {trainer.step} to {last}",
        file=sys.stderr,
    )
    with tqdm(total=last, initial=trainer.step, unit="step", file=sys.stderr) as bar:

        def progress(step: int, values: dict[str, float]) -> None:
            shown = {name: f"{value:.3f}" for name, value in sorted(values.items()) if name in ("policy", "value")}
            shown |= {"loss": f"{values['total']:.3f}", "positions/s": f"{values['positions_per_second']:.0f}"}
            bar.set_postfix(shown, refresh=False)
            bar.update(step - bar.n)

        with stopped_by_a_signal(lambda: bar.write("yomi: stopping after this step", sys.stderr)) as stopped:
            trainer.run(progress, last, lambda: stopped() != 0)
    return stopped()


def test(path: Path, folder: Path, args: argparse.Namespace) -> None:
    """Print what a network is worth on a data set.

    Raises:
        NetworkError: one of them cannot be used, or they do not fit.
        EvaluatorError: the device cannot be used.
    """
    from yomi.engine.datasets.judging import evaluate_network
    from yomi.nets.data.metrics import NAMES
    from yomi.nets.data.shards import open_dataset
    from yomi.nets.features import feature_set

    dataset = open_dataset(folder)
    formats = GAMES[feature_set(dataset.manifest.feature_set).game].formats
    table = evaluate_network(formats, path, dataset, args.split, args.limit, args.device or "auto", find_encoder)
    print(f"{'positions':40} {table.positions:>10,}")
    for name, value in table.values().items():
        print(f"{NAMES[name]:40} {value:10.4f}")
