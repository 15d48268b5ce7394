"""Heap snapshots of a host that walks its own heap: snapshots.c in all its ways.

The oracle is the runtime itself: it counts its blocks before the snapshot, and what is left after a full collection.
Which blocks a snapshot reaches is found out here, from what `heaptap dump` prints of it.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

from bench import Result, Skip, equal, expect, family, scenario
from endings import mounted

N = 3000
MASK = (1 << 64) - 1


def mix(a, b, c):
    return (a * 0x9E3779B97F4A7C15 ^ b * 0xC2B2AE3D27D4EB4F ^ c * 0x165667B19E3779F9) & MASK


class Snapshot:
    """What is in a snapshot, and which of its blocks are alive."""

    def __init__(self, bench, file):
        self.blocks, self.pointers, self.outside, self.strings = {}, {}, {}, {}
        self.parts = 0
        self.roots, self.held, self.weak, self.kinds, self.meta, self.segments = [], [], {}, {}, {}, []
        for line in bench.tool("dump", file).out.splitlines():
            word, *fields = line.split(" ")
            getattr(self, "read_" + word, lambda *_: None)(*fields)
        self.alive = self.reach([target for target, *_ in self.roots] + self.held)

    def read_meta(self, key, value):
        self.meta[key] = value

    def read_segment(self, kind, start, words):
        self.segments.append((kind, int(start, 16), int(words)))

    def read_block(self, address, words, tag, *rest):
        address = int(address, 16)
        expect(address not in self.blocks, f"block {address:#x} comes twice")
        self.blocks[address] = (int(words), int(tag))
        self.pointers[address] = []
        self.read_fields(address, rest)

    def read_more(self, address, _words, _tag, *rest):
        self.parts += 1
        self.read_fields(int(address, 16), rest)

    def read_fields(self, address, rest):
        for field in rest:
            name, value = field.split("=", 1)
            if name == "outside":
                self.outside[address] = int(value)
            elif name == "string":
                self.strings[address] = value
            elif name != "custom":
                self.pointers[address].append((int(name), int(value, 16)))

    def read_root(self, target, *owner):
        self.roots.append((int(target, 16), *owner))

    def read_finaliser(self, _kind, value, _function):
        self.held.append(int(value, 16))  # this runtime keeps the block until its finaliser has run

    def read_ephemeron(self, address, *keys):
        self.weak[int(address, 16)] = [int(key.split("=")[1], 16) for key in keys]

    def read_kind(self, subject, number, name):
        self.kinds[subject, int(number)] = name

    def reach(self, waiting):
        alive = set()
        while waiting:
            address = waiting.pop()
            expect(address in self.blocks, f"{address:#x} is no block")
            if address not in alive:
                alive.add(address)
                waiting.extend(target for _, target in self.pointers[address])
        return alive

    def truth(self, addresses):
        """What the program says of its own heap."""
        found = {"blocks": 0, "words": 0, "outside": 0, "hash": 0}
        for address in addresses:
            words, tag = self.blocks[address]
            found["blocks"] += 1
            found["words"] += words
            found["outside"] += self.outside.get(address, 0)
            found["hash"] += mix(address, words, tag)
            found["hash"] += sum(mix(address, field + 1, target) for field, target in self.pointers[address])
        found["hash"] &= MASK
        return found


def take(bench, *options, size=N, name="a.heap", **how):
    """Runs `snapshots --do take`, and returns its result, the status and the text that it got."""
    result = bench.run("snapshots", size, "--do", "take", "--file", bench.path(name), *options, **how)
    status, _, text = result.line("taken").partition(" ")
    return result, int(status), text


def nothing_left(bench, *but):
    equal(sorted(os.listdir(bench.directory)), sorted(but), "files that are left")


def sound(bench, file):
    bench.tool("snapshot", "--check", file)


@family({
    "copied": ((), "copy-on-write"), "synchronous": (("--sync",), "synchronous"),
    "clone_refused": (("--refuse-clone",), "synchronous"),
})
def exact(bench, options, method):
    """Every block, word and pointer is there, and exactly what is reachable survives a collection."""
    result, status, text = take(bench, *options)
    equal((status, text), (0, bench.path("a.heap")), "the result")
    nothing_left(bench, "a.heap")
    sound(bench, bench.path("a.heap"))
    snapshot = Snapshot(bench, bench.path("a.heap"))
    equal(snapshot.truth(snapshot.blocks), result.numbers("all"), "all blocks")
    equal(snapshot.truth(snapshot.alive), result.numbers("kept"), "blocks that are kept")
    expect(len(snapshot.alive) < len(snapshot.blocks), "nothing was garbage: the test shows little")
    equal(snapshot.meta["method"], method, "method")
    equal(snapshot.meta["runtime"], "minirt", "runtime")
    equal(snapshot.strings, {}, "contents that nobody asked for")
    kinds = [owner[1] for _, *owner in snapshot.roots]
    equal((set(kinds), kinds.count("2")), ({"1", "2"}, 2), "roots on stacks, and global variables")
    expect(kinds.count("1") >= 13 * 2 - 1, f"{kinds.count('1')} roots on stacks")
    equal(snapshot.kinds["root", 2], r"global\x20variable", "the name of a kind of roots")
    equal(len(snapshot.weak), sum(tag == 0xF1 for _, tag in snapshot.blocks.values()), "weak blocks")


@family({"copied": (), "synchronous": ("--sync",)})
def young(bench, *options):
    """The same with blocks in the young heap, which move before they can be compared one by one."""
    result, status, _ = take(bench, "--with-young", *options)
    equal(status, 0, "the status")
    sound(bench, bench.path("a.heap"))
    snapshot = Snapshot(bench, bench.path("a.heap"))
    equal(snapshot.truth(snapshot.blocks), result.numbers("all"), "all blocks")
    found, kept = snapshot.truth(snapshot.alive), result.numbers("kept")
    for each in ("blocks", "words", "outside"):
        equal(found[each], kept[each], f"{each} that are kept")
    segments = [(start, start + 8 * words) for kind, start, words in snapshot.segments if kind == "young"]
    inside = [address for address in snapshot.alive if any(low <= address < high for low, high in segments)]
    expect(len(inside) > 20, f"{len(inside)} blocks in the young heap")


@scenario
def a_large_block(bench):
    """A block with so many pointers that it spans chunks of the file."""
    size = 1000000 if bench.long else 150000
    result, status, _ = take(bench, size=size)
    equal(status, 0, "the status")
    sound(bench, bench.path("a.heap"))
    snapshot = Snapshot(bench, bench.path("a.heap"))
    equal(snapshot.truth(snapshot.blocks), result.numbers("all"), "all blocks")
    equal(max(words for words, _ in snapshot.blocks.values()), size, "words of the largest block")
    expect(snapshot.parts > 0, "the block fitted into one chunk: the test shows little")


@scenario
def contents(bench):
    """With strings, each has at most the bytes that were asked for."""
    _, status, _ = take(bench, "--strings", 12)
    equal(status, 0, "the status")
    snapshot = Snapshot(bench, bench.path("a.heap"))
    raw = [address for address, (_, tag) in snapshot.blocks.items() if tag == 0xF0]
    equal(sorted(snapshot.strings), sorted(raw), "blocks with contents")
    lengths = {len(string) for string in snapshot.strings.values()}
    equal(lengths, {8, 12}, "bytes of contents")


@scenario
def replaced(bench):
    """A snapshot is replaced by the next one; anything else is left alone."""
    equal([take(bench)[1] for _ in range(2)], [0, 0], "statuses")
    nothing_left(bench, "a.heap")
    letter = Path(bench.path("letter"))
    letter.write_text("dear reader", encoding="utf-8")
    result, status, text = take(bench, name="letter")
    equal((status, letter.read_text(encoding="utf-8")), (18, "dear reader"), "the status, and the letter")
    expect("letter exists and is not a heap snapshot" in text, text)
    expect(result.checksum(), "the program did not end as it should")
    nothing_left(bench, "a.heap", "letter")


@family({"copied": (), "synchronous": ("--sync",)})
def at_safe_points(bench, *options):
    """Threads that allocate come to a safe point when they are asked, and each snapshot is consistent."""
    count = 50 if bench.long else 10
    result = bench.run("snapshots", 4, "--do", "busy", "--file", bench.path("a.heap"), "--count", count, *options)
    statuses = [line.split()[1] for line in result.out.splitlines() if line.startswith("taken ")]
    equal(statuses, ["0"] * count, "statuses")
    for number in range(count):
        sound(bench, bench.path(f"a.heap.{number}"))
        snapshot = Snapshot(bench, bench.path(f"a.heap.{number}"))  # finds pointers to nowhere
        expect(len(snapshot.alive) > 1000, f"{len(snapshot.alive)} blocks are alive")
    nothing_left(bench, *(f"a.heap.{number}" for number in range(count)))


@scenario
def no_safe_point(bench):
    result = bench.run("snapshots", 300, "--do", "stuck", "--file", bench.path("a.heap"))
    expect("18 the program reached no point" in result.line("taken") and "0.1 s" in result.out, result.out)
    nothing_left(bench)


# --- What goes wrong ---------------------------------------------------------------------------


def failed(bench, *options, says, left=(), **how):
    """The program goes on to its own result; one line says what happened; no file is left."""
    untroubled = bench.run("snapshots", N, "--do", "none", "--file", "none")
    result, status, text = take(bench, *options, **how)
    equal((status, result.checksum()), (18, untroubled.checksum()), "the status, and the checksum")
    equal(result.err, "", "standard error")
    for word in says:
        expect(word in text, f"{word!r} is not in {text!r}")
    nothing_left(bench, *left)


@family({"missing": ("no/such/a.heap", "No such file"), "directory": (".", "not a heap snapshot"),
         "device": ("/dev/full", "not a heap snapshot")})
def unwritable(bench, name, says):
    failed(bench, name=name, says=[name.strip("."), says])


BOTH = {"copied": (), "synchronous": ("--sync",)}


@family(BOTH)
def full_disk(bench, *options):
    point = mounted(bench, "8k")
    try:
        failed(bench, *options, name="small/a.heap", says=["No space left"], left=["small"])
        equal(os.listdir(point), [], "files on the full disk")
    finally:
        subprocess.run(["umount", point], check=False)


@family(BOTH)
def file_limit(bench, *options):
    """SIGXFSZ, which would end the program, is not delivered."""
    for bytes_ in (0, 100, 4096):
        failed(bench, *options, says=["File too large"], under=["prlimit", f"--fsize={bytes_}"])


@scenario
def fault_in_the_walk(bench):
    """The copy of the process dies; the program's handler does not run."""
    failed(bench, "--walk-segv", says=["signal 11"])


