"""`yomi train`: trains by a configuration, or computes errors of networks. `yomi learn`: learns a game from nothing."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yomi import __version__
from yomi.engine.cli.flags import (
    add_cluster,
    add_options,
    add_settings,
    add_value,
    collect,
    given_settings,
    known_options,
    settings_of,
)
from yomi.engine.cli.games import add_children, add_games
from yomi.engine.cli.output import echo, say, set_up_logs
from yomi.engine.cli.parser import CliError, Command
from yomi.engine.clusters.jobs import ClusterSettings
from yomi.engine.default_network import named_file
from yomi.engine.learning.run import BOARD, COMMAND, RunSettings, learn
from yomi.engine.learning.settings import LearnSettings, learn_settings
from yomi.engine.machine import start_facts
from yomi.engine.options import TABLE
from yomi.engine.registry import GAMES, find_encoder
from yomi.engine.signals import stopped_by_a_signal
from yomi.nets.files import append_object, check_folder
from yomi.nets.installation import require_package
from yomi.nets.user_files import ACCEPT, content_of, is_in_file, keep_files
from yomi.settings import rows_of

if TYPE_CHECKING:
    from yomi.nets.training.loop import Trainer

STARTS = "starts.jsonl"  # a line for each start
USAGE = "yomi train CONFIG | export CONFIG | test NET DATA [options]"
EPILOG = """\
examples:
  yomi train go --out runs/go             train by a recipe, or continue a stopped run
  yomi train my-network.toml              train by your own configuration
  yomi train go --set network.blocks=10 --set network.name=ten      change keys of a configuration
  yomi train export go --out runs/go      write the network's file from the last checkpoint
  yomi train test runs/go/yomi-go-b6c96.bin.gz data/9      policy and value on the test set, for any known network

