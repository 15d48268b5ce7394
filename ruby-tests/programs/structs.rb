require_relative "measure"

Point = Struct.new(:x, :y)
class Node
  attr_accessor :next, :value, :a, :b, :c, :d
  def initialize(value, rest) = (@value, @next = value, rest)
end

puts(measure do
  list = 3_000.times.inject(nil) { |rest, i| Node.new(Point.new(i, -i), rest) }
  list.a = list.b = list.c = list.d = 1.5e300 * 3
  deep = list
  deep = deep.next while deep.next
  puts deep.value.y, 2**200, Rational(3, 4) + Complex(1, 2).real
end)
