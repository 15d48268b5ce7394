-- Tables of all shapes: arrays and hashes that are given, that grow, and that die.
local function matrix(n)
  local rows = {}
  for i = 1, n do
    local row = { i,
      i * 2, name = "row" .. i }
    for j = 1, i % 17 do
      row[#row + 1] = { x = j, y = i }
    end
    rows[i] = row
  end
  return rows
end
local function several(...)
  return { ... }, {
    select("#", ...),
    ...
  }
end
local sum = 0
for round = 1, 10 do
  local m = matrix(200)
  for _, row in ipairs(m) do sum = sum + #row end
  local a, b = several(1, 2, 3, round)
  sum = sum + #a + #b
  local hash = {}
  for i = 1, 300 do hash["key" .. i % 50] = { i, { i } } end
  for k in pairs(hash) do hash[k] = nil end
end
collectgarbage()
print(sum)
os.exit(0, false)
