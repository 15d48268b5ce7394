"""The cost of one sampled block on its mutator, measured with `hook.c`: time and instructions."""

import os
import random
import re
import tempfile
from collections import Counter
from dataclasses import dataclass

import callgrind
from build import ROOT, environment, run
from spread import Spread


@dataclass(frozen=True)
class Case:
    """A stack, and which part of it is new since the last sample."""

    rate: str
    depth: int
    change: str

    def aim(self):
        """The target: 150 ns plus 3 ns for each frame."""
        return 150 + 3 * self.depth

    def batches(self):
        return 4 if self.depth >= 10_000 else 15

    def batch(self):
        """Hooks in one batch; 0 for as many as fit the buffers."""
        return 40 if self.depth >= 10_000 and self.change not in ("all", "turns") else 0


PARTS = [Case("1", 15, "suspended"), Case("1e-3", 15, "suspended"), Case("1", 15, "empty")]
CASES = [Case("1e-3", 15, "same")] + [
    Case("1", depth, change) for depth in (15, 190, 1_777, 100_000) for change in ("same", "top", "all", "turns")
] + [Case("1", 100_000, "recursion")]


def times(built, cases, rounds, say):
    """{case: (Spread of a hook, Spread of a sweep)}, in nanoseconds of the mutator's processor time."""
    hooks, sweeps = {}, {}
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "trace.ctf")
        for number in range(rounds):
            order = list(cases)
            random.shuffle(order)
            for case in order:
                output = run(*command(built, case, file, case.batches(), case.batch()))
                hooks.setdefault(case, []).extend(numbers(output, "hook_ns"))
                sweeps.setdefault(case, []).extend(numbers(output, "sweep_ns"))
            say(f"hooks: round {number + 1} of {rounds} done")
    return {case: (Spread.of(hooks[case]), Spread.of(sweeps[case])) for case in cases}


def command(built, case, file, batches, batch):
    line = [built.program("hook"), file, case.rate, case.depth, case.change, batches]
    return [str(part) for part in line + ([batch] if batch else [])]


def numbers(output, name):
    line = re.search(rf"^{name} (.*)$", output, re.MULTILINE).group(1)
    return [float(number) for number in line.split()]


WARM_UP = 4  # batches, as in hook.c


def counts(built, cases):
    """{case: (instructions of a hook, {module: instructions of it})}."""
    counted = {}
    for case in cases:
        batches, batch = (1, 4) if case.depth >= 10_000 else (6, 100)
        with tempfile.TemporaryDirectory() as directory:
            line = command(built, case, os.path.join(directory, "trace.ctf"), batches, batch)
            count = callgrind.count(line, os.path.join(directory, "counts"), environment(), "heaptap_young_hit")
        hooks = batch * (batches + WARM_UP)
        rooms = Counter()
        for file, instructions in count.by_file.items():
            rooms[room(file)] += instructions / hooks
        counted[case] = (count.total / hooks, rooms)
    return counted


def room(file):
    """The top-level module of the plugin that a source file is in. Inlined code of the standard library is separate."""
    inside = re.search(r"(?:^|/)src/(abi|tracer|sampling|blocks|stack|queue|sys|writer)/", file)
    if inside and "/library/" not in file and (str(ROOT) in file or not file.startswith("/")):
        return inside.group(1)
    if "hook.c" in file:
        return "host"
    return "library code"
