"""Below rate 1 the number of samples follows the binomial distribution."""

from math import sqrt

from bench import expect, family

SEEDS = 40


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
