"""Runtimes without a young heap: kinds, functions that die, frees, reallocation. interpreter.c counts, too."""

import json
import re
import shutil

from bench import Skip, Tally, equal, expect, family, scenario


def run(bench, way, *more):
    file = bench.path(f"{way}.ctf")
    result = bench.run("interpreter", way, file, *more, code=None)
    expect(result.code == 0, f"ended with {result.code}: {result.out.strip()[-1500:]} {result.err.strip()[-500:]}")
    bench.check(file)
    return file, result


def rows(bench, file, by, *more):
    """{name: bytes} of a report."""
    report = json.loads(bench.tool("report", file, "--by", by, "--json", "--top", "0", *more).out)
    sizes = {}
    for row in report["table"]["rows"]:
        sizes[row["name"]] = sizes.get(row["name"], 0) + round(row["bytes"])
    return sizes


@scenario
def kinds(bench):
    """Each kind has the words that the host counted; functions and lines are what they are without kinds."""
    file, result = run(bench, "kinds")
    words = result.numbers("kinds")
    by_kind = rows(bench, file, "kind")
    names = {"table": "table", "string": "string", "closure": "closure", "kind 77": "unnamed", "(no kind)": "none"}
    equal(by_kind, {name: words[key] * 8 for name, key in names.items()}, "bytes by kind")
    equal(sum(rows(bench, file, "location").values()), sum(words.values()) * 8, "bytes by location")
    functions = rows(bench, file, "function")
    expect(not {"table", "string", "closure"} & set(functions), f"kinds among functions: {sorted(functions)}")
    whole = rows(bench, file, "kind", "--sites", "own")
    equal(whole, by_kind, "kinds with other sites")
    text = bench.tool("info", file).out
    expect(re.search(r"kinds .*table.*closure", text), f"info does not name the kinds: {text}")
    equal(json.loads(bench.tool("info", file, "--json").out)["kinds"], ["table", "string", "kind 77", "closure"], "kinds")


@scenario
def kinds_in_a_series(bench):
    """A part that is read by itself knows the kinds of what was alive when it began; all parts are as one trace."""
    result = bench.run("interpreter", "parts", bench.path("parts.ctf"))
    words = result.numbers("kinds")
    files = sorted(str(file) for file in bench.directory.glob("parts*.ctf"))
    equal(len(files), 2, f"files: {files}")
    whole = rows(bench, str(bench.directory), "kind")
    # Files are joined by the names of kinds: one that has none is no kind.
    words["none"] += words["unnamed"]
    names = {"table": "table", "string": "string", "closure": "closure", "(no kind)": "none"}
    equal(whole, {name: words[key] * 8 for name, key in names.items()}, "bytes by kind")
    live = rows(bench, files[1], "kind", "--metric", "live")
    expect(live["closure"] * 3 > words["closure"] * 8, f"live closures of the second part and before: {live}")


@scenario
def kinds_in_copies(bench):
    """Kinds stay when a trace is recoded, or merged with one in which they have other numbers."""
    file, _ = run(bench, "kinds")
    once = rows(bench, file, "kind")
    copy = bench.path("copy.ctf")
    bench.tool("recode", file, copy)
    equal(rows(bench, copy, "kind"), once, "bytes by kind of a copy")
    other, _ = run(bench, "captured")
    both = rows(bench, file, "kind", other)
    more = rows(bench, other, "kind")
    equal(both["table"], once["table"], "tables in a merge")
    equal(both["Widget"], more["Widget"], "widgets in a merge")


@scenario
def kinds_are_cheap(bench):
    """They take little room: the codes of one place differ, but their locations are written once."""
    file, _ = run(bench, "kinds")
    locations = int(re.search(r"(\d+) locations", bench.tool("check", file).out).group(1))
    expect(locations <= 20 * 5 + 5, f"{locations} locations, of 20 lines and 4 kinds")


@scenario
def functions(bench):
    """A function that died long ago has its names and lines; a C function those of the debug information."""
    file, _ = run(bench, "functions")
    innermost = [event.frames()[-1] for event in bench.dump(file) if event.kind == "alloc"]
    for number, frame in enumerate(innermost[:-1]):
        chunk = number % 10
        equal(frame.split(":0-0")[0], f"chunk{chunk}@loaded.lua:{100 * chunk + number % 3}", f"frame {number}")
    expect(innermost[-1].startswith("a_c_function@"), f"a C function is {innermost[-1]}")
    report = bench.tool("report", file, "--by", "location").out
    expect("loaded.lua:" in report and ":0-0" not in report, f"columns that are not known: {report}")


