"""cshogi, which some benchmarks of shogi measure beside yomi, where it is installed."""

from __future__ import annotations

import sys
from typing import Any

from yomi.nets.installation import pip_command


def find_cshogi() -> Any:
    """Return the module; None, with a line on stderr, where it cannot be imported."""
    try:
        import cshogi
    except ImportError as error:
        print(
            f"yomi: measured without cshogi ({error}); to compare: {pip_command('install', 'cshogi')}", file=sys.stderr
        )
        return None
    return cshogi
