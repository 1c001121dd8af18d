"""The fastest settings of a network on this machine: `yomi net calibrate` writes them, unset options take them.

One file for each network, board size and machine, in the folder `tuning` of the cache.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import logging
from dataclasses import dataclass
from pathlib import Path

from yomi.engine.default_network import network_file
from yomi.engine.machine import nvidia_devices, package_versions, processor_name, usable_cores
from yomi.engine.options import TABLE, OptionError, Options, Value
from yomi.nets.errors import NetworkError, one_line
from yomi.nets.files import default_cache_dir, known_digest, write_atomically
from yomi.nets.text import parse_json

_log = logging.getLogger("yomi.networks")

TUNED = ("device", "backend", "precision", "batch_size", "workers", "batches_in_flight")
"""The options that are tuned. They are left open by their defaults."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The fastest way to search with a network."""

    choice: dict[str, Value]
    """Value of each of TUNED."""
    evaluations_per_second: float
    """Of the search, when it was tuned."""

    def __str__(self) -> str:
        """Return the choice as flags, and the speed."""
        flags = " ".join(f"{TABLE[name].flag} {TABLE[name].format(value)}" for name, value in self.choice.items())
        return f"{flags} ({self.evaluations_per_second:,.0f} evaluations/s)"


def tuned(options: Options, game: str, size: int) -> Options:
    """Return the options with what was tuned in place of what they leave open; themselves where nothing was.

    A choice belongs together, so that it counts only where all of TUNED are left open.

    Args:
        options: those that the user gave.
        game: go or shogi.
        size: board size (9 for shogi).
    """
    net = network_file(options, game)
    if net is None or any(options.get(name) != TABLE[name].default for name in TUNED):
        return options
    tuning = load(Path(net), size)
    if tuning is None:
        return options
    return dataclasses.replace(options, **tuning.choice)  # type: ignore[arg-type]


def load(net: Path, size: int) -> Tuning | None:
    """Return what is known of a network on this machine, or None."""
    path, text = net, ""
    try:
        path = _file(net, size)
        text = path.read_text(encoding="utf-8")
        data = parse_json(text)
        choice = {name: TABLE[name].check(data["choice"][name]) for name in TUNED}
        return Tuning(choice, float(data["evaluations_per_second"]))
    except (FileNotFoundError, NetworkError):  # never tuned, or no such network, which its loading will say
        return None
    except (OSError, ValueError, KeyError, TypeError, OptionError) as error:
        _warn_once(path, text, one_line(str(error)))
        return None


@functools.cache
def _warn_once(path: Path, text: str, error: str) -> None:
    """Say why a file with this text cannot be used, but once: players ask for what is tuned at every move."""
    _log.warning("%s cannot be used (%s): expected what yomi net calibrate writes", path, error)


def save(net: Path, size: int, tuning: Tuning) -> Path:
    """Keep a choice for this machine and return the file's path.

    Raises:
        OSError: it cannot be written.
    """
    path = _file(net, size)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"network": net.name, "board_size": size, "machine": machine(), **dataclasses.asdict(tuning)}
    write_atomically(path, (json.dumps(data, indent=1) + "\n").encode())
    return path


@functools.cache
def machine() -> dict[str, object]:
    """Return what a choice depends on besides the network."""
    return {
        "processor": processor_name(),
        "cores": usable_cores(),
        "gpus": nvidia_devices(),
        "packages": package_versions(),
    }


def _file(net: Path, size: int) -> Path:
    network = known_digest(net)
    digest = hashlib.sha256(json.dumps([network, size, machine()]).encode()).hexdigest()
    return default_cache_dir() / "tuning" / f"{digest[:32]}.json"
