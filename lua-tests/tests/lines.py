"""Lines and names of what is allocated."""

import re
from collections import Counter
from pathlib import Path

from bench import LUA, equal, expect, scenario

# Blocks of as many words are stacks, which the hook makes grow, and arrays of the collector.
LARGE = 80


@scenario
def each_block_has_the_line_that_a_count_hook_sees(bench):
    """The hook saves the place of each instruction, so that it cannot be there when the program is traced."""
    module = {"ORACLE_MODULE": bench.built("oracle.so")}
    watched = {**module, "ORACLE": bench.path("unused"), "ORACLE_LINES": bench.path("lines"),
               "LD_PRELOAD": bench.built("oracle.so")}
    bench.run(LUA, bench.script("lines"), env=watched)
    seen = [tuple(map(int, line.split())) for line in Path(bench.path("lines")).read_text(encoding="utf-8").splitlines()]
    bench.run(LUA, bench.script("lines"), env=bench.preload(**module))
    traced = [(alloc.words, alloc.line()) for alloc in bench.allocs()]
    # The oracle has seen what follows the line on which it begins.
    first = max(at for at, (_, line) in enumerate(traced) if line == 2) + 1
    wanted = Counter(block for block in seen if block[0] < LARGE)
    got = Counter(block for block in traced[first:] if block[0] < LARGE)
    expect(sum(wanted.values()) > 5000 and len(wanted) > 40, f"{sum(wanted.values())} blocks, {len(wanted)} kinds")
    equal((wanted - got, got - wanted), (Counter(), Counter()), "blocks whose line is another")


@scenario
def names_and_files(bench):
    """Lua gives a table the line of the word before its brace."""
    script = bench.write("names.lua", """local object = {}
function object.method(self)
  return { self,
    inner = {} }
end
local function inner() return { object:method() } end
global = function() return inner() , 1 end
for i = 1, 10 do global() end
local chunk = load("local t = {}\\nt[1] = { 1 }\\nreturn t", "=(named)")
local text = load("return {\\n{} }")
local inside = coroutine.wrap(function() coroutine.yield(chunk()) text() end)
inside() inside()
pcall(function() local t = { x = 1 } end)
local stripped = load(string.dump(function() return { 1 } end, true))
stripped()
""")
    bench.run(LUA, script, env=bench.preload())
    stacks = {" ".join(frame.replace(str(bench.directory) + "/", "") for frame in alloc.frames) for alloc in bench.allocs()}
    main = r"\(main\x20chunk\)@names.lua".replace(r"\x20", r"\\x20")
    for wanted in (
            rf"{main}:8:0-0 global@names.lua:7:0-0 inner@names.lua:6:0-0 method@names.lua:3:0-0",
            rf"{main}:8:0-0 global@names.lua:7:0-0 inner@names.lua:6:0-0 method@names.lua:4:0-0",
            rf"{main}:12:0-0 \(anonymous\)@names.lua:11:0-0 \(main\\x20chunk\)@\(named\):2:0-0",
            rf"{main}:12:0-0 \(anonymous\)@names.lua:11:0-0 \(main\\x20chunk\)@\[string\\x20\"return\\x20{{...\"\]:1:0-0",
            rf"{main}:13:0-0 \(anonymous\)@names.lua:13:0-0",
            rf"{main}:15:0-0 stripped@\?:0:0-0"):
        expect(any(re.fullmatch(wanted, stack) for stack in stacks), f"no stack {wanted} in {sorted(stacks)}")
