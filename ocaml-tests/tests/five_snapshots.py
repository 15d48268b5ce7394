"""Heap snapshots of OCaml 5 agree with the runtime, and harm nothing."""

import json
import os
import subprocess

from bench import equal, expect, family, scenario
from five_exact import WORKS
from snapshots import a_heap_that_is_freed_at_exit, dumped, names_of_code, reachable

# `Gc.stat` counts two more words for each block that is allocated by itself (LARGE_ALLOC_HEADER_SZ,
# runtime/shared_heap.c).
LARGE_HEADER_WORDS = 2


def large_blocks(bench, path):
    facts = json.loads(subprocess.check_output([bench.heaptap, "info", "--json", path]))
    return sum(segment["count"] for segment in facts["segments"] if segment["kind"] == "large")


@family({"idle": ("kept", "idle"), "busy": ("kept", "busy"), "bytecode": ("kept.byte", "idle")})
def what_the_runtime_keeps(bench, program, mode):
    """Blocks and words after three major cycles: fibers, finalisers, ephemerons, and what ended domains have left."""
    heap = bench.directory / "one.heap"
    env = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "signal:USR2", "HEAPTAP_SNAPSHOT_FILE": heap}
    blocks, words = map(int, bench.run(program, heap, mode, env=env).out.split())
    expected = blocks, words - LARGE_HEADER_WORDS * large_blocks(bench, heap)
    equal(reachable(bench, heap), expected, "reachable and kept blocks and words")


@family({name: (name,) for name in ("young", "major", "marshalled", "bigarrays", "threads", "signals", "exceptions", "weak",
                                    "forks")} | {f"{work}_8": ("many", work, 8) for work in WORKS})
def nothing_is_harmed(bench, program, *arguments):
    """A program with snapshots ends as it does without, and every snapshot is sound. Eight domains come and go."""
    (bench.directory / "heaps").mkdir()
    expected = bench.run(program, *arguments)
    found = bench.run(program, *arguments, env={"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "exit,every:100ms",
                                    "HEAPTAP_SNAPSHOT_FILE": bench.path("heaps/%p-%n.heap")})
    equal(found.err, expected.err, "what the program says")
    snapshots = os.listdir(bench.directory / "heaps")
    expect(snapshots, "there is no snapshot")
    for name in snapshots:
        expect(name.endswith(".heap"), f"{name} is left behind")
        reachable(bench, bench.directory / "heaps" / name)


@scenario
def a_freed_heap(bench):
    a_heap_that_is_freed_at_exit(bench)


@family({"native": ("named",), "bytecode": ("named.byte",)})
def names(bench, program):
    names_of_code(bench, program)


@scenario
def blocks_of_ended_domains_are_followed(bench):
    """Every block that a domain has allocated and left behind is listed with its id in the trace."""
    heap = bench.directory / "one.heap"
    env = {**bench.preload(), "HEAPTAP_SNAPSHOT": "signal:USR2", "HEAPTAP_SNAPSHOT_FILE": heap}
    equal(bench.run("left", heap, env=env).out, "1000\n", "what it printed")
    reachable(bench, heap)
    lines = dumped(bench, heap)
    arrays = {address for address, words, *_ in lines["block"] if words == "33"}
    followed = {address: number for address, number in lines["followed"]}
    expect(len(arrays) >= 1000, f"{len(arrays)} arrays")
    missing = arrays - followed.keys()
    expect(not missing, f"{len(missing)} of {len(arrays)} blocks of a domain that has ended are not followed")
    numbers = {alloc.id for alloc in bench.allocs() if alloc.length == 33}
    expect({followed[address] for address in arrays} <= numbers, "an id of another block")
