-- Strings, short and long, joined and built.
local parts = {}
for i = 1, 2000 do
  parts[#parts + 1] = string.format("%05d:%s", i, string.rep("x", i % 60))
end
local long = table.concat(parts, "\n")
local count = 0
for word in long:gmatch("%d+") do count = count + #word end
local upper = long:gsub("x", "yy"):upper()
local s = ""
for i = 1, 300 do s = s .. "part " .. i end
print(#long, count, #upper, #s, #long:reverse():sub(10, 5000))
collectgarbage()
os.exit(3, false)
