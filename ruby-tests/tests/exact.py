"""At rate 1 the objects of a trace are those that Ruby has counted (`GC.stat(:total_allocated_objects)`), whatever the
program does, and the program does what it does untraced."""

from bench import PROGRAMS, SLOT, count_of, equal, expect, family

SCRIPTS = "strings arrays hashes structs threads fibers exceptions evaluated compacted stressed".split()
# The line of measure.rb that runs the block.
YIELD = next(number for number, line in enumerate((PROGRAMS / "measure.rb").read_text().splitlines(), 1)
             if line.strip() == "yield")


@family({script: (script,) for script in SCRIPTS})
def objects(bench, script):
    """Those between the first and the last that are allocated below the block, so that other threads count."""
    wanted = count_of(bench.same(f"{script}.rb", counted=True))
    allocs = bench.allocs()
    expect(all(it.samples == it.length == SLOT for it in allocs), "an object of another size")
    measured = [it.id for it in allocs if any(f"measure.rb:{YIELD}:" in frame for frame in it.frames)]
    equal(measured[-1] - measured[0] + 1, wanted, "objects")
