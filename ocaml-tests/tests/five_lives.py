"""No live block is reported dead and no dead one alive. Blocks are identified by their size."""

from bench import equal, expect, family

YOUNG = 256
RELEASED = 5_000
LAST = 999


class Lives:
    """The events of a trace for the blocks of each size."""

    def __init__(self, bench, sizes):
        self.blocks = {}
        self.promoted, self.collected, self.released, self.last = {}, {}, {}, None
        for line in bench.dump():
            time, domain, block, kind, *rest = line.split(" ", 5)
            if kind == "promote":
                expect(block not in self.promoted, f"block {block} is promoted twice")
                self.promoted[block] = int(time)
            elif kind == "collect":
                expect(block not in self.collected, f"block {block} is collected twice")
                self.collected[block] = int(time)
            elif "Lives.named@" in line:
                self.allocated(int(rest[0].partition("=")[2]), block, int(time), sizes)

    def allocated(self, length, block, time, sizes):
        if length in sizes:
            self.blocks.setdefault(length, {})[block] = time
        elif RELEASED <= length < RELEASED + 1_000:
            member, round = divmod(length - RELEASED, 100)
            for size in (57 + member * 24 + round, 2_000 + member * 100 + round):
                self.released[size] = time
        elif length == LAST:
            self.last = time


def kept_and_dropped(result):
    """The sizes that the program keeps and those that it drops, with their numbers of blocks."""
    kept, dropped = {}, {}
    for line in result.out.splitlines():
        state, *numbers = line.split()
        if state in ("kept", "dropped"):
            size, count = map(int, numbers)
            (kept if state == "kept" else dropped)[size] = count
    expect(len(kept) > 10 and len(dropped) > 10, f"said {result.out[:200]!r}")
    return kept, dropped


def check(bench, result):
    kept, dropped = kept_and_dropped(result)
    lives = Lives(bench, {*kept, *dropped})
    counts = {size: len(blocks) for size, blocks in lives.blocks.items()}
    wrong = {size: counts.get(size, 0) for size, count in {**kept, **dropped}.items() if counts.get(size, 0) != count}
    equal(wrong, {}, "sizes with another number of blocks than were made")
    for size, blocks in lives.blocks.items():
        dead = {block for block in blocks if lives.collected.get(block, lives.last) < lives.last}
        wrong = len(dead) if size in kept else len(blocks) - len(dead)
        what = "kept, and yet collected" if size in kept else "dropped, and not collected"
        expect(not wrong, f"{wrong} of {len(blocks)} blocks of {size} words are {what}")
        for block, born in blocks.items():
            moved, died = lives.promoted.get(block), lives.collected.get(block)
            expect(size in dropped or (moved is not None) == (size <= YOUNG), f"a kept block of {size} words: promoted at {moved}")
            expect(size <= YOUNG or moved is None, f"a major block of {size} words is promoted")
            expect(moved is None or born <= moved, f"a block of {size} words is promoted before it is there")
            if size in dropped:
                expect(died >= lives.released[size], f"a block of {size} words is dead {lives.released[size] - died} µs before it was let go")
                expect(moved is None or moved <= died, f"a block of {size} words is promoted after its death")


@family({f"{kind}_{domains}_{action}_{size}": (kind, domains, action, size)
         for kind, domains, action, size in [
             ("table", 1, "minor", "4k"), ("table", 1, "set", "32k"),
             ("table", 2, "nothing", "4k"), ("table", 2, "set", "4k"), ("table", 2, "minor", "256k"), ("table", 3, "set", "32k"),
             ("table", 3, "major", "32k"), ("table", 4, "minor", "8k"), ("table", 8, "nothing", "32k"), ("table", 8, "set", "256k"),
             ("table", 4, "compact", "32k"),
             ("short", 1, "nothing", "4k"), ("short", 2, "nothing", "4k"), ("short", 2, "set", "32k"), ("short", 3, "compact", "32k"),
             ("short", 4, "minor", "32k"), ("short", 8, "nothing", "256k"),
             ("chain", 2, "nothing", "4k"), ("chain", 2, "set", "4k"), ("chain", 3, "minor", "32k"), ("chain", 4, "set", "32k"),
             ("chain", 4, "nothing", "8k"), ("chain", 3, "compact", "32k"), ("chain", 8, "nothing", "32k")]})
def native(bench, kind, domains, action, size):
    check(bench, bench.trace("lives", kind, domains, action, env={"OCAMLRUNPARAM": f"s={size}", "HEAPTAP_FRAMES": 2}))


@family({f"{program}_{kind}_{action}": (f"lives.{program}", kind, action)
         for program in ("debug", "byte") for kind in ("table", "short", "chain") for action in ("nothing", "set", "compact")})
def other_runtimes(bench, program, kind, action):
    check(bench, bench.trace(program, kind, 3, action, env={"OCAMLRUNPARAM": "v=0,s=32k", "HEAPTAP_FRAMES": 2}))
