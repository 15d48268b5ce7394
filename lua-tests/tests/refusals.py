"""What is not proved is refused by name, and the program runs on."""

import shutil

from bench import LUA, Skip, equal, expect, family, scenario


def refused(bench, *command, why, code=0):
    """Untouched, with one line."""
    said = f"heaptap: this Lua program is not traced: {why}; it runs untouched\n"
    bench.same(*command, code=code, said=said)
    expect(not list(bench.directory.glob("*.ctf")), "there is a trace")


@scenario
def luajit(bench):
    if not shutil.which("luajit"):
        raise Skip("luajit is not installed")
    refused(bench, "luajit", "-e", "print(#{1, 2})", why="its runtime is LuaJIT: use 5.4.4")


@scenario
def another_release(bench):
    refused(bench, bench.built("stranger.release"), code=6, why="its runtime is Lua 5.4.6: use 5.4.4")


@scenario
def another_layout(bench):
    refused(bench, bench.built("stranger.layout"), code=6,
            why="its runtime is not laid out as known: the size of a state")


@scenario
def static_without_names(bench):
    """It is no Lua that anyone could find: `heaptap run` says that nothing was traced."""
    bench.same(bench.built("host.static"), "errors")
    trace = bench.path("static.ctf")
    result = bench.run(bench.heaptap, "run", "-o", trace, "--", bench.built("host.static"), "errors", code=2)
    equal(result.out, "100 300\n", "what it printed")
    expect("was not traced" in result.err or "no " in result.err, result.err)


@scenario
def an_allocator_of_the_programs(bench):
    bench.same(bench.built("host"), "own_allocator",
               said="heaptap: a Lua state with an allocator of the program's own is not traced\n")
    equal(bench.traced().blocks, 0, "blocks")


@scenario
def another_allocator_later(bench):
    """What was traced until then stays."""
    message = "heaptap: a Lua state is traced no further: the program has given it another allocator\n"
    bench.same(bench.built("host"), "set_allocator", said=message)
    bench.sound()
    tables = sum(1 for alloc in bench.allocs() if alloc.line() == 3 and alloc.words == 7)
    equal(tables, 6000, "tables of the first run")


@family({"start": ("start",), "snapshot": ("snapshot",)})
def commands(bench, command):
    """A program that runs is not traced later, and has no snapshots: both are refused."""
    script = bench.write("wait.lua", f"print(os.execute('{bench.heaptap} {command} ' .. io.open('/proc/self/stat'):read('n')))\n")
    result = bench.run(bench.heaptap, "run", "--listen", "--", LUA, script, code=None)
    said = result.out + result.err
    expect("heap snapshots of this runtime are not supported" in said, said)