Training needs PyTorch; yomi doctor shows how to install it.
CONFIG is a TOML file, or the name of a recipe: a file of nets/recipes without its ending. Recipes read data and
networks from the current folder. The keys of a configuration: yomi help settings; examples: nets/recipes/*.toml.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="CONFIG | export CONFIG | test NET DATA", help="see the examples")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="set the folder of the run (default: runs/NAME)")
    add_value(parser, "--steps", None, "N", "stop at this step; a later run continues", "never", low=1)
    add_value(parser, "--processes", 1, "N", "train with this many processes, one for each GPU", low=1)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), help="override the device of the configuration")
    text = "change a key of the configuration, such as training.batch=256; repeatable"
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help=text)
    text = "continue although a file of the network, its start or its teacher has changed"
    parser.add_argument(ACCEPT, action="store_true", help=text)
    text = "test on this part of the data (default: test)"
    parser.add_argument("--split", choices=("train", "test"), default="test", help=text)
    add_value(parser, "--limit", 0, "N", "test on at most N positions", "all", low=0)


def run(args: argparse.Namespace) -> int:
    match args.words:
        case ["test", network, folder]:
            test(Path(named_file(network, None)), Path(folder), args)
            return 0
        case ["export", config]:
            return train(Path(config), args, only_export=True)
        case [config] if config not in ("test", "export"):
            return train(Path(config), args)
    usage = {"test": "test NET DATA", "export": "export CONFIG"}.get(args.words[0], "CONFIG")
    raise CliError(f"{' '.join(args.words)}: expected yomi train {usage}")


def train(path: Path, args: argparse.Namespace, *, only_export: bool = False) -> int:
    """Train to the end and export, or only export. Return the exit status: after a signal 128 plus its number."""
    from yomi.nets.training.config import read_config

    config = read_config(path, args.set)
    for package in ("torch", "onnx"):
        require_package(package, "training")
    # Threads that wait for each other in a loop make a busy machine several times slower (measured: 5 times).
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from yomi.nets.training.loop import Trainer
    from yomi.nets.training.processes import started

    logging.basicConfig(level=logging.INFO, format="yomi: %(message)s", stream=sys.stderr)
    folder = args.out or Path("runs") / config.name
    check_folder(folder)
    if only_export:
        trainer = Trainer(config, folder, args.device, find_encoder=find_encoder)
        if not trainer.step:
            raise CliError(f"{folder}: no checkpoint found, expected a run of {path}")
        print(trainer.export())
        return 0
    last = config.training.steps if args.steps is None else min(args.steps, config.training.steps)
    with started(args.processes, config, folder, args.device, last, find_encoder) as group:
        trainer = Trainer(config, folder, args.device, group=group, find_encoder=find_encoder)
        _note_start(trainer, accept_changed=args.accept_changed)
        number = _train_to(trainer, last)
    if number:
        text = f"stopped after step {trainer.step}, stored in {trainer.checkpoint}: the same command continues"
        print(text, file=sys.stderr)
        return 128 + number
    if trainer.step >= config.training.steps or trainer.stopping.stops:
        print(trainer.export())
    return 0


def _note_start(trainer: Trainer, *, accept_changed: bool) -> None:
    """Copy the user's files into the folder of a training, and append a line about this start.

    Raises:
        NetworkError: a file has changed since the last start.
        OSError: the folder cannot be written.
    """
    config, folder = trainer.config, trainer.folder
    named = {"start": config.start, "teacher": config.teacher.network}
    if is_in_file(config.kind):
        named["network"] = config.kind.rpartition(":")[0]
    files = {use: content_of(config.folder / name) for use, name in named.items() if name}
    keep_files(folder, files, accept_changed=accept_changed)
    precision = "fp32" if trainer.dtype is None else str(trainer.dtype).removeprefix("torch.")
    facts = {"version": __version__, "time": round(time.time(), 3), "step": trainer.step, "precision": precision}
    with (folder / STARTS).open("a+b", buffering=0) as file:
        append_object(file, {**facts, "device": str(trainer.device), **start_facts()})


def _train_to(trainer: Trainer, last: int) -> int:
    """Train to a step, with a progress bar. Return the number of the signal that has stopped it, or 0."""
    from yomi.engine.cli.bars import Bar

    print(
        f"{trainer.config.name}: {trainer.network.count():,} parameters, {trainer.source.positions:,} positions, "
        f"{trainer.source.epoch_batches:,} batches an epoch, on {trainer.device}, from step {trainer.step} to {last}",
        file=sys.stderr,
    )
    with Bar(total=last, initial=trainer.step, unit="step", file=sys.stderr) as bar:

        def progress(step: int, values: dict[str, float]) -> None:
            shown = {name: f"{value:.3f}" for name, value in sorted(values.items()) if name in ("policy", "value")}
            shown |= {"loss": f"{values['total']:.3f}", "positions/s": f"{values['positions_per_second']:.0f}"}
            bar.set_postfix(shown, refresh=False)
            bar.update(step - bar.n)

        with stopped_by_a_signal(lambda: bar.write("yomi: stopping after this step", sys.stderr)) as stopped:
            trainer.run(progress, last, lambda: stopped() != 0)
    return stopped()


def test(path: Path, folder: Path, args: argparse.Namespace) -> None:
    from yomi.engine.datasets.evaluate_network import evaluate_network
    from yomi.engine.evaluators.devices import parse_device
    from yomi.nets.data.metrics import NAMES
    from yomi.nets.data.shards import open_dataset
    from yomi.nets.metadata import feature_set

    dataset = open_dataset(folder)
    formats = GAMES[feature_set(dataset.manifest.feature_set).game].formats
    device = parse_device(args.device or "auto")
    table = evaluate_network(formats, path, dataset, args.split, args.limit, device, find_encoder)
    print(f"{'positions':40} {table.positions:>10,}")
    for name, value in table.values().items():
        print(f"{NAMES[name]:40} {value:10.4f}")


# -- yomi learn -------------------------------------------------------------------------------------------------------

STATUS = "status"
RUNS_PAGE = "learn-runs.html"
LEARN_USAGE = "yomi learn GAME [options] | status FOLDER ..."
LEARN_EPILOG = """\
examples:
  yomi learn go --size 5 --hours 2         from nothing, in the folder learn-go
  yomi learn go --size 5                   continue the run
  yomi learn status learn-go               show the status; FOLDER/status.html shows more
  yomi learn status learn-go other-run     compare runs; learn-runs.html lays their graphs over each other
  yomi learn shogi --hours 24              shogi, in the folder learn-shogi
  yomi learn FILE.py:NAME --hours 1        a game of your own (yomi help games)
  yomi learn go --size 9 --anchor "gnugo --mode gtp" --until gnugo 0.5     until it wins half its points

Learning needs PyTorch; yomi doctor shows how to install it. yomi help learning explains every setting.
"""
# Prefix of settings among the arguments, since some have the names of options.
PREFIX = "learning_"


def _add_learn(parser: argparse.ArgumentParser) -> None:
    children = add_children(parser, COMMAND, "GAME | status", "games, and the status of a run")
    usage = "yomi learn status FOLDER [FOLDER ...] [--page FILE]"
    status = children.add_parser(STATUS, help="show the status of a run, or compare runs", usage=usage)
    status.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folder of a run")
    text = f"write the page of several runs to FILE (default: {RUNS_PAGE})"
    status.add_argument("--page", type=Path, metavar="FILE", help=text)
    for game, child in add_games(parser, COMMAND, "Learn {} from nothing by self-play", children):
        add_settings(child, RunSettings, leave_out=rows_of(ClusterSettings))
        add_cluster(child)
        add_settings(child, game.settings_kind(COMMAND))
        add_options(child, game, leave_out=set(TABLE) - set(BOARD), defaults=game.defaults.get(COMMAND, {}))
        add_settings(child, LearnSettings, prefix=PREFIX, group="learning")


def _run_learn(args: argparse.Namespace) -> int:
    if args.game == STATUS:
        return _show_status(args.folders, args.page)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    game = GAMES[args.game]
    options = collect(args, game, **game.defaults.get(COMMAND, {}))
    set_up_logs(options)
    settings = learn_settings(given_settings(LearnSettings, args, PREFIX))
    own = settings_of(game.settings_kind(COMMAND), args)
    named = known_options(args, game)
    return learn(game, settings_of(RunSettings, args), settings, own, options, say, named=named)


def _show_status(folders: Sequence[Path], page: Path | None) -> int:
    from yomi.engine.learning.page import comparison_text, short_names, status_text, write_comparison, write_page
    from yomi.engine.learning.store import Store

    for folder in folders:
        if not (folder / Store.SETTINGS).exists():
            raise CliError(f"{folder}: found no run, expected a folder of yomi learn")
    for folder in folders:
        echo(status_text(folder) if len(folders) == 1 else f"{folder}\n{status_text(folder)}")
        write_page(folder)
    if len(folders) > 1:
        echo(comparison_text(folders, short_names(folders)))
    if len(folders) > 1 or page is not None:
        page = page or Path(RUNS_PAGE)
        write_comparison(folders, page)
        echo(f"{page} shows the runs together")
    return 0


LEARN = Command(LEARN_USAGE, LEARN_EPILOG, _add_learn, _run_learn)
