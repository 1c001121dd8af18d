"""The network that comes with yomi plays where the options name neither another nor an evaluator without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nets.models import default_network

if TYPE_CHECKING:
    from engine.options import Options


def fill_in(options: Options, game: str) -> None:
    """Name yomi's own network in the options, where they leave it open."""
    if options.net is None and options.evaluator in ("auto", "onnx"):
        options.net = str(default_network(game))


def is_own(net: str | None, game: str) -> bool:
    """Whether a network is the one that `fill_in` names."""
    return net is not None and net == str(default_network(game))
