# Another tool has a hook for objects, for a while.
require "objspace"
seen = 0
20_000.times { "before".dup }
ObjectSpace.trace_object_allocations do
  made = 20_000.times.map { "during".dup }
  seen = made.count { |it| ObjectSpace.allocation_sourceline(it) == 6 }
end
20_000.times { "after".dup }
puts seen
