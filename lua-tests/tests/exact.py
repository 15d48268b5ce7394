"""At rate 1 blocks, words and ended blocks are those that a count in the place of the C library's realloc and free has,
and the program prints what it prints untraced."""

from bench import LUA, equal, expect, family, scenario

PROGRAMS = {"tables": 0, "strings": 3, "closures": 0, "coroutines": 0, "load": 0, "errors": 5, "modules": 0}


@family({name: (name, code) for name, code in PROGRAMS.items()})
def program(bench, name, code):
    """These end by os.exit without closing their state."""
    bench.same(LUA, bench.script(name), code=code, oracle=True)
    bench.sound()
    counted, live = bench.counted()
    expect(counted.blocks > 5000 and live > 0, f"the oracle has counted {counted}")
    equal(bench.traced(), counted, "what was traced")


@scenario
def closed_at_the_end(bench):
    """What is alive when the state is closed was kept until the end. Closing makes a table for finalisers."""
    bench.same(LUA, bench.script("objects"), oracle=True)
    counted, live = bench.counted()
    equal((live, counted.ended), (0, counted.blocks), "live words and ended blocks after closing")
    traced = bench.traced()
    expect(0 <= counted.blocks - traced.blocks <= 2, f"traced {traced}, should be {counted}")
    kept = traced.blocks - traced.ended
    expect(5000 < kept < traced.blocks - 1000, f"{kept} of {traced.blocks} blocks are kept")


@scenario
def finalisers_of_the_end(bench):
    script = bench.write("gc.lua", """
        local kept = {}
        for i = 1, 100 do kept[i] = setmetatable({}, { __gc = function() kept[#kept + 1] = { i } end }) end
        print("done")
        os.exit(4, true)
    """)
    bench.same(LUA, script, code=4, oracle=True)
    equal(bench.counted()[1], 0, "live words after closing")
    bench.sound()


@scenario
def run_by_the_program(bench):
    """`heaptap run` names the runtime; output and exit status are the program's."""
    untraced = bench.run(LUA, bench.script("strings"), code=3)
    trace = bench.path("run.ctf")
    result = bench.run(bench.heaptap, "run", "-q", "-r", "1", "-o", trace, "--", LUA, bench.script("strings"), code=3)
    equal(result.out, untraced.out, "what it printed")
    info = bench.tool("info", trace).out
    expect("runtime         Lua 5.4.4\n" in info, info)
    report = bench.tool("report", trace).out
    expect("strings.lua" in report, report)
