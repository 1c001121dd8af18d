"""What several modules of unit tests are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from yomi.nets.dlshogi.definition import NetworkShape, write_network


@pytest.fixture(scope="session")
def shogi_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a small network of shogi, which nobody changes."""
    return write_network(tmp_path_factory.mktemp("net") / "net.onnx", NetworkShape(blocks=2, channels=16, extras=119))
