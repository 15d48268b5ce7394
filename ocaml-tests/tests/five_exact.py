"""At rate 1 the sampled words of each domain equal the collector's count for it."""

from bench import equal, expect, family, scenario

WORKS = "trees fibers turns threads resizing compaction marshalling weak outside locals calls raising".split()
# Keeps the debug runtime from announcing itself on standard error.
QUIET = {"OCAMLRUNPARAM": "v=0"}


def blocks_in_the_heap(bench, name="trace.ctf"):
    """The sampled blocks in the heap; in the first domain up to the marker block of 777 words."""
    ended = False
    for alloc in bench.allocs(name):
        if alloc.source == "external" or (alloc.domain == 0 and ended):
            continue
        yield alloc
        ended |= alloc.domain == 0 and alloc.length == 777


def counted(bench, result, name="trace.ctf", never_made=0):
    """Compares the trace with the collector's counts for the first domain and the others.

    Which of those that come and go have a number one after another is not the same in the runtime and in the trace.
    `never_made`: the most words that were counted for blocks that were never created."""
    wanted = [0, 0]
    for line in result.out.splitlines():
        if line.startswith("domain "):
            _, domain, _, words = line.split()
            wanted[min(int(domain), 1)] += int(words)
    found = [0, 0]
    for alloc in blocks_in_the_heap(bench, name):
        found[min(alloc.domain, 1)] += alloc.words_at_rate_1()
    expect(all(w - never_made <= f <= w for f, w in zip(found, wanted)),
           f"sampled words in the first domain, in others: {found}, should be {wanted}")


@family({f"{work}_{domains}": (work, domains) for work in WORKS for domains in (1, 2, 4)})
def native(bench, work, domains):
    counted(bench, bench.trace("many", work, domains))


@family({f"{work}_{domains}_{size}": (work, domains, size)
         for work, domains in [("trees", 8), ("resizing", 3), ("fibers", 8), ("threads", 3), ("calls", 6), ("weak", 2)]
         for size in ("4k", "32k")})
def young_heaps(bench, work, domains, size):
    counted(bench, bench.trace("many", work, domains, env={"OCAMLRUNPARAM": f"s={size}"}))


@family({work: (work,) for work in WORKS})
def debug_runtime(bench, work):
    counted(bench, bench.trace("many.debug", work, 3, env=QUIET))


@family({work: (work,) for work in WORKS})
def bytecode(bench, work):
    counted(bench, bench.trace("many.byte", work, 3))


@family({"native": ("many", 2_000), "debug": ("many.debug", 500), "bytecode": ("many.byte", 1_000)})
def domains_that_come_and_go(bench, program, count):
    counted(bench, bench.trace(program, "comings", count, env=QUIET))


@family({"native": ("overflow",), "debug": ("overflow.debug",), "bytecode": ("overflow.byte",)})
def overflow(bench, program):
    """The stack overflows at many points, in fibers and in domains, none of which may crash."""
    for seed, words in enumerate([8_000, 20_001, 50_010]):
        env = {"OCAMLRUNPARAM": f"v=0,l={words}", "HEAPTAP_SEED": seed + 1}
        result = bench.trace(program, rate=[1, 0.3, 0.01][seed], env=env)
        equal(result.out.count("caught"), 24, "overflows caught")
        if seed == 0:
            # If the stack overflows in an allocation, its words (at most 6) are counted but there is no block.
            counted(bench, result, never_made=24 * 6)


@family({"native": ("host", "plugin.cmxs"), "debug": ("host.debug", "plugin.cmxs"), "bytecode": ("host.byte", "plugin.cmo")})
def plugins_in_domains(bench, program, plugin):
    result = bench.trace(program, bench.build / plugin, env=QUIET)
    counted(bench, result)
    frames = bench.frames()
    expect(any(frame.startswith("Plugin.build@plugin.ml:1:") for frame in frames), "no frame of the plugin has a place")
    expect(not any("(unknown" in frame for frame in frames), "a backtrace ends early")


@scenario
def external_memory_of_domains(bench):
    bench.trace("many", "outside", 3)
    blocks = [alloc for alloc in bench.allocs() if alloc.source == "external" and alloc.length == 1_000]
    equal([(block.length, block.samples) for block in blocks], [(1_000, 1_000)] * 300, "external blocks")
    expect(len({block.domain for block in blocks}) > 1, "all are in one domain")
    ids = {block.id for block in blocks}
    collected = sum(1 for line in bench.dump() if (f := line.split())[3] == "collect" and f[2] in ids)
    expect(collected >= 297, f"only {collected} of 300 were collected")
    promoted = [line for line in bench.dump() if (f := line.split())[3] == "promote" and f[2] in ids]
    equal(promoted, [], "promotions of external memory, which has no generation")


@family({name: (name,) for name in ("parameters", "parameters.byte")})
def the_runtime(bench, program):
    bench.same_parameters(program)
