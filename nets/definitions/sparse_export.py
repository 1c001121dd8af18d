"""A trained sparse network as integers of 16 bits, which no position can make overflow: each bound is proved here.

And back: a network from such a file, to be trained further.

native.sparse.network adds up rows of the first layer in 16 bits, and products with its outputs, 0 to 4096, in 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nets.definitions.base import to_numpy
from nets.definitions.onnx_export import describe_outputs
from nets.definitions.sparse import MAX_ROWS, SparseNetwork, SparseShogi
from nets.errors import NetworkError
from nets.sparse.file import ONE, SQUARED_ONE, write_sparse

Array = npt.NDArray[Any]

SHORT, LONG = 2**15 - 1, 2**31 - 1
MAX_NORM = LONG // SQUARED_ONE
"""Magnitudes, added up, of integers whose product with outputs cannot overflow."""
MAX_BLUR = 0.01
"""What rounding may add to a product with outputs that are all 1: root mean square. It adds 0.004 to sums by ONE."""


def to_tensors(network: SparseNetwork) -> dict[str, Array]:
    """Return the tensors of a network's file (nets.sparse.file), named as the fields of native's SparseNetwork.

    Raises:
        NetworkError: its weights do not fit, or rounding would lose too much of them.
    """
    hidden, hidden_scale = _hidden(to_numpy(network.hidden.weight))
    moves, moves_scale = _moves(to_numpy(network.moves), network.tables)
    rows, bias = _first_layer(to_numpy(network.rows), to_numpy(network.bias))
    return {
        "rows": rows,
        "bias": bias,
        "direct": to_numpy(network.direct)[:, 0],
        "hidden": hidden,
        "hidden_bias": to_numpy(network.hidden.bias),
        "last": np.ascontiguousarray(to_numpy(network.last.weight).T),
        "last_bias": to_numpy(network.last.bias),
        "out": np.concatenate([to_numpy(network.out.weight)[0], to_numpy(network.out.bias)]),
        "moves": moves,
        "move_bias": to_numpy(network.move_bias),
        "scales": np.array([hidden_scale, moves_scale], np.float32),
    }


def export_sparse(network: SparseNetwork, name: str, training: Mapping[str, str]) -> bytes:
    """Return the content of a network's file; `training` says in words where the weights come from.

    Raises:
        NetworkError: see `to_tensors`.
    """
    return write_sparse(to_tensors(network), describe_outputs(network, name, training, ("policy", "value_logit"), {}))


def from_sparse(tensors: Mapping[str, Array]) -> SparseShogi:
    """Return the network of a file's tensors, with the weights that they are rounded from, but for the rounding.

    Raises:
        NetworkError: they are of another game.
    """
    width, value = tensors["rows"].shape[1], tensors["hidden"].shape[1]
    network = SparseShogi(value, width - value)
    hidden_scale, moves_scale = (float(scale) * SQUARED_ONE for scale in tensors["scales"])
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


def _first_layer(rows: Array, bias: Array) -> tuple[Array, Array]:
    """Return rows and bias by ONE: the 40 largest rows of a unit, whichever they are, and its bias fit 16 bits."""
    rounded, added = np.rint(rows * ONE), np.rint(bias * ONE)
    magnitudes = np.abs(rounded)
    largest = np.partition(magnitudes, max(0, len(rows) - MAX_ROWS), axis=0)[-MAX_ROWS:].sum(0) + np.abs(added)
    if not (largest <= SHORT).all():
        raise NetworkError(
            f"the first layer: {MAX_ROWS} rows and a bias of up to {largest.max() / ONE:g} found, "
            f"expected at most {SHORT / ONE:g} together"
        )
    return rounded.astype(np.int16), added.astype(np.int16)


def _hidden(weights: Array) -> tuple[Array, float]:
    """Return the layer behind the first, and what 1 in its products is."""
    magnitudes = np.abs(weights)
    bounds = [(magnitudes.max(), SHORT), (magnitudes.sum(1).max(), MAX_NORM - 0.5 * weights.shape[1])]
    return _rounded("the layer behind the first", weights, bounds, 1)


def _moves(weights: Array, tables: tuple[int, ...]) -> tuple[Array, float]:
    """Return the tables of moves: sums of one row of each fit 16 bits, and their products with outputs 32."""
    magnitudes = np.split(np.abs(weights), np.cumsum(tables)[:-1])
    greatest = sum(table.max(0) for table in magnitudes).max()
    norm = sum(table.sum(1).max() for table in magnitudes)
    rounding = 0.5 * len(tables)
    bounds = [(greatest, SHORT - rounding), (norm, MAX_NORM - rounding * weights.shape[1])]
    return _rounded("the tables of moves", weights, bounds, len(tables))


def _rounded(name: str, weights: Array, bounds: list[tuple[float, float]], rows: int) -> tuple[Array, float]:
    """Return weights as integers, and what 1 in their products with outputs is.

    Args:
        name: of the weights.
        weights: floats.
        bounds: numbers that grow with the weights, and how large each may become; half a unit of rounding is left out.
        rows: that are added up before they are multiplied.
    """
    if not np.isfinite(weights).all():
        raise NetworkError(f"{name}: numbers that are not finite found")
    factor = min([most / number for number, most in bounds if number > 0.0], default=1.0)
    blur = np.sqrt(rows * weights.shape[1] / 12.0) / factor
    if blur > MAX_BLUR:
        raise NetworkError(
            f"{name}: weights of up to {np.abs(weights).max():g} found, of which rounding to 16 bits leaves products "
            f"{blur:.3f} off, expected at most {MAX_BLUR:g}"
        )
    return np.rint(weights * factor).astype(np.int16), 1.0 / (factor * SQUARED_ONE)
