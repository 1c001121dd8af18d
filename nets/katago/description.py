"""The metadata of a KataGo network file, without the parts that a conversion needs."""

from __future__ import annotations

import dataclasses

from yomi.nets.katago.network import KataGoNetwork
from yomi.nets.metadata import KATAGO_CONVERTER_VERSION, KATAGO_FEATURES, NetworkInfo

_OUTPUTS = {
    "policy": "[B, policy_channels, N * N + 1] logits, row by row from the top, pass last; ordinary, then optimistic",
    "value": "[B, 3] logits: the side to move wins, loses, no result",
    "misc": "[B, misc_channels] raw: score mean, score stdev, lead, variance time, short-term value and score errors",
    "ownership": "[B, N * N] before tanh, positive for the side to move",
}


def describe(network: KataGoNetwork, board_size: int, source_file: str, source_sha256: str) -> NetworkInfo:
    """Return the metadata of a network prepared for boards of `board_size`."""
    return NetworkInfo(
        game="go",
        board_size=board_size,
        feature_set=KATAGO_FEATURES,
        name=network.name,
        source_file=source_file,
        source_sha256=source_sha256,
        model_version=network.version,
        policy_channels=network.policy_channels,
        misc_channels=network.misc_channels,
        prefer_pass_alive_under_suicide_rules=network.prefer_pass_alive_under_suicide_rules,
        scales=dataclasses.asdict(network.scales),
        outputs=_OUTPUTS,
        training={"source": "KataGo network file"},
        converter_version=KATAGO_CONVERTER_VERSION,
    )
