-- Closures that share variables, and objects made of them.
local function counter()
  local n = 0
  return function() n = n + 1 return n end,
    function() n = n - 1 return n end
end
local kept = {}
for i = 1, 2000 do
  local up, down = counter()
  up() up() down()
  if i % 7 == 0 then kept[#kept + 1] = { up = up, down = down } end
end
local function compose(f, g) return function(...) return f(g(...)) end end
local f = function(x) return x + 1 end
for _ = 1, 30 do f = compose(f, function(x) return x end) end
local point = setmetatable({}, { __index = function(t, k) return { k } end, __call = function(_, ...) return select("#", ...) end })
local total = 0
for i = 1, 100 do total = total + #point[i] + point(1, 2, 3) end
print(#kept, f(1), total)
kept = nil
collectgarbage()
os.exit(0, false)
