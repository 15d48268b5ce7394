"""However a program ends or forks, its trace is valid and its behaviour unchanged."""

import os
import signal

from bench import PROGRAMS, equal, expect, family, place, scenario

# The line of the first call of `dup`, which makes more than its object.
WARM_UP = next(number for number, line in enumerate((PROGRAMS / "endings.rb").read_text().splitlines(), 1)
               if line == '"once".dup')


@family({way: (way, code) for way, code in
         [("exit", 3), ("exit!", 4), ("abort", 1), ("raise", 1), ("signal", -signal.SIGTERM), ("exec", 0),
          ("system", 0), ("at_exit", 0)]})
def ways(bench, way, code):
    bench.same("endings.rb", way, code=code)
    made = sum(1 for it in bench.allocs() if "endings.rb:2:" in it.frames[-1])
    expect(made >= 2_000, f"{made} objects of line 2")
    equal([file.name for file in bench.directory.glob("*.ctf")], ["trace.ctf"], "files")


@scenario
def kills(bench):
    """Ten times, once half a second has passed: then everything is written."""
    for number in range(10):
        bench.run("endings.rb", "kill", env=bench.preload(f"{number}.ctf"), code=-signal.SIGKILL)
        bench.sound(f"{number}.ctf")
        made = sum(1 for it in bench.allocs(f"{number}.ctf") if "endings.rb:2:" in it.frames[-1])
        expect(made >= 2_000, f"{made} objects of line 2")


@scenario
def fork(bench):
    """Without %p in the name children are not traced."""
    bench.same("endings.rb", "fork")
    equal([file.name for file in bench.directory.glob("*.ctf")], ["trace.ctf"], "files")


@scenario
def fork_with_a_file_each(bench):
    """Each child has its own objects in its own file, all of them."""
    bench.run("endings.rb", "fork", env=bench.preload("t-%p.ctf"))
    counts = []
    for file in bench.directory.glob("t-*.ctf"):
        bench.sound(file.name)
        places = [place(it.frames[-1]) for it in bench.allocs(file.name)]
        counts.append(sum(1 for name, path, line in places
                          if name == "Kernel#dup" and path.endswith("endings.rb") and line > WARM_UP))
    equal(sorted(counts), [1_000, 1_000, 2_000, 3_000], "objects by process")


@scenario
def fork_at_a_low_rate(bench):
    """The gate is closed at the fork, and opens in the child."""
    bench.run("endings.rb", "fork", env=bench.preload("t-%p.ctf", rate="1e-3"))
    files = list(bench.directory.glob("t-*.ctf"))
    equal(len(files), 4, "files")
    for file in files:
        bench.sound(file.name)


@scenario
def many_forks(bench):
    result = bench.run("endings.rb", "forks", env=bench.preload("t-%p.ctf"))
    equal(result.out, "40\n", "children that ended well")
    files = list(bench.directory.glob("t-*.ctf"))
    equal(len(files), 41, "files")
    for file in files:
        bench.sound(file.name)


@scenario
def daemon(bench):
    bench.same("endings.rb", "daemon")


@scenario
def a_full_disk(bench):
    """Tracing ends with a message, and the program goes on."""
    result = bench.run("many.rb", 200_000, env=bench.preload("trace.ctf", rate=1), ruby=(
        "bash", "-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "-", "ruby"))
    expect(result.err.startswith("heaptap: ") and result.err.count("\n") == 1, f"message: {result.err!r}")


@scenario
def an_output_that_cannot_be_made(bench):
    os.makedirs(bench.path("trace.ctf"))
    result = bench.run("endings.rb", "at_exit", env=bench.preload())
    equal(result.out, "at exit 2000\n", "output")
    expect(result.err.startswith("heaptap: "), f"message: {result.err!r}")
