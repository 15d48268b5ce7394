"""Programs and misuse under sanitizers and memcheck: clean, without suppressions."""

import os
import shutil

from bench import Skip, expect, family, scenario
from misuse import GROUPS

PROGRAMS = (
    ("trees", 9),
    ("deep", 5000),
    ("maps", 2000, "--young", 2048, "--compact-every", 2),
    ("parser", 5, "--young", 1024, "--compact-every", 2),
    ("pairs", 1000),
    ("server", 300, "--threads", 4, "--young", 1024, "--compact-every", 2),
    ("endings", 300, "--end", "fork"),
    ("control", 300, "--do", "labels"),
    ("snapshots", 300, "--do", "take", "--file", "a.heap"),
    ("snapshots", 2, "--do", "busy", "--file", "a.heap", "--sync"),
)
# Under memcheck, where each start takes a second, the short run has only these.
FEW, FEW_GROUPS = ("maps", "parser", "server", "endings"), ("handles", "hooks", "order", "stopped")
# AddressSanitizer puts its own stack under the hooks, ThreadSanitizer its own signals.
BARE = (("direct", "addresses", "direct.ctf"), ("direct", "own-sweeps", "direct.ctf"))


def all_clean(bench, variant, under=(), env=None, few=False):
    for program, *arguments in PROGRAMS:
        if few and program not in FEW:
            continue
        plain = bench.run(program, *arguments)
        file, result = bench.trace(program, *arguments, "--final-gc", "--c-stack-mib", 64, variant=variant,
                                under=under, env=env, rate=0.1)
        expect(result.checksum() == plain.checksum(), f"{program}: another checksum")
        bench.check(file)
        os.unlink(file)
    for group in FEW_GROUPS if few else GROUPS:  # what they find is another scenario's matter
        result = bench.run("misuse", group, bench.directory, variant=variant, under=under, env=env, code=None)
        said = [line for line in result.err.splitlines() if not line.startswith("heaptap: ")]
        expect(result.code in (0, 1) and not said, f"misuse {group} ended with {result.code}: {said[:12]}")
    for group in ("swept", "by_address") if few else ("kinds", "swept", "by_address", "slices", "rotated", "observed", "misuse"):
        bench.run("probes", group, bench.directory, variant=variant, under=under, env=env)
    for command in () if few else BARE:
        bench.run(*command, variant=variant, under=under, env=env)


@family({"address_and_undefined": ("address,undefined",), "thread": ("thread",)})
def sanitized(bench, sanitize):
    bench.make(f"SANITIZE={sanitize}")
    # Handles are never freed, by design: that is no leak to look for.
    # heaptap itself is not instrumented: ThreadSanitizer sees its memcpy but not its atomics.
    env = {"ASAN_OPTIONS": "detect_leaks=0",
           "TSAN_OPTIONS": "halt_on_error=1 ignore_noninstrumented_modules=1"}
    all_clean(bench, sanitize.replace(",", "-"), env=env)


@scenario
def memcheck(bench):
    if shutil.which("valgrind") is None:
        raise Skip("valgrind is not installed")
    under = ["valgrind", "-q", "--error-exitcode=99", "--fair-sched=yes"]
    all_clean(bench, "plain", under=under, few=not bench.long)
