#!/usr/bin/env python3
"""Runs the scenarios, one line each; the last line says how many passed and failed.

    run.py --build DIR --libdir DIR --heaptap PROGRAM [PATTERN ...]
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import scenarios  # noqa: E402
from bench import Bench  # noqa: E402
import exact, lines, endings, estimates, hosts, leaks, refusals  # noqa: E402, E401, F401

if __name__ == "__main__":
    sys.exit(scenarios.run("lua-tests", scenarios.parser(__doc__).parse_args(), Bench))
