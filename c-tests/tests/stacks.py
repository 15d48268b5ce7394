"""Stacks at and over the limits, and what hooks take from their host."""

import json

from bench import Tally, equal, expect, family, scenario


def allocations(bench, file):
    return [event for event in bench.dump(file) if event.kind == "alloc"]


@scenario
def hooks_take_little(bench):
    """No malloc once warm, 2 KiB of stack at most."""
    result = bench.run("hooks", bench.path("hooks.ctf"), code=None)
    expect(result.code == 0, f"{result.out.strip()[-1500:]} {result.err.strip()[-300:]}")
    bench.check(bench.path("hooks.ctf"))
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


@scenario
def a_million_frames(bench):
    """Over the limit of 262,144: cut, and nothing else happens."""
    file, traced = bench.trace("deep", 1000000, rate=1e-5)
    equal(traced.checksum(), bench.run("deep", 1000000).checksum(), "checksum")
    bench.check(file)
    depth = json.loads(bench.tool("info", "--json", file).out)["depth"]["max"]
    expect(100000 < depth <= 262144 + 1, f"the deepest backtrace has {depth} frames")


def is_cut(frames, known, outermost, innermost, limit):
    """Both ends are there, and between them one frame that says so."""
    expect(len(frames) <= limit, f"{len(frames)} frames, should be {limit} at most")
    expect(frames[0].startswith(outermost + "@"), f"the outermost frame is {frames[0]}")
    expect(frames[-1].startswith(innermost + "@"), f"the innermost frame is {frames[-1]}")
    strange = [i for i, frame in enumerate(frames) if frame.split("@")[0] not in known]
    equal(len(strange), 1, f"marker frames in {frames[:3]} ... {frames[-3:]}")
    expect(0 < strange[0] < len(frames) - 1, f"the marker is frame {strange[0]}")


@scenario
def too_deep(bench):
    """--max-frames 100 on a stack of 2,000."""
    file, _ = bench.trace("deep", 2000, "--max-frames", 100, rate=0.01)
    bench.check(file)
    cut = 0
    for event in allocations(bench, file):
        frames = event.frames()
        if len(frames) >= 90:
            is_cut(frames, {"run", "even", "odd", "cons"}, "run", "cons", 101)
            cut += 1
    expect(cut > 10, f"only {cut} backtraces were cut")


@scenario
def too_long(bench):
    """A thousand different frames do not fit an event."""
    file, _ = bench.trace("sites", 20)
    bench.check(file)
    events = allocations(bench, file)
    equal(len(events), 20, "allocations")
    is_cut(events[0].frames(), {"run", "step", "bottom"}, "run", "bottom", 1026)
    expect(len(events[0].frames()) > 200, f"only {len(events[0].frames())} frames of 1,026")


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
    for event in allocations(bench, file):
        frames = event.frames()
        managed = [i for i, frame in enumerate(frames) if frame.startswith("native@tests/control.c")]
        expect(len(managed) == 1, f"no managed frame in {frames}")
        expect(len(frames) > managed[0] + 2, f"no C frames behind the managed ones in {frames}")
    off, _ = bench.trace("control", 50, "--do", "native", name="off.ctf")
    for event in allocations(bench, off):
        expect(event.frames()[-1].startswith("native@tests/control.c"), f"C frames in {event.frames()}")


@family({"malloc": ("malloc",), "nothing": ("nothing",)})
def storm_of_signals(bench, handler):
    file = bench.path("storm.ctf")
    result = bench.run("storm", handler, file, 100, code=None, timeout=120)
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
            expect(50 <= len(each) <= 65, f"{len(each)} frames")
            equal(each[-1], "0x5000", "innermost frame")
    elif way == "no-stacks":
        equal(frames, [[], [], []], "frames")
    else:
        names = [f"frame{i}@bare.c:{i + 1}:1-9" for i in reversed(range(16))]
        equal(frames, [names] * 3, "frames")
