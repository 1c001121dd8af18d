"""cshogi, an optional library that some shogi benchmarks compare yomi with."""

from __future__ import annotations

import sys
from typing import Any

from yomi.nets.installation import pip_command


def find_cshogi() -> Any:
    """Return the module, or None (with a line on stderr) if it cannot be imported."""
    try:
        import cshogi
    except ImportError as error:
        print(
            f"yomi: measured without cshogi ({error}); to compare: {pip_command('install', 'cshogi')}", file=sys.stderr
        )
        return None
    return cshogi
