"""What a collection frees is dead in the trace, what it leaves is not, also when it moves."""

from bench import PROGRAMS, equal, expect, family, place


# The line of the loop.
LOOP = next(number for number, line in enumerate((PROGRAMS / "lives.rb").read_text().splitlines(), 1)
            if "times { |i| kept" in line)


def made_by(allocs, maker):
    """The objects that a method makes in the loop."""
    for it in allocs:
        places = [place(frame) for frame in it.frames]
        names = [name for name, _, _ in places[-2:]]
        if names == [maker, "Class#new"] and any(line == LOOP for _, _, line in places):
            yield it.id


@family({"plain": ("",), "compacted": ("compact",)})
def living_objects(bench, how):
    """As many as `ObjectSpace.each_object` finds, by class, right before the script ends. Of those that live, the trace says
    that they are old (Ruby's age bits: after three collections)."""
    result = bench.same("lives.rb", how)
    dead, old = bench.ended("collect"), bench.ended("promote")
    counted = dict(line.split(" ") for line in result.out.splitlines())
    allocs = bench.allocs()
    for name, maker, number in ("Kept", "Object#make_kept", 500), ("Dropped", "Object#make_dropped", 4_000):
        made = set(made_by(allocs, maker))
        equal(len(made), number, f"objects of {name}")
        alive = made - dead
        equal(len(alive), int(counted[name]), f"objects of {name} that live")
        expect(alive <= old, f"{len(alive - old)} living objects of {name} are young")
