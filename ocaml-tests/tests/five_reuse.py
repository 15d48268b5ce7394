"""Memory that is reused belonged to a block that is dead according to the trace."""

from bench import equal, expect, family


class Member:
    """The blocks of one length, which one domain allocated, in order."""

    def __init__(self, places):
        self.places = places
        self.made = 0
        # The last block at each address, and how often an address was reused.
        self.blocks, self.again = {}, 0


def check(bench, result):
    lines = [line.split() for line in result.out.splitlines() if line.startswith("made ")]
    members = {int(length): Member(list(map(int, places))) for _, length, *places in lines}
    promoted, collected = set(), set()
    for line in bench.dump():
        _, _, block, kind, *rest = line.split(" ", 5)
        if kind == "promote":
            promoted.add(block)
        elif kind == "collect":
            collected.add(block)
        elif "Reuse.made@" in line and (length := int(rest[0].partition("=")[2])) in members:
            member = members[length]
            place = member.places[member.made]
            member.made += 1
            before = member.blocks.get(place)
            if before is not None:
                gone = before in collected or (place % 2 == 1 and before in promoted)
                expect(gone, f"block {block} was made where block {before} is, by the trace")
                member.again += 1
            member.blocks[place] = block
    for length, member in members.items():
        equal(member.made, len(member.places), f"blocks of {length} words")
    young = sum(member.again for length, member in members.items() if length < 300)
    major = sum(member.again for length, member in members.items() if length >= 300)
    expect(young > 1_000 and major > 20, f"used again: {young} places in young heaps, {major} in the major heap")


@family({f"{kind}{domains}": (f"reuse{suffix}", domains)
         for kind, suffix in (("native_", ""), ("debug_", ".debug"), ("bytecode_", ".byte")) for domains in (1, 2, 4, 8)})
def memory(bench, program, domains):
    result = bench.trace(program, domains, env={"OCAMLRUNPARAM": "v=0,s=4k"})
    check(bench, result)
