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
for i = 1, 60000 do
  work(i)
  if i % 50 == 0 then remember(i) end
end
print("done")
"""


@scenario
def by_line(bench):
    """The line that keeps the most is the first."""
    script = bench.write("leak.lua", PROGRAM)
    bench.same(LUA, script, rate=0.05)
    leaks = bench.tool("leaks", bench.path("trace.ctf")).out
    expect("leak.lua:" in leaks and leaks.split("leak.lua:")[1].startswith("4:"), leaks)
