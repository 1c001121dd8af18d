"""Othello for the contract of players, in place of Go and shogi."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import kind, make, make_player, usual  # noqa: F401
from tests.games.examples import othello, othello_state, write_network
from yomi.engine.board_game.play import BoardState
from yomi.engine.color import BLACK, WHITE
from yomi.engine.registry import GAMES


@pytest.fixture(autouse=True)
def _games() -> Iterator[None]:
    """Forget the games that a test has made known."""
    before = dict(GAMES)
    yield
    GAMES.clear()
    GAMES.update(before)


@pytest.fixture
def descriptor() -> Any:
    """Give Othello on 6×6."""
    return othello(6)


@pytest.fixture
def small() -> dict[str, Any]:
    """Give the options of all players."""
    return {"precision": "fp32"}


@pytest.fixture(scope="session")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Path]:
    """Give a small network by the game's name."""
    folder = tmp_path_factory.mktemp("nets")
    return {game.name: write_network(folder / f"{game.name}.onnx", game) for game in map(othello, (4, 6, 8))}


@pytest.fixture
def lopsided() -> Callable[[bool], BoardState]:
    """Give what makes games that the side to move has lost, or won."""
    rows = "XXXXXX XXXXXX XXXXXX XXXXXX XXXXO. XXX.O."
    return lambda is_lost: othello_state(6, rows, WHITE if is_lost else BLACK)
