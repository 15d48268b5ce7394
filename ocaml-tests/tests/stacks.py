"""Backtraces equal those of the runtime's own unwinder and decoder."""

import re
from collections import Counter
from itertools import zip_longest

from bench import equal, expect, family, scenario, walked_by


def places(frames):
    """The frames of a dump that have a location, innermost first."""
    found = [frame for part in frames.split(" ") for frame in part.split(";")]
    return [frame for frame in reversed(found) if frame and not re.search(r":0:0-0$|^0x\w+$", frame)]


@family({"native": ("stacks",), "debug": ("stacks.debug",), "bytecode": ("stacks.byte",)})
def as_the_runtime_decodes_them(bench, program):
    result = bench.trace(program, env={"HEAPTAP_FRAMES": 10_000})
    as_decoded(bench, result, "Stacks.mark")


def as_decoded(bench, result, mark):
    """Compares the stacks that the program printed with those of the blocks it allocated next to them."""
    printed = {}
    for line in result.out.splitlines():
        if line.startswith("stack "):
            _, size, *frames = line.split(" ")
            printed[int(size)] = frames
    expect(len(printed) >= 18, f"only {len(printed)} stacks were printed")
    made = [alloc for alloc in bench.allocs() if alloc.length in printed and alloc.source == "major" and mark in alloc.frames]
    if bench.handlers_are_frames:
        frames = {frame for alloc in made for frame in places(alloc.frames)}
        printed = {size: [f for f in stack if f in frames or mark in f] for size, stack in printed.items()}
    for alloc in made:
        if alloc.length not in printed:
            continue
        ours, theirs = places(alloc.frames), printed.pop(alloc.length)
        # The innermost call differs: one gets the stack, the other allocates.
        skip = next(i for i, (a, b) in enumerate(zip(reversed(ours), reversed(theirs))) if a != b) if ours != theirs else len(ours)
        inner_ours, inner_theirs = ours[: len(ours) - skip], theirs[: len(theirs) - skip]
        expect(len(inner_theirs) <= 2 and len(inner_ours) <= 2 and all(mark in f for f in inner_ours),
               f"block of {alloc.length}: {ours[:6]}, should be {theirs[:6]}")
    equal(sorted(printed), [], "stacks whose blocks are not in the trace")


PROGRAMS = "young major marshalled exceptions weak callbacks".split()


@family({**{name: (name, 1) for name in PROGRAMS}, "overflow": ("overflow", 2e-3),
         **{f"{name}_bytecode": (f"{name}.byte", 1) for name in ["young", "exceptions", "callbacks"]}})
def as_the_runtime_walks_them(bench, program, rate):
    """With the same seed, heaptap's walk and the runtime's give the same trace.

    Both environments have the same size, so that a stack overflows at the same depth."""

    def walk(unwinder):
        under = ["setarch", "-R", "bash", "-c", 'ulimit -s 256; exec "$@"', "-"]
        env = {**walked_by(unwinder), "HEAPTAP_FRAMES": 20_000}
        bench.trace(program, name=unwinder + ".ctf", rate=rate, under=under, env=env)
        return (re.sub(r" common=\d+", "", line).split(" ", 1)[1] for line in bench.dump(unwinder + ".ctf"))

    events = 0
    for ours, theirs in zip_longest(walk("ourtabs"), walk("runtime")):
        expect(ours == theirs, f"event {events}: {ours[-300:]}, should be {theirs[-300:]}")
        events += 1
    expect(events > 500, f"only {events} events")


def codes(bench, name):
    """Size and backtrace of each allocation before the end marker. What is printed after it depends on how many domains
    there were at a time."""
    dump = bench.run(bench.heaptap, "dump", "--json", bench.path(name)).out
    ended = False
    for line in dump.splitlines():
        if '"event":"alloc"' not in line or (ended and '"domain":0,' in line):
            continue
        length = int(re.search(r'"length":(\d+)', line).group(1))
        yield length, tuple(re.findall(r'"code":"(\w+)"', line))
        ended |= length == 777 and '"domain":0,' in line


def without_handlers(ours, theirs):
    """In 5.3.0 the unwinder of bytecode mistakes all exception handlers of a stack but the first for frames:
    it forgets that the offset in a handler is an OCaml integer (caml_next_frame_pointer, runtime/backtrace_byt.c). Where
    that is the place of a frame, it leaves out the frame: not in programs for which this is good enough.
    A handler's address is never a return address, so it is in none of heaptap's backtraces."""
    frames = {frame for _, backtrace in ours for frame in backtrace}
    cleaned = Counter()
    for (length, backtrace), count in theirs.items():
        cleaned[length, tuple(frame for frame in backtrace if frame in frames)] += count
    return cleaned


def same_allocations(ours, theirs):
    """Compares the allocations by size and backtrace, and their numbers."""
    only_ours, only_theirs = ours - theirs, theirs - ours
    expect(not only_ours and not only_theirs,
           f"{sum(only_ours.values())} allocations differ: {next(iter(only_ours), None)}, should be {next(iter(only_theirs), None)}")
    expect(sum(ours.values()) > 500, f"only {sum(ours.values())} allocations")


@scenario
def parts_of_a_combined_allocation(bench):
    """Each part has its own location."""
    bench.trace("young")
    found = {frame for frame in bench.frames() if frame.startswith("Young.combined@young.ml:")}
    expect(len(found) >= 5, f"places in one line of young.ml: {sorted(found)}")


@scenario
def names_without_debug_information(bench):
    """Code compiled without -g has the names of its symbols."""
    source = bench.directory / "plain.ml"
    source.write_text("let rec build n = if n = 0 then [] else (n, n) :: build (n - 1)\n"
                      "let () = print_int (List.length (build 50))\n")
    bench.run("ocamlopt", source, "-o", bench.path("plain"))
    bench.trace(bench.path("plain"))
    frames = bench.frames()
    expect(any(frame.startswith("Plain.build@") for frame in frames), f"no readable name: {sorted(frames)[:20]}")
