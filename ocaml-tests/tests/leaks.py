"""Leaks in real programs are found, and none are reported in steady programs.

HEAPTAP_LEAK_RUNS says how many of each; `make test-long` takes 20.
"""

import json
import os

from bench import HERE, alone, expect, family

RUNS = int(os.environ.get("HEAPTAP_LEAK_RUNS", 2))
# At this rate six seconds have as many samples as a minute at 1e-4.
RATE, SECONDS = 1e-3, 6


def verdict(bench, seed, share):
    bench.run("habits", seed, share, SECONDS, env=bench.preload(rate=RATE, HEAPTAP_SEED=seed))
    return json.loads(bench.run(bench.heaptap, "leaks", "--json", bench.path("trace.ctf")).out)


def said(found):
    places = [f"{leak['site'].get('file')}:{leak['site'].get('line')}" for leak in found["leaks"]]
    return f"{found['verdict']} {places}"


@family({str(seed): (seed,) for seed in range(1, RUNS + 1)})
@alone
def planted(bench, seed):
    """1 % of what is allocated is kept. Its line is reported, and no other."""
    source = (HERE / "programs" / "habits.ml").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "(* the leak *)" in text)
    found = verdict(bench, seed, 0.01)
    lines = {(leak["site"].get("file"), leak["site"].get("line")) for leak in found["leaks"]}
    expect(lines == {("habits.ml", line)}, f"seed {seed}: {said(found)}, should be line {line}")


@family({str(seed): (seed,) for seed in range(101, RUNS + 101)})
@alone
def steady(bench, seed):
    """Sessions, rings, caches and phases that come and go."""
    found = verdict(bench, seed, 0)
    expect(found["conclusive"] and not found["leaks"], f"seed {seed}: {said(found)}")
