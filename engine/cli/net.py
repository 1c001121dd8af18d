"""`yomi net list|info|import|compress|join|calibrate`: show, convert and calibrate networks."""

from __future__ import annotations

import argparse
import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.flags import add_value
from yomi.engine.cli.output import echo, say
from yomi.engine.cli.parser import CliError, add_actions
from yomi.engine.default_network import check_network, named_file, network_path
from yomi.engine.options import TABLE, Options
from yomi.engine.registry import GAMES
from yomi.errors import reraised
from yomi.nets.errors import NetworkError
from yomi.nets.files import check_file, check_folder, default_cache_dir, write_atomically
from yomi.nets.models import BUNDLED, FAST, FOR_ALPHA_BETA, FOR_LEVELS, Bundled, default_network, fast_network

if TYPE_CHECKING:
    from yomi.nets.load import NetworkFile

USAGE = "yomi net ACTION [NET] [options]"
EPILOG = """\
examples:
  yomi net list                                     list the bundled networks
  yomi net info yomi-go-b6c96
  yomi net info resnet10x192.onnx
  yomi net import b18.bin.gz --size 9 --size 19     convert to ONNX for GPUs, --backend onnx and transformers
  yomi net compress b10c384.bin.gz --out b10c384.bin.xz     round weights, a third of the bytes
  yomi net join values.safetensors moves.safetensors --out both.safetensors     join halves of two sparse networks
  yomi net calibrate b6c96.bin.gz --size 9          find the fastest settings, which every command then uses

NET is a file or a name of `yomi net list`. A file in the current folder overrides a name.
Converted networks are stored in the cache folder (YOMI_CACHE_DIR, or ~/.cache/yomi), one for each board size. Networks
for shogi need no conversion.
"""


def add(parser: argparse.ArgumentParser) -> None:
    action = add_actions(parser, "net")
    action("list", "list the bundled networks")
    info = action("info", "describe a network file")
    convert = action("import", "convert a KataGo network to ONNX, stored in the cache")
    text = "convert for this board size; repeatable (default: 19)"
    convert.add_argument("--size", type=int, action="append", metavar="N", help=text)
    compress = action("compress", "round the weights of a KataGo network and pack them into a third of the bytes")
    compress.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write (.bin.xz)")
    join = action("join", "write a sparse network with the values of one and the moves of another")
    join.add_argument("values", type=network_path, metavar="VALUES", help="sparse network (.safetensors)")
    join.add_argument("moves", type=network_path, metavar="MOVES", help="sparse network with the same rows")
    join.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write (.safetensors)")
    tune = action("calibrate", "find and store the fastest settings for a network on this machine", "tune")
    add_value(tune, "--size", 19, "N", "Go: set the board size")
    devices = TABLE["device"].choices
    tune.add_argument("--device", default="auto", choices=devices, help="try only this device (default: any)")
    text = "measure each way for S seconds (default: 3)"
    tune.add_argument("--for", dest="duration", type=float, default=3.0, metavar="S", help=text)
    any_network, katago = "KataGo network, dlshogi network or ONNX file", "KataGo network (.bin.gz, .txt.gz)"
    for child, text in ((info, any_network), (convert, katago), (compress, katago), (tune, any_network)):
        network = partial(network_path, game="go") if text == katago else network_path
        child.add_argument("file", type=network, metavar="NET", help=text)


def run(args: argparse.Namespace) -> int:
    if args.action in ("calibrate", "tune") and str(args.file) in GAMES and not args.file.exists():
        hint = f"to tune parameters of the search, use yomi tune {args.file}"
        raise CliError(f"{args.file}: found a game, expected a network file; {hint}")
    for path in (getattr(args, name, None) for name in ("file", "values", "moves")):
        if path is not None and not is_fast(path):
            check_network(path)
    if (out := getattr(args, "out", None)) is not None:
        check_file(out)
    if args.action in ("info", "calibrate", "tune") and is_fast(args.file):  # that of each game
        device = Options(device=getattr(args, "device", "auto"))
        networks = (Path(named_file(FAST, game, device)) for game in GAMES)
        return max([run(argparse.Namespace(**{**vars(args), "file": path})) for path in networks])
    match args.action:
        case "list":
            list_networks()
        case "info":
            for name, value in facts(args.file):
                echo(f"{name:16} {value}")
        case "import":
            import_network(args.file, args.size or [19])
        case "compress":
            compress_network(args.file, args.out)
        case "join":
            join_networks(args.values, args.moves, args.out)
        case _:
            calibrate(args.file, args.size, args.device, args.duration)
    return 0


def is_fast(path: Path) -> bool:
    return str(path) == FAST and not path.exists()


def list_networks() -> None:
    for network in BUNDLED:
        names = [network.name, *([FAST] if network.path == fast_network(network.game, on_processor=True) else [])]
        echo(f"--net {' or --net '.join(names)}")
        for name, value in (
            ("game", network.game),
            ("for", network.purpose),
            ("default", default_uses(network) or "nowhere"),
            ("architecture", network.architecture),
            ("size", f"{network.path.stat().st_size / 1e6:.1f} MB"),
            ("source", network.source),
            ("file", str(network.path)),
        ):
            echo(f"  {name:13} {value}")
        echo("")
    echo("The name fast chooses the fast network of the game. For your own network use --net FILE.")


