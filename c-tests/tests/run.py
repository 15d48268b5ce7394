#!/usr/bin/env python3
"""Runs the scenarios, one line each; the last line says how many passed and failed.

    run.py --build DIR --libdir DIR --include DIR --heaptap PROGRAM [--long] [PATTERN ...]
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import scenarios  # noqa: E402
from bench import Bench  # noqa: E402
# The longest scenarios first, so that no processor waits at the end.
import clean, cost, exact, estimates, interpreter, misuse, probes, snapshots, stacks, control, endings, threads, versions  # noqa: E402, E401, F401


def main():
    parser = scenarios.parser(__doc__)
    parser.add_argument("--include", required=True)
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    return scenarios.run("c-tests", options, Bench, prepare=Bench(options, ".").make)


if __name__ == "__main__":
    sys.exit(main())
