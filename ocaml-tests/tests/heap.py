"""What holds the memory: causes that are planted are found by name, and a steady program has none."""

import json
import subprocess

from bench import HERE, alone, equal, expect, family, scenario

ELEMENTS = 20_000


def analysed(bench, way, *options, program="planted"):
    """What `heaptap heap --json` says about the program when it ends, and what it printed."""
    heap = bench.path(f"{way}.heap")
    env = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": heap}
    result = bench.run(program, way, env=env)
    equal(result.err, "", "standard error")
    found = subprocess.run([bench.heaptap, "heap", "--types", "none", "--json", *options, heap], capture_output=True, text=True)
    equal(found.returncode, 0, found.stderr[-500:])
    return json.loads(found.stdout), result.out


def the_one(figures, kind):
    """The only finding."""
    equal([finding["kind"] for finding in figures["findings"]], [kind], "kinds of findings")
    return figures["findings"][0]


def on_path(finding, *words):
    """These words are in parts of the path, in this order."""
    parts = iter(finding["path"])
    for word in words:
        expect(any(word in part for part in parts), f"{word!r} is not in {finding['path']} in its place")


# Way, elements, and what is on the path from the holder to them.
ACCUMULATIONS = {
    "cache": ("Planted, field", "block of 4 words", "array", "block of 3 words"),
    "list": ("Planted, field", "block of 1 word", "block of 2 words"),
    "closure": ("Planted, field", "planted.ml:", "block of 2 words"),
    "thread": ("Planted.worker", "block of 2 words"),
}


@family({way: (way, "planted", path) for way, path in ACCUMULATIONS.items()} |
        {f"{way}.bytecode": (way, "planted.byte", path) for way, path in ACCUMULATIONS.items()
         if way in ("cache", "list")})
def an_accumulation(bench, way, program, path):
    figures, _ = analysed(bench, way, program=program)
    finding = the_one(figures, "accumulation")
    equal(finding["elements"], ELEMENTS, "elements")
    expect(finding["retained_bytes"] > 0.9 * figures["reachable"]["bytes"], finding["text"])
    on_path(finding, *(path if program == "planted" else path[-2:]))


@scenario
def a_finaliser_that_holds_its_value(bench):
    figures, _ = analysed(bench, "finaliser")
    finding = the_one(figures, "finaliser cycle")
    equal(finding["elements"], 100, "values")
    expect(finding["retained_bytes"] > 100 * 40_000, finding["text"])
    on_path(finding, "planted.ml:", "block of 2 words")


@scenario
def a_chain_of_ephemerons(bench):
    figures, _ = analysed(bench, "ephemerons")
    finding = the_one(figures, "ephemeron chain")
    equal(finding["elements"], 1_000, "links")
    on_path(finding, "Planted, field", "ephemeron")


@scenario
def memory_outside_the_heap(bench):
    figures, _ = analysed(bench, "bigarray")
    finding = the_one(figures, "outside memory")
    equal((finding["elements"], finding["outside_bytes"]), (64, 64 * 262_144), "bigarrays and their bytes")
    on_path(finding, "Planted, field", "custom _bigarr02")


@scenario
def a_steady_program_has_no_suspect(bench):
    figures, _ = analysed(bench, "steady")
    equal(figures["findings"], [], "findings")


@family({"cache": ("cache", 0), "list": ("list", 1)})
def exclusive_is_what_the_runtime_counts(bench, way, column):
    """A variable that shares nothing retains what `Obj.reachable_words` counts, headers included."""
    figures, printed = analysed(bench, way, "-n", "1")
    words = int(printed.split()[column])
    row = figures["table"]["rows"][0]
    equal(row["exclusive_bytes"], 8 * words, row["name"])


@scenario
def questions(bench):
    """A path to a block, what points to a kind of block, and what two holders share."""
    analysed(bench, "cache")

    def ask(*options):
        command = [bench.heaptap, "heap", "--types", "none", "--json", *options, bench.path("cache.heap")]
        return json.loads(subprocess.check_output(command))

    path = ask("--path", "array or block of 16384")
    expect(path["shortest"][0].startswith("Planted, field"), path)
    expect(len(path["shortest"]) == 3 and path["shortest"] == path["dominators"][-3:], path)
    equal(path["holders"], path["shortest"][:1], "holders")
    referrers = ask("--referrers", "^block of 3 words")["referrers"]
    # The buckets, and a few blocks of other modules.
    pointers = sum(row["pointers"] for row in referrers)
    expect(ELEMENTS <= pointers < ELEMENTS + 100, f"{pointers} pointers")
    shared = ask("--shared", path["holders"][0], "--shared", "globals")
    equal(shared["shared_bytes"], shared["reachable_bytes"][0], "what a variable shares with its kind")


