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


# Not calls in bytecode: neither walk knows the handlers below a callback from C (caml_bytecode_interpreter sets
# trap_sp_off anew, runtime/interp.c, 5.3.0), and there they are frames to both.
@family({f"{work}_{program}": (work, program) for work, program in [
    ("fibers", "many"), ("calls", "many"), ("raising", "many"), ("locals", "many"),
    ("fibers", "many.byte"), ("raising", "many.byte"), ("locals", "many.byte")]})
def in_several_domains(bench, work, program):
    """Who runs when differs; what is allocated where does not."""

    def allocations(unwinder):
        return Counter(codes(bench, trace_with(bench, unwinder, program, work, 3)))

    ours, theirs = allocations("tables"), allocations("runtime")
    if program.endswith(".byte"):
        theirs = without_handlers(ours, theirs)
    only_ours, only_theirs = ours - theirs, theirs - ours
    expect(not only_ours and not only_theirs,
           f"{sum(only_ours.values())} allocations differ: {next(iter(only_ours), None)}, should be {next(iter(only_theirs), None)}")
    expect(sum(ours.values()) > 500, f"only {sum(ours.values())} allocations")


def codes(bench, name):
    """Size and backtrace of each allocation. Not of those behind the end's marker: what is printed there depends on how
    many domains there were at once."""
    dump = bench.run(bench.heaptap, "dump", "--json", bench.path(name)).out
    ended = False
    for line in dump.splitlines():
        if '"event":"alloc"' not in line or (ended and '"domain":0,' in line):
            continue
        length = int(re.search(r'"length":(\d+)', line).group(1))
        yield length, tuple(re.findall(r'"code":"(\w+)"', line))
        ended |= length == 777 and '"domain":0,' in line


def without_handlers(ours, theirs):
    """In 5.3.0 the unwinder of bytecode takes the second exception handler of a stack, and those beyond it, for frames:
    it forgets that the offset in a handler is an OCaml integer (caml_next_frame_pointer, runtime/backtrace_byt.c).
    A handler's address is nobody's return address, so it is in none of our backtraces."""
    frames = {frame for _, backtrace in ours for frame in backtrace}
    cleaned = Counter()
    for (length, backtrace), count in theirs.items():
        cleaned[length, tuple(frame for frame in backtrace if frame in frames)] += count
    return cleaned


@family({"native": ("many",), "debug": ("many.debug",), "bytecode": ("many.byte",)})
def through_all_fibers(bench, program):
    """A chain of 96 fibers below the main one is a backtrace of them all."""
    bench.trace(program, "fibers", 1, env={"HEAPTAP_FRAMES": 20_000, "OCAMLRUNPARAM": "v=0"})
    deepest = max(len(re.findall(r"Fibers\.chain", alloc.frames)) for alloc in bench.allocs())
    expect(deepest >= 97, f"at most {deepest} calls of a chain of 97")
    outermost = {alloc.frames.split(" ")[0].split("@")[0] for alloc in bench.allocs() if "Fibers.chain" in alloc.frames}
    expect(outermost <= {"caml_program", "Many"}, f"the outermost frames: {sorted(outermost)}")
