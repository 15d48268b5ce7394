-- Errors of all kinds, caught and passed on, and finalisers.
local caught, closed, finalised = 0, 0, 0
local function thrower(n)
  local guard <close> = setmetatable({ n }, { __close = function() closed = closed + #{ 1 } end })
  if n == 0 then error({ message = "deep" .. n }) end
  thrower(n - 1)
end
for i = 1, 200 do
  local ok, e = pcall(thrower, i % 10)
  if not ok then caught = caught + 1 end
  pcall(error, "text " .. i)
  xpcall(function() local x = nil return x.y end, function(m) return { m, debug.traceback(m) } end)
  setmetatable({}, { __gc = function() finalised = finalised + #{ i } end })
end
local function overflow() return (("x"):gsub("x", overflow)) end
local ok, e = pcall(overflow, 1)
print(ok, #tostring(e) > 10)
local ok2, e2 = pcall(string.rep, "x", 1 << 60)
print(ok2, e2)
collectgarbage("generational")
for i = 1, 3000 do local t = { i, { i } } end
collectgarbage("incremental")
collectgarbage()
print(caught, closed, finalised > 0)
os.exit(5, false)
