"""Scenarios of programs that are traced: registering them, running them, reporting what is wrong.

Shared by c-tests and ocaml-tests, each of which has a Bench that knows its programs. As many scenarios run at a time
as there are processors, each in a process and a directory of its own; those marked @alone run afterwards, one by one.
"""

import argparse
import contextlib
import fcntl
import fnmatch
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed


class Failure(Exception):
    """A scenario found something that should not be; the message says what."""


class Skip(Exception):
    """A scenario cannot run here; the message says why."""


SCENARIOS = []


def alone(function):
    """Marks scenarios that measure time, or whose programs keep all processors busy. Stands below @scenario or
    @family."""
    function.alone = True
    return function


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

            one.alone = getattr(function, "alone", False)
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


@contextlib.contextmanager
def locked(path):
    """Holds a lock that scenarios in other processes wait for."""
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def parser(description):
    """The options that every suite has."""
    options = argparse.ArgumentParser(description=description)
    for name in ("--build", "--libdir", "--heaptap"):
        options.add_argument(name, required=True)
    options.add_argument("--list", action="store_true")
    options.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options.add_argument("patterns", nargs="*")
    return options


def attempt(suite, options, bench, name, function):
    """Runs one scenario. Returns "passed", "failed" or "skipped", and the lines to print."""
    began, printed = time.monotonic(), io.StringIO()
    with tempfile.TemporaryDirectory(prefix=f"heaptap-{suite}-") as directory, contextlib.redirect_stdout(printed):
        try:
            function(bench(options, directory))
            outcome, line = "passed", f"ok {name} ({time.monotonic() - began:.1f} s)"
        except Skip as skip:
            outcome, line = "skipped", f"SKIPPED {name}: {skip}"
        except (Failure, subprocess.TimeoutExpired, OSError) as failure:
            outcome, line = "failed", f"FAIL {name}: {failure}"
        except Exception:  # noqa: BLE001  A defect of the scenario, which must not end the others.
            outcome, line = "failed", f"FAIL {name}: {traceback.format_exc()}"
    return outcome, printed.getvalue() + line


def attempt_all(suite, options, bench, chosen):
    """Runs the scenarios, and yields what `attempt` returns in the order in which they end."""
    together = [entry for entry in chosen if not getattr(entry[1], "alone", False)]
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork"), prepare_worker,
                             (suite, options, bench, together)) as pool:
        for done in as_completed([pool.submit(attempt_in_worker, index) for index in range(len(together))]):
            yield done.result()
    for name, function in chosen:
        if getattr(function, "alone", False):
            yield attempt(suite, options, bench, name, function)


# In a worker: what `attempt` needs. Functions cannot be sent to another process, but a fork has them.
WORK = []


def prepare_worker(*work):
    WORK[:] = work


def attempt_in_worker(index):
    suite, options, bench, scenarios = WORK
    return attempt(suite, options, bench, *scenarios[index])


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
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    start = time.monotonic()
    for outcome, lines in attempt_all(suite, options, bench, chosen):
        counts[outcome] += 1
        print(lines, flush=True)
    also = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{suite}: {counts['passed']} passed, {counts['failed']} failed{also}, {time.monotonic() - start:.0f} s")
    return 1 if counts["failed"] else 0
