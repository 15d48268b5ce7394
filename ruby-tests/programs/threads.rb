require_relative "measure"

puts(measure do
  queue = Queue.new
  workers = 6.times.map do |i|
    Thread.new { 300.times { |j| queue << "#{i} #{j}" * 3; Thread.pass if j % 50 == 0 } }
  end
  workers.each(&:join)
  puts queue.size
end)
