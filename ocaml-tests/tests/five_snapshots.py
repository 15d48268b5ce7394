"""Heap snapshots of OCaml 5 agree with the runtime, and harm nothing.

HEAPTAP_DOMAIN_SNAPSHOTS says how many are taken under stress: 20, and 200 in `make test-long`.
"""

import json
import os
import select
import subprocess
import time

import stock
from bench import alone, equal, expect, family, scenario
from commands import LONG, Asked
from five_exact import WORKS
from five_others import stripped
from moments import seeded
from snapshots import a_heap_that_is_freed_at_exit, dumped, lost_by_garbage, names_of_code, reachable, the_release

SNAPSHOTS = int(os.environ.get("HEAPTAP_DOMAIN_SNAPSHOTS", 20))

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
    expected = [(blocks, words - LARGE_HEADER_WORDS * large_blocks(bench, heap))]
    if mode == "busy":
        # The array that it was making, of 20 words.
        expected += [(blocks + 1, words + 20) for blocks, words in expected]
    found = reachable(bench, heap)
    expect(found in expected, f"reachable blocks and words: {found}, should be {expected}")


def without_counts(result):
    """What it printed, but not the words that were allocated: signal handlers and the order of domains change them."""
    return [line for line in result.out.splitlines() if not line.startswith(("counted ", "domain "))]


@family({name: (name,) for name in ("young", "major", "marshalled", "bigarrays", "threads", "signals", "exceptions", "weak",
                                    "forks")} | {f"{work}_8": ("many", work, 8) for work in WORKS})
def nothing_is_harmed(bench, program, *arguments):
    """A program with snapshots ends as it does without, and every snapshot is sound. Eight domains come and go."""
    (bench.directory / "heaps").mkdir()
    expected = bench.run(program, *arguments)
    found = bench.run(program, *arguments, env={"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "exit,every:100ms",
                                    "HEAPTAP_SNAPSHOT_FILE": bench.path("heaps/%p-%n.heap")})
    equal(found.err, expected.err, "what the program says")
    if program != "signals":
        equal(without_counts(found), without_counts(expected), "what the program prints")
    snapshots = os.listdir(bench.directory / "heaps")
    expect(snapshots, "there is no snapshot")
    for name in snapshots:
        expect(name.endswith(".heap"), f"{name} is left behind")
        reachable(bench, bench.directory / "heaps" / name)


def agree_at_exit(bench, run):
    """Runs a program that takes a snapshot when it exits, after tests/kept_at_exit.c has counted what is kept."""
    (bench.directory / "heaps").mkdir()
    run({"LD_PRELOAD": f"{bench.library}:{bench.build / 'kept_at_exit.so'}", "KEPT_AT_EXIT": bench.path("heaps"),
         "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": bench.path("heaps/%p.heap")})
    counts = list((bench.directory / "heaps").glob("*.kept"))
    expect(counts, "nothing was counted")
    for count in counts:
        blocks, words = map(int, count.read_text().split())
        heap = count.with_suffix(".heap")
        found = reachable(bench, heap)
        equal(found[0], blocks, f"reachable and kept blocks in {heap.name}")
        # Some of the blocks that are allocated by themselves are dead, and not counted.
        expected = [words - LARGE_HEADER_WORDS * large for large in range(large_blocks(bench, heap) + 1)]
        expect(found[1] in expected, f"reachable words in {heap.name}: {found[1]}, should be {expected[-1]} to {expected[0]}")


# A compaction drops garbage that the counters of the runtime keep (runtime/shared_heap.c, 5.3.0).
COMPACTING = {"compaction", "weak"}


@family({name: (name,) for name in ("young", "major", "marshalled", "bigarrays", "threads", "exceptions", "callbacks")}
        | {work: ("many", work, 8) for work in WORKS if work not in COMPACTING}
        | {"plugin": ("host", "plugin.cmxs"), "plugin_bytecode": ("host.byte", "plugin.cmo")})