@scenario
def growth(bench):
    """Two snapshots of different content: the table is new, the list is gone."""
    for way in ("list", "cache"):
        analysed(bench, way)
    command = [bench.heaptap, "heap-diff", "--types", "none", bench.path("list.heap"), bench.path("cache.heap"), "--json", "--by", "variable"]
    rows = json.loads(subprocess.check_output(command))["tables"][0]["rows"]
    shrunk, grown = sorted(rows[:2], key=lambda row: row["growth_bytes"])
    expect(grown["growth_bytes"] > 2_000_000 and shrunk["growth_bytes"] < -2_000_000, rows[:2])
    expect(all(row["name"].startswith("Planted, field") for row in rows[:2]), rows[:2])
    for earlier, elements, words in (("list", ELEMENTS, "has none of it"), ("cache", 0, "has not grown")):
        compared = [bench.heaptap, "heap", "--types", "none", "--json", bench.path("cache.heap"), "--earlier", bench.path(f"{earlier}.heap")]
        finding = the_one(json.loads(subprocess.check_output(compared)), "accumulation")
        equal(finding["growth"]["elements"], elements, f"elements more than in {earlier}.heap")
        expect(words in finding["text"], finding["text"])
    limited = subprocess.run([*command, "--fail-over", "1KiB"], capture_output=True)
    equal(limited.returncode, 3, "exit status above the limit")


@family({"exact": (1,), "estimated": (0.05,)})
def where_what_is_held_was_allocated(bench, rate):
    """The join with the trace: at rate 1 the samples are all that a variable retains, else their estimate has an error."""
    heap = bench.path("cache.heap")
    env = {**bench.preload(rate=rate), "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": heap}
    equal(bench.run("planted", "cache", env=env).err, "", "standard error")

    def ask(*options):
        return json.loads(subprocess.check_output([bench.heaptap, "heap", "--types", "none", "--json", *options, heap]))

    def info(file):
        return json.loads(subprocess.check_output([bench.heaptap, "info", "--json", file]))

    start = info(heap)["trace_start_us"]
    equal(start, info(bench.path("trace.ctf"))["start_unix_us"], "start of the trace, as the snapshot has it")
    variable = ask("-n", "1")["table"]["rows"][0]
    joined = ask("--by", "site", "-n", "0", "--within", f"^{variable['name']}$")
    equal(joined["exact_bytes"], variable["exclusive_bytes"], "what the variable retains")
    estimated = joined["estimated"]
    if rate == 1:
        equal(estimated["bytes"], joined["exact_bytes"], "bytes of the samples")
    distance = abs(estimated["bytes"] - joined["exact_bytes"])
    expect(distance <= 4.5 * estimated["error"], f"{estimated} of {joined['exact_bytes']}")
    lines = [row["site"] for row in joined["rows"] if row["site"]["file"] == "planted.ml"]
    expect(any(site["name"].endswith("entry") for site in lines), lines)
    expect(all(row["holder"] == variable["name"] for row in joined["rows"]), "holders")
    # Without its trace, a snapshot names what is missing and the remedy.
    lost = subprocess.run([bench.heaptap, "heap", "--by", "site", "--trace", bench.path("none.ctf"), heap],
                          capture_output=True, text=True)
    equal(lost.returncode, 2, lost.stderr)
    # Neither is another run's trace joined: its blocks have the same ids.
    bench.run("planted", "cache", env=bench.preload("other.ctf", rate=rate))
    other = subprocess.run([bench.heaptap, "heap", "--by", "site", "--trace", bench.path("other.ctf"), heap],
                           capture_output=True, text=True)
    equal(other.returncode, 2, other.stderr)
    expect("it is of another process" in other.stderr, other.stderr)


# Of a record of four fields, with its header.
ENTRIES = ELEMENTS * 5 * 8


