"""What the contract of players is to be tested with, in place of Go and shogi."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import kind, make, make_player, usual  # noqa: F401
from tests.games.othello.descriptor import GAME
from tests.games.othello.game import OthelloGame
from tests.games.othello.kernels import SIZES
from tests.games.othello.network import write_network
from yomi.engine.color import BLACK, WHITE


@pytest.fixture
def descriptor() -> Any:
    """Give Othello."""
    return GAME


@pytest.fixture
def small() -> dict[str, Any]:
    """Give the options of a small board."""
    return {"size": 6, "precision": "fp32"}


@pytest.fixture(scope="session")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Path]:
    """Give a small network by the board's size, and the one of most tests by the game's name."""
    folder = tmp_path_factory.mktemp("nets")
    made = {size: write_network(folder / f"{size}.onnx", size) for size in SIZES}
    return {**made, GAME.name: made[6]}


@pytest.fixture
def lopsided() -> Callable[[bool], OthelloGame]:
    """Give what makes games that the side to move has lost, or won."""
    rows = "XXXXXX XXXXXX XXXXXX XXXXXX XXXXO. XXX.O."
    return lambda is_lost: OthelloGame(6, rows, WHITE if is_lost else BLACK)
