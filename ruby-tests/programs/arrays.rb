require_relative "measure"

puts(measure do
  rows = Array.new(200) { |i| Array.new(i) { |j| [i, j] } }
  puts rows.flatten.sum, rows.map(&:dup).each_cons(2).to_a.size
  puts (1..5).to_a.permutation.map(&:first).tally.size
end)
