"""At low rates an object costs what it costs untraced: the gate is closed."""

import re
import subprocess

from bench import PROGRAMS, expect, family

FEW, MANY = 10_000, 60_000


def instructions(bench, script, objects, env):
    """Those that callgrind counts in the whole run."""
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={bench.path('callgrind')}", "ruby", "--disable-gems",
               str(PROGRAMS / script), str(objects)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=bench.environment(env))
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


@family({"from_the_start": ("many.rb",), "after_another_tool": ("after_a_tool.rb",)})
def of_an_object(bench, script):
    """Instructions, by the difference of two runs. With the gate open it is a quarter more."""
    def each(env):
        counts = [instructions(bench, script, objects, env) for objects in (FEW, MANY)]
        return (counts[1] - counts[0]) / (MANY - FEW)

    untraced, traced = each({}), each(bench.preload(rate="1e-6"))
    print(f"{script}: {untraced:.0f} instructions untraced, {traced:.0f} at 1e-6")
    expect(traced < 1.03 * untraced, f"{traced:.0f} instructions, untraced {untraced:.0f}")
