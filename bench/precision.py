"""`bench precision`: how much a lower precision differs from fp32, on positions of games that the network plays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from yomi.engine.default_network import network_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import devices_of
from yomi.engine.evaluators.network import open_network
from yomi.engine.players.precision import compare, record

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Options


def run(options: Options, game: Game[Any, Any], positions: int) -> list[dict[str, Any]]:
    """Compare the options' precision with fp32; auto is the fastest one.

    Raises:
        NetworkError: the network cannot be used.
        EvaluatorError: there is no network, or this machine cannot compute it in that precision.
    """
    net = network_file(options, game.name)
    if net is None:
        raise EvaluatorError(f"evaluator {options.evaluator} has no precisions to compare: expected auto or onnx")
    how = devices_of(options)[0], options.backend, options.batch_size
    network = open_network(game.formats, net, game.board_size(options))
    exact, other = (network.load(*how, precision) for precision in ("fp32", options.precision))
    recorded = record(exact, lambda: game.new_game(options), positions, math.inf)
    agreement = compare(recorded, other)
    return [
        {
            "precision": other.precision,
            "positions": agreement.positions,
            "same_best_move": agreement.same_move,
            "mean_value_error": agreement.value_error,
        }
    ]
