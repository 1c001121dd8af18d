"""What several modules of unit tests are given."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import yomi
from tests.fakes.player import FakePlayer
from tests.naive.shogi_networks import NetworkShape, write_network
from yomi.engine.game import Game, Say
from yomi.engine.options import Options


@pytest.fixture(scope="session")
def shogi_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a small network of shogi, which nobody changes."""
    return write_network(tmp_path_factory.mktemp("net") / "net.onnx", NetworkShape(blocks=2, channels=16, extras=119))


@pytest.fixture
def fake_players(monkeypatch: pytest.MonkeyPatch) -> list[FakePlayer]:
    """Let the commands play with a fake player; the list holds those that were made."""
    made: list[FakePlayer] = []

    def make(game: str, options: Options, say: Say) -> FakePlayer:
        made.append(FakePlayer(options))
        return made[-1]

    monkeypatch.setattr(Game, "load_player", make)
    monkeypatch.setattr(Game, "prepare", lambda *_: None)
    return made


@pytest.fixture(scope="module")
def shogi() -> Iterator[yomi.Engine[yomi.shogi.Game]]:
    """Give the library's engine for shogi with two workers."""
    with yomi.Engine("shogi", memory="64M", workers=2, seed=1) as engine:
        yield engine


@pytest.fixture(scope="module")
def go() -> Iterator[yomi.Engine[yomi.go.Game]]:
    """Give the library's engine for Go on 5x5 with rollouts."""
    with yomi.Engine("go", size=5, evaluator="rollouts", memory="64M", workers=1, seed=1) as engine:
        yield engine