def holders(bench, way, rate, *options):
    """What `heaptap report --heap` says about a program whose snapshot was taken at its end: the figures and the row
    of the function that makes the entries."""
    heap = bench.path(f"{way}.heap")
    env = {**bench.preload(rate=rate), "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": heap}
    equal(bench.run("planted", way, env=env).err, "", "standard error")
    command = [bench.heaptap, "report", "--json", "--top", "0", "--types", "none", "--heap", heap, *options, bench.path("trace.ctf")]
    figures = json.loads(subprocess.check_output(command))
    rows = [row for row in figures["table"]["rows"] if row["name"].endswith("lanted.entry")]
    equal(len(rows), 1, f"rows of Planted.entry among {[row['name'] for row in figures['table']['rows']]}")
    return figures, rows[0]


@family({"exact": (1,), "estimated": (1e-2,)})
def reports_say_what_holds_each_row(bench, rate):
    """The table holds all entries, and what it retains is what the snapshot says, within the stated error."""
    figures, row = holders(bench, "cache", rate, "--metric", "live")
    heap = bench.path("cache.heap")
    command = [bench.heaptap, "heap", "--types", "none", "--json", "-n", "1", heap]
    variable = json.loads(subprocess.check_output(command))["table"]["rows"][0]

    def close(estimate, truth, name):
        if rate == 1:
            equal((estimate["bytes"], estimate["error"]), (truth, 0), name)
        expect(abs(estimate["bytes"] - truth) <= 4.5 * estimate["error"], f"{name}: {estimate}, should be {truth}")

    def shares(held_by):
        expect(abs(sum(part["share"] for part in held_by) - 1) < 1e-9, held_by)
        expect(all((part["share_error"] == 0) == (rate == 1) for part in held_by), held_by)

    equal([part["holder"] for part in row["held_by"]], [variable["name"]], "holders of the entries")
    close(row["in_snapshot"], ENTRIES, "entries in the snapshot")
    close(row["held_by"][0], ENTRIES, "entries that the table holds")
    of_all = figures["snapshot"]["held_by"]
    equal(of_all[0]["holder"], variable["name"], "the greatest holder")
    close(of_all[0], variable["exclusive_bytes"], "what the table holds of all rows")
    for held_by in (row["held_by"], of_all):
        shares(held_by)


@family({"exact": (1,), "estimated": (1e-2,)})
def what_nothing_holds_is_called_garbage(bench, rate):
    _, row = holders(bench, "dropped", rate)
    equal([part["holder"] for part in row["held_by"]], ["(garbage)"], "holders")
    expect(abs(row["in_snapshot"]["bytes"] - ENTRIES) <= 4.5 * row["in_snapshot"]["error"], row)
    text = subprocess.check_output([bench.heaptap, "report", "--sites", "innermost", "--heap",
                                    bench.path("dropped.heap"), bench.path("trace.ctf")], text=True)
    expect("held by nothing; garbage 100.0 %" in text, text)


@scenario
@alone
def a_leak_names_its_holder(bench):
    heap = bench.path("habits.heap")
    env = {**bench.preload(rate=1e-3), "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": heap}
    bench.run("habits", 1, 0.01, 6, env=env)
    command = [bench.heaptap, "leaks", "--types", "none", "--heap", heap, bench.path("trace.ctf")]
    source = (HERE / "programs" / "habits.ml").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "(* the leak *)" in text)
    found = json.loads(subprocess.check_output([*command, "--json"]))["leaks"]
    # The line allocates the bytes and a cell of the list.
    leaks = [leak for leak in found if leak["site"].get("file") == "habits.ml" and leak["site"].get("line") == line]
    expect(leaks, [leak["site"] for leak in found])
    text = subprocess.check_output(command, text=True)
    for leak in leaks:
        first = leak["held_by"][0]
        expect(first["holder"].startswith("Habits, field ") and first["share"] > 0.95, leak["held_by"])
        expect(f"held by     {first['holder']} (" in text, text)
    # Another run's snapshot is refused, and the message names the trace to which it belongs.
    bench.run("planted", "cache", env=bench.preload("other.ctf"))
    for verb in ("report", "leaks"):
        other = subprocess.run([bench.heaptap, verb, "--heap", heap, bench.path("other.ctf")],
                               capture_output=True, text=True)
        equal(other.returncode, 2, other.stderr)
        expect("it is of another process" in other.stderr and "trace.ctf" in other.stderr, other.stderr)
