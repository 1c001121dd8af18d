"""Players of all games with all kinds of evaluators.

A module of tests for one game overrides `descriptor`, and what else is to be another there.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contract.networks import write_small_network
from tests.naive.shogi_networks import NetworkShape, write_network
from yomi.engine.game import Game
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.go.game import new_game
from yomi.engine.options import Options
from yomi.engine.players.player import Player
from yomi.engine.shogi.descriptor import GAME as SHOGI
from yomi.engine.shogi.game import ShogiGame

Make = Callable[..., Any]


@pytest.fixture(params=[GO, SHOGI], ids=lambda descriptor: descriptor.name)
def descriptor(request: pytest.FixtureRequest) -> Any:
    """Give each game."""
    return request.param


@pytest.fixture
def small() -> dict[str, Any]:
    """Give the options of a small board."""
    return {"size": 5}


@pytest.fixture
def lopsided(descriptor: Any) -> Callable[[bool], Any]:
    """Give what makes games that the side to move has lost, or won."""
    if descriptor is GO:
        return lambda is_lost: new_game(Options(size=5, komi=90.0 if is_lost else -90.0))
    return lambda is_lost: ShogiGame(f"4k4/9/9/9/9/9/9/9/4K4 {'w' if is_lost else 'b'} 2R2B4G4S4N4L18P 1")


@pytest.fixture
def make_player(descriptor: Game[Any, Any]) -> Callable[[Options], Any]:
    """Give what makes a player by options."""
    return descriptor.make_player


@pytest.fixture
def usual() -> dict[str, Any]:
    """Give the options of all players that are made."""
    return {}


@pytest.fixture(params=["uniform", "bare", "network"])
def kind(request: pytest.FixtureRequest) -> Any:
    """Give each kind of evaluator."""
    return request.param


@pytest.fixture(scope="session")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give a small network of each game."""
    folder = tmp_path_factory.mktemp("nets")
    shogi = write_network(folder / "net.onnx", NetworkShape(blocks=1, channels=8))
    return {"go": write_small_network(folder), "shogi": shogi}


@pytest.fixture
def make(
    descriptor: Game[Any, Any],
    make_player: Callable[[Options], Any],
    small: dict[str, Any],
    usual: dict[str, Any],
    networks: dict[str, Path],
) -> Iterator[Make]:
    """Give what makes players by the kind of their evaluator and by options; all are closed at the end."""
    made: list[Player[Any]] = []

    def maker(kind: str = "uniform", **values: Any) -> Player[Any]:
        judge = {"evaluator": descriptor.default_evaluator if kind == "bare" else kind}
        if kind == "network":
            judge = {"net": str(networks[descriptor.name]), "device": "cpu"}
        chosen = {**small, "memory": 2**24, "cache_size": 2**20, "workers": 1, "seed": 1, "stochastic_ponder": False}
        options = replace(Options.for_game(descriptor.name), **{**chosen, **judge, **usual, **values})
        made.append(make_player(options))
        return made[-1]

    yield maker
    for player in made:
        player.close()
        player.close()  # twice is harmless