class Running:
    """A program that takes a snapshot while a test does something to it."""

    def __init__(self, bench, *options):
        self.process = subprocess.Popen(bench.command("snapshots", N, "--file", bench.path("a.heap"), *options),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                        cwd=bench.directory)

    def copy(self):
        """The copy of the process, once there is one."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for status in Path("/proc").glob("[0-9]*/status"):
                try:
                    lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
                except OSError:
                    continue
                if lines.get("Name") == "heaptap-copy" and lines.get("PPid") == str(self.process.pid):
                    return int(status.parent.name)
            expect(self.process.poll() is None, "the program ended, and there was no copy of it")
        raise Skip("this system does not show processes in /proc")

    def end(self):
        out, err = self.process.communicate(timeout=120)
        return Result(subprocess.CompletedProcess([], self.process.returncode, out, err))


@scenario
def killed_copy(bench):
    running = Running(bench, "--do", "take", "--walk-ms", "20000")
    os.kill(running.copy(), signal.SIGKILL)
    result = running.end()
    equal((result.code, result.err), (0, ""), "exit status and standard error")
    expect(result.line("taken").startswith("18 the copy of the process was killed"), result.out)
    expect(result.checksum(), "no checksum")
    nothing_left(bench)


@scenario
def signals(bench):
    """Signals to the whole group, a timer and SIGCHLD: handlers run in the program, never in its copy."""
    log = Path(bench.path("log"))
    running = Running(bench, "--do", "signals", "--log", str(log), "--walk-ms", "1000")
    copy = running.copy()
    sent = 0
    while running.process.poll() is None and os.path.exists(f"/proc/{copy}"):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
            os.killpg(running.process.pid, number)
            os.kill(copy, number) if os.path.exists(f"/proc/{copy}") else None
            sent += 1
        time.sleep(0.005)
    result = running.end()
    equal(result.code, 0, f"exit status ({result.err})")
    equal(result.line("taken"), f"0 {bench.path('a.heap')}", "the result")
    lines = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    expect(sent > 100 and len(lines) > 100, f"{sent} signals sent, {len(lines)} handled: the test shows little")
    equal({process for process, _ in lines}, {str(running.process.pid)}, "processes in which a handler ran")
    expect(str(int(signal.SIGCHLD)) not in {number for _, number in lines}, "SIGCHLD was delivered")
    sound(bench, bench.path("a.heap"))


@scenario
def fault_with_a_handler(bench):
    log = Path(bench.path("log"))
    result = Running(bench, "--do", "signals", "--log", str(log), "--walk-segv").end()
    equal(result.code, 0, "exit status")
    expect("signal 11" in result.line("taken"), result.out)
    numbers = {line.split()[1] for line in log.read_text(encoding="utf-8").splitlines()}
    expect(str(int(signal.SIGSEGV)) not in numbers, "the handler for SIGSEGV ran")
    nothing_left(bench, "log")


@scenario
def strangers(bench):
    """wait() finds nobody while the copy lives, and SIGCHLD is not delivered when it ends."""
    result = Running(bench, "--do", "strangers", "--walk-ms", "500").end()
    equal((result.code, result.err), (0, ""), "exit status and standard error")
    expect("found a child" not in result.out, result.out[:500])
    expect(int(result.line("looks")) > 50, f"only {result.line('looks')} looks")
    equal((result.line("heard"), result.line("own")), ("0", "1 7"), "SIGCHLD before, and a child of the program")
    nothing_left(bench, "a.heap.0")


@scenario
def descriptors(bench):
    """Nothing stays open in the program, and its own file descriptors are not held by the copy."""
    running = Running(bench, "--do", "signals", "--log", bench.path("log"), "--walk-ms", "2000")
    copy = running.copy()
    time.sleep(0.1)
    held = {os.readlink(entry) for entry in Path(f"/proc/{copy}/fd").iterdir()}
    expect(len(held) == 1 and next(iter(held)).startswith(str(bench.directory)), f"the copy holds {held}")
    equal(running.end().code, 0, "exit status")
