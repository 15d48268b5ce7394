# Counts the objects that a block allocates, by Ruby's own count.
def total = GC.stat(:total_allocated_objects)

def measure
  before = total
  yield
  total - before
end

# What the first call makes by itself is there.
2.times { measure {} }
