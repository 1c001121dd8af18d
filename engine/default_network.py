"""Chooses the network: the network that the options name, or the bundled network that suits the device."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.language import tr
from yomi.nets.errors import NetworkError
from yomi.nets.models import BUNDLED, FAST, FOR_ALPHA_BETA, MODELS, bundled, default_network, fast_network
from yomi.settings import did_you_mean

if TYPE_CHECKING:
    from yomi.engine.options import Options

NNUE_FILE = "nn.bin"  # in the folder EvalDir of YaneuraOu and engines like it


def has_network(options: Options) -> bool:
    return options.evaluator in ("auto", "onnx")


def network_file(options: Options, game: str) -> str | None:
    """Return the file of the network that evaluates positions of a game, or None if no network does."""
    if not has_network(options):
        return None
    if options.net is None:
        return str(default_network(game, on_processor=_is_for_own_kernels(options))) if game in MODELS else None
    return named_file(options.net, game, options)


def alpha_beta_file(options: Options, game: str) -> str | None:
    """Return the NNUE evaluation with which a player searches by alpha-beta, or None if it searches a tree.

    Without a named network, alpha-beta is the strongest search on a processor. A limit of `visits` asks for a tree:
    only a tree has visits. Alpha-beta counts nodes, which `playouts` limits.
    """
    if game not in FOR_ALPHA_BETA or not has_network(options) or options.search_engine not in ("auto", "alphabeta"):
        return None
    if options.net is not None:
        named = named_file(options.net, game, options)
        return named if _is_nnue(named) else None
    is_best = options.evaluator == "auto" and options.visits is None and _is_for_own_kernels(options)
    if options.search_engine == "auto" and not is_best:
        return None
    return str(Path(default_network(game)).parent / FOR_ALPHA_BETA[game])


def limit_for_review(options: Options, game: str, nodes: int) -> None:
    """Drop the limit of visits if the player then searches by alpha-beta; use `nodes` if no limit is left."""
    if alpha_beta_file(options.with_values({"visits": None}), game) is not None:
        options.visits = None
        if all(limit is None for limit in (options.playouts, options.seconds, options.depth)):
            options.playouts = nodes


def _is_nnue(path: str) -> bool:
    from yomi.nets.nnue import looks_like_nnue  # imports numpy, which the first answer does not wait for

    with contextlib.suppress(OSError), open(path, "rb") as stream:
        return looks_like_nnue(stream.read(16))
    return False


def named_file(name: str, game: str | None, options: Options | None = None) -> str:
    """Return the file of a network that the user names by file, or by a bundled network's name such as `yomi-go-b6c96`.

    A file, or a folder with an nn.bin, takes precedence. Unknown names are returned unchanged. The name `fast` needs a
    game. Without options the network is for a processor.
    """
    if Path(name).is_file():
        return name
    if Path(name, NNUE_FILE).is_file():
        return str(Path(name, NNUE_FILE))
    if name == FAST and game is not None and game in MODELS:
        return str(fast_network(game, on_processor=options is None or _is_for_own_kernels(options)))
    network = bundled(name)
    return name if network is None else str(network.path)


def is_bundled(name: str) -> bool:
    """Return whether a name may belong to a bundled network."""
    return name == FAST or bundled(name) is not None


def network_fault(name: str, game: str | None, kinds: str = "") -> str | None:
    """Return an error message with close names if no network has this name, otherwise None.

    Without a game, the networks of both games count. `kinds` are the usable file types, for the message.
    """
    if Path(named_file(name, game)).is_file():
        return None
    found = tr("is a folder") if Path(name).is_dir() else tr("no such file")
    names = [] if game is None else [FAST]
    names += [network.name for network in BUNDLED if game in (None, network.game)]
    known, hint = tr(" or ").join(names), did_you_mean(Path(name).name, names)
    if kinds:
        text = tr("{found}; expected a network ({kinds}), or the name {names}", found=found, kinds=kinds, names=known)
    else:
        text = tr("{found}; expected a network's file, or the name {names}", found=found, names=known)
    return text + hint


def network_path(text: str, game: str | None = None) -> Path:
    """Return the file of a network given by name or file. The name `fast` needs a game."""
    return Path(named_file(text, game))


def check_network(path: Path, game: str | None = None) -> None:
    """Raise NetworkError, with similar names, if the network's file does not exist."""
    if fault := network_fault(str(path), game):
        raise NetworkError(f"{path}: {fault}")


def _is_for_own_kernels(options: Options) -> bool:
    """Return whether the options let yomi's own kernels compute the network on a processor, in `auto` or `int16`."""
    from yomi.engine.evaluators.devices import parse_device  # imports numpy, which the first answer does not wait for

    if options.backend not in ("auto", "native") or options.precision not in ("auto", "int16"):
        return False
    return parse_device(options.device).is_cpu


def game_of_network(name: str) -> str | None:
    """Return the game of a network; None for a name without a file, such as `none`. Raises NetworkError."""
    from yomi.nets.load import game_of

    path = Path(named_file(name, None))
    return game_of(path) if path.is_file() else None
