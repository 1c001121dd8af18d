"""`yomi net list|info|import|compress|join|calibrate`: bundled networks, one network, conversions, fastest use."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from yomi.engine.arguments import add_value
from yomi.engine.cli import logs
from yomi.engine.cli.errors import CliError
from yomi.engine.cli.games import GAMES
from yomi.engine.cli.logs import say
from yomi.engine.default_network import check_network, network_path
from yomi.engine.options import TABLE, Options
from yomi.nets.models import BUNDLED, FAST, Bundled, default_network, fast_network, network_of_levels

USAGE = "yomi net ACTION [NET] [options]"
EPILOG = """\
examples:
  yomi net list                                     the networks that come with yomi
  yomi net info yomi-go-b6c96
  yomi net info resnet10x192.onnx
  yomi net import b18.bin.gz --size 9 --size 19     to ONNX, which GPUs, --backend onnx and transformers use
  yomi net compress b10c384.bin.gz --out b10c384.bin.xz     a third of the bytes, weights rounded
  yomi net join values.safetensors moves.safetensors --out both.safetensors     halves of two sparse networks
  yomi net calibrate b6c96.bin.gz --size 9          find what is fastest on this machine; every command then uses it

NET is a file or a name of `yomi net list`. If the current folder has a file of that name, the file is used.
Converted networks are kept in the cache folder (YOMI_CACHE_DIR, or ~/.cache/yomi), one for each board size. Networks
for shogi are used as they are.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, prog="yomi net")

    def action(name: str, text: str, *aliases: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, aliases=aliases, help=text, description=text[0].upper() + text[1:] + ".")

    action("list", "list the networks that come with yomi")
    info = action("info", "show what a network file is")
    info.add_argument("file", type=network_path, metavar="NET", help="KataGo network, dlshogi network or ONNX file")
    convert = action("import", "convert a KataGo network to ONNX and keep it in the cache")
    convert.add_argument("file", type=network_path, metavar="NET", help="KataGo network (.bin.gz, .txt.gz)")
    convert.add_argument(
        "--size", type=int, action="append", metavar="N", help="board size; may be given several times (default: 19)"
    )
    compress = action("compress", "round a KataGo network's weights and pack them into a third of the bytes")
    compress.add_argument("file", type=network_path, metavar="NET", help="KataGo network (.bin.gz, .txt.gz)")
    compress.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write (.bin.xz)")
    join = action("join", "write a sparse network with the values of one and the moves of another")
    join.add_argument("values", type=network_path, metavar="VALUES", help="sparse network (.safetensors)")
    join.add_argument("moves", type=network_path, metavar="MOVES", help="sparse network with the same rows")
    join.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write (.safetensors)")
    tune = action("calibrate", "measure what is fastest for a network on this machine, and keep it", "tune")
    tune.add_argument("file", type=network_path, metavar="NET", help="KataGo network, dlshogi network or ONNX file")
    add_value(tune, "--size", 19, "N", "Go: board size")
    tune.add_argument("--device", default="auto", choices=TABLE["device"].choices, help="try only this (default: any)")
    tune.add_argument(
        "--for", dest="duration", type=float, default=3.0, metavar="S", help="seconds for each way (default: 3)"
    )


def run(args: argparse.Namespace) -> int:
    """Show, convert or tune."""
    from yomi.nets.errors import NetworkError

    if args.action in ("calibrate", "tune") and str(args.file) in GAMES and not args.file.exists():
        hint = f"parameters of the search are tuned by yomi tune {args.file}"
        raise CliError(f"{args.file}: a game found, expected the file of a network; {hint}")
    try:
        for path in (getattr(args, name, None) for name in ("file", "values", "moves")):
            if path is not None:
                check_network(path)
        if args.action == "list":
            list_networks()
        elif args.action == "info":
            for name, value in facts(args.file):
                logs.echo(f"{name:16} {value}")
        elif args.action == "import":
            import_network(args.file, args.size or [19])
        elif args.action == "compress":
            compress_network(args.file, args.out)
        elif args.action == "join":
            join_networks(args.values, args.moves, args.out)
        else:
            tune_network(args.file, args.size, args.device, args.duration)
    except NetworkError as error:
        raise CliError(str(error)) from None
    return 0


