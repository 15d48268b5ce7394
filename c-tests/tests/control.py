"""What a host does while it is traced: control.c in all its ways."""

import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path

from bench import HERE, Failure, Tally, equal, expect, scenario

N = 1000


def trace(bench, what, *more, **how):
    file, result = bench.trace("control", N, "--do", what, "--counters", *more, **how)
    bench.check(file)
    return file, result


@scenario
def suspend(bench):
    """Of 4 N blocks the 2 N made while suspended are not there; all others are, and their ends."""
    file, result = trace(bench, "suspend", "--final-gc")
    equal(result.numbers("counters")["young_blocks"], 4 * N, "blocks the runtime made")
    tally = Tally(bench.dump(file))
    equal(tally.allocations, 2 * N, "allocations")
    equal(tally.collections, 2 * N, "collections")


@scenario
def flush(bench):
    """What was made before the flush is in the file after it."""
    file, _ = trace(bench, "flush", "--copy", bench.path("copy.ctf"))
    bench.check(bench.path("copy.ctf"))
    equal(Tally(bench.dump(bench.path("copy.ctf"))).allocations, N, "allocations after the flush")
    equal(Tally(bench.dump(file)).allocations, 2 * N, "allocations at the end")


@scenario
def rotate(bench):
    """Each file has what was sampled while it was the current one, and is sound by itself."""
    file, _ = trace(bench, "rotate", "--next", bench.path("next.ctf"), "--final-gc")
    bench.check(bench.path("next.ctf"))
    equal(Tally(bench.dump(file)).allocations, N, "allocations in the first file")
    second = Tally(bench.dump(bench.path("next.ctf")))
    equal((second.allocations, second.collections), (2 * N, 2 * N), "events in the second file")


@scenario
def restart(bench):
    """A trace ends and another begins in the middle of a program."""
    file, _ = trace(bench, "restart", "--next", bench.path("next.ctf"), "--final-gc")
    bench.check(bench.path("next.ctf"))
    equal(Tally(bench.dump(file)).allocations, N, "allocations in the first trace")
    second = Tally(bench.dump(bench.path("next.ctf")))
    equal((second.allocations, second.collections), (N, N), "events in the second trace")


@scenario
def labels(bench):
    """A label is the outermost frame."""
    file, _ = trace(bench, "labels")
    found = {}
    for event in bench.dump(file):
        if event.kind == "alloc":
            outermost = event.frames()[0]
            name = next((label for label in ("alpha", r"beta\x20gamma") if label in outermost), None)
            expect(name or outermost.startswith("run@"), f"the outermost frame is {outermost}")
            found[name] = found.get(name, 0) + 1
    equal(found, {"alpha": N, r"beta\x20gamma": N, None: N}, "allocations by label")


@scenario
def plugin(bench):
    """Frames of code loaded while running are known by name."""
    file, _ = trace(bench, "plugin", "--plugin", str(bench.build / "plain" / "plugin.so"))
    count = 0
    for event in bench.dump(file):
        if event.kind == "alloc":
            functions = [frame.split("@")[0] for frame in event.frames()]
            equal(functions, ["run", "plugin", "plugged_in"], "frames")
            count += 1
    equal(count, N, "allocations")


@scenario
def the_example(bench):
    """examples/minimal.c says what it does, with the lines it has."""
    source = HERE.parent / "examples" / "minimal.c"
    program = bench.path("minimal")
    command = ["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I", str(bench.include),
               str(source), "-L", str(bench.libdir), "-lheaptap", f"-Wl,-rpath,{bench.libdir}", "-o", program]
    built = subprocess.run(command, capture_output=True)
    expect(built.returncode == 0, built.stderr.decode()[-800:])
    file = bench.path("minimal.ctf")
    ran = subprocess.run([program], env={"HEAPTAP": file, "HEAPTAP_RATE": "1"}, capture_output=True, check=False)
    equal((ran.returncode, ran.stdout, ran.stderr), (0, b"100000 cells\n", b""), "how it ended")
    bench.check(file)
    events = json.loads(bench.tool("info", "--json", file).out)["events"]
    equal((events["allocations"], events["samples"]), (1000000, 3000000), "allocations and samples")
    equal((events["promotions"], events["collections"]), (100000, 900000), "promotions and collections: the list is alive at the end")
    lines = source.read_text().splitlines()
    frames = next(iter(bench.dump(file))).frames()
    for frame, text in zip(frames, ("fill(1000000)", "cons(i)", "young_ptr -= CELL_WORDS"), strict=True):
        place = re.fullmatch(r"(\w+)@minimal.c:(\d+):(\d+)-(\d+)", frame)
        if place is None or text not in lines[int(place[2]) - 1]:
            raise Failure(f"{frame} is not where {text} is")


def listening(process, path, trace, snapshot):
    """Asks a process that listens at `path` and traces into `trace`."""
    deadline = time.monotonic() + 60
    while not path.exists():
        expect(time.monotonic() < deadline and process.poll() is None, "it does not listen")
        time.sleep(0.01)

    def ask(line):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(str(path))
            client.sendall(line.encode() + b"\n")
            return client.makefile().read()

    status = ask("status")
    expect(status.startswith(f"ok pid={process.pid} program=server version="), status)
    expect(f" trace={trace} " in status, status)
    answer = ask(f"snapshot {snapshot}").splitlines()[-1]
    expect(answer.startswith(f"ok file={snapshot} blocks="), answer)
    expect(ask("what").startswith("error unknown command `what`"), "an unknown command")


@scenario
def commands(bench):
    """With HEAPTAP_LISTEN=1 a host takes commands too, traced or not, until it exits."""
    runtime = Path(bench.path("run"))
    runtime.mkdir(mode=0o700)
    for trace, file in (({}, ""), ({"HEAPTAP": bench.path("listening.ctf")}, bench.path("listening.ctf"))):
        env = {**{k: v for k, v in os.environ.items() if not k.startswith(("HEAPTAP", "MEMTRACE"))},
               "HEAPTAP_LISTEN": "1", "XDG_RUNTIME_DIR": str(runtime), **trace}
        with subprocess.Popen(bench.command("server", "100000000"), env=env, stdout=subprocess.DEVNULL, cwd=bench.directory) as process:
            try:
                listening(process, runtime / "heaptap" / f"{process.pid}.sock", file, bench.path("server.heap"))
            finally:
                process.kill()
    result = bench.run("server", "10", env={"HEAPTAP_LISTEN": "1", "XDG_RUNTIME_DIR": str(runtime)})
    equal(result.err, "", "what it said")
    left = [found.name for found in (runtime / "heaptap").iterdir()]
    equal(len(left), 2, f"sockets that are left by those that were killed: {left}")
