require_relative "measure"

puts(measure do
  table = {}
  2_000.times { |i| table["key #{i}"] = { i => [i] } }
  table.delete_if { |_, inner| inner.keys.first.even? }
  puts table.size, table.to_a.flatten(1).size, table.group_by { |k, _| k.size }.size
end)
