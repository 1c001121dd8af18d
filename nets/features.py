"""The feature sets: the inputs of networks by name, and their form in data sets.

A position consists of planes of bits, planes of small whole numbers (`levels`) and numbers for the whole board
(`globals`). The meaning of each plane is documented in the kernels that write it (yomi.native.go.stones,
yomi.native.go.aya, yomi.native.go.planes, yomi.native.shogi.planes, yomi.native.datasets.packed).
"""

from __future__ import annotations

from dataclasses import dataclass

from yomi.nets.errors import NetworkError

DLSHOGI_DIRECTIONS, ALPHAZERO_DIRECTIONS = 27, 139
SHOGI_BOARD = "shogi-board"
"""The board itself: pieces by code, 1 to 14 for the side to move and 17 to 30 for the other, and the numbers of pieces
in both hands, seen from the side to move. Sparse networks read an encoder's rows of it (yomi.nets.data.sparse).
"""
LEVEL_SCALE = 0.05
"""A level n is given to a network as tanh(0.05 n), COSUMI's form of liberties."""


@dataclass(frozen=True)
class FeatureSet:
    """The inputs of a network."""

    name: str
    game: str
    bits: int
    """Planes of zeros and ones, the first ones of the input."""
    levels: int = 0
    """Planes of whole numbers from 0 to 255, which follow."""
    globals: int = 0
    """Numbers for the whole board."""
    joined: bool = False
    """Whether the globals are constant planes behind the others instead of an input of their own."""
    directions: int = 0
    """Policy entries for each point; 0: one, and the pass."""

    @property
    def planes(self) -> int:
        """Channels of the first input."""
        return self.bits + self.levels + (self.globals if self.joined else 0)

    @property
    def extras(self) -> int:
        """Channels of the second input; 0 if there is none."""
        return 0 if self.joined else self.globals

    def policy_size(self, size: int) -> int:
        """Return the number of policy entries for board size `size`."""
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
