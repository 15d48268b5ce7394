"""A leak is found by its line."""

from bench import LUA, expect, scenario

PROGRAM = """local cache = {}
local function remember(key)
  cache[key] = { key,
    string.rep("x", 200) .. key }
end
local function work(i)
  local t = { i, { i } }
  return #t
end
for i = 1, 4000 do
  work(i)
  if i % 4 == 0 then remember(i) end
end
print("done")
"""


@scenario
def by_line(bench):
    script = bench.write("leak.lua", PROGRAM)
    bench.same(LUA, script, rate=0.05)
    leaks = bench.tool("leaks", bench.path("trace.ctf")).out
    expect("leak.lua:4" in leaks, leaks)
    expect("leak.lua:7" not in leaks, leaks)