def list_networks() -> None:
    """Print each bundled network: its game, size, use and source."""
    for network in BUNDLED:
        names = [network.name, *([FAST] if network.path == fast_network(network.game, on_processor=True) else [])]
        logs.echo(f"--net {' or --net '.join(names)}")
        for name, value in (
            ("game", network.game),
            ("for", network.purpose),
            ("default", default_uses(network) or "nowhere"),
            ("architecture", network.architecture),
            ("size", f"{network.path.stat().st_size / 1e6:.1f} MB"),
            ("source", network.source),
            ("file", str(network.path)),
        ):
            logs.echo(f"  {name:13} {value}")
        logs.echo("")
    logs.echo("The name fast chooses the fast network of the game. For your own network give --net FILE.")


def default_uses(network: Bundled) -> str:
    """Return where a bundled network plays if you name none."""
    here = {
        "on processors": default_network(network.game, on_processor=True),
        "on GPUs": default_network(network.game),
        "at levels 1 to 10": network_of_levels(network.game),
    }
    return ", ".join(place for place, path in here.items() if path == network.path)


def facts(path: Path) -> list[tuple[str, str]]:
    """Return what is known about a network file, as names and values.

    Raises:
        NetworkError: It is no network that can be used.
    """
    from yomi.nets.files import source_digest
    from yomi.nets.katago.file import read_network
    from yomi.nets.load import NetworkKind, open_file, own_info
    from yomi.nets.nnue.file import read_architecture

    file = open_file(path)
    kind = file.kind
    rows = [("file", str(path)), ("kind", kind.value)]
    if kind is NetworkKind.KATAGO:
        network = read_network(path)
        blocks: dict[str, int] = {}
        for block in network.trunk.blocks:
            name = type(block).__name__.removesuffix("Block")
            blocks[name] = blocks.get(name, 0) + 1
        rows += [
            ("name", network.name),
            ("version", str(network.version)),
            ("blocks", ", ".join(f"{count} {name}" for name, count in blocks.items())),
            ("channels", str(network.trunk.conv.weights.shape[0])),
            ("parameters", f"{count_parameters(network):,}"),
            ("board sizes", "2 to 19"),
        ]
        return rows
    if kind in (NetworkKind.DLSHOGI, NetworkKind.ALPHAZERO_SHOGI):
        return rows + _shogi_facts(path)
    if kind is NetworkKind.NNUE:
        architecture = read_architecture(path)
        inputs = f"{architecture.features.rows:,} for each side"
        return [*rows, ("architecture", architecture.name), ("inputs", inputs), ("sha256", source_digest(path))]
    if file.info is not None:
        for name, value in dataclasses.asdict(own_info(path, file.info)).items():
            rows.append((name.replace("_", " "), str(value)))
    return rows


def _shogi_facts(path: Path) -> list[tuple[str, str]]:
    from yomi.nets.dlshogi.facts import graph_facts
    from yomi.nets.load import prepare_shogi

    network, info = prepare_shogi(path)
    tensors = [network.board, *([network.hands] if network.hands else []), network.policy, network.value]
    return [
        ("name", info.name),
        ("game", info.game),
        ("feature set", info.feature_set),
        ("tensors", ", ".join(map(str, tensors))),
        *graph_facts(path, network),
        ("sha256", info.source_sha256),
    ]


def count_parameters(part: Any) -> int:
    """Return how many numbers the arrays of a network hold."""
    if hasattr(part, "size") and hasattr(part, "shape"):
        return int(part.size)
    if dataclasses.is_dataclass(part):
        return sum(count_parameters(getattr(part, field.name)) for field in dataclasses.fields(part))
    if isinstance(part, tuple | list):
        return sum(map(count_parameters, part))
    return 0


