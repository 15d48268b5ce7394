"""Backtraces are what the runtime's own unwinder and decoder tell."""

import re
from itertools import zip_longest

from bench import equal, expect, family, scenario


def places(frames):
    """Frames of a dump, innermost first, without those that have no place."""
    found = [frame for part in frames.split(" ") for frame in part.split(";")]
    return [frame for frame in reversed(found) if frame and not re.search(r":0:0-0$", frame)]


@family({"native": ("stacks",), "debug": ("stacks.debug",), "bytecode": ("stacks.byte",)})
def as_the_runtime_decodes_them(bench, program):
    result = bench.trace(program, env={"HEAPTAP_FRAMES": 10_000})
    told = {}
    for line in result.out.splitlines():
        if line.startswith("stack "):
            _, size, *frames = line.split(" ")
            told[int(size)] = frames
    expect(len(told) >= 18, f"only {len(told)} stacks were printed")
    for alloc in bench.allocs():
        if alloc.length not in told or alloc.source != "major":
            continue
        ours, theirs = places(alloc.frames), told.pop(alloc.length)
        # The innermost call differs: one asks for the stack, one allocates.
        skip = next(i for i, (a, b) in enumerate(zip(reversed(ours), reversed(theirs))) if a != b) if ours != theirs else len(ours)
        inner_ours, inner_theirs = ours[: len(ours) - skip], theirs[: len(theirs) - skip]
        expect(len(inner_theirs) <= 2 and len(inner_ours) <= 2 and all("Stacks.mark" in f for f in inner_ours),
               f"block of {alloc.length}: {ours[:6]}, should be {theirs[:6]}")
    equal(sorted(told), [], "stacks whose blocks are not in the trace")


PROGRAMS = "young major marshalled exceptions weak callbacks".split()


@family({**{name: (name, 1) for name in PROGRAMS}, "overflow": ("overflow", 2e-3)})
def as_the_runtime_walks_them(bench, program, rate):
    """The same seed, by our walk and by the runtime's: the same trace.

    The environments are of the same size, so that a stack that overflows does so at the same depth."""

    def walk(unwinder):
        under = ["setarch", "-R", "bash", "-c", 'ulimit -s 256; exec "$@"', "-"]
        env = {"HEAPTAP_UNWINDER": unwinder, "HEAPTAP_FRAMES": 20_000}
        bench.trace(program, name=unwinder + ".ctf", rate=rate, under=under, env=env)
        return (re.sub(r" common=\d+", "", line).split(" ", 1)[1] for line in bench.dump(unwinder + ".ctf"))

    events = 0
    for ours, theirs in zip_longest(walk("ourtabs"), walk("runtime")):
        expect(ours == theirs, f"event {events}: {ours[-300:]}, should be {theirs[-300:]}")
        events += 1
    expect(events > 500, f"only {events} events")


@scenario
def parts_of_a_combined_allocation(bench):
    """Each part has its own place."""
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
