"""What a variable holds, in modules of every kind and outside the heap, against what the program counts itself."""

import json
import os
import subprocess

from bench import equal, expect, family, scenario


def taken(bench, program, *arguments, name="one.heap", env=()):
    """A snapshot at the end of a program, and what this printed."""
    heap = bench.path(name)
    variables = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": heap, **dict(env)}
    result = bench.run(program, *arguments, env=variables)
    equal(result.err, "", "standard error")
    return heap, result.out


def ask(bench, verb, *arguments):
    found = subprocess.run([bench.heaptap, verb, "--json", *map(str, arguments)], capture_output=True, text=True)
    equal(found.returncode, 0, found.stderr[-500:])
    return json.loads(found.stdout)


@scenario
def variables_of_modules_within_modules(bench):
    """Each variable is a row with what the program counts, whatever module it is in, and no large row is hidden."""
    heap, printed = taken(bench, "nested", 3000)
    expected = {name: int(size) for name, size in map(str.split, printed.splitlines())}
    figures = ask(bench, "heap", heap)
    rows = [row for row in figures["table"]["rows"] if row["name"].startswith("Nested")]
    held = [row["exclusive_bytes"] for row in rows]
    # What one record holds is one row. `all` holds two of the tables too, and is of the same module.
    of_record = expected.pop("left") + expected.pop("right") + 24
    for name, size in [*expected.items(), ("record", of_record)]:
        # A functor's result and a packed module have a block around the variable.
        expect(any(size <= one <= size + 32 for one in held), f"{name}: {size} bytes are not in {held}")
    total = figures["reachable"]["bytes"]
    expect(figures["table"]["other_first_reached"]["bytes"] < 0.01 * total, "no large row is among the others")
    first = sum(row["first_reached"]["bytes"] for row in rows)
    expect(first > 0.98 * total, f"{first} of {total}")
    # Modules that contain variables do not take what is theirs.
    for row in rows:
        expect(row["first_reached"]["bytes"] <= row["exclusive_bytes"] + 64, row)


@scenario
def tables_that_have_doubled(bench):
    """Tables with arrays of another size are the same tables: nothing is new, nothing gone."""
    before, _ = taken(bench, "nested", 900, name="before.heap")
    after, _ = taken(bench, "nested", 4000, name="after.heap")
    tables = {table["by"]: table["rows"] for table in ask(bench, "heap-diff", before, after, "--top", 0)["tables"]}
    # The two tables of a record are two sets.
    sets = [row["name"] for row in tables["set"] if "array or block" in row["name"].split(" > ")[-1]]
    expect(len([name for name in sets if "(pointer 1)" in name or "(pointer 2)" in name]) == 2, sets)
    for by, least in (("variable", 9), ("set", 20), ("block", 2)):
        grown = [row for row in tables[by] if row["growth_bytes"] > 10_000]
        expect(len(grown) >= least, f"{by}: {[row['name'] for row in grown]}")
        equal([row["name"] for row in grown if row["change"] != "grown"], [], f"{by}: what should have grown")
        equal([row["name"] for row in tables[by] if row["growth_bytes"] < -1000], [], f"{by}: what has shrunk")
    findings = ask(bench, "heap", after, "--earlier", before)["findings"]
    expect(findings == [] or all("has grown by" in finding["text"] for finding in findings), findings)


ARRAYS = 20
SIZE = 100_000


@family({"native": ("slices",), "bytecode": ("slices.byte",)})
def data_that_slices_share_counts_once(bench, program):
    heap, _ = taken(bench, program, ARRAYS, bench.path("mapped"))
    figures = ask(bench, "heap", heap)
    # Of the array that only a slice of its slice keeps, the end is not known.
    least = ARRAYS * SIZE + 35_000 + 100 * 50 * 8
    outside = figures["outside_bytes"]
    expect(least <= outside <= least + 65_000, f"{outside} bytes outside the heap, should be {least}")
    equal(figures["mapped_bytes"], 3 * SIZE, "bytes of mapped files")
    info = ask(bench, "info", heap)
    equal((info["outside_bytes"], info["mapped_bytes"]), (outside, 3 * SIZE), "what info counts")
    if program == "slices":
        rows = figures["table"]["rows"]
        first = [row["first_outside_bytes"] for row in rows]
        expect(ARRAYS * SIZE in first and 100 * 50 * 8 in first, first)
        equal(sum(first), outside, "what the variables reach first")
        # The list of arrays and that of their slices share the data; a matrix has a name of its own.
        equal(rows[0]["outside_bytes"], 0, rows[0])
        expect(100 * 50 * 8 in [row["outside_bytes"] for row in rows], rows)
    out = bench.path("one.hprof")
    export = subprocess.run([bench.heaptap, "export", heap, "--to", "hprof", "-o", out], capture_output=True, text=True)
    equal(export.returncode, 0, export.stderr)
    expect(outside < os.path.getsize(out) < outside + 1_000_000, f"{os.path.getsize(out)} bytes of export")
    expect(f"{3 * SIZE} bytes of mapped files are not in the export" in export.stderr, export.stderr)


@family({"exact": (1,), "estimated": (1e-2,)})
def the_trace_of_bigarrays_is_joined(bench, rate):
    """Their lengths in the trace are those of what is outside the heap. Another trace is refused still."""
    heap, _ = taken(bench, "slices", ARRAYS, bench.path("mapped"), env=bench.preload(rate=rate))
    joined = ask(bench, "heap", heap, "--by", "site", "-n", 0)
    most = joined["rows"][0]
    expect(most["site"]["name"].endswith("Array1.create"), most)
    truth = ARRAYS * SIZE
    expect(abs(most["size"]["bytes"] - truth) <= 4.5 * most["size"]["error"] + 0.01 * truth, most)
    for verb in ("report", "leaks"):
        found = subprocess.run([bench.heaptap, verb, "--heap", heap, bench.path("trace.ctf")],
                               capture_output=True, text=True)
        equal(found.returncode, 0, found.stderr)
    bench.run("slices", ARRAYS, bench.path("mapped"), env=bench.preload("other.ctf", rate=rate))
    other = subprocess.run([bench.heaptap, "heap", "--by", "site", "--trace", bench.path("other.ctf"), heap],
                           capture_output=True, text=True)
    equal(other.returncode, 2, other.stderr)


@scenario
def growth_outside_the_heap_and_by_site(bench):
    """Two runs with their traces: what has grown is outside the heap, and a gate sees it."""
    heaps = []
    for arrays in (5, 25):
        heap, _ = taken(bench, "slices", arrays, bench.path("mapped"), name=f"{arrays}.heap",
                        env=bench.preload(f"{arrays}.ctf"))
        heaps.append(heap)
    compared = ask(bench, "heap-diff", *heaps, "--by", "module")
    equal(compared["after"]["outside_bytes"] - compared["before"]["outside_bytes"], 20 * SIZE, "growth outside")
    row = next(row for row in compared["tables"][0]["rows"] if row["name"] == "Slices")
    equal((row["change"], row["growth_outside_bytes"]), ("grown", 20 * SIZE), row)
    gate = subprocess.run([bench.heaptap, "heap-diff", *heaps, "--fail-over", "1MiB"], capture_output=True, text=True)
    equal(gate.returncode, 3, gate.stdout)
    rows = ask(bench, "heap-diff", *heaps, "--by", "site")["tables"][0]["rows"]
    expect(rows[0]["site"]["name"].endswith("Array1.create"), rows[0])
    # With the blocks of the arrays.
    expect(20 * SIZE <= rows[0]["growth_bytes"] < 20 * (SIZE + 100) and rows[0]["growth_error"] == 0, rows[0])
