"""A KataGo network in a third of its bytes: weights rounded to few digits, which a general compressor then packs.

The result is a KataGo network file like any other, of float32. Each layer has a step, a power of two; its weights
become multiples of it, so that the lower bits of the floats are zero and the upper ones take few values. xz, told that
numbers are four bytes long, needs little more for them than their entropy.
"""

from __future__ import annotations

import dataclasses
import lzma
import math
from typing import Any

import numpy as np

from yomi.nets.katago.network import Conv, FloatArray, KataGoNetwork, MatMul
from yomi.nets.katago.write import write_network

STEPS = 40
"""Steps that the root mean square of a layer's weights has, within a factor of the square root of two."""
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "pb": 2, "dict_size": 1 << 20}]


def compress(network: KataGoNetwork) -> bytes:
    """Return the content of a file `.bin.xz` of the network with the weights of its blocks rounded.

    What stands before and behind the blocks has few weights, and rounding those would cost more than all others.
    """
    rounded = dataclasses.replace(
        network, trunk=dataclasses.replace(network.trunk, blocks=_rounded(network.trunk.blocks))
    )
    return lzma.compress(write_network(rounded), lzma.FORMAT_XZ, filters=_FILTERS)


def _rounded(part: Any) -> Any:
    """Return a part of a network with the weights of its convolutions and matrices rounded; all else as it is."""
    if isinstance(part, Conv):
        return dataclasses.replace(part, weights=round_weights(part.weights))
    if isinstance(part, MatMul):
        return dataclasses.replace(part, weights=round_weights(part.weights.T).T)
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        names = [each.name for each in dataclasses.fields(part)]
        return dataclasses.replace(part, **{name: _rounded(getattr(part, name)) for name in names})
    return tuple(map(_rounded, part)) if isinstance(part, tuple) else part


def round_weights(weights: FloatArray) -> FloatArray:
    """Return the weights of a layer, [out, ...], as multiples of a power of two.

    The sum of each channel's weights stays as it is, but for less than a step: inputs are seldom negative, and errors
    that add up would move the output by as much at every point. The weights that pay for it lie nearest to the middle
    between two multiples.
    """
    rows = weights.reshape(len(weights), -1).astype(np.float64)
    size = max(float(np.sqrt(np.square(rows).mean())), float(np.finfo(np.float32).tiny))
    step = 2.0 ** round(math.log2(size / STEPS))
    exact = rows / step
    whole = np.round(exact)
    for row, missing in zip(whole, exact - whole, strict=True):
        count = round(float(missing.sum()))
        row[np.argsort(-np.sign(count) * missing)[: abs(count)]] += np.sign(count)
    return np.asarray(whole * step, dtype=np.float32).reshape(weights.shape)
