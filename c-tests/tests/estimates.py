"""Statistics: estimates are unbiased and spread like the binomial law, per site and source.

With n words at a site, rate p and k seeds: the sum of samples has mean k n p and deviation
sqrt(k n p (1 - p)); the sum of squared deviations in units of n p (1 - p) has mean k and deviation
sqrt(k (2 + 1 / (n p))). Everything must be within 4 sigma, which a correct sampler misses once in
16,000 checks; seeds are fixed, so a run that passes passes again.
"""

import math

from bench import Failure, expect, family

SIGMA = 4


def site_words(result):
    """{(site, source, length): words allocated there}, as the program says."""
    words = {}
    for line in result.out.splitlines():
        if line.startswith("site "):
            _, name, source, times, each = line.split(" ")
            length = int(each) - (0 if source == "external" else 1)
            words[name, source, length] = int(times) * int(each)
    return words


def samples_by_site(bench, file, sites):
    counts = dict.fromkeys(sites, 0)
    for event in bench.dump(file):
        if event.kind == "alloc":
            key = (event.site(), event.source, event.length)
            expect(key in counts, f"a sample at {key}, where nothing is allocated")
            counts[key] += event.samples
    return counts


def within(value, mean, deviation, what):
    z = (value - mean) / deviation
    expect(abs(z) < SIGMA, f"{what}: {value:.1f}, expected {mean:.1f} ± {deviation:.1f}, off by {z:+.1f} sigma")


@family(
    {
        "rate_1e-1": (0.1, 500, 40, 200),
        "rate_1e-3": (1e-3, 4000, 200, 1000),
        "rate_1e-4": (1e-4, 40000, 40, 300),
        "rate_1e-5": (1e-5, 400000, 10, 100),
    }
)
def binomial(bench, rate, size, quick_seeds, long_seeds):
    seeds = range(1, 1 + (long_seeds if bench.long else quick_seeds))
    print(f"# pairs {size} at {rate}, seeds {seeds.start} to {seeds.stop - 1}, {SIGMA} sigma")
    words, all_counts = None, []
    for seed in seeds:
        file, result = bench.trace("pairs", size, "--sites", rate=rate, seed=seed)
        words = words or site_words(result)
        all_counts.append(samples_by_site(bench, file, words))
    k, wrong = len(all_counts), []
    for site, n in words.items():
        mean, variance = n * rate, n * rate * (1 - rate)
        if mean * k < 20:
            continue
        counts = [counts[site] for counts in all_counts]
        try:
            within(sum(counts), k * mean, math.sqrt(k * variance), f"{site}, sum over {k} seeds")
            spread = sum((count - mean) ** 2 for count in counts) / variance
            within(spread, k, math.sqrt(k * (2 + 1 / variance)), f"{site}, spread over {k} seeds")
        except Failure as failure:
            wrong.append(str(failure))
    two = sum(counts["pair", "minor", 1] for counts in all_counts)
    three = sum(counts["pair", "minor", 2] for counts in all_counts)
    expect(two + three > 100, f"only {two + three} samples in combined allocations")
    try:
        within(two, 0.4 * (two + three), math.sqrt(0.24 * (two + three)), "samples in the 2 of 2 + 3 words")
    except Failure as failure:
        wrong.append(str(failure))
    expect(not wrong, "; ".join(wrong))
