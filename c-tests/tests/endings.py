"""How a traced program ends, and what is then in the file."""

import json
import os
import random
import signal
import struct
import subprocess
import threading
import time

from bench import Skip, Tally, alone, equal, expect, family, scenario

N = 3000


def allocations(bench, file):
    return Tally(bench.dump(file)).allocations


@family({"by_return": ("return",), "by_exit": ("exit",), "by_underscore_exit": ("_exit",)})
def whole(bench, end):
    """All that was made is there; after _exit, all that was made 100 ms before."""
    file, result = bench.trace("endings", N, "--end", end)
    bench.check(file)
    equal(allocations(bench, file), int(result.line("made")), "allocations")
    equal(result.err, "", "standard error")


class Stalls(threading.Thread):
    """Measures by how much this machine lets a thread oversleep."""

    def __init__(self):
        super().__init__(daemon=True)
        self.worst, self.on = 0.0, True

    def run(self):
        while self.on:
            before = time.monotonic()
            time.sleep(0.01)
            self.worst = max(self.worst, time.monotonic() - before - 0.01)


@scenario
@alone
def killed(bench):
    """SIGKILL at a random moment: the file is sound and lacks at most the last 200 ms.

    The program keeps the time of its last block in a mapped file; a busy machine's own stalls, measured
    by a thread here, are allowed for."""
    kills = 50 if bench.long else 12
    seed = 20240607
    print(f"# {kills} kills, delays from seed {seed}")
    delays = random.Random(seed)
    worst = 0
    for _ in range(kills):
        file, progress = bench.path("trace.ctf"), bench.path("progress")
        for old in (file, progress):
            if os.path.exists(old):
                os.unlink(old)
        command = bench.command("endings", 100, "--end", "kill", "--progress", progress,
                                "--trace", file, "--rate", 0.2, "--seed", 1)
        stalls = Stalls()
        stalls.start()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while not (os.path.exists(progress) and os.path.getsize(progress) == 8):
            time.sleep(0.01)
        time.sleep(delays.uniform(0.15, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        stalls.on = False
        bench.check(file, strict=False)
        last = struct.unpack("<Q", open(progress, "rb").read())[0]
        written = json.loads(bench.tool("info", "--json", file).out)["end_unix_us"]
        missing = (last - written) / 1e6
        worst = max(worst, missing)
        expect(missing <= 0.2 + stalls.worst, f"the last {missing:.3f} s are missing (stalls {stalls.worst:.3f} s)")
    print(f"# at most the last {worst:.3f} s were missing")


@scenario
@alone
def killed_at_a_low_rate(bench):
    """At 1e-6 a packet takes minutes to fill; its events are in the file all the same."""
    file = bench.path("trace.ctf")
    process = subprocess.Popen(bench.command("maps", 1000000000, "--trace", file, "--rate", 1e-6, "--seed", 1),
                               stdout=subprocess.DEVNULL)
    time.sleep(2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    bench.check(file, strict=False)
    checked = bench.tool("check", file).out
    expect("was killed or still runs" in checked, f"check said {checked!r}")
    expect(allocations(bench, file) > 5, f"{allocations(bench, file)} allocations")


@scenario
def fork_child_stops(bench):
    """One file: the parent's trace is whole, and nothing in it is the child's."""
    file, result = bench.trace("endings", N, "--end", "fork")
    bench.check(file)
    equal(allocations(bench, file), int(result.line("made")), "allocations")


@scenario
def fork_child_goes_on(bench):
    """With %p in the name the child has its own file, with what it made itself."""
    _, result = bench.trace("endings", N, "--end", "fork", name="trace-%p.ctf")
    files = sorted(bench.directory.glob("trace-*.ctf"))
    equal(len(files), 2, "files")
    child = bench.path(f"trace-{result.line('pid')}.ctf")
    parent = next(str(file) for file in files if str(file) != child)
    bench.check(parent)
    bench.check(child)
    equal(allocations(bench, parent), int(result.line("made")), "allocations of the parent")
    equal(allocations(bench, child), 2 * N, "allocations of the child")


@scenario
def forks_while_the_writer_works(bench):
    """A lock that the parent's writer holds at the fork must not stay locked in the child: its writer
    would wait for it, and the child's trace would be empty after 20 s."""
    for _ in range(100):
        for file in bench.directory.glob("trace-*.ctf"):
            file.unlink()
        _, result = bench.trace("endings", N, "--end", "fork", name="trace-%p.ctf")
        equal(result.err, "", "standard error")
        child = bench.path(f"trace-{result.line('pid')}.ctf")
        equal(allocations(bench, child), 2 * N, "allocations of the child")


@scenario
def fork_and_exec(bench):
    file, result = bench.trace("endings", N, "--end", "exec", "--final-gc")
    bench.check(file)
    equal(allocations(bench, file), int(result.line("made")), "allocations")


@scenario
def closed_descriptors(bench):
    """The host closes every descriptor and uses their numbers for its own file: that stays its own."""
    mine = bench.path("mine")
    file, result = bench.trace("endings", N, "--end", "closefds", "--mine", mine)
    equal(os.path.getsize(mine), 0, "bytes written into the host's file")
    bench.check(file, strict=False)
    expect(len(result.err.splitlines()) <= 1, f"standard error: {result.err!r}")


def mounted(bench, size):
    point = bench.path("small")
    os.mkdir(point)
    if os.geteuid() != 0:
        raise Skip("only root mounts a small file system")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", point], capture_output=True)
    if made.returncode != 0:
        raise Skip(f"cannot mount: {made.stderr.decode().strip()}")
    return point


@scenario
def full_disk(bench):
    """Tracing ends with one message; the program with its own result; the file is sound."""
    point = mounted(bench, "64k")
    try:
        untraced = bench.run("maps", 5000)
        file, result = bench.trace("maps", 5000, name="small/trace.ctf")
        equal(result.checksum(), untraced.checksum(), "checksum")
        equal(len(result.err.splitlines()), 1, f"lines on standard error ({result.err!r})")
        expect("trace.ctf" in result.err, f"the message does not name the file: {result.err!r}")
        bench.check(file, strict=False)
        expect(allocations(bench, file) > 0, "nothing was written before the disk was full")
        checked = bench.tool("check", "--strict", file, codes=(1,)).out
        expect("could not be written any further" in checked, f"check --strict said {checked!r}")
    finally:
        subprocess.run(["umount", point], check=False)


@family({"directory": (".",), "missing": ("no/such/trace.ctf",), "full_device": ("/dev/full",)})
def unwritable(bench, name):
    """A message, and the program goes on."""
    untraced = bench.run("maps", 2000)
    result = bench.run("maps", 2000, env={"HEAPTAP": bench.path(name) if name[0] != "/" else name,
                                          "HEAPTAP_RATE": "1"})
    equal(result.checksum(), untraced.checksum(), "checksum")
    lines = result.err.splitlines()
    equal(len(lines), 1, f"lines on standard error ({result.err!r})")
    expect(lines[0].startswith("heaptap: "), f"a line that does not say who speaks: {lines[0]!r}")


@family({"dropping": ("drops",), "waiting": ("waits",)})
def writer_falls_behind(bench, way):
    """What is lost is counted, and said at the end; what is not lost is whole. Waiting loses nothing."""
    file = bench.path("slow.ctf")
    result = bench.run("direct", way, file, code=None)
    expect(result.code == 0, f"{result.out.strip()[-800:]} {result.err.strip()[-300:]}")
    bench.check(file)
    tally = Tally(bench.dump(file))
    equal(tally.allocations, int(result.line("recorded")), "allocations")
    equal(tally.collections, tally.allocations, "collections")
    expect(all(event.site().startswith("slow") for event in bench.dump(file) if event.kind == "alloc"), "names")
    if way == "drops":
        equal(len(result.err.splitlines()), 1, f"lines on standard error ({result.err!r})")
        expect(result.line("lost") in result.err, f"the message does not say how many: {result.err!r}")
    else:
        equal(result.err, "", "standard error")
