-- Code that is loaded, run and collected, again and again; and dumped without lines.
local total = 0
for i = 1, 400 do
  local chunk = load("local t = { " .. i .. ",\n { 1, 2, 3 } }\nreturn function() return { t[1], #t } end")
  total = total + chunk()()[1]
end
for i = 1, 50 do
  local stripped = load(string.dump(function(n) return { n, { n } } end, true))
  total = total + stripped(i)[1]
end
local environment = { ipairs = ipairs }
local f = load("x = { 1 } return { x }", "=named", "t", environment)
total = total + #f() + #environment.x
print(total, load("this is no program"))
collectgarbage()
os.exit(0, false)
