"""At rate 1 the sampled words equal the collector's count.

HEAPTAP_OVERFLOW_KIB says up to which stack overflows are tried at all rates; `make test-long` takes 4096, which is
260 s of processor time."""

import os

from bench import equal, expect, family, scenario

PROGRAMS = "young major marshalled bigarrays threads exceptions weak callbacks".split()
# Words that the collector may count for blocks that are never created, see overflow.ml: up to five overflows in each
# of two functions, 6 words each.
NEVER_MADE = [6 * times for times in range(11)]


def counted(bench, result, name="trace.ctf", never_made=(0,)):
    """Compares the trace up to the marker block of 777 words with the printed count."""
    words = 0
    for alloc in bench.allocs(name):
        if alloc.source != "external":
            words += alloc.words_at_rate_1()
        if alloc.length == 777:
            break
    wanted = int(next(line for line in result.out.splitlines() if line.startswith("counted ")).split()[1])
    expect(wanted - words in never_made, f"sampled words: {words}, should be {wanted}")


@family({name: (name,) for name in PROGRAMS})
def native(bench, program):
    counted(bench, bench.same(program))


@family({name: (name,) for name in ["signals", "signals.debug", "signals.byte"]})
def signals(bench, program):
    """Its output depends on timing."""
    counted(bench, bench.trace(program))


@scenario
def overflow_words(bench):
    """Not on the debug runtime, whose checks need more stack than OCaml reserves for C: that of 4.12.0 crashes
    on a small stack untraced, too."""
    under = ["bash", "-c", 'ulimit -s 256; exec "$@"', "-"]
    for pad in range(3):
        result = bench.trace("overflow", under=under, env={"PAD": "x" * (pad * 101)})
        counted(bench, result, never_made=NEVER_MADE)


@family({name: (f"{name}.debug",) for name in PROGRAMS})
def debug_runtime(bench, program):
    # The debug runtime announces itself on standard error.
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
def plugins_in_bytecode(bench):
    counted(bench, bench.same("host.byte", bench.build / "plugin.cmo"))
    frames = bench.frames()
    for place in ("Host@host.ml:", "Plugin.build@plugin.ml:1:", "Plugin.(fun)@plugin.ml:5:", "Plugin.at_load@plugin.ml:2:"):
        expect(any(frame.startswith(place) for frame in frames), f"no frame is at {place}")


@scenario
def external_memory(bench):
    bench.trace("bigarrays")
    # Channels have memory outside the heap too.
    blocks = [alloc for alloc in bench.allocs() if alloc.source == "external" and alloc.length == 1_000]
    equal([(block.length, block.samples) for block in blocks], [(1_000, 1_000)] * 200, "external blocks")
    ids = {block.id for block in blocks}
    collected = sum(1 for line in bench.dump() if (f := line.split())[3] == "collect" and f[2] in ids)
    expect(collected >= 199, f"only {collected} of 200 were collected")
    promoted = [line for line in bench.dump() if (f := line.split())[3] == "promote" and f[2] in ids]
    equal(promoted, [], "promotions of external memory, which has no generation")


# Each allocation of a recursion is sampled, so the time grows with the square of the stack.
ALL_RATES_UP_TO = int(os.environ.get("HEAPTAP_OVERFLOW_KIB", 1024))


@family({f"{kib}_kib": (kib,) for kib in [256, 512, 1024, 4096]})
def overflow(bench, kib):
    """The stack overflows at many points of the program, none of which may crash."""
    rates = [1, 0.3, 0.01] if kib <= ALL_RATES_UP_TO else [0.01]
    for seed in range(6):
        under = ["bash", "-c", f'ulimit -s {kib}; exec "$@"', "-"]
        result = bench.trace("overflow", under=under, rate=rates[seed % len(rates)],
                             env={"HEAPTAP_SEED": seed + 1, "PAD": "x" * (seed * 700)})
        equal(result.out.count("caught"), 20, "overflows caught")


@family({name: (name,) for name in ("parameters", "parameters.byte")})
def the_runtime(bench, program):
    bench.same_parameters(program)


@family({f"rate_{rate}": (rate,) for rate in ("1", "0.5", "0.1")})
def the_same_collections(bench, rate):
    """With all pieces of the heap where they are in an untraced program, the collector does the same."""
    for _ in range(2):
        bench.same("cycles", rate=rate, env={"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0"})


@scenario
def a_loop_that_does_not_allocate(bench):
    """It polls for pending actions, and a sample on the next word is none: the loop took 40 times as long."""
    untraced = int(bench.run("polling").out)
    traced = int(bench.trace("polling", rate=1).out)
    expect(traced < 10 * (untraced + 5), f"{traced} hundredths of a second traced, {untraced} untraced")
