"""Snapshots at random moments of a program with threads, signals, overflows, forks and calls that wait disturb nothing.

HEAPTAP_MOMENTS says how many there are over all scenarios: 60, and 500 in `make test-long`, which take some five minutes.
HEAPTAP_TEST_SEED chooses the pauses between them; a failure names the one that it had.
"""

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

from bench import Failure, equal, expect, family
from commands import LONG, Asked, wait_for
from snapshots import kept, reachable

# What programs/moments.ml does in each scenario. A signal that comes while the stack overflows kills any program.
WORKS = {
    "waits": ("forks", "waits", "commands", "selects", "idle"),
    "faults": ("overflow", "bounds", "computes", "threads"),
    "signals": ("signals", "threads", "bounds", "forks", "selects", "idle"),
    "by_signal": ("interrupted", "threads", "forks", "bounds", "selects", "idle"),
}
COUNT = int(os.environ.get("HEAPTAP_MOMENTS", 60)) // len(WORKS)

# Small ones, so that they overflow soon: the system's, and that of OCaml 5 in words.
STACK = ["prlimit", "--stack=1048576"]
OWN_STACK = "l=100k"
NOISE = [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]


@contextlib.contextmanager
def seeded():
    seed = int(os.environ.get("HEAPTAP_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    try:
        yield random.Random(seed)
    except Failure as failure:
        raise Failure(f"{failure} (with HEAPTAP_TEST_SEED={seed})") from failure


class Moments:
    """programs/moments while it runs."""

    def __init__(self, bench, works, env):
        self.bench, self.log = bench, bench.directory / f"log{'-with' if env else ''}"
        (bench.directory / "run").mkdir(mode=0o700, exist_ok=True)
        environment = bench.environment({"XDG_RUNTIME_DIR": bench.path("run"), "OCAMLRUNPARAM": OWN_STACK, **env})
        self.process = subprocess.Popen([*STACK, bench.program("moments"), self.log, *works], env=environment,
                                        cwd=bench.directory, start_new_session=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        equal(self.process.stdout.readline(), b"ready\n", "its first line")
        return self

    def __exit__(self, kind, failure, _):
        ended = self.process.poll()
        self.process.kill()
        out, err = self.process.communicate()
        if isinstance(failure, (Failure, OSError)):
            how = "it runs" if ended is None else f"it has ended with {ended}"
            raise Failure(f"{failure}; {how}, and has said {err!r} and printed {out!r}") from failure

    def end(self):
        """What it printed and said, and its exit status."""
        out, err = self.process.communicate(b"\n", timeout=LONG)
        return out, err, self.process.returncode

    def copies(self):
        """The processes that were copied to be walked, as far as they can be seen now."""
        for children in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                for child in children.read_text().split():
                    if Path(f"/proc/{child}/comm").read_text() == "heaptap-copy\n":
                        yield int(child)

    def strangers(self):
        """Processes in which a handler of the program ran, and that the program has not forked."""
        lines = [line.split(" ", 1) for line in self.log.read_text().splitlines()]
        own = {process for process, what in lines if what in ("starts", "forked")}
        return {(process, what) for process, what in lines if process not in own}


@contextlib.contextmanager
def noise(program):
    """Signals to the program and all that belong to it, and to its copies. Yields how many copies got one."""
    stop, reached = threading.Event(), set()

    def send():
        chance = random.Random(1)
        while not stop.wait(0.002):
            for copy in program.copies():
                for number in NOISE:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(copy, number)
                        reached.add(copy)
            if chance.random() < 0.2:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.process.pid, chance.choice(NOISE))

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield reached
    finally:
        stop.set()
        sender.join()


def take(program, chance, name):
    """Snapshots that are asked for, after pauses."""
    if name == "by_signal":
        for number in range(COUNT):
            time.sleep(chance.uniform(0, 0.03))
            program.process.send_signal(signal.SIGUSR2)
            wait_for(program.bench.directory / f"heaps/{number + 1}.heap", program.process)
        return
    asked = Asked(program.bench, program.process)
    for number in range(COUNT):
        time.sleep(chance.uniform(0, 0.03))
        answer = asked.ask(f"snapshot {program.bench.path(f'heaps/{number + 1}.heap')} wait={LONG}")
        expect(answer.startswith("ok "), f"snapshot {number + 1}: {answer}")


@family({name: (name,) for name in WORKS})
def at_random_moments(bench, name):
    """The program prints the same and ends as without; `wait` finds no stranger, and no handler runs in one."""
    (bench.directory / "heaps").mkdir()
    with Moments(bench, WORKS[name], {}) as untroubled:
        expected = untroubled.end()
    env = {"LD_PRELOAD": bench.library, "HEAPTAP_TEST_VERIFY": 1, "HEAPTAP_LISTEN": 1,
           "HEAPTAP_SNAPSHOT_FILE": bench.path("heaps/%n.heap")}
    if name == "by_signal":
        env["HEAPTAP_SNAPSHOT"] = "signal:USR2"
    with seeded() as chance, Moments(bench, WORKS[name], env) as program:
        if name == "signals":
            with noise(program) as reached:
                take(program, chance, name)
            expect(len(reached) > COUNT / 3, f"only {len(reached)} of {COUNT} copies got signals: the test shows little")
        else:
            take(program, chance, name)
        equal(program.end(), expected, "what it printed and said, and its exit status")
        equal(program.strangers(), set(), "processes that ran a handler of the program")
        agree(bench)


def agree(bench):
    snapshots = sorted((bench.directory / "heaps").iterdir())
    equal(len(snapshots), COUNT, "files")
    for path in snapshots:
        found = reachable(bench, path)
        if bench.copies_collect:
            equal(found, kept(bench, path), f"reachable and kept blocks and words in {path.name}")
