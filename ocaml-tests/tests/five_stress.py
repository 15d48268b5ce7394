"""Everything at once, for a while: no crash, no loss, nothing kept that changes."""

import os

from bench import equal, expect, family
from five_exact import counted

SECONDS = float(os.environ.get("SECONDS_OF_STRESS", 6))


@family({"native_2_rate_1": ("everything", 2, 1), "native_4": ("everything", 4, 0.01), "native_8": ("everything", 8, 0.001),
         "debug_3": ("everything.debug", 3, 0.05), "bytecode_3": ("everything.byte", 3, 0.05), "debug_2_rate_1": ("everything.debug", 2, 1)})
def everything(bench, program, domains, rate):
    # At rate 1 a second is a million events.
    seconds = min(SECONDS, 60) / 4 if rate == 1 else SECONDS
    env = {"OCAMLRUNPARAM": "v=0,s=32k", "HEAPTAP_FRAMES": 8}
    result = bench.trace(program, domains, seconds, 1, rate=rate, env=env, timeout=seconds + 300)
    expect(result.out.startswith("survived\n"), f"printed {result.out!r}")
    equal(result.err, "", "what it said")
    if rate == 1:
        counted(bench, result)
    else:
        expect(sum(1 for _ in bench.allocs()) > 100, "hardly anything was sampled")
