# Ends as it is asked to.
kept = 2_000.times.map { |i| "kept #{i}" }
# What the first call makes by itself is there.
"once".dup
case ARGV[0]
when "exit" then exit 3
when "exit!" then exit! 4
when "abort" then abort "it ends"
when "raise" then raise "not caught"
when "signal" then sleep 0.5; Process.kill(:TERM, $$); sleep
when "kill" then sleep 0.5; Process.kill(:KILL, $$); sleep
when "exec" then exec "echo", "another program"
when "system" then system("ruby", "-e", "puts 'a child'") or exit 1
when "at_exit" then at_exit { puts "at exit #{kept.size}" }
when "fork"
  ends = 3.times.map { |i| fork { (1_000 * (i + 1)).times { "of the child".dup }; exit i } }
  puts ends.map { |pid| Process.wait2(pid)[1].exitstatus }.inspect
  1_000.times { "of the parent".dup }
when "forks"
  40.times { |i| fork { Array.new(50) { |j| "#{i} #{j}" } } }
  puts Process.waitall.count { |_, status| status.success? }
when "daemon"
  read, write = IO.pipe
  fork { Process.daemon(true, true); write << "from the daemon #{Array.new(500, &:to_s).size}"; write.close }
  write.close
  Process.wait
  puts read.read
when "ractor"
  puts Ractor.new { Array.new(5_000, &:to_s).size }.take
  puts 2.times.map { |i| Ractor.new(i) { |n| n + 1 } }.sum(&:take)
end
