"""Below rate 1 samples estimate the truth as well as chance allows."""

from math import sqrt

from bench import expect, family

SEEDS = 40


def words(bench, program, rate, seed):
    """Samples in the heap. Those outside it are few and large, and counted apart."""
    bench.run(program, env=bench.preload(rate=rate, HEAPTAP_SEED=seed, HEAPTAP_FRAMES=1))
    return sum(alloc.samples for alloc in bench.allocs() if alloc.source != "external")


@family({f"{program}_{rate}": (program, rate) for program in ["young", "marshalled", "weak", "young.byte"]
         for rate in [0.01, 1e-3]})
def over_many_seeds(bench, program, rate):
    """The number of samples is binomial: its distance from the mean in sigmas has mean 0 ± 1/√n and square 1 ± √(2/n).

    Both within 4 sigma."""
    truth = words(bench, program, 1, 1)
    sigma = sqrt(truth * rate * (1 - rate))
    distances = [(words(bench, program, rate, seed) - truth * rate) / sigma for seed in range(1, SEEDS + 1)]
    mean = sum(distances) / SEEDS
    square = sum(distance * distance for distance in distances) / SEEDS
    expect(abs(mean) < 4 / sqrt(SEEDS), f"seeds 1 to {SEEDS}: {mean:.3f} sigma off in the mean, of {truth} words")
    expect(abs(square - 1) < 4 * sqrt(2 / SEEDS), f"seeds 1 to {SEEDS}: squared distance {square:.3f}, should be 1")
