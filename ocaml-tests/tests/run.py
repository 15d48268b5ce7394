#!/usr/bin/env python3
"""Runs the scenarios, one line each; the last line says how many passed and failed.

    run.py --build DIR --libdir DIR --heaptap PROGRAM [PATTERN ...]
"""

import argparse
import fnmatch
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from bench import SCENARIOS, Bench, Failure, Skip  # noqa: E402
import exact, estimates, stacks, endings, others, tool, variants  # noqa: E402, E401, F401


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--libdir", required=True)
    parser.add_argument("--heaptap", required=True)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    chosen = [
        (name, function)
        for name, function in SCENARIOS
        if not options.patterns or any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns)
    ]
    if options.list:
        print("\n".join(name for name, _ in chosen))
        return 0
    if not chosen:
        print("no scenario has such a name", file=sys.stderr)
        return 2
    passed, failed, skipped = 0, 0, 0
    start = time.monotonic()
    for name, function in chosen:
        with tempfile.TemporaryDirectory(prefix="heaptap-ocaml-tests-") as directory:
            began = time.monotonic()
            try:
                function(Bench(options, directory))
            except Skip as skip:
                skipped += 1
                print(f"SKIPPED {name}: {skip}", flush=True)
            except (Failure, subprocess.TimeoutExpired, OSError) as failure:
                failed += 1
                print(f"FAIL {name}: {failure}", flush=True)
            else:
                passed += 1
                print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
    also = f", {skipped} skipped" if skipped else ""
    print(f"ocaml-tests: {passed} passed, {failed} failed{also}, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
