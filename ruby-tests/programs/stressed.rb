require_relative "measure"

puts(measure do
  GC.stress = true
  kept = 25.times.map { |i| ["under stress", i.to_s] }
  GC.stress = false
  puts kept.flatten.size
end)
