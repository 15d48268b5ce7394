"""However a program exits or forks, its trace is valid and its behaviour unchanged."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from bench import equal, expect, family, scenario
from exact import counted


@scenario
def exit_code(bench):
    bench.same("endings", "exit", code=3)


@scenario
def uncaught_exception(bench):
    bench.same("endings", "exception", code=2)


@scenario
def kill(bench):
    """The file has everything but the last moments."""
    bench.run("endings", "kill", env=bench.preload(), code=-signal.SIGKILL)
    bench.sound()
    expect(sum(1 for _ in bench.allocs()) > 3_000, "what it allocated half a second before is missing")


@scenario
def fork(bench):
    """Without %p in the file name the child is not traced; the parent still is."""
    bench.same("endings", "fork")
    equal([p.name for p in bench.directory.glob("*.ctf*")], ["trace.ctf"], "files")


@scenario
def fork_with_a_file_each(bench):
    bench.run("endings", "fork", env=bench.preload("t-%p.ctf"))
    files = sorted(p.name for p in bench.directory.glob("t-*.ctf"))
    equal(len(files), 2, "files")
    for file in files:
        bench.sound(file)
    # Only the child allocates the 2,000 pairs after the fork, at most 14 words each.
    counts = sorted(sum(1 for _ in bench.allocs(file)) for file in files)
    expect(counts[0] > 3_000 and counts[1] > 3_000, f"allocations: {counts}")


@family({"native": ("endings", 300), "bytecode": ("endings.byte", 40)})
def forks_while_the_writer_works(bench, program, times):
    """What the parent's writer makes or locks at the moment of the fork must not stop the child's: that would wait
    for 20 s, and its trace would be empty."""
    for _ in range(times):
        result = bench.run(program, "fork", env=bench.preload("t-%p.ctf"))
        equal(result.err, "", "standard error")
        files = list(bench.directory.glob("t-*.ctf"))
        sizes = sorted(file.stat().st_size for file in files)
        expect(len(sizes) == 2 and sizes[0] > 5_000, f"sizes of the traces: {sizes}")
        for file in files:
            file.unlink()


@scenario
def daemon(bench):
    bench.run("endings", "daemon", env=bench.preload("d-%p.ctf"))
    time.sleep(1)
    files = sorted(p.name for p in bench.directory.glob("d-*.ctf"))
    equal(len(files), 2, "files")
    for file in files:
        bench.sound(file)


@family({f"{way}{variant}": (f"endings{variant}", way, code) for variant in ["", ".debug", ".byte"]
         for way, code in [("exec", 3), ("exec_fails", 0), ("_exit", 5)]})
def without_exit_handlers(bench, program, way, code):
    """Nothing is missing, and the program that is executed next is not traced."""
    result = bench.trace(program, way, code=code)
    equal([p.name for p in bench.directory.glob("trace*")], ["trace.ctf"], "files")
    counted(bench, result)


@scenario
def exit_in_a_signal_handler(bench):
    """Wherever the signal arrives, the program exits with its code and the trace is valid."""
    for after in range(1, 40):
        name = f"{after}.ctf"
        bench.trace("endings", "_exit_in_handler", after * 700, name=name, code=7, timeout=20)


@scenario
def exit_with_a_disk_that_hangs(bench):
    """A pipe that nobody reads: the program waits for the trace, but not for long."""
    os.mkfifo(bench.path("pipe"))
    reader = os.open(bench.path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
    try:
        began = time.monotonic()
        bench.run("endings", "_exit_in_handler", 300_000, env=bench.preload("pipe"), code=7, timeout=60)
        expect(time.monotonic() - began < 30, "it took too long")
    finally:
        os.close(reader)


@scenario
def exec_followed(bench):
    bench.run("endings", "exec", env=bench.preload(HEAPTAP_FOLLOW=1), code=3)
    files = sorted(p.name for p in bench.directory.glob("trace*"))
    equal(files, ["trace.ctf", "trace.ctf.1"], "files")
    bench.sound("trace.ctf.1")


@scenario
def children(bench):
    bench.run("endings", "spawn", env=bench.preload("c-%p.ctf"), code=3)
    equal(len(list(bench.directory.glob("c-*.ctf"))), 1, "files")


@scenario
def children_followed(bench):
    variables = bench.preload("c-%p.ctf", HEAPTAP_FOLLOW=1)
    variables["MEMTRACE"] = variables.pop("HEAPTAP")
    bench.run("endings", "spawn", env=variables, code=3)
    files = list(bench.directory.glob("c-*.ctf"))
    equal(len(files), 2, "files")
    for file in files:
        bench.sound(file.name)


@scenario
def own_profile(bench):
    """While heaptap traces, the program's own profiler is refused; otherwise it works."""
    untraced = bench.run("own_profile", env={"LD_PRELOAD": bench.library, "MEMTRACE": ""})
    expect(untraced.out.startswith("started\n"), f"without a trace: {untraced.out!r}")
    traced = bench.run("own_profile", env={"LD_PRELOAD": bench.library, "MEMTRACE": bench.path("trace.ctf")})
    lines = traced.out.splitlines()
    equal(lines[0], "Gc.Memprof.start: heaptap is tracing this program", "Gc.Memprof.start")
    equal(lines[1], "Gc.Memprof.stop: not started.", "Gc.Memprof.stop")
    equal(lines[2], "MEMTRACE= LD_PRELOAD= HEAPTAP=", "what it sees of us")
    bench.sound()


