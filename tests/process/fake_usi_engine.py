"""A USI engine with the real loop and a player without a search.

python -m tests.process.fake_usi_engine [SECONDS [LOAD_SECONDS [ERROR [FAILURE]]]]

ERROR is what loading ends with, FAILURE what thinking ends with; empty for none.
"""

import sys
from collections.abc import Callable
from typing import Any

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.options import Options
from yomi.engine.shogi.usi.session import serve


def make(options: Options, words: list[str], say: Callable[[str], None]) -> Any:
    """Return the player."""
    from tests.fakes.shogi_player import FakeShogiPlayer

    numbers = [float(word) for word in words[:2]]
    error, failure, *_ = [*words[2:], "", ""]
    return FakeShogiPlayer(options, *numbers, error=error or None, fail=EvaluatorError(failure) if failure else None)


if __name__ == "__main__":
    options = Options.for_game("shogi")
    sys.exit(serve(options, lambda say: make(options, sys.argv[1:], say)))
