"""The cost of tracing whole programs: processor time and wall time, as ratios to the untraced program.

Every round runs each program once in every configuration, in random order, so that other load of the machine affects all
of them equally. Ratios are taken within a round.
"""

import concurrent.futures
import os
import random
import re
import tempfile
import time
from dataclasses import dataclass

import callgrind
from build import environment
from spread import Spread


@dataclass(frozen=True)
class Program:
    """A program with its size for timing, and a smaller size for counting."""

    name: str
    size: int
    counted_size: int
    highest_rate: float = 1.0


PROGRAMS = [
    Program("trees", 20, 11),
    Program("maps", 320_000, 3_000),
    Program("parser", 3_400, 60),
    Program("server", 550_000, 2_000),
    Program("recursion", 110_000, 20),
    # Up to 262,144 frames for each sample: takes 20 s at 1e-2, half an hour at 1.
    Program("deep", 800_000, 4_000, highest_rate=1e-3),
]

UNTRACED, AGAIN, IDLE = "untraced", "again", "idle"
RATES = ["1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "1"]
# At rate 1 programs take many times as long, for which a few rounds suffice.
SLOW, SLOW_ROUNDS = "1", 3
WAYS = [UNTRACED, AGAIN, IDLE, *RATES]
COUNTED = [UNTRACED, IDLE, "1e-6", "1e-4", "1e-2", "1"]


@dataclass
class Run:
    """One run: times in seconds, and the checksum that the program printed."""

    cpu: float
    wall: float
    checksum: str


def ways(program, among):
    return [way for way in among if way not in RATES or float(way) <= program.highest_rate]


def command(built, program, way, size, file, *more):
    line = [built.program(program.name), str(size), *more]
    if way in RATES:
        line += ["--trace", file, "--rate", way]
    # Untraced: the plugin is not loaded. Idle: it is loaded, but no trace is requested.
    return line, environment(built.absent if way in (UNTRACED, AGAIN) else built.libdir)


def measure(line, env):
    """Runs a command and measures the processor time of all its threads, as accounted by the kernel."""
    out, into = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, into, 1), (os.POSIX_SPAWN_CLOSE, out)]
    begin = time.perf_counter()
    child = os.posix_spawn(line[0], line, env, file_actions=actions)
    os.close(into)
    with os.fdopen(out) as pipe:
        said = pipe.read()
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - begin
    checksum = re.search(r"checksum (\w+)", said)
    if status != 0 or checksum is None:
        raise SystemExit(f"{' '.join(line)} ended with {status}: {said[-500:]}")
    return Run(usage.ru_utime + usage.ru_stime, wall, checksum.group(1))


def times(built, programs, among, rounds, seconds, say):
    """{(program, configuration): [Run of each round]}, for at most `rounds` rounds, as long as another fits `seconds`."""
    runs = {}
    begin = last = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "trace.ctf")
        for number in range(rounds):
            jobs = [(program, way) for program in programs for way in ways(program, among)
                    if way != SLOW or number < SLOW_ROUNDS]
            random.shuffle(jobs)
            for program, way in jobs:
                run = measure(*command(built, program, way, program.size, file))
                runs.setdefault((program.name, way), []).append(run)
            now = time.monotonic()
            say(f"programs: round {number + 1} done after {now - begin:.0f} s")
            if 2 * now - last - begin > seconds:
                break
            last = now
    for program in programs:
        sums = {run.checksum for way in ways(program, among) for run in runs[program.name, way]}
        if len(sums) != 1:
            raise SystemExit(f"{program.name} computes {sums}: tracing has changed what it does")
    return runs


def ratios(runs, program, way, what):
    base = runs[program.name, UNTRACED]
    pairs = zip(runs.get((program.name, way), []), base)
    return Spread.of([getattr(run, what) / getattr(plain, what) for run, plain in pairs])


def counts(built, programs, among):
    """{(program, configuration): callgrind.Count}. Runs two at a time, which does not affect counts."""

    def one(job):
        program, way = job
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "trace.ctf")
            line, env = command(built, program, way, program.counted_size, file, "--c-stack-mib", "16",
                                "--seed", "1")
            return job, callgrind.count(line, os.path.join(directory, "counts"), env)

    jobs = [(program, way) for program in programs for way in among]
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        return {(program.name, way): count for (program, way), count in pool.map(one, jobs)}
