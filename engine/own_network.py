"""Which network plays: the one that the options name, or else the one that comes with yomi and suits the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.evaluators.providers import chooses_cpu
from nets.models import MODELS, default_network

if TYPE_CHECKING:
    from engine.options import Options


def has_network(options: Options) -> bool:
    """Whether a network judges positions."""
    return options.evaluator in ("auto", "onnx")


def network_file(options: Options, game: str) -> str | None:
    """Return the file of the network that judges positions of a game; None if there is none, or no use for one."""
    if not has_network(options):
        return None
    if options.net is None:
        return str(default_network(game, on_processor=_is_for_own_kernels(options))) if game in MODELS else None
    return options.net


def _is_for_own_kernels(options: Options) -> bool:
    """Whether the options leave it to yomi's own kernels to compute a network in integers."""
    return (
        options.backend in ("auto", "native") and options.precision in ("auto", "int16") and chooses_cpu(options.device)
    )
