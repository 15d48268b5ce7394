# Prints where each of some objects was allocated, as Ruby's own tracing of them has it.
require "objspace"

def deep(n) = n.zero? ? Object.new : deep(n - 1)

class Maker
  def self.make = "of a class " * 3
  def make = ["of an object"]
  def in_block = [1].each { |x| return [x, x] }
end

ObjectSpace.trace_object_allocations do
  objects = [
    deep(30), Maker.make, Maker.new.make, Maker.new.in_block,
    [3, 1].sort_by { |x| -x },
    eval("Object.new", binding, "evaluated", 77),
    { a: 1 }.to_a,
    Thread.new { "in a thread " + "x" }.value,
    Fiber.new { [1.5] * 2 }.resume,
    define_method(:later) { "defined later " * 2 }.then { later },
  ]
  objects.each do |object|
    puts [ObjectSpace.allocation_sourcefile(object), ObjectSpace.allocation_sourceline(object)].join(" ")
  end
end
