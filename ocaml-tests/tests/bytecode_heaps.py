"""Snapshots and traces of bytecode name the program, its modules and its variables, as those of native code do."""

import json
import shutil

from bench import HERE, equal, expect, family, scenario
from heap_types import tool

SOURCES = ["shelf.mli", "shelf.ml", "variables.ml"]
WORD = 8
# An array of 10,000 fields, each a block of one word; 5,000 cells of a list with a short string each, and a reference.
KEPT = (10_001 + 10_000 * 2) * WORD
INNER = (5_000 * (3 + 2) + 2 + 2) * WORD

# How bytecode is linked, and how it is run.
WAYS = {
    "interpreted": ((), "ocamlrun"),
    "script": ((), None),
    "custom": (("-custom",), None),
    "complete": (("-output-complete-exe",), None),
}


def build(bench, *options):
    for source in SOURCES:
        shutil.copy(HERE / "programs" / source, bench.directory)
    bench.run(tool(bench, "ocamlc"), "-g", "-w", "-a", "-bin-annot", *options, *SOURCES, "-o", "variables.exe")


def snapshot(bench, *arguments, runtime=None):
    """Runs the program, traced, with a snapshot at its end. The name is relative, and the program goes elsewhere."""
    command = ["./variables.exe", *arguments]
    if runtime:
        command.insert(0, tool(bench, runtime))
    bench.run(*command, env={**bench.preload(), "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": bench.path("%e.heap")})


def rows(bench, *options, heap="variables.exe.heap"):
    # Fields are called by their numbers unless types are asked for.
    types = () if "--types" in options else ("--types", "none")
    found = bench.run(bench.heaptap, "heap", heap, *types, "-n", 0, "--json", *options).out
    return {row["name"]: row for row in json.loads(found)["table"]["rows"]}


@family(WAYS)
def modules_and_variables(bench, options, runtime):
    build(bench, *options)
    snapshot(bench, runtime=runtime)
    modules = rows(bench, "--by", "module")
    for name in ["Variables", "Shelf", "Stdlib", "Stdlib.Hashtbl"]:
        expect(name in modules, f"{name} is not among {sorted(modules)}")
    expect(modules["Shelf"]["exclusive_bytes"] > 20_000 * 14 * WORD, f"{modules['Shelf']}")
    variables = rows(bench)
    equal(variables["Variables, field 0"]["exclusive_bytes"], KEPT, "what an array takes")
    equal(variables["Variables, field 1"]["exclusive_bytes"], INNER, "what a module inside holds")
    expect(not any("global data" in name for name in variables), f"{sorted(variables)}")
    for word in ("info", "dump"):
        bench.run(bench.heaptap, word, "variables.exe.heap")
    facts = json.loads(bench.run(bench.heaptap, "info", "--json", "variables.exe.heap").out)
    equal(facts["program"], bench.path("variables.exe"), "the program of the snapshot")
    release = bench.run(bench.compiler, "-version").out.strip()
    equal(facts["runtime"], f"OCaml {release} bytecode", "the runtime")
    facts = json.loads(bench.run(bench.heaptap, "info", "--json", "trace.ctf").out)
    equal(facts["executable"], bench.path("variables.exe"), "the program of the trace")
    if options != ("-output-complete-exe",):
        # That keeps no debug information where anybody finds it.
        frames = bench.run(bench.heaptap, "report", "trace.ctf", "--by", "function").out
        expect("Shelf.add" in frames, frames)


@scenario
def as_the_runtime_keeps_them(bench):
    """The table of globals and the blocks of modules are in no row of theirs, but they are there."""
    if not bench.copies_collect:
        return
    build(bench)
    env = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_TEST_VERIFY": 1,
           "HEAPTAP_SNAPSHOT_FILE": bench.path("one.heap")}
    bench.run("./variables.exe", env=env)
    facts = json.loads(bench.run(bench.heaptap, "info", "--json", "one.heap").out)
    report = bench.run(bench.heaptap, "snapshot", "--check", "one.heap", "--reachable").out
    expect(f"reachable: {facts['kept_blocks']} blocks, {facts['kept_words']} words" in report, report)


@scenario
def types_name_variables(bench):
    build(bench)
    snapshot(bench)
    variables = rows(bench, "--types", ".", "--ocaml", tool(bench, "ocaml"))
    for name in ["Variables.kept : int option array", "Shelf.seen : int list ref"]:
        expect(name in variables, f"{name} is not among {sorted(variables)}")


@scenario
def another_file_of_the_same_name(bench):
    """It has taken the place of the program while that ran: no names are better than wrong ones."""
    build(bench)
    snapshot(bench, "variables.exe")
    variables = rows(bench)
    expect(any(name.startswith("globals, field ") for name in variables), f"{sorted(variables)}")
    expect(max(row["exclusive_bytes"] for row in variables.values()) > KEPT + INNER, "the array is in no row")
    frames = bench.run(bench.heaptap, "report", "trace.ctf", "--by", "function").out
    expect("another" not in frames, frames)
