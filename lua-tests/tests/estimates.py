"""Below rate 1: estimates are unbiased, and what was not sampled is not in the trace."""

import math

from bench import LUA, equal, expect, scenario

SEEDS = 40


@scenario
def forty_seeds(bench):
    """The mean of the estimates is within four standard errors of the words of the program, which rate 1 has counted."""
    script = bench.write("words.lua", "local t = {}\nfor i = 1, 3000 do t[i % 50 + 1] = { i, 'x' .. i } end\nos.exit(0, false)\n")
    bench.run(LUA, script, env=bench.preload())
    words, rate, samples = bench.traced().words, 0.02, []
    for seed in range(1, SEEDS + 1):
        bench.run(LUA, script, env=bench.preload(rate=rate, HEAPTAP_SEED=seed))
        samples.append(sum(alloc.samples for alloc in bench.allocs()))
    mean = sum(samples) / SEEDS / rate
    sigma = math.sqrt(words * (1 - rate) / rate / SEEDS)
    expect(abs(mean - words) < 4 * sigma, f"seeds 1 to {SEEDS}: {mean:.0f} words ± {sigma:.0f}, should be {words}")


@scenario
def one_seed_twice(bench):
    """The same seed in the same program takes the same samples."""
    bench.run(LUA, bench.script("closures"), env=bench.preload("a.ctf", 0.01))
    bench.run(LUA, bench.script("closures"), env=bench.preload("b.ctf", 0.01))
    of = [[(alloc.words, alloc.samples, alloc.line()) for alloc in bench.allocs(name)] for name in ("a.ctf", "b.ctf")]
    expect(len(of[0]) > 100, f"{len(of[0])} samples")
    equal(of[1], of[0], "the samples")
