"""All networks by name, as a configuration names them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from nets.definitions.aya import AyaPolicy, AyaValue
from nets.definitions.base import Network
from nets.definitions.cosumi import ScoreResidual, ScoreStack
from nets.definitions.go import GoNetwork
from nets.definitions.shogi import AlphaZeroShogi, DlshogiResNet
from nets.errors import NetworkError

NETWORKS: dict[str, type[Network]] = {
    "alphazero-shogi": AlphaZeroShogi,
    "aya-policy": AyaPolicy,
    "aya-value": AyaValue,
    "cosumi-residual": ScoreResidual,
    "cosumi-stack": ScoreStack,
    "dlshogi-resnet": DlshogiResNet,
    "go": GoNetwork,
}


def make(kind: str, options: Mapping[str, Any]) -> Network:
    """Return a new network with random weights (from PyTorch's generator).

    Args:
        kind: a name in NETWORKS.
        options: arguments of its class.

    Raises:
        NetworkError: there is no such network, option or value.
    """
    if kind not in NETWORKS:
        raise NetworkError(f"network {kind!r} found, expected one of {', '.join(NETWORKS)}")
    known = inspect.signature(NETWORKS[kind]).parameters
    for name, value in options.items():
        if name not in known:
            raise NetworkError(f"network {kind}: option {name!r} found, expected one of {', '.join(known)}")
        default = known[name].default
        if not _same_kind(value, default):
            raise NetworkError(f"network {kind}: {name} = {value!r} found, expected a value such as {default!r}")
    return NETWORKS[kind](**options)


def _same_kind(value: Any, default: Any) -> bool:
    if isinstance(default, tuple):
        return isinstance(value, list | tuple) and all(type(item) is int for item in value)
    if isinstance(default, float):
        return type(value) in (int, float)
    return type(value) is type(default) and (not isinstance(value, int) or value > 0)
