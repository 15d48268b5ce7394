"""Stacks at and over the limits, and what hooks take from their host."""

import json

from bench import Tally, equal, expect, family, scenario


def allocations(bench, file):
    return [event for event in bench.dump(file) if event.kind == "alloc"]


@family({"managed": (), "native": ("native",)})
def hooks_take_little(bench, *native):
    """No malloc once warm, 2 KiB of stack at most."""
    file = bench.path("hooks.ctf")
    result = bench.run("hooks", file, *native, code=None)
    expect(result.code == 0, f"{result.out.strip()[-1500:]} {result.err.strip()[-300:]}")
    bench.check(file)
    if native:
        depths = {len(event.frames()) for event in allocations(bench, file)}
        expect(min(depths) > 16, f"no C frames were unwound: {depths} frames")
    print("# " + "; ".join(line for line in result.out.splitlines() if "bytes of stack" in line))


@scenario
def hundred_thousand_frames(bench):
    file, traced = bench.trace("deep", 100000, "--counters", "--final-gc", rate=1e-4)
    equal(traced.checksum(), bench.run("deep", 100000).checksum(), "checksum")
    bench.check(file)
    depth = json.loads(bench.tool("info", "--json", file).out)["depth"]["max"]
    expect(depth > 50000, f"the deepest backtrace has {depth} frames")
    for event in allocations(bench, file):
        frames = event.frames()
        expect(frames[0].startswith("run@"), f"the outermost frame is {frames[0]}")
        expect(frames[-1].startswith("cons@"), f"the innermost frame is {frames[-1]}")


KNOWN = {"run", "even", "odd", "cons"}


def is_cut_outside(frames, limit):
    """The innermost frames are there, and outside of them one that says that more are not."""
    expect(len(frames) <= limit + 1, f"{len(frames)} frames, should be {limit} and a marker at most")
    names = [frame.split("@")[0] for frame in frames]
    expect(names[-1] == "cons", f"the innermost frame is {frames[-1]}")
    expect(names[0] not in KNOWN, f"there is no marker outside: {frames[:3]}")
    expect(all(name in KNOWN for name in names[1:]), f"a strange frame between {frames[0]} and {frames[-1]}")


@scenario
def a_million_frames(bench):
    """Over the limit of 262,144: cut, and nothing else happens."""
    file, traced = bench.trace("deep", 1000000, rate=1e-5)
    equal(traced.checksum(), bench.run("deep", 1000000).checksum(), "checksum")
    bench.check(file)
    deepest = max((event.frames() for event in allocations(bench, file)), key=len)
    expect(len(deepest) > 100000, f"the deepest backtrace has {len(deepest)} frames")
    is_cut_outside(deepest, 262144)


@scenario
def too_deep(bench):
    """--max-frames 100 on a stack of 2,000."""
    file, _ = bench.trace("deep", 2000, "--max-frames", 100, rate=0.01)
    bench.check(file)
    cut = 0
    for event in allocations(bench, file):
        frames = event.frames()
        if not frames[0].startswith("run@"):
            is_cut_outside(frames, 100)
            expect(len(frames) >= 50, f"only {len(frames)} frames are left")
            cut += 1
    expect(cut > 10, f"only {cut} backtraces were cut")


@scenario
def too_long(bench):
    """A thousand different frames do not fit an event: both ends are kept, and a frame says so between."""
    file, _ = bench.trace("sites", 20)
    bench.check(file)
    events = allocations(bench, file)
    equal(len(events), 20, "allocations")
    frames = events[0].frames()
    expect(200 < len(frames) < 1026, f"{len(frames)} frames of 1,026")
    expect(frames[0].startswith("run@"), f"the outermost frame is {frames[0]}")
    expect(frames[-1].startswith("bottom@"), f"the innermost frame is {frames[-1]}")
    strange = [i for i, frame in enumerate(frames) if frame.split("@")[0] not in {"run", "step", "bottom"}]
    equal(len(strange), 1, "marker frames")
    expect(0 < strange[0] < len(frames) - 1, f"the marker is frame {strange[0]}")


@scenario
def columns_are_clamped(bench):
    file, _ = bench.trace("control", 10, "--do", "columns")
    bench.check(file)
    frames = allocations(bench, file)[0].frames()
    expect("far_right@far.c:1048575:255-1023" in frames, f"frames are {frames}")


@scenario
def native_frames(bench):
    """C code between the sample and managed code, innermost last."""
    file, _ = bench.trace("control", 50, "--do", "native", "--native")
    bench.check(file)
    events = allocations(bench, file)
    equal(len(events), 50, "allocations")
    for event in events:
        names = [frame.rsplit(";", 1)[-1].split("@")[0] for frame in event.frames()]
        expect(names[:2] == ["run", "native"], f"the managed frames are {names[:2]}")
        equal(names[2:4], ["c_outer", "c_inner"], "the outermost C frames")
    off, _ = bench.trace("control", 50, "--do", "native", name="off.ctf")
    equal(len(allocations(bench, off)), 50, "allocations without C frames")
    for event in allocations(bench, off):
        expect(event.frames()[-1].startswith("native@tests/control.c"), f"C frames in {event.frames()}")


@family({"malloc": ("malloc",), "nothing": ("nothing",)})
def storm_of_signals(bench, handler):
    file = bench.path("storm.ctf")
    result = bench.run("storm", handler, file, 5000 if bench.long else 1000, code=None, timeout=120)
    expect(result.code == 0, f"{result.out.strip()[-800:]} {result.err.strip()[-300:]}")
    bench.check(file)
    equal(Tally(bench.dump(file)).allocations, int(result.line("made").split()[0]), "allocations")


@family({way: (way,) for way in ("addresses", "walker", "deep-walker", "no-stacks", "own-sweeps")})
def direct(bench, way):
    file = bench.path("direct.ctf")
    result = bench.run("direct", way, file, code=None)
    expect(result.code == 0, f"{result.out.strip()[-800:]} {result.err.strip()[-300:]}")
    bench.check(file)
    events = allocations(bench, file)
    equal(len(events), 3, "allocations")
    frames = [event.frames() for event in events]
    if way == "walker":
        wanted = [[hex(0x5000 + i) for i in reversed(range(depth))] for depth in (5, 4, 3)]
        equal(frames, wanted, "frames")
    elif way == "deep-walker":
        for each in frames:
            expect(30 <= len(each) <= 65, f"{len(each)} frames")
            equal(each[1:], [hex(0x5000 + i) for i in reversed(range(len(each) - 1))], "innermost frames")
            expect(not each[0].startswith("0x50"), f"there is no marker outside: {each[:2]}")
    elif way == "no-stacks":
        equal(frames, [[], [], []], "frames")
    else:
        names = [f"frame{i}@bare.c:{i + 1}:1-9" for i in reversed(range(16))]
        equal(frames, [names] * 3, "frames")
