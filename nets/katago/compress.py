"""Compress a KataGo network to a third of its size: weights are rounded to few digits, then packed by xz.

The result is a KataGo network file of float32 like any other. Each layer has a step, a power of two, and its weights
become multiples of it. So the lower bits of the floats are zero, and the upper bits take few values. xz, configured for
four-byte numbers, then needs little more than the weights' entropy.
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
"""Root mean square of a layer's weights, in steps, within a factor of the square root of two."""
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "pb": 2, "dict_size": 1 << 20}]


def compress(network: KataGoNetwork) -> bytes:
    """Return the content of a `.bin.xz` file of the network with rounded block weights.

    The parts before and after the blocks have few weights, and rounding those would cost more accuracy than all others.
    """
    rounded = dataclasses.replace(
        network, trunk=dataclasses.replace(network.trunk, blocks=_rounded(network.trunk.blocks))
    )
    return lzma.compress(write_network(rounded), lzma.FORMAT_XZ, filters=_FILTERS)


def _rounded(part: Any) -> Any:
    """Return a part of a network with rounded weights of convolutions and matrices."""
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

    The sum of each channel's weights stays the same within one step. Inputs are seldom negative, so errors of one sign
    would shift the output at every point. The weights nearest to the middle between two multiples are rounded the other
    way for this.
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
