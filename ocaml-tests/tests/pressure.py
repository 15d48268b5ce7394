"""A program that reaches the memory limit of its control group: what is known of its last moments."""

import contextlib
import csv
import io
import json
import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

from bench import Skip, equal, expect, scenario
from commands import LONG, is_snapshot
from labels import compile_library

MIB = 1 << 20

# Stands still, keeps megabytes each hundredth of a second, and goes on without growing.
PROGRAM = """let step = Heaptap.value "step"
let kept = ref []
let tell i = Heaptap.set_int step i; Printf.printf "%d\\n%!" i; Unix.sleepf 0.01
let () =
  let still, growing, idle, size = Scanf.sscanf Sys.argv.(1) "%d,%d,%d,%d" (fun a b c d -> (a, b, c, d)) in
  for i = 1 to still do tell i done;
  for i = still + 1 to still + growing do kept := Bytes.make (size * 1_000_000) 'x' :: !kept; tell i done;
  for i = still + growing + 1 to still + growing + idle do ignore (List.init 10_000 string_of_int); tell i done;
  Printf.printf "kept %d\\n" (List.length !kept)
"""


@contextlib.contextmanager
def limited_group(limit):
    """A control group below that of this process, with this limit: its folder."""
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = next((path for _, kinds, path in groups if "memory" in kinds.split(",")), None)
    if own is not None:
        folder, name = Path("/sys/fs/cgroup/memory") / own.lstrip("/"), "memory.limit_in_bytes"
    else:
        own = next((path for number, _, path in groups if number == "0"), "/")
        folder, name = Path("/sys/fs/cgroup") / own.lstrip("/"), "memory.max"
    group = folder / f"heaptap-test-{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
    except OSError as error:
        raise Skip(f"no control group can be made: {error}") from error
    try:
        try:
            (group / name).write_text(str(limit))
            if (group / "memory.swap.max").exists():
                (group / "memory.swap.max").write_text("0")
        except OSError as error:
            raise Skip(f"a control group can have no memory limit: {error}") from error
        yield group
    finally:
        deadline = time.monotonic() + LONG
        while group.exists():
            try:
                group.rmdir()
            except OSError:  # the last process is not gone yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def run_limited(bench, limit, phases, env):
    """Runs the program in a group of its own: its exit status, and what it printed."""
    compile_library(bench)
    (bench.directory / "pressed.ml").write_text(PROGRAM)
    bench.run("ocamlopt", "-g", "-w", "-a", "-thread", "-I", "library", "unix.cmxa", "threads.cmxa", "heaptap.cmxa", "pressed.ml", "-o", "pressed")
    with limited_group(limit) as group:
        def enter():
            (group / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run([bench.directory / "pressed", ",".join(map(str, phases))], env=bench.environment(env), cwd=bench.directory,
                              preexec_fn=enter, capture_output=True, timeout=LONG)
    return done.returncode, done.stdout.decode().split("\n"), done.stderr.decode()


def marks(bench):
    """When memory ran short, in microseconds since the start of the trace."""
    said = json.loads(bench.run(bench.heaptap, "report", "--timeline", "--json", "trace.ctf").out)
    return [mark["time_us"] for mark in said["pressure"]]


@scenario
def killed(bench):
    """By the kernel, at the limit: from the mark on, what the program does is written each hundredth of a second."""
    env = bench.preload(rate=1e-3, HEAPTAP_TIMELINE=1)
    code, printed, err = run_limited(bench, 160 * MIB, (80, 400, 0, 1), env)
    if code == 0:
        raise Skip("the limit of a control group does not hold here")
    equal((code, err), (-signal.SIGKILL, ""), "how it ended")
    last_step = int(printed[-2])
    mark = marks(bench)[0]
    rows = csv.DictReader(io.StringIO(bench.run(bench.heaptap, "probes", "--csv", "trace.ctf").out))
    states = [(int(row["time_us"]), float(row["value"])) for row in rows if (row["probe"], row["field"]) == ("step", "last")]
    gaps = [(then, then - before) for (before, _), (then, _) in zip(states, states[1:])]
    quiet = statistics.median(gap for then, gap in gaps if then <= mark)
    urgent = statistics.median(gap for then, gap in gaps if then > mark)
    expect(quiet > 60_000, f"{quiet} µs between two states before memory runs short")
    expect(urgent < 40_000, f"{urgent} µs between two states when memory is short")
    lost = last_step - states[-1][1]
    expect(0 <= lost <= 30, f"the last {lost} of {last_step} steps are not in the file")


@scenario
def a_snapshot(bench):
    """Is taken if it is asked for, once because memory grows fast and once because little is left, and the program goes on."""
    env = bench.preload(rate=1e-3, HEAPTAP_TIMELINE=1, HEAPTAP_SNAPSHOT="pressure")
    # It stops growing with less than a tenth of the limit left, however slowly it came there.
    code, printed, err = run_limited(bench, 512 * MIB, (30, 122, 150, 4), env)
    equal((code, err, printed[-2]), (0, "", "kept 122"), "how it ended")
    expect(len(marks(bench)) in (1, 2), f"memory ran short at {marks(bench)}")
    reasons = [is_snapshot(bench, file) for file in bench.directory.glob("*.heap")]
    expect(reasons in (["memory pressure"], ["memory pressure"] * 2), f"snapshots: {reasons}")


@scenario
def without_a_limit_that_is_near(bench):
    """Nothing is marked, and no snapshot is taken."""
    env = bench.preload(rate=1e-3, HEAPTAP_TIMELINE=1, HEAPTAP_SNAPSHOT="pressure")
    code, _, err = run_limited(bench, 16_384 * MIB, (30, 10, 10, 1), env)
    equal((code, err), (0, ""), "how it ended")
    equal((marks(bench), list(bench.directory.glob("*.heap"))), ([], []), "marks and snapshots")
