"""A GTP engine with the real loop and a player without a search: `python -m tests.process.fake_engine [SECONDS]`."""

import sys
from typing import Any

from yomi.engine.go.gtp.session import serve
from yomi.engine.options import Options


def make(options: Options) -> Any:
    """Return the player; slow, like the real one."""
    from tests.fakes.player import FakePlayer

    return FakePlayer(options, seconds=float(sys.argv[1]) if len(sys.argv) > 1 else 0.0)


if __name__ == "__main__":
    options = Options(size=9, ponder="ponder" in sys.argv)
    sys.exit(serve(options, lambda: make(options)))
