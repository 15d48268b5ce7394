"""Heap snapshots agree with the runtime: what is reachable in a snapshot is what the runtime keeps.

With HEAPTAP_TEST_VERIFY the copy of the process, once it has written the heap, empties the young heap, finishes three
major cycles and counts what is left: blocks and words. No other tool knows better. Programs print and return what they do
without snapshots.
"""

import json
import re
import shutil
import subprocess

import stock
from bench import HERE, equal, expect, family, needs_from_distribution, scenario
from commands import LONG, asked

# Those of the exact traces: they allocate in every way that OCaml has, with threads, signals, exceptions, finalisers,
# ephemerons and memory outside the heap.
PROGRAMS = {name: (name,) for name in (
    "young", "major", "marshalled", "bigarrays", "threads", "signals", "exceptions", "weak", "lives", "cycles", "flat")}

# They print how far they counted while signals came, and how often the collector ran, which a snapshot may ask to.
DIFFERS_BY_ITSELF = {"signals", "cycles"}


def settings(bench, directory, when="exit,every:100ms"):
    (bench.directory / directory).mkdir()
    return {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": when, "HEAPTAP_TEST_VERIFY": 1,
            "HEAPTAP_SNAPSHOT_FILE": bench.path(f"{directory}/%p-%n.heap")}


def lost_by_garbage(report):
    """How many pointers of garbage lead to no block, by the report of a check."""
    found = re.search(r"^  garbage: (\d+) pointers? leads? to no block", report, re.M)
    return int(found[1]) if found else 0


def reachable(bench, path):
    """Blocks and words, of a snapshot that is sound: no pointer and no root leads nowhere. Where garbage is freed in the
    order in which it was found, that holds for the pointers of garbage too."""
    check = subprocess.run([bench.heaptap, "snapshot", "--check", path, "--reachable"], capture_output=True, text=True)
    equal(check.returncode, 0, f"snapshot --check {path.name}: {(check.stdout + check.stderr)[:1000]}")
    expect(bench.garbage_dangles or not lost_by_garbage(check.stdout), f"{path.name}: {check.stdout}")
    found = re.search(r"^  reachable: (\d+) blocks, (\d+) words", check.stdout, re.M)
    expect(found, check.stdout)
    return tuple(map(int, found.groups()))


def kept(bench, path):
    """What the runtime kept."""
    facts = json.loads(subprocess.check_output([bench.heaptap, "info", "--json", path]))
    return facts["kept_blocks"], facts["kept_words"]


def agree(bench, directory):
    """Every snapshot in a directory; there is at least one."""
    snapshots = sorted((bench.directory / directory).iterdir())
    expect(snapshots, "there is no snapshot")
    for path in snapshots:
        expect(path.suffix == ".heap", f"{path.name} is left behind")
        equal(reachable(bench, path), kept(bench, path), f"reachable and kept blocks and words in {path.name}")
    return len(snapshots)


def compare(bench, program, suffix=""):
    expected = bench.run(program + suffix)
    found = bench.run(program + suffix, env=settings(bench, "heaps"))
    if program not in DIFFERS_BY_ITSELF:
        expect(found.out == expected.out, "the program prints something else")
    equal(found.err, expected.err, "what the program says")
    agree(bench, "heaps")


@family(PROGRAMS)
def native(bench, program):
    compare(bench, program)


@family(PROGRAMS)
def bytecode(bench, program):
    compare(bench, program, ".byte")


@family({"rarely": (1e-3,), "always": (1,)})
def with_a_trace(bench, rate):
    """The blocks that the trace follows are in the snapshot, with the sizes that the trace has."""
    heaps = settings(bench, "heaps", "exit")
    bench.run("lives", env={**heaps, "HEAPTAP": bench.path("trace.ctf"), "HEAPTAP_RATE": rate})
    bench.sound()
    for path in (bench.directory / "heaps").iterdir():
        reachable(bench, path)
        facts = json.loads(subprocess.check_output([bench.heaptap, "info", "--json", path]))
        equal(facts["trace_file"], bench.path("trace.ctf"), "the trace that the snapshot names")
        expect(facts["followed"] > 0, "no block is followed")
        if rate == 1:
            # All of them, and memory outside the heap that belongs to some.
            expect(facts["followed"] >= facts["blocks"], f"{facts['followed']} of {facts['blocks']} blocks are followed")


