require_relative "measure"

puts(measure do
  odd = Enumerator.new { |out| n = 1; loop { out << n.to_s; n += 2 } }
  puts odd.take(200).last, odd.next, odd.next
  fibers = 50.times.map { |i| Fiber.new { 20.times { Fiber.yield [i, "f" * 30] } } }
  20.times { fibers.each(&:resume) }
  puts fibers.size
end)