def import_network(path: Path, sizes: list[int]) -> None:
    """Convert a network for board sizes and say where the files are.

    Raises:
        CliError: A size that no board has.
        NetworkError: The network cannot be used.
    """
    from yomi.nets.load import prepare

    for size in sizes:
        if not 2 <= size <= 19:
            raise CliError(f"--size {size}: expected 2 to 19")
        target, info = prepare(path, size)
        logs.echo(f"{info.name} for {size}x{size}: {target}")


def compress_network(path: Path, out: Path) -> None:
    """Write a KataGo network in fewer bytes.

    Raises:
        CliError: it cannot be written there.
        NetworkError: it is no KataGo network.
    """
    from yomi.nets.katago.compress import compress
    from yomi.nets.katago.file import read_network

    if not out.name.endswith(".bin.xz"):
        raise CliError(f"--out {out}: expected a name ending in .bin.xz")
    content = compress(read_network(path))
    _write(out, content)
    logs.echo(f"{out}: {len(content):,} bytes of {path.stat().st_size:,}")


def join_networks(values: Path, moves: Path, out: Path) -> None:
    """Write a sparse network with the values of one and the moves of another.

    Raises:
        CliError: it cannot be written there.
        NetworkError: they are no sparse networks, or do not fit.
    """
    from yomi.nets.errors import NetworkError
    from yomi.nets.load import NetworkKind, open_file, own_info
    from yomi.nets.sparse.file import joined, read_sparse, write_sparse

    infos, found = [], []
    for path in (values, moves):
        file = open_file(path)
        if file.kind is not NetworkKind.SPARSE or file.info is None:
            raise NetworkError(f"{path}: {file.kind.value} found, expected a sparse network")
        infos.append(own_info(path, file.info))
        found.append(read_sparse(path))
    try:
        tensors = joined(*found)
    except NetworkError as error:
        raise NetworkError(f"{moves}: {error}") from None
    parts = zip(("values", "moves"), infos, strict=True)
    training = {f"{part}: {name}": text for part, each in parts for name, text in each.training.items()}
    info = dataclasses.replace(infos[0], name=out.stem, source_file="", source_sha256="", training=training)
    _write(out, write_sparse(tensors, info))
    logs.echo(f"{out}: values of {values.name}, moves of {moves.name}")


def _write(out: Path, content: bytes) -> None:
    """Write a file.

    Raises:
        CliError: it cannot be written there.
    """
    from yomi.nets.files import write_atomically

    try:
        write_atomically(out, content)
    except OSError as error:
        raise CliError(f"--out {out}: cannot be written: {error.strerror or error}") from None


def tune_network(path: Path, size: int, device: str, seconds: float) -> None:
    """Measure the ways to search with a network, show them and keep the best.

    Raises:
        CliError: a size that no board has, no way to compute the network here, or the result cannot be written.
        NetworkError: the network cannot be used.
    """
    from yomi.engine.calibration import tune
    from yomi.engine.cli.report import print_facts, print_table
    from yomi.engine.evaluators.base import EvaluatorError
    from yomi.engine.evaluators.workers import choose_devices
    from yomi.engine.players.setup import save_tuning
    from yomi.nets.load import game_of

    if not 2 <= size <= 19 or seconds <= 0.0:
        raise CliError(f"--size {size}, --for {seconds:g}: expected a size of 2 to 19 and a positive time")
    game = GAMES[game_of(path)]
    options = Options.for_game(game.name)
    options.net, options.device, options.size = str(path), device, size
    size = game.board_size(options)

    try:
        if device != "auto":
            choose_devices(options)  # an error must not wait until kernels are compiled
        game.compile(say)
        tuning, rows = tune(options, game, seconds, say)
        target = save_tuning(path, size, tuning)
    except EvaluatorError as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"the choice cannot be kept: {error.strerror or error}") from None
    print_facts()
    print_table(rows)
    logs.echo(f"{path.name} on {size}x{size} is searched with {tuning}\nkept in {target}")
