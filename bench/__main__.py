"""Measure speed as ratios within one run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.cases import GROUPS
from bench.comparisons import section
from bench.measure import Effort, measure
from bench.report import page, table

QUICK = Effort(level=0, rounds=1, sample_seconds=0, budget_seconds=0)
ORDINARY = Effort(level=1, rounds=15, sample_seconds=0.02, budget_seconds=4)
FULL = Effort(level=2, rounds=30, sample_seconds=0.05, budget_seconds=15)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument(
        "--quick", action="store_const", const=QUICK, dest="effort", help="one round, seconds"
    )
    effort.add_argument(
        "--full", action="store_const", const=FULL, dest="effort", help="longer, larger designs"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page there too")
    parser.add_argument(
        "--only",
        action="append",
        metavar="TEXT",
        help="measure only groups whose title holds this text; may be given several times",
    )
    parser.add_argument("--list", action="store_true", help="print the names and measure nothing")
    parser.set_defaults(effort=ORDINARY)
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(each.name for group in GROUPS for each in group.benchmarks))
        return
    results = []
    for group in GROUPS:
        if arguments.only and not any(text in group.title for text in arguments.only):
            continue
        print(f"measuring: {group.title}", file=sys.stderr)
        results.append((group, measure(group.benchmarks, arguments.effort)))
    print(table(results))
    if arguments.markdown is not None:
        # They take half a minute, and say nothing about this machine.
        pairs = "" if arguments.effort is QUICK else section()
        arguments.markdown.write_text(page(results, pairs), encoding="utf-8")


if __name__ == "__main__":
    main()
