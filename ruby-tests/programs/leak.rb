# Keeps a third of what it handles.
class Session
  def initialize(number) = @data = [number, "session #{number}"]
end

SESSIONS = {}

def handle(number)
  garbage = (1..20).map { |i| i.to_s * 2 }
  SESSIONS[number] = Session.new(number) if number % 3 == 0
  garbage.size
end

60_000.times do |number|
  handle(number)
  GC.start if number % 4_000 == 0
  sleep 0.005 if number % 100 == 0
end
puts GC.stat(:major_gc_count)
