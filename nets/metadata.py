"""Metadata of a network: one record, written into ONNX files and beside cached files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yomi.nets.errors import NetworkError
from yomi.nets.text import parse_json

METADATA_FORMAT = 1
"""Version of the record; a reader refuses newer ones."""
METADATA_KEY = "yomi"
"""Key of the metadata_props entry that contains the record as JSON."""
KATAGO_FEATURES = "katago-v7"
"""KataGo's V7 inputs: `spatial` [B, 22, N, N] and `global` [B, 19]."""

KATAGO_CONVERTER_VERSION = 5
"""Increase it with every change of the ONNX files that `yomi.nets.katago` writes: cached files of other versions are
ignored.
"""


@dataclass(frozen=True)
class NetworkInfo:
    """Everything that a player needs to write a network's inputs and read its outputs."""

    game: str
    """go or shogi"""
    board_size: int
    """N for boards of exactly N × N; 0 for boards of any size."""
    feature_set: str
    """Name of the inputs, such as `katago-v7`."""
    name: str
    """The network's own name."""
    source_file: str
    """Name without folder of the file that was converted; empty inside a file that was not converted."""
    source_sha256: str
    """Hexadecimal SHA-256 digest of the converted file. It is empty inside a file that was not converted. In that case
    `yomi.nets.load` uses the name and digest of the ONNX file itself."""
    model_version: int
    """KataGo's model version, which determines how raw outputs are read."""
    policy_channels: int
    """1 (ordinary policy) or 2 (ordinary and optimistic policy)."""
    misc_channels: int
    """4, or 6 with the short-term errors."""
    prefer_pass_alive_under_suicide_rules: bool = False
    """Whether the area planes were trained with multi-stone suicide as legal."""
    meta_input: bool = False
    """Whether there is an input `meta` [B, 192]."""
    scales: Mapping[str, float] = field(default_factory=dict)
    """Factors of the raw outputs, by the names of `yomi.nets.katago.network.OutputScales`."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Meaning of each output, as text."""
    training: Mapping[str, str] = field(default_factory=dict)
    """Origin of the weights, as text."""
    converter_version: int = 0
    """Version of the code that wrote the ONNX file."""
    format: int = METADATA_FORMAT

    def to_json(self) -> str:
        """Return the record as one line of JSON."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    def to_props(self) -> dict[str, str]:
        """Return the record as the entries of an ONNX model's metadata_props."""
        return {METADATA_KEY: self.to_json()}

    @classmethod
    def from_json(cls, text: str) -> NetworkInfo:
        """Read a record.

        Raises:
            NetworkError: the text is not such a record, or has a newer format.
        """
        if not isinstance(text, str):
            raise NetworkError(f"network metadata: {type(text).__name__} found, expected a text")
        try:
            values = parse_json(text)
        except ValueError as error:
            raise NetworkError(f"network metadata: broken JSON ({error})") from None
        if not isinstance(values, dict):
            raise NetworkError(f"network metadata: {type(values).__name__} found, expected an object")
        if values.get("format") != METADATA_FORMAT:
            raise NetworkError(f"network metadata: format {values.get('format')!r} found, expected {METADATA_FORMAT}")
        return cls(**_checked(values))

    @classmethod
    def from_props(cls, props: Mapping[str, str]) -> NetworkInfo:
        """Read the record in an ONNX model's metadata_props.

        Raises:
            NetworkError: there is none, or it is broken.
        """
        if METADATA_KEY not in props:
            found = ", ".join(sorted(props)) or "none"
            raise NetworkError(f"network metadata: keys {found} found, expected {METADATA_KEY!r}")
        return cls.from_json(props[METADATA_KEY])


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Check names and types of a record's fields against `NetworkInfo`."""
    types: dict[str, type] = {"str": str, "int": int, "bool": bool}
    checked: dict[str, Any] = {}
    for item in dataclasses.fields(NetworkInfo):
        if item.name not in values:
            if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
                raise NetworkError(f"network metadata: no {item.name!r} found, expected one")
            continue
        value: Any = values[item.name]
        expected = types.get(str(item.type), dict)
        if type(value) is not expected:
            raise NetworkError(f"network metadata: {item.name!r} is {value!r}, expected {expected.__name__}")
        checked[item.name] = value
    scales = checked.get("scales", {})
    if not all(type(number) in (int, float) for number in scales.values()):
        raise NetworkError(f"network metadata: scales {scales!r} found, expected numbers")
    return checked
