"""Below rate 1 the number of samples of all domains follows the binomial distribution."""

from math import sqrt

from bench import equal, expect, family
from estimates import RATES, SEEDS, YOUNG_HEAPS, unbiased
from five_exact import blocks_in_the_heap


def words(bench, work, domains, rate, seed):
    """The number of samples in the heap: in the first domain up to the marker, in the others all."""
    bench.run("many", work, domains, env=bench.preload(rate=rate, HEAPTAP_SEED=seed, HEAPTAP_FRAMES=1))
    return sum(alloc.samples for alloc in blocks_in_the_heap(bench))


@family({f"{work}_{rate}": (work, rate) for work, rate in [("marshalling", 0.01), ("fibers", 0.01), ("fibers", 1e-3), ("calls", 0.01)]})
def over_many_seeds(bench, work, rate):
    """The distance from the mean, in standard deviations, has mean 0 ± 1/√n and mean square 1 ± √(2/n).

    Both must hold within 4 sigma. What is allocated after the marker, to print, is a few words in each run."""
    truth = words(bench, work, 3, 1, 1)
    sigma = sqrt(truth * rate * (1 - rate))
    distances = [(words(bench, work, 3, rate, seed) - truth * rate) / sigma for seed in range(1, SEEDS + 1)]
    mean = sum(distances) / SEEDS
    square = sum(distance * distance for distance in distances) / SEEDS
    expect(abs(mean) < 4 / sqrt(SEEDS), f"seeds 1 to {SEEDS}: {mean:.3f} sigma off in the mean, of {truth} words")
    expect(abs(square - 1) < 4 * sqrt(2 / SEEDS), f"seeds 1 to {SEEDS}: squared distance {square:.3f}, should be 1")


@family({f"{program}_{heap}_{rate}_{domains}": (program, heap, rate, domains) for program in ["sites", "sites.byte"]
         for heap in YOUNG_HEAPS for rate in RATES for domains in [1, 4]})
def words_of_each_place(bench, program, heap, rate, domains):
    """A sample in the last words of a young heap makes the runtime collect, and must not be lost by that."""
    unbiased(bench, program, heap, rate, domains)


@family({program: (program,) for program in ["sites", "sites.byte"]})
def the_same_minor_collections(bench, program):
    """A sample is no reason to collect."""
    for heap in (256, 512, 4096):
        def collections(rate):
            env = bench.preload(rate=rate, OCAMLRUNPARAM=f"s={heap},v=0x400")
            said = bench.run(program, 20_000, 1, env=env).err
            return [line for line in said.splitlines() if line.startswith("minor_collections")]
        expect(collections(1e-7), "the runtime counts its collections")
        for rate in (1e-2, 1):
            equal(collections(rate), collections(1e-7), f"at rate {rate} with {heap} words")
