"""How networks agree with fp32 in 8 bits of fixed scale, TensorRT's kind: `python -m tests.eight_bits NET`.

onnxruntime's quantizer finds the scales in games that the network plays, and computes the result on the processor. The
positions of every second ply are for the scales, the others for the comparison.
"""

import argparse
import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static

from yomi.engine.evaluators.backends import OnnxBackend
from yomi.engine.evaluators.devices import CPU
from yomi.engine.evaluators.network import Format, open_network
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.engine.players.precision import compare, record
from yomi.engine.registry import GAMES, GO
from yomi.engine.shogi.game import ShogiGame
from yomi.native.tree.arrays import Batch
from yomi.nets.load import open_file

OPERATORS = ("Conv", "MatMul")


class Inputs(CalibrationDataReader):  # type: ignore[misc]  # of no known type
    def __init__(self, form: Format, batches: Sequence[Batch]) -> None:
        self._left = self._read(form, batches)

    def _read(self, form: Format, batches: Sequence[Batch]) -> Iterator[dict[str, Any]]:
        for batch in batches:
            arrays = batch.planes[:1], batch.extras[:1]
            yield {feed.name: feed.fill(1, array) for feed, array in zip(form.feeds, arrays, strict=False)}

    def get_next(self) -> dict[str, Any] | None:
        return next(self._left, None)


def layers(path: Path) -> dict[str, list[onnx.NodeProto]]:
    """Return the layers with weights, by the name of a choice of them."""
    graph = onnx.load(path).graph
    weights = {tensor.name: tensor.dims for tensor in graph.initializer}
    inputs = {tensor.name for tensor in graph.input}
    every = [node for node in graph.node if node.op_type in OPERATORS and node.input[1] in weights]
    trunk = [
        node
        for node in every
        if node.op_type == "Conv" and weights[node.input[1]][2] == 3 and node.input[0] not in inputs
    ]
    products = [node for node in every if node.op_type == "MatMul"]
    return {"all layers": every, "3x3 convolutions behind the first": trunk, "matrix products": products}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("net", type=Path)
    parser.add_argument("--size", type=int, default=9, help="board size (9)")
    parser.add_argument("--positions", type=int, default=800, help="half of them are compared (800)")
    parser.add_argument("--most", type=int, default=1000, help="positions for the scales, at most: they take memory")
    args = parser.parse_args()
    logging.disable(logging.WARNING)  # of the quantizer
    game = GAMES[open_file(args.net).game]
    form = open_network(game.formats, args.net, args.size)
    assert isinstance(form, Format)
    reference = form.load(CPU, "onnx", 1)
    begin = (lambda: GoGame(square(args.size), PRESETS["tromp-taylor"])) if game is GO else ShogiGame
    recorded = record(reference, begin, args.positions, float("inf"))
    path, expected = form.onnx_file(), recorded[1::2]
    for choice, nodes in layers(path).items():
        for method, name in (
            (CalibrationMethod.MinMax, "greatest number"),
            (CalibrationMethod.Percentile, "99.99% of numbers"),
        ):
            if not nodes:
                continue
            with tempfile.TemporaryDirectory() as folder:
                written = Path(folder) / "int8.onnx"
                chosen = [node.name for node in nodes]
                quantize_static(
                    path,
                    written,
                    Inputs(form, recorded[0::2][: args.most]),
                    quant_format=QuantFormat.QDQ,
                    nodes_to_quantize=chosen,
                    op_types_to_quantize=list(OPERATORS),
                    per_channel=True,
                    activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8,
                    calibrate_method=method,
                    extra_options={
                        "ActivationSymmetric": True,
                        "WeightSymmetric": True,
                        "SymmetricPercentile": True,
                        "CalibPercentile": 99.99,
                        "QDQOpTypePerChannelSupportToAxis": {"MatMul": 1},
                        "OpTypesToExcludeOutputQuantization": list(OPERATORS),
                    },
                )
                setattr(form, "onnx_file", lambda written=written: written)  # noqa: B010  (mypy allows no other way)
                print(f"{choice}, {name}: {compare(expected, form.load_on(OnnxBackend(form, 1)))}", flush=True)


if __name__ == "__main__":
    main()