@family({"all": ("1",), "some": ("1e-3",), "few": ("1e-5",)})
def frees(bench, rate):
    """Every sampled block ends once; afterwards nothing is said to be sampled."""
    file, result = run(bench, "frees", rate)
    tally = Tally(bench.dump(file))
    equal(tally.collections, tally.allocations, "collections")
    if rate == "1":
        equal(tally.allocations, result.numbers("frees")["blocks"], "allocations")


@scenario
def an_unsampled_free(bench):
    """At most six instructions inline, counted by callgrind."""
    if shutil.which("valgrind") is None:
        raise Skip("valgrind is not installed")
    out = bench.path("callgrind.out")
    under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-strings=no",
             "--compress-pos=no", "--dump-instr=yes"]
    result = bench.run("interpreter", "frees", bench.path("frees.ctf"), "1e-7", "3", under=under)
    frees, sampled = result.numbers("frees")["blocks"], result.numbers("frees")["allocations"]
    count, function, skip = 0, None, False
    for line in open(out, encoding="utf-8", errors="replace"):
        if line.startswith("fn="):
            function = line[3:].strip()
        elif line.startswith("calls="):
            skip = True
        elif line.startswith("0x"):
            if not skip and function == "release_block":
                count += int(line.split()[2])
            skip = False
    # The function of the test returns, too.
    expect(frees - sampled <= count <= 7 * frees + 10 * sampled, f"{count / frees} instructions for each of {frees}")


@scenario
def reallocs(bench):
    """What is carried over counts once, whatever another thread does with the old addresses."""
    file, result = run(bench, "reallocs")
    numbers = result.numbers("reallocs")
    tally = Tally(bench.dump(file))
    equal(tally.words["external"], numbers["words"] + numbers["taken"], "words")
    expect(numbers["carried"] > numbers["words"], "hardly anything was carried over")
    equal(tally.collections, tally.allocations, "collections")


@family({"all": ("1", 1), "some": ("0.05", 1)})
def captured(bench, rate, seed):
    """A stack that the host walked before is the block's."""
    file, result = run(bench, "captured", rate, seed)
    numbers = result.numbers("captured")
    events = [event for event in bench.dump(file) if event.kind == "alloc"]
    equal(len(events), numbers["told"] + (1 if rate == "1" else len(events) - numbers["told"]), "blocks")
    of_widgets = [event for event in events if event.frames()]
    equal(len(of_widgets), numbers["told"], "blocks with a stack")
    expect(all(event.site() == "Widget#new" for event in of_widgets), "a site that is not Widget#new")
    if rate == "1":
        for number, event in enumerate(of_widgets):
            equal(len(event.frames()), 1 + number % 3, f"the frames of block {number}")


@scenario
def unseen_words_do_not_bias(bench):
    """Over 40 seeds at 0.05, what is sampled of 11,994 words is within 4.5 sigma."""
    words = samples = unseen = 0
    for seed in range(1, 41):
        file, result = run(bench, "captured", "0.05", seed)
        numbers = result.numbers("captured")
        words, unseen = words + numbers["words"], unseen + numbers["unseen"]
        # The last block is one word, behind what was skipped.
        samples += sum(event.samples for event in bench.dump(file) if event.kind == "alloc" and event.frames())
    expect(unseen > 0, "nothing went by unseen")
    # What goes by unseen is known to hold no sample: the gap that is left covers the other words.
    mean, sigma = (words + unseen) * 0.05, ((words + unseen) * 0.05 * 0.95) ** 0.5
    expect(abs(samples - mean) < 4.5 * sigma, f"{samples} samples of {words} words, {mean:.0f} ± {sigma:.0f} expected")


@scenario
def scattered(bench):
    """Young blocks can be promoted wherever they are; memory that belongs to a block ends with it."""
    file, result = run(bench, "scattered")
    tally = Tally(bench.dump(file))
    numbers = result.numbers("scattered")
    equal(tally.words["external"], numbers["outside"], "words outside")
    equal(tally.words["minor"], 5000, "young words")
    equal(tally.collections, tally.allocations, "collections")
