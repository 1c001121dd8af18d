"""What the fuzzers of GTP and USI share: bytes that change at random, and their command line."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable


def mutate(rng: random.Random, line: bytearray) -> bytearray:
    """Return a line after one to three changes: bytes put in or left out, its end cut off, or a carriage return."""
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(line) + 1)
        what = rng.random()
        if what < 0.3:
            line[at:at] = rng.randbytes(rng.randrange(1, 4))
        elif what < 0.6:
            del line[at : at + rng.randrange(1, 4)]
        elif what < 0.8:
            line = line[:at]
        else:
            line += b"\r"
    return line


def run_as_script(
    description: str | None,
    run_session: Callable[[int, int], None],
    run_engine: Callable[[int, int, list[str]], None],
) -> None:
    """Read the command line and drive what it names.

    Args:
        description: for its help.
        run_session: sends that many lines of a seed to the handlers.
        run_engine: sends them to an engine: module and arguments.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("engine", nargs="*", help="module and arguments of an engine to drive through pipes")
    args = parser.parse_args()
    start = time.monotonic()
    if args.engine:
        run_engine(args.lines, args.seed, args.engine)
    else:
        run_session(args.lines, args.seed)
    print(f"{args.lines} lines, no fault, {time.monotonic() - start:.1f} s", file=sys.stderr)
