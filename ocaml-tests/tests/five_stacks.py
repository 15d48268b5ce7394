"""Backtraces are those of the runtime's own unwinder, through all fibers and in all domains."""

import re
from collections import Counter
from itertools import zip_longest

from bench import expect, family


def trace_with(bench, unwinder, program, *arguments):
    env = {"HEAPTAP_UNWINDER": unwinder, "HEAPTAP_FRAMES": 20_000, "OCAMLRUNPARAM": "v=0"}
    bench.trace(program, *arguments, name=unwinder + ".ctf", under=["setarch", "-R"], env=env)
    return unwinder + ".ctf"


@family({f"{work}_{program}": (work, program) for work in "fibers calls trees marshalling raising".split()
         for program in ("many", "many.debug", "many.byte")})
def in_one_domain(bench, work, program):
    """The same seed, by our walk and by the runtime's: the same trace."""

    def events(unwinder):
        name = trace_with(bench, unwinder, program, work, 1)
        return (re.sub(r" common=\d+", "", line).split(" ", 1)[1] for line in bench.dump(name))

    count = 0
    for ours, theirs in zip_longest(events("tables"), events("runtime"), fillvalue="nothing"):
        expect(ours == theirs, f"event {count}: {ours[-300:]}, should be {theirs[-300:]}")
        count += 1
    expect(count > 500, f"only {count} events")


@family({f"{work}_{program}": (work, program) for work in "fibers calls trees raising locals".split()
         for program in ("many", "many.byte")})
def in_several_domains(bench, work, program):
    """Who runs when differs; what is allocated where does not."""

    def allocations(unwinder):
        name = trace_with(bench, unwinder, program, work, 3)
        return Counter((alloc.length, alloc.samples, alloc.source, alloc.frames) for alloc in bench.allocs(name))

    ours, theirs = allocations("tables"), allocations("runtime")
    only_ours, only_theirs = ours - theirs, theirs - ours
    expect(not only_ours and not only_theirs,
           f"{sum(only_ours.values())} allocations differ: {next(iter(only_ours), None)!r:.400}, should be {next(iter(only_theirs), None)!r:.400}")
    expect(sum(ours.values()) > 500, f"only {sum(ours.values())} allocations")


@family({"native": ("many",), "debug": ("many.debug",), "bytecode": ("many.byte",)})
def through_all_fibers(bench, program):
    """A chain of 96 fibers below the main one is a backtrace of them all."""
    bench.trace(program, "fibers", 1, env={"HEAPTAP_FRAMES": 20_000, "OCAMLRUNPARAM": "v=0"})
    deepest = max(len(re.findall(r"Fibers\.chain", alloc.frames)) for alloc in bench.allocs())
    expect(deepest >= 97, f"at most {deepest} calls of a chain of 97")
    outermost = {alloc.frames.split(" ")[0].split("@")[0] for alloc in bench.allocs() if "Fibers.chain" in alloc.frames}
    expect(all("Many" in name or "main" in name.lower() or "Std_exit" in name or "entry" in name for name in outermost),
           f"the outermost frames: {sorted(outermost)}")
