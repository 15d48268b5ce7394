-- Modules in C: userdata, and memory that a module takes from the state's allocator.
local lpeg, cjson = require "lpeg", require "cjson"
local number = lpeg.R "09" ^ 1 / tonumber
local space = lpeg.S " \n" ^ 0
local list = lpeg.P { "list", list = "(" * space * lpeg.Ct((lpeg.V "list" + number * space) ^ 0) * ")" * space }
local text = "(1 2 (3 4 (5)) " .. string.rep("(6 7) ", 200) .. ")"
local sum = 0
for _ = 1, 10 do sum = sum + #lpeg.match(list, text) end
local grammar = lpeg.P(false)
for i = 1, 60 do grammar = grammar + lpeg.P("word" .. i) / function(w) return { w } end end
for i = 1, 60 do sum = sum + #grammar:match("word" .. i) end
local data = { list = {}, name = "a name" }
for i = 1, 200 do data.list[i] = { id = i, tags = { "a", "b", tostring(i) } } end
for _ = 1, 5 do
  local json = cjson.encode(data)
  local back = cjson.decode(json)
  sum = sum + #back.list
end
local file = assert(io.tmpfile())
for i = 1, 500 do file:write("line ", i, "\n") end
file:seek("set")
for line in file:lines() do sum = sum + #line end
file:close()
lpeg, number, space, list, grammar = nil
collectgarbage()
print(sum)
os.exit(0, false)
