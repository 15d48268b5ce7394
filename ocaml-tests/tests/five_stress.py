"""Everything at once, for a while: no crash, no loss, no change of what is kept."""

import os
from itertools import islice

from bench import alone, expect, family
from five_exact import counted
from tool import run

SECONDS = float(os.environ.get("SECONDS_OF_STRESS", 6))


@family({"native_2_rate_1": ("everything", 2, 1), "native_4": ("everything", 4, 0.01), "native_8": ("everything", 8, 0.001),
         "debug_3": ("everything.debug", 3, 0.01), "bytecode_3": ("everything.byte", 3, 0.01), "debug_2_rate_1": ("everything.debug", 2, 1)})
@alone
def everything(bench, program, domains, rate):
    # At rate 1 a second is a million events.
    seconds = min(SECONDS / 4, 15) if rate == 1 else SECONDS
    result = run(bench, "-o", "trace.ctf", "-r", rate, "--frames", 8, "--", bench.program(program), domains, seconds, 1,
                 env={"OCAMLRUNPARAM": "v=0,s=32k"}, timeout=3 * seconds + 300)
    expect(result.out.startswith("survived\n"), f"printed {result.out!r}")
    expect(result.err.count("\n") == 1 and ", 0 dropped, " in result.err, f"said {result.err!r}")
    bench.sound()
    if rate == 1:
        counted(bench, result)
    else:
        expect(sum(1 for _ in islice(bench.allocs(), 101)) > 100, "hardly anything was sampled")
