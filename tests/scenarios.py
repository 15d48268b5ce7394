"""Scenarios of programs that are traced: registering them, running them, saying what is wrong.

Shared by c-tests and ocaml-tests, each of which has a Bench that knows its programs.
"""

import argparse
import fnmatch
import subprocess
import sys
import tempfile
import time


class Failure(Exception):
    """A scenario found something that should not be; the message says what."""


class Skip(Exception):
    """A scenario cannot run here; the message says why."""


SCENARIOS = []


def scenario(function):
    """Registers `function(bench)` under its module's and its own name."""
    SCENARIOS.append((f"{function.__module__}.{function.__name__}", function))
    return function


def family(parameters):
    """Registers `function(bench, *values)` once for each entry {name: values}."""

    def register(function):
        for name, values in parameters.items():

            def one(bench, values=values):
                function(bench, *values)

            SCENARIOS.append((f"{function.__module__}.{function.__name__}.{name}", one))
        return function

    return register


def expect(holds, message):
    if not holds:
        raise Failure(message)


def equal(got, wanted, what):
    expect(got == wanted, f"{what}: {got!r}, should be {wanted!r}")


class Result:
    """How a program ended, and what it said."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout.decode(errors="replace")
        self.err = process.stderr.decode(errors="replace")


def parser(description):
    """The options that every suite has."""
    options = argparse.ArgumentParser(description=description)
    for name in ("--build", "--libdir", "--heaptap"):
        options.add_argument(name, required=True)
    options.add_argument("--list", action="store_true")
    options.add_argument("patterns", nargs="*")
    return options


def run(suite, options, bench, prepare=lambda: None):
    """Runs the scenarios that were asked for, each with a `bench(options, directory)` of its own, one line
    each; the last line says how many passed and failed. Returns the exit status."""
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
    try:
        prepare()
    except Failure as failure:
        print(f"FAIL build: {failure}")
        return 1
    passed, failed, skipped = 0, 0, 0
    start = time.monotonic()
    for name, function in chosen:
        with tempfile.TemporaryDirectory(prefix=f"heaptap-{suite}-") as directory:
            began = time.monotonic()
            try:
                function(bench(options, directory))
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
    print(f"{suite}: {passed} passed, {failed} failed{also}, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0
