"""Metadata of networks, stored in ONNX files and in the cache, and feature sets, which are a network's inputs by name.

The kernels that write a feature set document its planes: yomi.native.go.outputs, yomi.native.go.aya,
yomi.native.go.planes, yomi.native.shogi.planes and yomi.native.datasets.packed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from yomi.nets.errors import NetworkError
from yomi.nets.text import parse_json

# Version of the record; a reader refuses newer ones.
METADATA_FORMAT = 1
# Key of the metadata_props entry that contains the record as JSON.
METADATA_KEY = "yomi"
# KataGo's V7 inputs: `spatial` [B, 22, N, N] and `global` [B, 19].
KATAGO_FEATURES = "katago-v7"

# Increase it with every change of the ONNX files that `yomi.nets.katago` writes: cached files of other versions are
# ignored.
KATAGO_CONVERTER_VERSION = 6

BoardSize: TypeAlias = int | tuple[int, int]  # N for an N×N board, (columns, rows) for another board


def sides(size: BoardSize) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def area_of(size: BoardSize) -> int:
    columns, rows = sides(size)
    return columns * rows


def size_name(size: BoardSize) -> str:
    """Return a size for file names and messages, such as 19 or 19x13."""
    return str(size) if isinstance(size, int) else "{}x{}".format(*size)


def recorded_size(size: BoardSize) -> int:
    """Return the value of `NetworkInfo.board_size` for a board: 0 if it is not square."""
    return size if isinstance(size, int) else 0


@dataclass(frozen=True)
class NetworkInfo:
    """Metadata that a player needs to write a network's inputs and to read its outputs."""

    game: str  # go or shogi
    board_size: int  # N for boards of exactly N × N; 0 for boards of any size
    feature_set: str  # name of the inputs, such as `katago-v7`
    name: str  # the network's own name
    # Name without folder of the file that was converted; empty inside a file that was not converted.
    source_file: str
    # Hexadecimal SHA-256 digest of the converted file. It is empty inside a file that was not converted. In that case
    # `yomi.nets.load` uses the name and digest of the ONNX file itself.
    source_sha256: str
    model_version: int  # KataGo's model version, which determines how raw outputs are read
    policy_channels: int  # 1 (ordinary policy) or 2 (ordinary and optimistic policy)
    misc_channels: int  # 4, or 6 with the short-term errors
    # Whether the area planes were trained with multi-stone suicide as legal.
    prefer_pass_alive_under_suicide_rules: bool = False
    meta_input: bool = False  # whether 192 metadata of human-SL networks follow the 19 numbers of `global`
    # Factors of the raw outputs, by the names of `yomi.nets.katago.network.OutputScales`.
    scales: Mapping[str, float] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)  # meaning of each output, as text
    training: Mapping[str, str] = field(default_factory=dict)  # origin of the weights, as text
    converter_version: int = 0  # version of the code that wrote the ONNX file
    format: int = METADATA_FORMAT

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    def to_props(self) -> dict[str, str]:
        return {METADATA_KEY: self.to_json()}

    @classmethod
    def from_json(cls, text: str) -> NetworkInfo:
        """Read metadata from JSON.

        Raises:
            NetworkError: the text is not such a record, or has a newer format.
        """
        # A damaged file can contain another kind of value.
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
        """Read metadata from an ONNX model's metadata_props.

        Raises:
            NetworkError: there is none, or it is broken.
        """
        if METADATA_KEY not in props:
            found = ", ".join(sorted(props)) or "none"
            raise NetworkError(f"network metadata: keys {found} found, expected {METADATA_KEY!r}")
        return cls.from_json(props[METADATA_KEY])


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Check the names and types of a record's fields against `NetworkInfo`, and return the record."""
    types: dict[str, type] = {"str": str, "int": int, "bool": bool}
    checked: dict[str, Any] = {}
    for item in dataclasses.fields(NetworkInfo):
        if item.name not in values:
            if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
                raise NetworkError(f"network metadata: no {item.name!r} found, expected one")
            # Older files lack newer fields, which therefore have defaults.
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


DLSHOGI_DIRECTIONS, ALPHAZERO_DIRECTIONS = 27, 139
# The board itself: pieces by code, 1 to 14 for the side to move and 17 to 30 for the other, and the numbers of pieces
# in both hands, seen from the side to move. Sparse networks read an encoder's rows of it (yomi.nets.sparse).
SHOGI_BOARD = "shogi-board"
# A level n is given to a network as tanh(0.05 n), COSUMI's form of liberties.
LEVEL_SCALE = 0.05


@dataclass(frozen=True)
class FeatureSet:
    """The inputs of a network: planes of bits, planes of small whole numbers (`levels`), and numbers for the whole
    board.
    """

    name: str
    game: str
    bits: int  # planes of zeros and ones, the first ones of the input
    levels: int = 0  # planes of whole numbers from 0 to 255, which follow
    globals: int = 0  # numbers for the whole board
    # Whether the globals are constant planes behind the others instead of an input of their own.
    joined: bool = False
    directions: int = 0  # policy entries for each point; 0: one, and the pass
    symmetric: bool = True  # whether training may turn and mirror the board

    @property
    def planes(self) -> int:
        # channels of the first input
        return self.bits + self.levels + (self.globals if self.joined else 0)

    @property
    def extras(self) -> int:
        # channels of the second input; 0 if there is none
        return 0 if self.joined else self.globals

    def policy_size(self, size: int) -> int:
        return self.directions * size**2 if self.directions else size**2 + 1


FEATURE_SETS = {
    row.name: row
    for row in (
        FeatureSet("go-stones-2", "go", 2),
        FeatureSet("cosumi-3", "go", 2, levels=1),
        FeatureSet("aya-49", "go", 49),
        FeatureSet("aya-50", "go", 50),
        FeatureSet("katago-v7", "go", 22, globals=19),
        FeatureSet("alphazero-shogi-45", "shogi", 28, globals=17, joined=True, directions=ALPHAZERO_DIRECTIONS),
        FeatureSet("dlshogi-62-57", "shogi", 62, globals=57, directions=DLSHOGI_DIRECTIONS),
        FeatureSet("dlshogi-62-119", "shogi", 62, globals=119, directions=DLSHOGI_DIRECTIONS),
        FeatureSet(SHOGI_BOARD, "shogi", 0, levels=1, globals=14, directions=DLSHOGI_DIRECTIONS),
    )
}


def feature_set(name: str) -> FeatureSet:
    """Return a feature set by name.

    Raises:
        NetworkError: the name is unknown.
    """
    if name not in FEATURE_SETS:
        raise NetworkError(f"feature set {name!r} found, expected one of {', '.join(FEATURE_SETS)}")
    return FEATURE_SETS[name]
