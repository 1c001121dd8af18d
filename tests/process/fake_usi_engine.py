"""A USI engine with the real loop and a player without a search.

python -m tests.process.fake_usi_engine [SECONDS [LOAD_SECONDS [ERROR]]]
"""

import sys
from collections.abc import Callable

from engine.options import Options
from engine.players.shogi_base import ShogiThinker
from engine.protocols.usi.serve import serve


def make(options: Options, words: list[str], say: Callable[[str], None]) -> ShogiThinker:
    """Return the player."""
    from tests.fakes.shogi_player import FakeShogiPlayer

    numbers = [float(word) for word in words[:2]]
    return FakeShogiPlayer(options, *numbers, error=words[2] if len(words) > 2 else None)


if __name__ == "__main__":
    options = Options.for_game("shogi")
    sys.exit(serve(options, lambda say: make(options, sys.argv[1:], say)))
