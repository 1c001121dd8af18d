"""The architectures of NNUE files: input sets, layer sizes, and the hashes in the file.

Names follow "features Hx2-h1-h2": H sums for each side's view of the board, then layers of h1, h2 and 1 outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

PADDING = 32
"""Weights of an output are padded to a multiple of this."""
_WORD = (1 << 32) - 1


@dataclass(frozen=True)
class Features:
    """A set of inputs."""

    name: str
    rows: int
    """Number of inputs. It identifies the set: no two sets have the same number."""
    hash: int


FEATURES = (
    Features("K-P", 1710, 0x3F5717FF),
    Features("HalfKP", 125388, 0x5D69D5B8),
    Features("HalfKP_vm", 69660, 0x0B6B1D9A),
    Features("HalfKA1", 138510, 0x5F134CB8),
    Features("HalfKA2", 131949, 0x5F234CB8),
    Features("HalfKA_hm1", 76950, 0x7F134CB8),
    Features("HalfKA_hm2", 73305, 0x7F234CB8),
)
HIDDEN_SIZES = ((32, 32), (8, 64), (8, 96), (16, 32), (16, 64), (8, 32))
"""Known pairs (h1, h2). Some trainers write a fixed text with other sizes into the file."""


@dataclass(frozen=True)
class Architecture:
    """Inputs and sizes of one network."""

    features: Features
    width: int
    """H: sums of the first layer for each view."""
    hidden: tuple[int, int]
    """(h1, h2): outputs of the two following layers."""

    @property
    def name(self) -> str:
        """The usual name, such as "HalfKP 256x2-32-32"."""
        return f"{self.features.name} {self.width}x2-{self.hidden[0]}-{self.hidden[1]}"

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(outputs, inputs) of the three layers after the first."""
        first, second = self.hidden
        return (first, 2 * self.width), (second, first), (1, second)

    @property
    def transformer_hash(self) -> int:
        """Hash of the first layer."""
        return self.features.hash ^ (2 * self.width)

    @property
    def network_hash(self) -> int:
        """Hash of the layers after the first."""
        value = 0xEC42E90D ^ (2 * self.width)
        for number, (outputs, _) in enumerate(self.layers):
            if number:
                value = (value + 0x538D24C7) & _WORD
            value = ((0xCC03DAE4 + outputs) & _WORD) ^ (value >> 1) ^ ((value << 31) & _WORD)
        return value

    @property
    def hash(self) -> int:
        """Hash of the whole network."""
        return self.transformer_hash ^ self.network_hash

    def size(self, text: int) -> int:
        """Return the bytes of the file if its architecture text has `text` bytes."""
        transformer = 2 * self.width * (1 + self.features.rows)
        return 12 + text + 4 + transformer + 4 + sum(4 * out + out * padded(inputs) for out, inputs in self.layers)


def padded(inputs: int) -> int:
    """Return the number of weights in the file for each output of a layer."""
    return -(-inputs // PADDING) * PADDING
