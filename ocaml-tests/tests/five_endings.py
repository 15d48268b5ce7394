"""However a program with domains exits or forks, its trace is valid and its behaviour unchanged."""

from bench import equal, expect, scenario
from five_exact import counted


@scenario
def fork_before_domains(bench):
    result = bench.same("forks")
    counted(bench, result)


@scenario
def fork_with_a_file_each(bench):
    bench.run("forks", env=bench.preload("t-%p.ctf"))
    files = sorted(bench.directory.glob("t-*.ctf"))
    equal(len(files), 2, "files")
    for file in files:
        bench.sound(file.name)
    domains = sorted({alloc.domain for alloc in bench.allocs(file.name)} for file in files)
    equal(sorted(map(len, domains)), [2, 3], "domains of parent and child")


@scenario
def own_profile(bench):
    """While heaptap traces, the program's own profiler is refused in every domain; otherwise it works."""
    untraced = bench.run("own_profile", env={"LD_PRELOAD": bench.library, "MEMTRACE": ""})
    equal(untraced.out.count("started\n"), 2, f"profiles started without a trace ({untraced.out!r})")
    traced = bench.run("own_profile", env={"LD_PRELOAD": bench.library, "MEMTRACE": bench.path("trace.ctf")})
    lines = traced.out.splitlines()
    for first in (0, 2):
        equal(lines[first], "Gc.Memprof.start: heaptap is tracing this program", "Gc.Memprof.start")
        expect(lines[first + 1].startswith("Gc.Memprof.stop: "), f"Gc.Memprof.stop: {lines[first + 1]}")
    equal(lines[4], "MEMTRACE= LD_PRELOAD= HEAPTAP=", "what it sees of us")
    bench.sound()
