"""`yomi dataset make|play|vary|check|describe|convert|export|import|openings`: training data and openings."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.cli.flags import add_cluster, add_settings, add_task, add_value, asked_cluster, settings_of
from yomi.engine.cli.games import add_games
from yomi.engine.cli.output import echo, say
from yomi.engine.cli.parser import CliError, add_actions
from yomi.engine.clusters.jobs import folder_of
from yomi.engine.datasets.settings import MakeSettings
from yomi.engine.records import LeftOut
from yomi.engine.registry import GAMES
from yomi.engine.shogi.settings import VarySettings
from yomi.nets.errors import NetworkError
from yomi.nets.files import atomic_writer, check_file, check_folder, write_atomically
from yomi.settings import rows_of

if TYPE_CHECKING:
    from yomi.nets.data.shards import Dataset, Shard
    from yomi.nets.metadata import FeatureSet

MAKE, PLAY = "dataset make", "dataset play"
USAGE = "yomi dataset ACTION ... [options]"
EPILOG = """\
examples:
  yomi dataset make games/ --out data/9 --teacher b6c96.bin.gz        positions labelled by a network
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 500000 --out data/9     a network distilled
  yomi dataset play shogi --engine fairy-stockfish --nodes 1000 --positions 1000000 --out games/shogi
  yomi dataset make games.sgfs.xz --out data/aya --features aya-49    moves of strong players
  yomi dataset make floodgate/ --features dlshogi-62-57 --out data/shogi --rating 3000
  yomi dataset vary data/shogi --engine YaneuraOu --nodes 150 --positions 2000000 --out data/varied
  yomi dataset describe data/9
  yomi dataset convert teacher.psv teacher.hcpe
  yomi dataset convert learn-shogi/games games.hcpe3     games with the visits of their searches, for dlshogi
  yomi dataset export learn-go/rows katago-data          rows for KataGo's train.py -datadir katago-data
  yomi dataset import selfplay/ --out data/katago        KataGo's training rows, for yomi train
  yomi dataset openings floodgate/ --rating 3800 --out balanced.sfen

