"""An allocation that is not sampled costs not one instruction more. Counted by callgrind."""

import re
import shutil

from bench import Skip, Tally, equal, expect, family


# trace.c, what it calls, and main() with its options.
TELLING = ("rt_trace_", "add_place", "place_count", "where", "after_", "rt_memory", "main", "flag", "number",
           "rt_option", "start_trace", "_", "0x", "(below")


def instructions(bench, program, arguments, name):
    """{function: its own instructions} for the functions of the program and the runtime."""
    out = bench.path(name)
    under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-strings=no",
             "--compress-pos=no"]
    bench.run(program, *arguments, "--c-stack-mib", 16, variant="counted", under=under)
    counts, function, ours, skip = {}, None, False, False
    for line in open(out, encoding="utf-8", errors="replace"):
        if line.startswith("fn="):
            function = line[3:].strip()
        elif line.startswith("ob="):
            ours = line.strip().endswith("/" + program)
        elif line.startswith("calls="):
            skip = True  # the next line is what the callee cost
        elif re.match(r"^[+\-*0-9]", line):
            if not skip and ours and function is not None:
                counts[function] = counts.get(function, 0) + int(line.split()[1])
            skip = False
    return counts


@family({"trees": ("trees", 10), "maps": ("maps", 3000), "pairs": ("pairs", 2000)})
def fast_path(bench, program, size):
    if shutil.which("valgrind") is None:
        raise Skip("valgrind is not installed")
    bench.make("VARIANT=counted", "VARIANT_CFLAGS=-DRT_ALLOC_OUT_OF_LINE")
    plain = instructions(bench, program, [size], "untraced")
    expect(plain.get("rt_young_alloc", 0) > 10000, f"rt_young_alloc is not counted: {sorted(plain)[:40]}")
    for seed in range(1, 20):
        file = bench.path("trace.ctf")
        traced = instructions(
            bench, program, [size, "--trace", file, "--rate", "1e-7", "--seed", seed], "traced"
        )
        if Tally(bench.dump(file)).allocations == 0:
            break
    else:
        expect(False, "a sample fell for every seed")
    equal(traced["rt_young_alloc"], plain["rt_young_alloc"], "instructions of rt_young_alloc")
    # Nor does any other function of program or runtime do more, but for those that tell the tracer.
    others = {name: count for name, count in plain.items() if not name.startswith(TELLING)}
    expect(len(others) > 20, f"only {len(others)} functions were compared")
    differing = {name: (count, traced.get(name)) for name, count in others.items() if traced.get(name) != count}
    equal(differing, {}, "functions with other instruction counts, untraced and traced")
