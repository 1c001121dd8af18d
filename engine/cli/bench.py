"""`yomi bench`: the same as `python -m bench`, which has a parser of its own."""

from collections.abc import Sequence


def delegate(argv: Sequence[str]) -> int:
    """Run the benchmarks' own command line."""
    from bench.cli import main

    return int(main(list(argv)))
