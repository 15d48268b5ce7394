"""Below rate 1 the number of samples follows the binomial distribution."""

import json
import os
import subprocess
from math import sqrt

from bench import expect, family

SEEDS = 40

# At most so many words are allocated in a scenario of `words_of_each_place`; `make test-long` takes 10^8.
WORDS = float(os.environ.get("HEAPTAP_ESTIMATE_WORDS", 2e6))
IS_LONG = WORDS > 2e6


def words(bench, program, rate, seed):
    """The number of samples in the heap. Those outside are few and large, and are not counted."""
    bench.run(program, env=bench.preload(rate=rate, HEAPTAP_SEED=seed, HEAPTAP_FRAMES=1))
    return sum(alloc.samples for alloc in bench.allocs() if alloc.source != "external")


@family({f"{program}_{rate}": (program, rate) for program in ["young", "marshalled", "weak", "young.byte"]
         for rate in [0.01, 1e-3]})
def over_many_seeds(bench, program, rate):
    """The distance from the mean, in standard deviations, has mean 0 ± 1/√n and mean square 1 ± √(2/n).

    Both must hold within 4 sigma."""
    truth = words(bench, program, 1, 1)
    sigma = sqrt(truth * rate * (1 - rate))
    distances = [(words(bench, program, rate, seed) - truth * rate) / sigma for seed in range(1, SEEDS + 1)]
    mean = sum(distances) / SEEDS
    square = sum(distance * distance for distance in distances) / SEEDS
    expect(abs(mean) < 4 / sqrt(SEEDS), f"seeds 1 to {SEEDS}: {mean:.3f} sigma off in the mean, of {truth} words")
    expect(abs(square - 1) < 4 * sqrt(2 / SEEDS), f"seeds 1 to {SEEDS}: squared distance {square:.3f}, should be 1")


def samples_by_function(bench):
    """The number of samples in each function."""
    command = [bench.heaptap, "report", "--json", "--by", "function", bench.path("trace.ctf")]
    rows = json.loads(subprocess.check_output(command))["table"]["rows"]
    return {row["name"].split(".")[-1]: row["samples"] for row in rows}


def unbiased(bench, program, heap, rate, domains=1):
    """Each place of the program gets its share of samples, whatever makes the runtime collect: within 5 sigma. At high
    rates and with many collections, in which all domains wait for each other, fewer words show as much."""
    words = min(WORDS, WORDS / rate / 50, WORDS / 400 * heap / domains ** 2)
    turns = int(words / 20 / domains)
    env = bench.preload(rate=rate, HEAPTAP_FRAMES=2, OCAMLRUNPARAM=f"s={heap}")
    printed = bench.run(program, turns, domains, env=env).out
    truth = {place: int(words) for place, words in map(str.split, printed.splitlines())}
    sampled = samples_by_function(bench)
    sampled["all"] = sum(sampled.get(place, 0) for place in truth)
    for place, words in (*truth.items(), ("all", sum(truth.values()))):
        mean, sigma = words * rate, sqrt(words * rate * (1 - rate))
        distance = (sampled.get(place, 0) - mean) / max(sigma, 1)
        expect(abs(distance) < 5, f"{place}: {sampled.get(place, 0)} samples, should be {mean:.0f}: {distance:.1f} sigma")


# Words of a young heap, and rates.
YOUNG_HEAPS = [256, 512, 4096, 32768, 262144] if IS_LONG else [256, 512, 4096]
RATES = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5] if IS_LONG else [1e-2, 0.5]


@family({f"{program}_{heap}_{rate}": (program, heap, rate) for program in ["sites", "sites.byte"]
         for heap in YOUNG_HEAPS for rate in RATES})
def words_of_each_place(bench, program, heap, rate):
    unbiased(bench, program, heap, rate)
