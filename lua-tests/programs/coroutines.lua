-- Coroutines: generators, many at once, inside each other, with errors, closed and abandoned; deep stacks.
local function tree(depth)
  if depth == 0 then return nil end
  return { left = tree(depth - 1), value = depth, right = tree(depth - 1) }
end
local function walk(node)
  if node then
    walk(node.left)
    coroutine.yield({ node.value })
    walk(node.right)
  end
end
local sum = 0
for _ = 1, 5 do
  local t = tree(7)
  for value in coroutine.wrap(function() walk(t) end) do sum = sum + value[1] end
end
local all = {}
for i = 1, 100 do
  all[i] = coroutine.create(function(a)
    local kept = { a }
    while true do
      kept[#kept + 1] = coroutine.yield({ #kept })
    end
  end)
end
for round = 1, 20 do
  for _, c in ipairs(all) do
    local _, r = coroutine.resume(c, round)
    sum = sum + r[1]
  end
end
for i = 1, 50 do coroutine.close(all[i]) end
local function nested(n)
  if n == 0 then return { "bottom" } end
  return coroutine.wrap(function() return { nested(n - 1) } end)()
end
sum = sum + #nested(60)
local ok, message = coroutine.resume(coroutine.create(function() local t = {} error({ code = t }) end))
local function deep(n) if n == 0 then return {} end local r = deep(n - 1) return { r } end
deep(5000)
do
  local closed = coroutine.create(function()
    local x <close> = setmetatable({}, { __close = function() sum = sum + #{ 1, 2 } end })
    coroutine.yield()
  end)
  coroutine.resume(closed)
  coroutine.close(closed)
end
all = nil
collectgarbage()
print(sum, ok, type(message.code))
os.exit(0, false)
