"""All networks by name, as a configuration names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nets.definitions.aya import AyaPolicy, AyaValue
from nets.definitions.base import Network, check_options
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
    check_options(f"network {kind}", NETWORKS[kind], options)
    return NETWORKS[kind](**options)
