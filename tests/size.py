"""Count the lines of the product and of the tests: `python -m tests.size`. It fails if the product exceeds LIMIT.

Size is a cost. A change that needs more lines raises LIMIT in a commit of its own, with the reason.
"""

from collections.abc import Iterable
from pathlib import Path

# Version 0.2.0 had 86,849. 250 came with Windows, clear docstrings, levels up to full strength, and clocks of shogi.
# 150: SFNN evaluation files, and sums of views that are kept by the king's square.
# 360 make numba compile in less time (native/quick_numba.py).
# 285 for `yomi serve`: reviews, rules, komi, handicaps, links of games, and windows that keep alike.
# 18 let bench choices ask engines with a kept tree.
# 35 read moves of shogi in English, and name network and device in Japanese.
# 11 load the network once, for the size of the first `boardsize`.
# 938 for games by file (engine/board_game), which need 240 lines fewer in tests and 400 in docs.
# 338 for yomi.open_engine: other engines as objects of the library.
# 363 for yomi.env and its benchmark.
# 12 for the decay of labels and dropout.
# 11 keep threads busy that evaluate their own batches, and let a dropped review be made again.
# 172 for `yomi bench gpu --all`: every kind of device in a process of its own, a limit of time, profiles of operators.
# 8 for journals of matches that another Python continues, and pooling blocks of smaller networks.
# 29 for the cache of self-play, priors of the moves that are not banned, and repairs of wrong figures; 110 were cut.
LIMIT = 88_244  # lines of Python
ROOT = Path(__file__).parents[1]
FOLDERS = ("engine", "native", "nets", "bench")


def main() -> None:
    # mypy and lint-imports find these folders through links in yomi. Git on Windows writes files in place of links by
    # default: both checks would then pass without having looked at anything.
    for name in FOLDERS:
        if not (ROOT / "yomi" / name / "__init__.py").is_file():
            raise SystemExit(
                f"yomi/{name} is no link to {name}: git config core.symlinks true, git checkout yomi; then check again"
            )
    product = [path for name in FOLDERS for path in (ROOT / name).rglob("*.py")]
    product += [
        path for path in (ROOT / "yomi").rglob("*.py") if path.relative_to(ROOT / "yomi").parts[0] not in FOLDERS
    ]
    lines = _lines(product)
    print(f"product: {lines} lines in {len(product)} modules; tests: {_lines((ROOT / 'tests').rglob('*.py'))} lines")
    if lines > LIMIT:
        raise SystemExit(f"the product has {lines} lines, expected at most {LIMIT}: remove some, or see tests/size.py")


def _lines(files: Iterable[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


if __name__ == "__main__":
    main()