@scenario
def an_unwritable_file(bench):
    untraced = bench.run("young")
    result = bench.run("young", env=bench.preload("nowhere/trace.ctf"))
    equal(result.out, untraced.out, "what it printed")
    expect(result.err.count("\n") == 1 and "nowhere/trace.ctf" in result.err, f"said {result.err!r}")


@scenario
def a_full_disk(bench):
    result = bench.run("young", env={**bench.preload(), "HEAPTAP": "/dev/full"})
    equal(result.out, bench.run("young").out, "what it printed")
    expect("/dev/full" in result.err, f"said {result.err!r}")


@scenario
def a_wrong_rate(bench):
    result = bench.run("young", env=bench.preload(rate="often"))
    equal(result.out, bench.run("young").out, "what it printed")
    expect("HEAPTAP_RATE=often" in result.err, f"said {result.err!r}")


@scenario
def not_ocaml(bench):
    """In programs that are not OCaml the library does nothing."""
    result = bench.run("bash", "-c", "echo $HEAPTAP", env=bench.preload("x.ctf"))
    equal((result.out, result.err), (bench.path("x.ctf") + "\n", ""), "bash")


@scenario
def no_trace_asked_for(bench):
    """Without a request for a trace, the library opens no file and starts no thread."""
    if not Path("/usr/bin/strace").exists():
        maps = bench.run("bash", "-c", 'LD_PRELOAD=$0 "$1"; ls', bench.library, bench.program("young"))
        expect("ctf" not in maps.out, "a file was made")
        return
    traced = bench.run("/usr/bin/strace", "-f", bench.program("young"), env={"LD_PRELOAD": bench.library})
    # A path may contain the word too; a child process has an exit signal, a thread has none.
    calls = [line for line in traced.err.splitlines() if re.search(r"\bclone3?\(", line)]
    expect(all("SIGCHLD" in call for call in calls), "a thread was started")


@family({name: (name, rounds) for name, rounds in [("storm", 4_000), ("storm.debug", 1_000), ("storm.byte", 1_500)]})
def everything_at_once(bench, program, rounds):
    result = bench.trace(program, rounds, rate=0.02)
    equal(result.out, "survived\n", "what it printed")
    expect(sum(1 for _ in bench.allocs()) > 1_000, "hardly anything was sampled")
