"""The games of docs/games, and what their tests need."""

import functools
from pathlib import Path

import numpy as np

from yomi.engine.board_game.descriptor import FileGame, game_of_file
from yomi.engine.board_game.play import BoardState
from yomi.engine.color import BLACK
from yomi.nets.metadata import NetworkInfo

FOLDER = Path(__file__).parents[2] / "docs" / "games"
NAMES = (
    *("connect_four.py:GAME", "hex.py:ELEVEN", "hex.py:FIVE", "minishogi.py:GAME"),
    *("othello.py:EIGHT", "othello.py:SIX", "othello.py:FOUR"),
)


@functools.cache
def example(name: str) -> FileGame:
    """Return a game of docs/games."""
    return game_of_file(str(FOLDER / name))


def othello(size: int) -> FileGame:
    """Return Othello on a board of this size."""
    return example("othello.py:" + {8: "EIGHT", 6: "SIX", 4: "FOUR"}[size])


def othello_state(size: int, diagram: str, side: int = BLACK) -> BoardState:
    """Return a position from rows as a game prints them."""
    state = BoardState(othello(size).board_game)
    state.position["board"] = [[".XO".index(disc) for disc in row] for row in diagram.split()]
    state.position["side_to_move"] = side
    return state


def move_named(state: BoardState, text: str) -> int:
    """Return the legal move of this name."""
    return next(move for move in state.legal_moves() if state.game.move_text(move) == text)


def write_network(path: Path, game: FileGame, channels: int = 8, blocks: int = 2, seed: int = 1) -> Path:
    """Write a residual network with random weights for a game, and return its path."""
    from yomi.nets.graph_builder import GraphBuilder

    rng, graph, described = np.random.default_rng(seed), GraphBuilder(), game.board_game
    size, planes = described.size, described.planes

    def conv(x: str, inputs: int, outputs: int, kernel: int) -> str:
        weights = rng.standard_normal((outputs, inputs, kernel, kernel)) * np.sqrt(2.0 / (inputs * kernel**2))
        return graph.op("Conv", x, graph.constant(weights), pads=[kernel // 2] * 4)

    x = graph.op("Relu", conv(graph.input("planes", ["batch_size", planes, size, size]), planes, channels, 3))
    for _ in range(blocks):
        inner = graph.op("Relu", conv(x, channels, channels, 3))
        x = graph.op("Relu", graph.op("Add", conv(inner, channels, channels, 3), x))
    last = graph.constant(rng.standard_normal((size**2, 1)) * 0.3 / size)
    value = graph.op("Tanh", graph.op("MatMul", graph.op("Flatten", conv(x, channels, 1, 1)), last))
    moves = described.move_planes * size**2
    graph.output(graph.op("Flatten", conv(x, channels, described.move_planes, 1)), "policy", ["batch_size", moves])
    graph.output(value, "value", ["batch_size", 1])
    info = NetworkInfo(game.name, size, described.features, f"random {blocks}x{channels}", "", "", 0, 1, 0)
    path.write_bytes(graph.model(info.name, info.to_props()).SerializeToString())
    return path
