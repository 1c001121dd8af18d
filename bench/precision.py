"""`bench precision`: how far fewer bits are from fp32, on positions of games that the network plays with itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from engine.evaluators.base import EvaluatorError
from engine.evaluators.devices import choose_devices
from engine.evaluators.load import load
from engine.go.networks import FORMATS as GO
from engine.go.players.setup import go_sampling
from engine.go.rules import PRESETS
from engine.own_network import network_file
from engine.players.precision import Agreement, compare, record
from engine.shogi.networks import FORMATS as SHOGI
from engine.shogi.players.setup import shogi_sampling
from nets.dlshogi.network import SIDE

if TYPE_CHECKING:
    from engine.options import Options


def run(options: Options, game: str, positions: int) -> list[dict[str, Any]]:
    """Compare the precision that the options name, the fastest one for auto, with fp32.

    Raises:
        NetworkError: the network cannot be used.
        EvaluatorError: there is none, or it cannot be computed so here.
    """
    net = network_file(options, game)
    if net is None:
        raise EvaluatorError(f"evaluator {options.evaluator} has no precisions to compare: expected auto or onnx")
    how = choose_devices(options)[0], options.backend, options.batch_size
    size = options.size
    if game == "shogi":
        exact = load(SHOGI, net, SIDE, *how, "fp32")
        recorded = record(exact, shogi_sampling(exact), positions, math.inf)
        other = load(SHOGI, net, SIDE, *how, options.precision)
        return [_row(other.precision, compare(recorded, other))]
    first = load(GO, net, size, *how, "fp32")
    recorded = record(first, go_sampling(size, PRESETS["tromp-taylor"], first), positions, math.inf)
    second = load(GO, net, size, *how, options.precision)
    return [_row(second.precision, compare(recorded, second))]


def _row(precision: str, agreement: Agreement) -> dict[str, Any]:
    return {
        "precision": precision,
        "positions": agreement.positions,
        "same_best_move": agreement.same_move,
        "mean_value_error": agreement.value_error,
    }
