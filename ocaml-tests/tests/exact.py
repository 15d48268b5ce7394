"""At rate 1 the sampled words are those that the collector counted."""

from bench import equal, expect, family, scenario

PROGRAMS = "young major marshalled bigarrays threads exceptions weak callbacks".split()
# What these print depends on the time, or on the depth of the stack. Where the stack ends within an allocation, the
# collector counts its words (6 at most, in 20 overflows), though the exception comes before there is a block.
BY_CHANCE = {"signals": 0, "overflow": 20 * 6}


def counted(bench, result, name="trace.ctf", never_made=0):
    """Compares the trace up to the marker of 777 words with the count printed.

    `never_made`: at most so many words were counted for blocks that were never made."""
    words = 0
    for alloc in bench.allocs(name):
        if alloc.source != "external":
            words += alloc.samples
        if alloc.length == 777:
            break
    wanted = int(next(line for line in result.out.splitlines() if line.startswith("counted ")).split()[1])
    expect(wanted - never_made <= words <= wanted, f"sampled words: {words}, should be {wanted}")


@family({name: (name,) for name in PROGRAMS})
def native(bench, program):
    counted(bench, bench.same(program))


@family({name: (name, words) for name, words in BY_CHANCE.items()})
def by_chance(bench, program, never_made):
    under = ["bash", "-c", 'ulimit -s 1024; exec "$@"', "-"]
    counted(bench, bench.trace(program, under=under), never_made=never_made)


@family({name: (f"{name}.debug",) for name in PROGRAMS})
def debug_runtime(bench, program):
    # It says on standard error that it is the debug runtime.
    counted(bench, bench.trace(program))


@family({name: (f"{name}.byte",) for name in PROGRAMS})
def bytecode(bench, program):
    counted(bench, bench.same(program))


@scenario
def plugins(bench):
    result = bench.same("host", bench.build / "plugin.cmxs")
    counted(bench, result)
    frames = bench.frames()
    expect(any(frame.startswith("Plugin.build@plugin.ml:1:") for frame in frames), "no frame of the plugin has a place")
    expect(not any("(unknown" in frame for frame in frames), "a backtrace ends early")


@scenario
def external_memory(bench):
    bench.trace("bigarrays")
    # Channels are outside the heap too.
    blocks = [alloc for alloc in bench.allocs() if alloc.source == "external" and alloc.length == 1_000]
    equal([(block.length, block.samples) for block in blocks], [(1_000, 1_000)] * 200, "external blocks")
    ids = {block.id for block in blocks}
    collected = sum(1 for line in bench.dump() if (f := line.split())[3] == "collect" and f[2] in ids)
    expect(collected >= 199, f"only {collected} of 200 were collected")


@family({f"{kib}_kib": (kib,) for kib in [256, 512, 1024, 4096]})
def overflow(bench, kib):
    """The stack's end comes at many places; none of them is a crash."""
    for seed in range(6):
        under = ["bash", "-c", f'ulimit -s {kib}; exec "$@"', "-"]
        result = bench.trace("overflow", under=under, rate=[1, 0.3, 0.01][seed % 3],
                             env={"HEAPTAP_SEED": seed + 1, "PAD": "x" * (seed * 700)})
        equal(result.out.count("caught"), 20, "overflows caught")
