require_relative "measure"

puts(measure do
  kept = 20_000.times.map { |i| "object #{i}" }.each_slice(3).map(&:first)
  3.times { GC.compact; kept << "one more" }
  GC.auto_compact = true
  2.times { GC.start; kept << kept.first(10).join }
  GC.auto_compact = false
  puts kept.size, kept[77]
end)
