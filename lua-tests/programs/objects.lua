-- A program as people write them: classes, a queue, sorting, reading its own text.
local Queue = {}
Queue.__index = Queue
function Queue.new() return setmetatable({ first = 1, last = 0, items = {} }, Queue) end
function Queue:push(item)
  self.last = self.last + 1
  self.items[self.last] = { item = item, at = self.last }
end
function Queue:pop()
  local item = self.items[self.first]
  self.items[self.first] = nil
  self.first = self.first + 1
  return item
end
local words = {}
for line in io.lines(arg[0]) do
  for word in line:gmatch("%a+") do words[#words + 1] = word:lower() end
end
local counts = {}
for _, word in ipairs(words) do counts[word] = (counts[word] or 0) + 1 end
local sorted = {}
for word, count in pairs(counts) do sorted[#sorted + 1] = { word, count } end
table.sort(sorted, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
local queue, sum = Queue.new(), 0
for i = 1, 3000 do
  queue:push({ i })
  if i % 3 == 0 then sum = sum + queue:pop().item[1] end
end
print(#words, sorted[1][1], sum)
local moved = table.move(words, 1, #words, 10, {})
local packed = table.pack(table.unpack(words, 1, 200))
print(#moved > 0, packed.n, #string.pack("s4", words[1]))
-- Ends as most do: the state is closed.
