"""Choose the network: the network that the options name, or the bundled network that suits the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.option_row import did_you_mean
from yomi.nets.errors import NetworkError
from yomi.nets.models import BUNDLED, FAST, MODELS, bundled, default_network, fast_network

if TYPE_CHECKING:
    from yomi.engine.options import Options


def has_network(options: Options) -> bool:
    """Whether a network evaluates positions."""
    return options.evaluator in ("auto", "onnx")


def network_file(options: Options, game: str) -> str | None:
    """Return the file of the network that evaluates positions of a game, or None if no network does."""
    if not has_network(options):
        return None
    if options.net is None:
        return str(default_network(game, on_processor=_is_for_own_kernels(options))) if game in MODELS else None
    return named_file(options.net, game, options)


def named_file(name: str, game: str | None, options: Options | None = None) -> str:
    """Return the file of a network that the user names by file or as a bundled network such as `yomi-go-b6c96` or
    `fast`.

    A file in the current folder takes precedence. Other names are returned unchanged. Without a game the name `fast` is
    unknown; without options the network is for a processor.
    """
    if Path(name).is_file():
        return name
    if name == FAST and game is not None and game in MODELS:
        return str(fast_network(game, on_processor=options is None or _is_for_own_kernels(options)))
    network = bundled(name)
    return name if network is None else str(network.path)


def is_bundled(name: str) -> bool:
    """Whether a name can be that of a bundled network."""
    return name == FAST or bundled(name) is not None


def network_fault(name: str, game: str | None, kinds: str = "") -> str | None:
    """Return an error message with close names if no network has this name, otherwise None.

    Without a game networks of both games have it. `kinds` are the usable file types, for the message.
    """
    if Path(named_file(name, game)).is_file():
        return None
    found = "is a folder" if Path(name).is_dir() else "no such file"
    names = [] if game is None else [FAST]
    names += [network.name for network in BUNDLED if game in (None, network.game)]
    files = f" ({kinds})" if kinds else "'s file"
    return f"{found}; expected a network{files}, or the name {' or '.join(names)}{did_you_mean(Path(name).name, names)}"


def network_path(text: str, game: str | None = None) -> Path:
    """Return the file of a network by name or file. Without a game the name `fast` is unknown."""
    return Path(named_file(text, game))


def check_network(path: Path, game: str | None = None) -> None:
    """Raise NetworkError, with close names, if the network's file does not exist."""
    if fault := network_fault(str(path), game):
        raise NetworkError(f"{path}: {fault}")


def _is_for_own_kernels(options: Options) -> bool:
    """Whether yomi's own kernels compute the network in integers."""
    from yomi.engine.evaluators.providers import chooses_cpu  # imports numpy, which the first answer does not wait for

    return (
        options.backend in ("auto", "native") and options.precision in ("auto", "int16") and chooses_cpu(options.device)
    )
