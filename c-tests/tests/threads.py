"""Many mutators at once: nothing lost, nothing doubled."""

import json

from bench import Tally, alone, equal, expect, scenario

LABELS = ("login", "browse", "report")


def holds(bench, file, result):
    bench.check(file)
    stats = result.numbers("stats")
    tally = Tally(bench.dump(file))
    equal(stats["dropped"], 0, "dropped")
    equal(tally.allocations, stats["sampled_blocks"], "allocations and sampled blocks")
    equal(tally.samples, stats["samples"], "samples")
    equal(tally.promotions, stats["promotions"], "promotions")
    equal(tally.collections, tally.allocations, "collections after everything died")
    return tally


@scenario
@alone
def sixty_four(bench):
    """64 threads at 1e-2; their estimate of all words is within 5 sigma."""
    size = 1000000 if bench.long else 8000
    arguments = ("server", size, "--threads", 64, "--counters", "--stats", "--final-gc")
    file, result = bench.trace(*arguments, rate=0.01, timeout=600)
    tally = holds(bench, file, result)
    counters = result.numbers("counters")
    for source, name in (("minor", "young"), ("major", "major"), ("external", "external")):
        words = counters[f"{name}_words"]
        deviation = (words * 0.01 * 0.99) ** 0.5
        z = (tally.words[source] - words * 0.01) / deviation
        expect(abs(z) < 5, f"{source}: {tally.words[source]} samples of {words} words, {z:+.1f} sigma")
    domains = json.loads(bench.tool("info", "--json", file).out)["domains"]
    equal(len(domains) >= 64, True, f"64 domains or more in {domains}")


@scenario
def labels_by_request(bench):
    """Every sample of a worker carries the label of its request."""
    file, result = bench.trace("server", 500, "--threads", 4, "--final-gc", "--stats")
    bench.check(file)
    seen = dict.fromkeys(LABELS, 0)
    for event in bench.dump(file):
        if event.kind != "alloc":
            continue
        frames = event.frames()
        for label in LABELS:
            if any(frame.startswith(f"{label}@programs/server.c") for frame in frames):
                seen[label] += 1
                expect(frames[0].startswith(label), f"the outermost frame in {label} is {frames[0]}")
                expect("programs/server.c" not in frames[0], f"no label outside of {frames[0]}")
    expect(min(seen.values()) > 10, f"samples by label: {seen}")


@scenario
def comings_and_goings(bench):
    """Threads that start and end all the time, with heirs and without."""
    for round in range(20 if bench.long else 5):
        file, result = bench.trace("server", 50, "--threads", 48, "--counters", "--stats", "--final-gc",
                                   "--young", 512, seed=round + 1)
        holds(bench, file, result)
