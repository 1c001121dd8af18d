"""yomi, a playing engine for Go and shogi. Importing it makes its packages importable: engine, native, nets, bench.

An installed yomi keeps them in this folder, where they are in nobody's way; a checkout has them beside it.
"""

import sys
from pathlib import Path

_folder = Path(__file__).parent
if (_folder / "engine").is_dir():
    sys.path.insert(0, str(_folder))