def what_is_kept_at_exit(bench, program, *arguments):
    """Of whole programs: domains that have ended, finalisers, ephemerons, memory outside the heap, plugins."""
    arguments = [bench.build / argument if str(argument).startswith("plugin.") else argument for argument in arguments]
    agree_at_exit(bench, lambda env: bench.run(program, *arguments, env=env))


@scenario
def a_domain_that_is_not_swept(bench):
    """Its garbage is still there when what it points to is gone: that is no defect, and no count is wrong."""
    agree_at_exit(bench, lambda env: bench.run("unswept", env=env))
    for heap in (bench.directory / "heaps").glob("*.heap"):
        report = subprocess.check_output([bench.heaptap, "snapshot", "--check", heap], text=True)
        expect(lost_by_garbage(report), f"the program shows nothing: {report}")
        facts = subprocess.check_output([bench.heaptap, "heap", "--types", "none", heap], text=True)
        expect("to no block" not in facts, facts)


@family({name: (name,) for name in stock.PROGRAMS})
def stock_programs(bench, name):
    """The compiler and other programs of the installation, stripped."""
    program = stock.PROGRAMS[name](bench)
    path = bench.ocaml / "bin" / program.name
    stock.needs(path)
    agree_at_exit(bench, lambda env: bench.run(stripped(bench, program.name), *program.arguments, env=env))


@scenario
@alone
def stress(bench):
    """Eight domains, and more that come and go, with threads, fibers, finalisers and young heaps that are resized."""
    (bench.directory / "run").mkdir(mode=0o700)
    env = bench.environment({"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1, "XDG_RUNTIME_DIR": bench.path("run"),
                             "OCAMLRUNPARAM": "s=32k"})
    heap = bench.directory / "stress.heap"
    with seeded() as chance, subprocess.Popen([bench.program("everything"), "8", "input", str(chance.randrange(1000))], env=env,
                                              cwd=bench.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                              stderr=subprocess.PIPE) as process:
        try:
            asked = Asked(bench, process)
            for number in range(SNAPSHOTS):
                time.sleep(chance.uniform(0, 0.05))
                answer = asked.ask(f"snapshot {heap} wait={LONG}")
                expect(answer.startswith("ok "), f"snapshot {number + 1}: {answer}")
                expect(reachable(bench, heap)[0] > 1_000, "hardly a block is reachable")
            out, err = process.communicate(b"\n", timeout=LONG)
        finally:
            process.kill()
        expect(out.startswith(b"survived\n"), f"printed {out!r}")
        equal((process.returncode, err), (0, b""), "its exit status, and what it said")
        equal([path.name for path in bench.directory.iterdir() if "heap" in path.name], ["stress.heap"], "files")


@family({"idle": ("idle",), "busy": ("busy",)})
def a_domain_that_stays_in_c(bench, mode):
    """A request that fails because of it does not stop the others: they go on while it still stays there."""
    (bench.directory / "run").mkdir(mode=0o700)
    fifo = bench.directory / "fifo"
    os.mkfifo(fifo)
    env = bench.environment({"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1, "XDG_RUNTIME_DIR": bench.path("run")})
    with subprocess.Popen([bench.program("stuck"), fifo, mode], env=env, cwd=bench.directory, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        try:
            equal(process.stdout.readline(), b"ready\n", "its first line")
            asked = Asked(bench, process)
            answer = asked.ask(f"snapshot {bench.path('x.heap')} wait=1")
            expect(answer.startswith("error ") and "within 1 s" in answer, answer)
            process.stdin.write(b"\n")
            expect(select.select([process.stdout], [], [], LONG)[0], "the first domain stands still")
            equal(process.stdout.readline(), b"alive\n", "its next line")
            fifo.write_bytes(b".")
            answer = asked.ask(f"snapshot {bench.path('x.heap')} wait={LONG}")
            expect(answer.startswith("ok "), f"it goes on, and then: {answer}")
            reachable(bench, bench.directory / "x.heap")
            out, err = process.communicate(timeout=LONG)
        finally:
            process.kill()
        equal((process.returncode, out, err), (0, b"true\n", b""), "how it ends")


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


@scenario
def release(bench):
    the_release(bench)
