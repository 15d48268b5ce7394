-- What the line of each block is, with the count hook as the oracle. No functions that are called from C.
package.loadlib(os.getenv("ORACLE_MODULE"), "oracle_lines")()
local function pair(a, b)
  return { a,
    b }
end
local function nested(n)
  local t = {
    n,
    { n, {} },
    [n + 100] = { x = {},
      y = 2 },
    name = {}
  }
  return t
end
local function variadic(...)
  local before = #(...)
  local t = { ... }
  local u = {
    1, 2, 3,
    ...
  }
  local w = { pair(1, 2),
    pair(3, 4)
  }
  return t, u, w
end
local long = {}
local function grow(n)
  for i = 1, n do
    long[#long + 1] = { i }
    long.field = {}
    local s = "text" .. i
    if i % 3 == 0 then
      s = s .. "more"
    end
  end
end
for i = 1, 100 do
  local a = pair(i, i)
  local b = nested(i)
  local c, d = variadic("abc", i, b)
  a.x = function() return c end
  a.y = {
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
    31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
    51, 52, 53, 54, i }
  local e, f = {}, {}
  for k = 1, 5 do e[k] = { k } end
  local z = i % 2 == 0 and { even = true } or {
    odd = true }
end
grow(200)
local co = coroutine.wrap(function()
  for i = 1, 50 do
    local t = { i,
      {} }
    coroutine.yield(t)
  end
end)
for i = 1, 50 do
  local t = { co() }
end
os.exit(0, false)
