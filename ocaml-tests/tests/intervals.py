"""The intervals of `heaptap report` contain the true values, which a trace at rate 1 gives.

HEAPTAP_INTERVAL_RUNS says over how many seeds; `make test-long` takes 200.
"""

import json
import os
from math import sqrt

from bench import expect, scenario

RUNS = int(os.environ.get("HEAPTAP_INTERVAL_RUNS", 40))
RATE = 0.02


def report(bench, *options):
    return json.loads(bench.run(bench.heaptap, "report", "--json", "--top", "0", *options, bench.path("trace.ctf")).out)


def traced(bench, rate, seed):
    """The totals and sites of a deterministic program."""
    bench.run("lives", env=bench.preload(rate=rate, HEAPTAP_SEED=seed))
    found = report(bench, "--by", "location")
    sites = {(row.get("file"), row.get("line"), tuple(row.get("chars", ()))): row for row in found["table"]["rows"]}
    return found["totals"], sites


def holds(size, truth):
    return size["low"] <= truth <= size["high"]


@scenario
def totals_sites_and_peak(bench):
    """95 % of the intervals, within 3.5 sigma for this number of seeds; with 200, 93 to 97 % or 3 sigma."""
    truth, true_sites = traced(bench, 1, 1)
    sites = {place: row["bytes"] for place, row in true_sites.items() if row["samples"] * RATE >= 20}
    expect(len(sites) >= 5, f"only {len(sites)} sites are large enough to be judged")
    held = {"total": 0, "peak": 0, "sites": 0}
    for seed in range(1001, RUNS + 1001):
        totals, found = traced(bench, RATE, seed)
        held["total"] += holds(totals["allocated"], truth["allocated"]["bytes"])
        held["peak"] += holds(totals["peak"], truth["peak"]["bytes"])
        held["sites"] += sum(place in found and holds(found[place], size) for place, size in sites.items())
    cases = {"total": RUNS, "peak": RUNS, "sites": RUNS * len(sites)}
    shares = {name: held[name] / cases[name] for name in held}
    print(f"    {RUNS} seeds from 1001 on: " + ", ".join(f"{name} {share:.3f}" for name, share in shares.items()))
    for name, share in shares.items():
        room = max(0.02, 3.5 * sqrt(0.95 * 0.05 / cases[name]))
        expect(abs(share - 0.95) <= room, f"{name}: {share:.3f} of {cases[name]} intervals hold the truth")