@family({name: (name,) for name in stock.PROGRAMS | stock.OTHERS})
def stock_programs(bench, name):
    """Stripped programs of the distribution, and those that come with other compilers."""
    program = (stock.PROGRAMS | stock.OTHERS)[name](bench)
    if name in stock.OTHERS:
        needs_from_distribution(program.name)
    stock.needs(program.name)
    found = bench.run(program.name, *program.arguments, env=settings(bench, "heaps", "exit,major:3,every:100ms"))
    expect("heaptap" not in found.err, f"said {found.err!r}")
    count = agree(bench, "heaps")
    if name == "ocamlopt":
        expect((bench.directory / "many.o").exists(), "nothing was compiled")
        expect(count >= 2, "only one snapshot")


@family({"native": ("host", "plugin.cmxs"), "bytecode": ("host.byte", "plugin.cmo")})
def plugins(bench, program, plugin):
    """The variables of plugins are roots: nothing else holds the list that this one makes when it is loaded."""
    bench.run(program, bench.build / plugin, env=settings(bench, "heaps", "exit"))
    agree(bench, "heaps")


@scenario
def where_no_collection_is_possible(bench):
    """Snapshots of a program that is raising bounds errors nearly all the time, in code without frame descriptors."""
    with asked(bench, program="unframed", prints=b"right true, rung true\n", env={"OCAMLRUNPARAM": "s=4k"}) as program:
        for number in range(20):
            heap = bench.directory / f"{number}.heap"
            answer = program.ask(f"snapshot {heap} wait={LONG}")
            expect(answer.startswith("ok "), f"snapshot {number + 1}: {answer}")
            reachable(bench, heap)


@scenario
def the_release(bench):
    """The file names it."""
    release = bench.run(bench.compiler, "-version").out.strip()
    bench.run("young", env=settings(bench, "heaps", "exit"))
    for path in (bench.directory / "heaps").iterdir():
        facts = json.loads(subprocess.check_output([bench.heaptap, "info", "--json", path]))
        equal(facts["runtime"], f"OCaml {release} native", "the runtime")


@scenario
def a_heap_that_is_freed_at_exit(bench):
    """The program ends as ever, and one line says why there is no snapshot."""
    result = bench.run("young", env={**settings(bench, "heaps", "exit"), "OCAMLRUNPARAM": "c"})
    expect("OCAMLRUNPARAM has c" in result.err and result.err.count("\n") == 1, f"said {result.err!r}")
    equal(list((bench.directory / "heaps").iterdir()), [], "files")


def dumped(bench, path):
    """The lines of a snapshot by their first word, each split into words."""
    lines = {}
    for line in subprocess.check_output([bench.heaptap, "dump", path], text=True).splitlines():
        first, *rest = line.split(" ")
        lines.setdefault(first, []).append(rest)
    return lines


def list_length(blocks, address):
    """How many cells of two words lead from one to the next, by their second field."""
    length = 0
    while address in blocks:
        words, _, *fields = blocks[address]
        if words != "2":
            break
        length += 1
        address = next((field.removeprefix("1=") for field in fields if field.startswith("1=")), None)
    return length


def names_of_code(bench, program):
    """The frame that holds a list is named after its function, file and line, and so is the code of a closure."""
    heap = bench.directory / "one.heap"
    env = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "signal:USR2", "HEAPTAP_SNAPSHOT_FILE": heap}
    equal(bench.run(program, heap, env=env).out, "321 10\n", "what it printed")
    reachable(bench, heap)
    lines = dumped(bench, heap)
    names = {address: (function, place) for address, function, place in lines["name"]}
    blocks = {address: rest for address, *rest in lines["block"]}
    source = (HERE / "programs/named.ml").read_text().splitlines()
    here = next(number for number, line in enumerate(source, 1) if "(* here *)" in line)
    holders = [code for target, kind, *owner in lines["root"] if kind == "stack" and list_length(blocks, target) == 321
               for code in [owner[2]]]
    expect(holders, "no frame holds the list")
    for code in holders:
        function, place = names.get(code, ("-", "-"))
        expect(function.endswith("Named.hold") and place == f"named.ml:{here}", f"a frame of {function} at {place} holds it")
    codes = [field.partition("=")[2] for _, _, _, *fields in lines["block"] for field in fields if field.startswith("code:")]
    expect(any("multiply" in names.get(code, ("-",))[0] for code in codes), "no closure has the name of its function")


@family({"native": ("named",), "bytecode": ("named.byte",)})
def names(bench, program):
    names_of_code(bench, program)


@scenario
def names_in_a_stripped_program(bench):
    """Frames are named by the compiler's own tables."""
    stripped = bench.path("stripped")
    shutil.copy(bench.program("named"), stripped)
    subprocess.run(["strip", "--strip-all", stripped], check=True)
    names_of_code(bench, stripped)