The same command continues a stopped run. Only an unfinished shard is lost.
The format of data sets: nets/data/shards.py.
"""


def add(parser: argparse.ArgumentParser) -> None:
    action = add_actions(parser, "dataset")
    _add_make(action("make", "make a data set from game records, or continue it"))
    _add_play(action("play", "make a data set from games of a network or an engine against itself"))
    _add_vary(action("vary", "make positions near those of shogi data sets, labelled by an engine"))
    for name, text in (
        ("check", "check that a data set is whole and matches the records of its games"),
        ("describe", "print the content of a data set"),
    ):
        action(name, text).add_argument("folder", type=Path, metavar="FOLDER", help="the data set")
    convert = action("convert", "convert positions of shogi: records, hcpe, hcpe3 or psv to hcpe, hcpe3 or psv")
    convert.add_argument("source", type=Path, metavar="SOURCE", help="read records of shogi, .hcpe, .hcpe3 or .psv")
    text = "write .hcpe, .psv or .hcpe3 (from games or a folder of games); must not exist"
    convert.add_argument("target", type=Path, metavar="TARGET", help=text)
    export = action("export", "write a data set of Go as KataGo's training rows, for its train.py -datadir")
    export.add_argument("folder", type=Path, metavar="FOLDER", help="the data set, with the features katago-v7")
    export.add_argument(
        "out", type=Path, metavar="OUT", help="write train/*.npz, val/*.npz and train.json to this folder"
    )
    add_value(export, "--side", 19, "L", "write planes of this side, as train.py -pos-len")
    rows = action("import", "make a data set from KataGo's training rows (.npz)")
    rows.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="read these files and folders")
    rows.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="write the data set to this folder")
    _add_openings(action("openings", "write balanced openings from games of shogi, for yomi match"))


def _add_make(make: argparse.ArgumentParser) -> None:
    text = "read records: files, folders, collections with one SGF per line"
    make.add_argument("paths", type=Path, nargs="+", metavar="PATH", help=text)
    make.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="write the data set to this folder")
    add_settings(make, MakeSettings)
    add_task(make, "shards")
    add_cluster(make)
    for game in GAMES.values():
        kind = game.settings_kind(MAKE)
        if issubclass(kind, MakeSettings):
            add_settings(make, kind, leave_out=rows_of(MakeSettings), group=game.title)


def _add_play(play: argparse.ArgumentParser) -> None:
    for game, child in add_games(play, PLAY, "Make training data of {} from games against itself"):
        child.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="write the data to this folder")
        kind = game.settings_kind(PLAY)
        add_settings(child, kind)
        if "processes" not in rows_of(kind):  # data sets of shards
            add_task(child, "shards")
        add_cluster(child)


def _add_vary(vary: argparse.ArgumentParser) -> None:
    text = "read data sets with the features shogi-board"
    vary.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help=text)
    vary.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="write the data set to this folder")
    add_settings(vary, VarySettings)
    add_task(vary, "shards")
    add_cluster(vary)


def _add_openings(openings: argparse.ArgumentParser) -> None:
    add = openings.add_argument
    text = "read games with evaluations: files or folders (CSA, hcpe, KIF)"
    add("paths", type=Path, nargs="+", metavar="PATH", help=text)
    add("--out", type=Path, required=True, metavar="FILE", help="write lines `startpos moves ...`; must not exist")
    add_value(openings, "--rating", 0.0, "R", "ignore games with a player rated lower or not at all", "none")
    add_value(openings, "--evaluation", 170.0, "CP", "limit the evaluation of each move, in centipawns")
    add_value(openings, "--narrow", 100.0, "CP", "limit the evaluation at the two plies of --plies, in centipawns")
    text = "end openings after M moves, with different positions after N (default: 24 36)"
    add("--plies", type=int, nargs=2, default=(24, 36), metavar=("N", "M"), help=text)
    add_value(openings, "--min-moves", 50, "N", "ignore games with fewer moves")


def run(args: argparse.Namespace) -> int:
    actions = {
        "make": make_dataset,
        "play": play_dataset,
        "vary": vary_dataset,
        "check": check_dataset,
        "describe": describe_dataset,
        "convert": convert_file,
        "export": export_dataset,
        "import": import_dataset,
        "openings": write_openings,
    }
    if (out := getattr(args, "out", None)) is not None:
        (check_file if args.action == "openings" else check_folder)(out)
    actions[args.action](args)
    return 0


def make_dataset(args: argparse.Namespace) -> None:
    from yomi.engine.datasets.shards import ShardWork
    from yomi.nets.metadata import feature_set

    features = getattr(args, "features", None) or MakeSettings().features
    game = GAMES[feature_set(features).game]
    for other in GAMES.values():
        for row in rows_of(other.settings_kind(MAKE)).values():
            if other is not game and row.name not in rows_of(MakeSettings) and hasattr(args, row.name):
                hint = f"remove it, or choose other --features than {features}"
                raise CliError(f"{row.flag} is an option for {other.title}: {hint}")
    settings = settings_of(game.settings_kind(MAKE), args)
    work = ShardWork(MAKE, args.command_words, args.task, asked_cluster(args))
    print_dataset(game.make_dataset(args.paths, folder_of(args.out, args.task), settings, work, say))


def play_dataset(args: argparse.Namespace) -> None:
    from yomi.engine.datasets.shards import ShardWork

    game, task = GAMES[args.game], getattr(args, "task", None)
    settings = settings_of(game.settings_kind(PLAY), args)
    work = ShardWork(PLAY, args.command_words, task, asked_cluster(args, getattr(args, "processes", None)))
    made = game.play_dataset(folder_of(args.out, task), settings, work, say)
    if isinstance(made, str):
        echo(made)
    else:
        print_dataset(made)


def vary_dataset(args: argparse.Namespace) -> None:
    from yomi.engine.datasets.shards import ShardWork
    from yomi.engine.shogi.datasets.varied import vary_boards

    settings = settings_of(VarySettings, args)
    if (settings.positions is None) == (settings.shards is None):
        raise CliError("--positions, --shards: expected one of them")
    cluster = asked_cluster(args)
    if cluster is not None and settings.shards is None:
        raise CliError("--cluster with --positions: expected --shards, as shards are made at the same time")
    if args.task is not None and settings.shards is None:
        raise CliError(
            f"--task {args.task} with --positions: expected --shards, as tasks do not know each other's rows"
        )
    work = ShardWork("dataset vary", args.command_words, args.task, cluster)
    print_dataset(vary_boards(args.folders, folder_of(args.out, args.task), settings, work, say))


def check_dataset(args: argparse.Namespace) -> None:
    """Read every shard of a data set. Replay the games of shards whose records are stored beside them."""
    from yomi.engine.learning.rows import record_beside
    from yomi.nets.data.shards import check_shard, open_dataset

    dataset = open_dataset(args.folder)
    features = dataset.manifest.features
    for shard in dataset.shards:
        check_shard(shard, features, features.policy_size(shard.size))
    echo(f"{len(dataset.shards)} shards whole, {dataset.rows('train')} + {dataset.rows('test')} positions")
    records = {shard: record for shard in dataset.shards if (record := record_beside(shard)) is not None}
    if records:
        faults = sum(_replay(features, shard, record) for shard, record in records.items())
        echo(f"{sum(shard.rows for shard in records)} positions replayed from their records")
        if faults:
            raise CliError(f"{args.folder}: {faults} faults found, expected none")


def _replay(features: FeatureSet, shard: Shard, record: Path) -> int:
    """Replay the games of a shard, print their faults, and return the number of faults."""
    from yomi.engine.learning.rows import check_rows

    spec, show, games = GAMES[features.game].replay(record, features, shard.size)
    faults = 0
    for faults, line in enumerate(check_rows(shard, games, spec, show), 1):  # noqa: B007  (counted)
        echo(line)
    return faults


def describe_dataset(args: argparse.Namespace) -> None:
    from yomi.nets.data.shards import open_dataset

    print_dataset(open_dataset(args.folder))


def export_dataset(args: argparse.Namespace) -> None:
    from yomi.nets.data.katago_rows import export_rows
    from yomi.nets.data.shards import open_dataset

    if args.out.exists() and any(args.out.iterdir()):
        raise CliError(f"{args.out}: files found, expected an empty or new folder")
    count = export_rows(open_dataset(args.folder), args.out, args.side)
    echo(f"{count} positions written to {args.out}")


def import_dataset(args: argparse.Namespace) -> None:
    from yomi.engine.datasets.making import find_files
    from yomi.nets.data.katago_rows import import_rows

    print_dataset(import_rows(find_files(args.paths, (".npz",)), args.out))


def convert_file(args: argparse.Namespace) -> None:
    from yomi.engine.shogi.datasets.rows import marks_of, read_rows, to_hcpe, to_psv
    from yomi.engine.shogi.settings import ShogiDataOptions

    writers = {".hcpe": to_hcpe, ".psv": to_psv}
    if args.target.suffix not in (*writers, ".hcpe3"):
        raise CliError(f"{args.target}: expected a name that ends in .hcpe, .hcpe3 or .psv")
    if args.target.exists():
        raise CliError(f"{args.target} exists: expected the name of a new file")
    check_file(args.target)
    if args.target.suffix == ".hcpe3":
        _convert_games(args.source, args.target)
        return
    rows = read_rows(args.source, ShogiDataOptions(min_moves=0), 0, say)
    if not len(rows):
        raise CliError(f"{args.source}: no positions found, expected games with a result and all 40 pieces")
    write_atomically(args.target, writers[args.target.suffix](rows, marks_of(args.source, rows)))
    echo(f"{len(rows)} positions written to {args.target}")


def _convert_games(source: Path, target: Path) -> None:
    """Write the games of a file, or of the files in a folder, as hcpe3."""
    from yomi.engine.datasets.making import find_files
    from yomi.engine.shogi.datasets.rows import RECORD_SUFFIXES, read_games, without_handicap
    from yomi.engine.shogi.records.packed import write_hcpe3
    from yomi.engine.shogi.records.record import RecordError

    games = 0
    files, left_out = find_files([source], RECORD_SUFFIXES), LeftOut(say)
    with atomic_writer(target) as stream:
        for path in files:
            try:
                records = without_handicap(path, read_games(path, say), say)
                records = [record for record in records if record.winner is not None]
                stream.write(write_hcpe3(records))
            except (RecordError, NetworkError) as error:
                left_out.add(path, error)
                continue
            games += len(records)
        if len(left_out.faults) == len(files):
            raise CliError(left_out.faults[0])
        if not games:
            raise CliError(f"{source}: no games found, expected games with a result and all 40 pieces")
    left_out.report(len(files))
    echo(f"{games} games written to {target}")


def write_openings(args: argparse.Namespace) -> None:
    from yomi.engine.datasets.making import find_files
    from yomi.engine.shogi.datasets.openings import OPENING_SUFFIXES, BalanceLimits, balanced_openings

    first, last = args.plies
    if not 0 <= first < last:
        raise CliError(f"--plies {first} {last}: expected the second after the first")
    if args.out.exists():
        raise CliError(f"{args.out} exists: expected the name of a new file")
    limits = BalanceLimits(args.rating, args.evaluation, args.narrow, (first, last), args.min_moves)
    files, left_out = find_files(args.paths, OPENING_SUFFIXES), LeftOut(say)
    lines, refused = balanced_openings(files, limits, left_out)
    left_out.report(len(files))
    if len(left_out.faults) == len(files):
        raise CliError(left_out.faults[0])
    for why, count in refused.most_common():
        say(f"{count} games ignored: {why}")
    if not lines:
        raise CliError(f"0 of {refused.total()} games remain: loosen the options that choose games")
    write_atomically(args.out, "".join(f"{line}\n" for line in lines).encode("ascii"))
    echo(f"{len(lines)} openings written to {args.out}")


def print_dataset(dataset: Dataset) -> None:
    """Print the features of a data set, its positions by split and size, its labels, and how it was made."""
    import numpy as np

    sizes = Counter[tuple[str, int]]()
    known = Counter[str]()
    values = []
    for shard in dataset.shards:
        sizes[shard.split, shard.size] += shard.rows
        columns = shard.open()
        values.append(columns["value"].astype(np.float32))
        for name, column in columns.items():
            known[name] += int(np.isfinite(column).sum()) if column.dtype.kind == "f" and column.ndim == 1 else 0
    rows = [("folder", str(dataset.folder)), ("feature set", dataset.manifest.feature_set)]
    rows += [(f"{split} {size}x{size}", f"{count:,} positions") for (split, size), count in sorted(sizes.items())]
    rows += [(name, f"known of {count:,}") for name, count in sorted(known.items()) if count]
    if values:
        known_values = np.concatenate(values)
        known_values = known_values[np.isfinite(known_values)]
        rows.append(("mean value", f"{known_values.mean():+.4f}" if len(known_values) else "none known"))
    rows.append(("sources", ", ".join(dataset.manifest.sources[:5]) + (" ..." * (len(dataset.manifest.sources) > 5))))
    rows += [(name.replace("_", " "), str(value)) for name, value in sorted(dataset.manifest.options.items())]
    for name, value in rows:
        echo(f"{name:16} {value}")
