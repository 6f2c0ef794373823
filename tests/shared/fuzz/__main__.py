"""``python -m fuzz SECONDS [TARGET ...]``, or ``python -m fuzz --replay TARGET CASE``."""

from __future__ import annotations

import argparse
import os
import sys
import time

from .targets import TARGETS
from .worker import around, prepare, run_batch, work


def main() -> int:
    """Print the table; the status is 1 if there was a fault."""
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("targets", nargs="*", help=", ".join(TARGETS))
    first = int(os.environ.get("FUZZ_FIRST", 0))
    parser.add_argument("--first", type=int, default=first, help="the first case")
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "CASE"))
    given = parser.parse_args()
    if given.replay:
        target, case = given.replay[0], int(given.replay[1])
        prepare(target)  # as before the batches of a run
        tally = run_batch(target, around(target, case))
        print(*tally.lines, sep="\n")
        return int(tally.crashes + tally.others > 0)
    targets = given.targets or [name for name, target in TARGETS.items() if target.listed]
    end = time.monotonic() + given.seconds
    for target in targets:
        prepare(target)
    tallies = []
    for left, target in zip(range(len(targets), 0, -1), targets):
        tallies.append(work(target, given.first, (end - time.monotonic()) / left))
    print("| target | cases | refused | crashes | other faults |")
    print("|---|---:|---:|---:|---:|")
    rows = [(t.target, t.cases, t.refused, t.crashes, t.others) for t in tallies]
    rows.append(("all", *(sum(column) for column in list(zip(*rows))[1:])))
    for row in rows:
        print("| {} | {:,} | {:,} | {:,} | {:,} |".format(*row))
    return int(sum(rows[-1][3:]) > 0)


if __name__ == "__main__":
    sys.exit(main())