def default_uses(network: Bundled) -> str:
    alpha_beta, tree = FOR_ALPHA_BETA.get(network.game), default_network(network.game, on_processor=True)
    here = (
        ("on processors", alpha_beta),
        (f"on processors{', as a tree or policy' if alpha_beta else ''}", tree.name),
        ("on GPUs", default_network(network.game).name),
        ("at levels 1 to 19", FOR_LEVELS.get(network.game)),
    )
    return ", ".join(place for place, file in here if file == network.file)


def facts(path: Path) -> list[tuple[str, str]]:
    from yomi.nets.files import source_digest
    from yomi.nets.katago.file import read_network
    from yomi.nets.load import NetworkKind, open_file
    from yomi.nets.nnue import read_architecture

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
        return rows + _shogi_facts(file)
    if kind is NetworkKind.NNUE:
        architecture = read_architecture(path)
        inputs = f"{architecture.features.rows:,} for each side"
        return [*rows, ("architecture", architecture.name), ("inputs", inputs), ("sha256", source_digest(path))]
    if file.info is not None:
        for name, value in dataclasses.asdict(file.describe()).items():
            rows.append((name.replace("_", " "), str(value)))
    return rows


def _shogi_facts(file: NetworkFile) -> list[tuple[str, str]]:
    from yomi.nets.dlshogi.network import graph_facts

    network, info = file.shogi, file.describe()
    assert network is not None
    tensors = [network.board, *([network.hands] if network.hands else []), network.policy, network.value]
    return [
        ("name", info.name),
        ("game", info.game),
        ("feature set", info.feature_set),
        ("tensors", ", ".join(map(str, tensors))),
        *graph_facts(file.path, network),
        ("sha256", info.source_sha256),
    ]


def count_parameters(part: Any) -> int:
    if hasattr(part, "size") and hasattr(part, "shape"):
        return int(part.size)
    if dataclasses.is_dataclass(part):
        return sum(count_parameters(getattr(part, field.name)) for field in dataclasses.fields(part))
    if isinstance(part, tuple | list):
        return sum(map(count_parameters, part))
    return 0


def import_network(path: Path, sizes: list[int]) -> None:
    from yomi.nets.load import open_file, prepare

    for size in sizes:
        if not 2 <= size <= 19:
            raise CliError(f"--size {size}: expected 2 to 19")
        target, info = prepare(open_file(path), size)
        echo(f"{info.name} for {size}x{size}: {target}")


def compress_network(path: Path, out: Path) -> None:
    from yomi.nets.katago.file import read_network
    from yomi.nets.katago.write import compress

    if not out.name.endswith(".bin.xz"):
        raise CliError(f"--out {out}: expected a name ending in .bin.xz")
    content = compress(read_network(path))
    write_atomically(out, content)
    echo(f"{out}: {len(content):,} bytes of {path.stat().st_size:,}")


def join_networks(values: Path, moves: Path, out: Path) -> None:
    """Write a sparse network with the position values of one network and the move policy of another."""
    from yomi.nets.load import NetworkKind, open_file
    from yomi.nets.sparse import joined, read_sparse, write_sparse

    infos, found = [], []
    for path in (values, moves):
        file = open_file(path)
        if file.kind is not NetworkKind.SPARSE:
            raise NetworkError(f"{path}: {file.kind.value} found, expected a sparse network")
        infos.append(file.describe())
        found.append(read_sparse(path))
    with reraised(NetworkError, NetworkError, f"{moves}: "):
        tensors = joined(*found)
    parts = zip(("values", "moves"), infos, strict=True)
    training = {f"{part}: {name}": text for part, part_info in parts for name, text in part_info.training.items()}
    info = dataclasses.replace(infos[0], name=out.stem, source_file="", source_sha256="", training=training)
    write_atomically(out, write_sparse(tensors, info))
    echo(f"{out}: values of {values.name}, moves of {moves.name}")


def calibrate(path: Path, size: int, device: str, seconds: float) -> None:
    from yomi.engine.calibration import tune
    from yomi.engine.cli.output import format_table, print_facts
    from yomi.engine.evaluators.devices import devices_of
    from yomi.engine.players.setup import save_tuning
    from yomi.nets.load import game_of

    if not 2 <= size <= 19 or seconds <= 0.0:
        raise CliError(f"--size {size}, --for {seconds:g}: expected a size of 2 to 19 and a positive time")
    game = GAMES[game_of(path)]
    options = Options.for_game(game.name)
    options.net, options.device, options.size = str(path), device, size
    size = game.board_size(options)

    if device != "auto":
        devices_of(options)  # an error comes before kernels are compiled
    check_folder(default_cache_dir())
    game.compile(say)
    tuning, rows = tune(options, game, seconds, say)
    target = save_tuning(path, size, tuning)
    print_facts()
    print(format_table(rows))
    echo(f"{game.board_name(options)}: {path.name} is searched with {tuning}\nstored in {target}")
