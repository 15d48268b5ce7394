# Objects of two classes, of which some are kept; prints how many are there after a collection.
class Kept; end
class Dropped; end

def make_kept = Kept.new
def make_dropped = Dropped.new

# What the first calls make by themselves is there.
make_kept
make_dropped

kept = []
4_000.times { |i| kept << make_kept if i % 8 == 0; make_dropped }
GC.compact if ARGV[0] == "compact"
# The stack of these calls is not that of those before.
1.times { 1.times { 5.times { GC.start } } }
GC.compact if ARGV[0] == "compact"
kept.pop(50)
GC.start
puts "Kept #{ObjectSpace.each_object(Kept).count}", "Dropped #{ObjectSpace.each_object(Dropped).count}"
$stdout.flush
exit!(0)
