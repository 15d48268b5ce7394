require_relative "measure"

puts(measure do
  40.times do |i|
    eval("def made_#{i}(x) = [x, x.to_s]; made_#{i}(#{i})", binding, "evaluated #{i}", 70)
    Class.new { define_method(:"m#{i}") { "#{self.class} #{i}" } }.new.send(:"m#{i}")
    GC.start if i % 10 == 0
  end
  puts 3.instance_eval { to_s }, binding.local_variables.size
end)
