require_relative "measure"

def fail_at(depth) = depth.zero? ? raise(ArgumentError, "at #{depth}") : fail_at(depth - 1)

puts(measure do
  200.times { |i| fail_at(i % 20) rescue $!.message }
  found = catch(:found) { 100.times { |i| throw :found, "it is #{i}" if i == 99 } }
  deep = begin; endless = ->(n) { endless.(n + 1) }; endless.(0); rescue SystemStackError => error; error.class; end
  puts found, deep
end)
