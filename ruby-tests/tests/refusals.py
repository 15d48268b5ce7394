"""What is not proved is refused by name, and the program runs on untouched."""

import shutil
import subprocess
from pathlib import Path

from bench import equal, expect, family, scenario

LIBRARY = "libruby-3.1.so.3.1"


def library():
    """The library of this Ruby."""
    lines = subprocess.run(["ldd", shutil.which("ruby")], capture_output=True, text=True, check=True).stdout.splitlines()
    return Path(next(line.split()[2] for line in lines if LIBRARY in line))


@family({
    "version": (b"3.1.2\0", b"3.1.9\0", "its runtime is 3.1.9: use 3.1.2"),
    # addq $0x1,0x18(%rdx) as incq 0x18(%rdx); nop: the same, but not what is known.
    "layout": (b"\x48\x83\x42\x18\x01", b"\x48\xff\x42\x18\x90", "not laid out as known: the allocation of objects"),
})
def another_runtime(bench, known, changed, why):
    code = library().read_bytes()
    expect(known in code, "the library has no such bytes")
    (bench.directory / "lib").mkdir()
    (bench.directory / "lib" / LIBRARY).write_bytes(code.replace(known, changed))
    env = {**bench.preload(), "LD_LIBRARY_PATH": bench.path("lib")}
    result = bench.run("endings.rb", "at_exit", env=env)
    equal(result.out, "at exit 2000\n", "output")
    expect(why in result.err and result.err.startswith("heaptap: this Ruby program is not traced"),
           f"message: {result.err!r}")
    expect(not Path(bench.path("trace.ctf")).exists(), "there is a trace")


@family({str(rate): (rate,) for rate in (1, 1e-5)})
def ractors(bench, rate):
    """With a hook for objects Ruby 3.1 crashes in a ractor: the trace ends before that, and says so."""
    untraced = bench.run("endings.rb", "ractor")
    traced = bench.trace("endings.rb", "ractor", rate=rate)
    equal(traced.out, untraced.out, "output")
    expect("starts a ractor, which cannot be traced; the trace ends here" in traced.err, f"message: {traced.err!r}")
    equal("\n".join(line for line in traced.err.splitlines() if not line.startswith("heaptap: ")) + "\n", untraced.err,
          "what else it said")


@scenario
def no_request(bench):
    """A library that is loaded without a request does nothing."""
    result = bench.run("endings.rb", "at_exit", env={"LD_PRELOAD": bench.library})
    equal((result.out, result.err), ("at exit 2000\n", ""), "output")
