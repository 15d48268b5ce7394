require_relative "measure"

puts(measure do
  text = +""
  3_000.times { |i| text << "piece #{i}" << i.to_s(2) }
  text.split("p").map(&:upcase).each_slice(7) { |some| some.join("-") }
  text.scan(/\d+/) { |found| found.to_sym if found.size < 3 }
  puts text.size, text.hash.class
end)
