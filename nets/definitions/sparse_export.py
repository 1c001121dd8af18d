"""Convert a trained sparse network to integers of 8 and 16 bits and back. Bounds prove that no position overflows.

yomi.native.sparse.network adds rows of the first layer in 16 bits, and products with its outputs (0 to 4096) in 32
bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from yomi.nets.definitions.base import to_numpy
from yomi.nets.definitions.onnx_export import describe_outputs
from yomi.nets.definitions.sparse import MAX_ROWS, MOVE_ONE, SparseNetwork, SparseShogi
from yomi.nets.errors import NetworkError
from yomi.nets.sparse.file import ONE, SQUARED_ONE, with_rows, write_sparse

Array = npt.NDArray[Any]

BYTE, SHORT, LONG = 2**7 - 1, 2**15 - 1, 2**31 - 1
MAX_NORM = LONG // SQUARED_ONE
"""Maximum sum of |weight| over the integer weights of one product. The first layer's outputs are at most SQUARED_ONE,
so the product fits 32 bits.
"""
MAX_BLUR = 0.01
"""Maximum error, as root mean square, that rounding may add to a product with outputs of 1. It adds 0.008 to sums by
ONE, and 0.05 to a logit of five rows by MOVE_ONE and 128 outputs of 1.
"""


def to_tensors(network: SparseNetwork) -> dict[str, Array]:
    """Return the tensors of a network's file (yomi.nets.sparse.file), named as the fields of native's SparseNetwork.

    Raises:
        NetworkError: weights exceed the range, or rounding would lose too much.
    """
    hidden, hidden_scale = _hidden(to_numpy(network.hidden.weight))
    parts, units = len(network.tables), network.moves.shape[1]
    if parts * BYTE * units > MAX_NORM:
        raise NetworkError(f"{units} units for moves found, expected at most {MAX_NORM // (parts * BYTE)}")
    return {
        "rows": _rounded("rows of the first layer", to_numpy(network.rows), ONE, BYTE).astype(np.int8),
        "bias": _rounded("its biases", to_numpy(network.bias), ONE, SHORT - MAX_ROWS * BYTE).astype(np.int16),
        "direct": to_numpy(network.direct)[:, 0],
        "hidden": hidden,
        "hidden_bias": to_numpy(network.hidden.bias),
        "last": np.ascontiguousarray(to_numpy(network.last.weight).T),
        "last_bias": to_numpy(network.last.bias),
        "out": np.concatenate([to_numpy(network.out.weight)[0], to_numpy(network.out.bias)]),
        "moves": _rounded("rows of moves", to_numpy(network.moves), MOVE_ONE, BYTE).astype(np.int8),
        "move_bias": to_numpy(network.move_bias),
        "scales": np.array([hidden_scale, 1.0 / (MOVE_ONE * SQUARED_ONE)], np.float32),
    }


def export_sparse(network: SparseNetwork, name: str, training: Mapping[str, str]) -> bytes:
    """Return the content of a network's file. `training` describes the origin of the weights.

    Raises:
        NetworkError: as `to_tensors`.
    """
    return write_sparse(to_tensors(network), describe_outputs(network, name, training, ("policy", "value_logit"), {}))


def from_sparse(tensors: Mapping[str, Array]) -> SparseShogi:
    """Return the network of a file's tensors. Its weights are exact except for rounding.

    Raises:
        NetworkError: the tensors are for another game.
    """
    width, value = tensors["rows"].shape[1], tensors["hidden"].shape[1]
    network = SparseShogi(value, width - value)
    hidden_scale, moves_scale = (float(scale) * SQUARED_ONE for scale in tensors["scales"])
    tensors = with_rows(tensors, SparseShogi.INPUTS)
    values = {
        "rows": tensors["rows"] / ONE,
        "bias": tensors["bias"] / ONE,
        "direct": tensors["direct"][:, None],
        "hidden.weight": tensors["hidden"] * hidden_scale,
        "hidden.bias": tensors["hidden_bias"],
        "last.weight": tensors["last"].T,
        "last.bias": tensors["last_bias"],
        "out.weight": tensors["out"][None, :-1],
        "out.bias": tensors["out"][-1:],
        "moves": tensors["moves"] * moves_scale,
        "move_bias": tensors["move_bias"],
    }
    own = network.state_dict()
    for name, array in values.items():
        if own[name].shape != array.shape:
            raise NetworkError(f"{name} {array.shape} found, expected {tuple(own[name].shape)} in shogi")
    network.load_state_dict({name: torch.from_numpy(np.array(array, np.float32)) for name, array in values.items()})
    return network


def _rounded(name: str, weights: Array, one: int, most: int) -> Array:
    """Return weights as integers, with `one` for 1.

    Raises:
        NetworkError: a weight is greater than `most`, or not finite.
    """
    rounded: Array = np.rint(weights * one)
    if not (np.abs(rounded) <= most).all():
        raise NetworkError(f"{name} of up to {np.abs(weights).max():g} found, expected at most {most / one:g}")
    return rounded


def _hidden(weights: Array) -> tuple[Array, float]:
    """Return the second layer in 16 bits, and the integer for 1 in its products with outputs."""
    magnitudes = np.abs(weights)
    greatest, norm = magnitudes.max(), magnitudes.sum(1).max()
    if not np.isfinite(norm):
        raise NetworkError("the layer behind the first: numbers that are not finite found")
    bounds = [(greatest, SHORT), (norm, MAX_NORM - 0.5 * weights.shape[1])]
    factor = min([most / number for number, most in bounds if number > 0.0], default=1.0)
    blur = np.sqrt(weights.shape[1] / 12.0) / factor
    if blur > MAX_BLUR:
        raise NetworkError(
            f"the layer behind the first: weights of up to {greatest:g} found, of which rounding to 16 bits leaves "
            f"products {blur:.3f} off, expected at most {MAX_BLUR:g}"
        )
    return np.rint(weights * factor).astype(np.int16), 1.0 / (factor * SQUARED_ONE)
