"""Ways in which programs end, and forks."""

import os
import signal
import subprocess
import time

from bench import LUA, equal, expect, family, scenario


@family({"exit": ("os.exit(7, false)", 7), "closing": ("os.exit(7, true)", 7), "error": ("error('over')", 1),
         "nothing": ("", 0), "inside": ("coroutine.wrap(function() os.exit(2, false) end)()", 2)})
def ends(bench, end, code):
    script = bench.write("end.lua", f"local t = {{}}\nfor i = 1, 500 do t[i] = {{ i }} end\nprint(#t)\n{end}\n")
    bench.same(LUA, script, code=code, oracle=True)
    bench.sound()
    line = sum(1 for alloc in bench.allocs() if alloc.line() == 2 and alloc.words == 7)
    equal(line, 500, "tables of line 2")


@scenario
def killed_ten_times(bench):
    """The trace is valid up to its last packet."""
    script = bench.write("on.lua", "local t = {}\nwhile true do t[#t % 1000 + 1] = { #t } end\n")
    for number in range(10):
        name = f"{number}.ctf"
        environment = {**os.environ, **{k: str(v) for k, v in bench.preload(name, 0.05).items()}}
        with subprocess.Popen([LUA, script], env=environment) as process:
            time.sleep(0.3 + number * 0.03)
            process.send_signal(signal.SIGKILL)
        bench.tool("check", bench.path(name))
        expect(any(alloc.line() == 2 for alloc in bench.allocs(name)), "nothing was traced")


@scenario
def full_disk(bench):
    script = bench.write("full.lua", "local n = 0\nfor i = 1, 200000 do n = n + #{ i } end\nprint(n)\nos.exit(3)\n")
    result = bench.run(LUA, script, code=3, env=bench.preload(HEAPTAP="/dev/full"))
    equal(result.out, "200000\n", "what it printed")
    expect("heaptap: " in result.err, result.err)


@scenario
def forked(bench):
    """Without %p the child is not traced, and the parent's trace is as without it."""
    bench.same(bench.built("host"), "forked")
    bench.sound()
    lines = sum(1 for alloc in bench.allocs() if alloc.line() == 3 and alloc.words == 7)
    equal(lines, 2 * 6000, "tables of the parent")


@scenario
def forked_into_files(bench):
    bench.run(bench.built("host"), "forked", env=bench.preload("%p.ctf"))
    traces = sorted(bench.directory.glob("*.ctf"))
    equal(len(traces), 2, "traces")
    tables = []
    for trace in traces:
        bench.sound(trace.name)
        tables.append(sum(1 for alloc in bench.allocs(trace.name) if alloc.line() == 3 and alloc.words == 7))
    # The child's first block starts its trace.
    expect(sorted(tables) in ([6000, 12000], [5999, 12000]), f"tables in each: {tables}")


@scenario
def started_by_a_script(bench):
    """The program that a shell starts is traced, the commands that Lua runs are not."""
    script = bench.write("shell.lua", "local t = {}\nfor i = 1, 100 do t[i] = { i } end\nprint(os.execute('true'), io.popen('echo x'):read())\n")
    trace = bench.path("shell.ctf")
    result = bench.run(bench.heaptap, "run", "-r", "1", "-o", trace, "--", "sh", "-c", f"{LUA} {script}; true")
    equal(result.out, "true\tx\n", "what it printed") if "exit" not in result.out else None
    expect(sum(1 for alloc in bench.allocs("shell.ctf") if alloc.line() == 2 and alloc.words == 7) == 100, result.err)
