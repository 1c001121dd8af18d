"""Read mutants of files with every reader of the project: `python -m tests.fuzz --mutants 20000 [--reader NAME ...]`.

`--only NUMBER` reads one mutant of one reader, and `--keep FILE` writes that mutant to a file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.harness import fuzz, make_mutant
from tests.fuzz.readers import READERS, isolated


def main() -> int:
    """Return 0 if every reader is as documented."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=2000, help="mutants of each reader (default: 2000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant (default: 0)")
    parser.add_argument("--only", type=int, help="read this mutant alone")
    parser.add_argument("--keep", type=Path, help="write the mutant of --only to this file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="reader (default: all)")
    args = parser.parse_args()
    numbers = range(args.first, args.first + args.mutants) if args.only is None else range(args.only, args.only + 1)
    faults = 0
    for name in args.reader or READERS:
        reader = READERS[name]
        with tempfile.TemporaryDirectory() as folder, isolated(Path(folder) / "cache"):
            if args.keep is not None and args.only is not None:
                files = dict(reader.files())
                changed = [each for each in files if each not in reader.fixed]
                args.keep.write_bytes(make_mutant(files, changed, name, args.seed, args.only)[1])
            begin = time.process_time()
            outcome = fuzz(reader, Path(folder), numbers, args.seed)
            spent = time.process_time() - begin
        faults += len(outcome.faults)
        print(
            f"{name}: {outcome.accepted} accepted, {outcome.refused} refused, {len(outcome.faults)} faults, "
            f"{spent:.1f} s of the processor, slowest {outcome.slowest:.2f} s",
            flush=True,
        )
        for fault in outcome.faults:
            print(f"    {fault}", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
