"""Rate 1: a trace says exactly what the runtime counted."""

import itertools

from bench import Tally, equal, expect, family, scenario

UPWARD = ("VARIANT=upward", "VARIANT_CFLAGS=-DRT_UPWARD")

PROGRAMS = {
    "trees": ("trees", 9, "--young", 2048),
    "trees_compacting": ("trees", 12, "--young", 1024, "--compact-every", 2),
    "deep": ("deep", 1500, "--young", 512),
    "maps": ("maps", 3000, "--young", 4096, "--compact-every", 3),
    "parser": ("parser", 12, "--young", 2048, "--compact-every", 2),
    "pairs": ("pairs", 4000),
    "server": ("server", 600, "--threads", 3, "--young", 1024),
    "server_compacting": ("server", 600, "--threads", 3, "--young", 1024, "--compact-every", 2),
}


@family({name: values for name, values in PROGRAMS.items()})
def counts(bench, program, *arguments):
    """Words, blocks, promotions and collections are those of the runtime; the program does the same."""
    compare_counts(bench, "plain", program, *arguments)


@family({name: values for name, values in PROGRAMS.items()})
def upward_counts(bench, program, *arguments):
    """The same on a runtime whose young heaps are filled from below."""
    bench.make(*UPWARD)
    compare_counts(bench, "upward", program, *arguments)


def compare_counts(bench, variant, program, *arguments):
    untraced = bench.run(program, *arguments, "--counters", "--final-gc", variant=variant)
    file, traced = bench.trace(program, *arguments, "--counters", "--final-gc", "--stats", variant=variant)
    equal(traced.checksum(), untraced.checksum(), "checksum")
    counters = traced.numbers("counters")
    if program != "server":  # its threads interleave differently
        equal(counters, untraced.numbers("counters"), "the runtime's counters")
    bench.check(file)
    tally = Tally(bench.dump(file))
    for source, name in (("minor", "young"), ("major", "major"), ("external", "external")):
        blocks, words = counters[f"{name}_blocks"], counters[f"{name}_words"]
        equal(tally.blocks[source], blocks, f"{source} blocks")
        equal(tally.words[source], words, f"{source} words")
        equal(tally.lengths[source], words - (0 if source == "external" else blocks), f"{source} lengths")
    equal(tally.promotions, counters["promoted_blocks"], "promotions")
    equal(tally.collections, counters["collected_blocks"], "collections")
    equal(tally.collections, tally.allocations, "collections after everything died")
    stats = traced.numbers("stats")
    equal(stats["allocations"], tally.allocations, "allocations in the statistics")
    equal(stats["promotions"], tally.promotions, "promotions in the statistics")
    equal(stats["collections"], tally.collections, "collections in the statistics")
    equal(stats["samples"], tally.samples, "samples in the statistics")
    equal((stats["dropped"], stats["live_blocks"]), (0, 0), "dropped and live blocks")


@family(
    {
        "trees": ("trees", 6),
        "deep": ("deep", 300, "--young", 512),
        "maps": ("maps", 400, "--young", 1024),
        "parser": ("parser", 3, "--young", 1024, "--compact-every", 2),
        "pairs": ("pairs", 200),
    }
)
def backtraces(bench, program, *arguments):
    """Every backtrace is the runtime's own, frame by frame, through C code and inlining."""
    compare_backtraces(bench, "plain", program, *arguments)


@family({"pairs": ("pairs", 200), "parser": ("parser", 3, "--young", 1024, "--compact-every", 2)})
def upward_backtraces(bench, program, *arguments):
    """The same where young heaps are filled from below: the parts of an allocation are in order, too."""
    bench.make(*UPWARD)
    compare_backtraces(bench, "upward", program, *arguments)


def compare_backtraces(bench, variant, program, *arguments):
    own = bench.path("stacks")
    file, _ = bench.trace(program, *arguments, "--stacks", own, variant=variant)
    traced = (event for event in bench.dump(file) if event.kind == "alloc")
    compared = 0
    with open(own, encoding="utf-8") as lines:
        for number, (line, event) in enumerate(itertools.zip_longest(lines, traced)):
            expect(line is not None and event is not None, f"allocation {number} is missing on one side")
            source, length, *frames = line.rstrip("\n").split(" ")
            equal((event.source, event.length), (source, int(length)), f"allocation {number}")
            equal(event.frames(), frames, f"backtrace of allocation {number}")
            compared += len(frames)
    expect(compared > 1000, f"only {compared} frames were compared")


@scenario
def from_the_environment(bench):
    """HEAPTAP and MEMTRACE, with %p and %e in the name."""
    for variable in ("HEAPTAP", "MEMTRACE"):
        env = {variable: bench.path(f"{variable}-%e-%p.ctf"), f"{variable}_RATE": "1", "HEAPTAP_SEED": "7"}
        result = bench.run("pairs", 100, "--counters", env=env)
        files = list(bench.directory.glob(f"{variable}-pairs-*.ctf"))
        equal(len(files), 1, f"files named by {variable}")
        expect(files[0].stem.rsplit("-", 1)[1].isdigit(), f"no process id in {files[0].name}")
        bench.check(str(files[0]))
        tally = Tally(bench.dump(str(files[0])))
        equal(tally.words["minor"], result.numbers("counters")["young_words"], "words")


@scenario
def same_seed_same_samples(bench):
    def events(seed, name):
        file, _ = bench.trace("maps", 5000, rate=0.01, seed=seed, name=name)
        return [(e.id, e.kind, e.kind == "alloc" and (e.length, e.samples, e.frames_text)) for e in bench.dump(file)]

    first = events(42, "a.ctf")
    equal(len(first) > 100, True, "more than 100 events")
    expect(events(42, "b.ctf") == first, "the same seed gave other samples")
    expect(events(43, "c.ctf") != first, "another seed gave the same samples")
