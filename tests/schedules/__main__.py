"""Run every schedule of the scenarios: `python -m tests.schedules [--preemptions 3] [--scenario NAME] [--limit N]`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time

os.environ["NUMBA_DISABLE_JIT"] = "1"

from tests.schedules.scheduler import ScheduleError, explore, install


def main() -> int:
    """Print one line for each scenario; return 1 if a schedule breaks an invariant."""
    install()
    makers = importlib.import_module("tests.schedules.scenarios").all_scenarios()  # imports yomi.native.tree
    parser = argparse.ArgumentParser(prog="python -m tests.schedules", description=__doc__)
    parser.add_argument("--preemptions", type=int, default=3, help="preemptions of a schedule, at most (default 3)")
    parser.add_argument("--scenario", action="append", choices=sorted(makers), help="run this one only; repeatable")
    parser.add_argument("--limit", type=int, help="schedules of each scenario, at most")
    options = parser.parse_args()
    faults = 0
    for name in options.scenario or makers:
        begin, count, steps = time.monotonic(), 0, 0
        result = "all"
        try:
            for run in explore(makers[name](), options.preemptions):
                count, steps = count + 1, max(steps, run.step)
                if count == options.limit:
                    result = "first"
                    break
        except ScheduleError as fault:
            faults, result = faults + 1, f"FAULT after {fault}"
        print(f"{name}: {result}, {count} schedules, {steps} operations, {time.monotonic() - begin:.1f} s", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
