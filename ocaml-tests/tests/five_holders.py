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
    found = json.loads(bench.run(bench.heaptap, "heap", heap, "-n", 0, "--json", *options).out)
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
