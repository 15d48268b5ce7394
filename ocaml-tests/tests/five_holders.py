"""What domains, fibers and their handlers hold on OCaml 5 is named after them, and the stacks of fibers are counted."""

import json
import re

from bench import equal, expect, family

WORD = 8


def taken(bench, program, mode):
    """A snapshot of the program in this mode."""
    heap = bench.directory / "one.heap"
    env = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "signal:USR2", "HEAPTAP_SNAPSHOT_FILE": heap}
    bench.run(program, mode, heap, env=env)
    bench.run(bench.heaptap, "snapshot", "--check", heap)
    return heap


def rows(bench, heap, *options):
    found = json.loads(bench.run(bench.heaptap, "heap", heap, "--types", "none", "-n", 0, "--json", *options).out)
    return found["table"]["rows"], found


KINDS = {"native": ("holding",), "bytecode": ("holding.byte",)}


@family(KINDS)
def values_of_domains(bench, program):
    heap = taken(bench, program, "dls")
    found, _ = rows(bench, heap)
    sizes = {row["name"]: row["exclusive_bytes"] for row in found}
    expect(500_000 * WORD < sizes["domain 0, Domain.DLS"] < 501_000 * WORD, f"{sizes}")
    expect(250_000 * WORD < sizes["domain 1, Domain.DLS"] < 251_000 * WORD, f"{sizes}")
    domains, _ = rows(bench, heap, "--by", "domain")
    names = [row["name"] for row in domains]
    equal(len(names), len(set(names)), f"names of rows: {names}")
    by_name = {row["name"]: row["exclusive_bytes"] for row in domains}
    expect(by_name["domain 0"] >= 500_000 * WORD, f"{by_name}")
    # With the array on its stack.
    expect(by_name["domain 1"] >= 350_000 * WORD, f"{by_name}")
    threads = [row["name"] for row in rows(bench, heap, "--by", "thread")[0]]
    equal(len(threads), len(set(threads)), f"names of rows: {threads}")


@family({f"{mode}_{name}": (*program, mode) for name, program in KINDS.items() for mode in ("handlers", "thread")})
def handlers_of_fibers(bench, program, mode):
    found, _ = rows(bench, taken(bench, program, mode), "--by", "frame")
    held = [row for row in found if 100_000 * WORD < row["exclusive_bytes"] < 101_000 * WORD]
    equal(len(held), 3, f"rows with an array: {found[:5]}")
    for row in held:
        expect(re.fullmatch(r"handlers of fiber \d+ of thread \d+, run by .*\(\w+\.ml:\d+\)", row["name"]), row["name"])
    expect(not any("0x0" in row["name"] or "unknown code" in row["name"] for row in found), f"{found}")


# The least that a stack takes: its `stack_info`, `caml_fiber_wsz` words and its handler (runtime/fiber.c, 5.3.0).
SMALLEST = (7 + 64 + 4) * WORD
# 10,000 frames of at least two words, in a stack that has grown by doubling.
DEEP = 32_768 * WORD


def as_expected(small, deep, found):
    """Each stack may be aligned by a word; a frame takes two words natively, and four to five in bytecode."""
    low, high = small * SMALLEST + deep * DEEP, small * (SMALLEST + WORD) + deep * (4 * DEEP + 100 * WORD)
    expect(low <= found <= high, f"{found} bytes of stacks, should be {low} to {high}")


@family(KINDS)
def suspended_stacks(bench, program):
    """5,000 of the smallest size, and 10 that have grown."""
    heap = taken(bench, program, "suspended")
    by_name, found = rows(bench, heap)
    stacks = found["stacks"]
    holder = max(by_name, key=lambda row: row["outside_bytes"])
    # In bytecode the module has no block before its code has run: its variables are in a frame.
    expect(holder["name"].startswith(("Holding, field ", "Holding (holding.ml:")), holder["name"])
    as_expected(5_000, 10, holder["outside_bytes"])
    equal(stacks["suspended_fibers"], 5_010, "suspended fibers")
    as_expected(5_000, 10, stacks["suspended_bytes"])
    expect(stacks["running_bytes"] >= 4_096 * WORD, f"{stacks}")
    # What the deep ones have left when they grew.
    expect(stacks["free_bytes"] > 0, f"{stacks}")
    text = bench.run(bench.heaptap, "heap", heap, "--types", "none").out
    expect(re.search(r"^stacks +\S+ \S+ of 5010 suspended fibers, ", text, re.M), text)


@family(KINDS)
def leaking_stacks(bench, program):
    """The time line has the bytes of suspended fibers as of each major cycle."""
    bench.run(bench.heaptap, "run", "-o", "trace.ctf", "--", bench.program(program), "leaking", "-")
    lines = bench.run(bench.heaptap, "probes", "trace.ctf", "--csv").out.splitlines()
    values = [float(line.rsplit(",", 1)[1]) for line in lines if "OCaml/suspended fibers" in line and ",last," in line]
    expect(len(values) >= 5, f"{lines[:20]}")
    equal(values, sorted(values), "values that only grow")
    as_expected(12_000, 10, values[-1])
