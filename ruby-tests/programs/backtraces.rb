# Allocates an object of a class of its own at the end of a known stack, which it prints.
class Marker
  def initialize = @places = nil
end

def outer = [1].each { |x| inner(x) }

def inner(x)
  puts caller_locations(0).map { |it| "#{it.base_label} #{it.path} #{it.lineno}" }; Marker.new
end

eval("outer", binding, "evaluated", 7)
