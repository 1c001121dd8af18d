"""The network that comes with yomi plays where the options name neither another nor an evaluator without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nets.models import default_network

if TYPE_CHECKING:
    from engine.options import Options


def fill_in(options: Options, game: str) -> None:
    """Name yomi's own network in the options, where they leave it open and there is one."""
    if options.net is None and options.evaluator in ("auto", "onnx"):
        network = default_network(game)
        options.net = str(network) if network is not None else None


def is_own(net: str | None, game: str) -> bool:
    """Whether a network is the one that `fill_in` names."""
    return net is not None and net == str(default_network(game))
