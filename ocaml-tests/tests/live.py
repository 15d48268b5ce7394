"""`heaptap top` and `heaptap info` of programs that run, or have run: whether they do, and for how long."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from bench import Skip, equal, expect, family, scenario

# No scenario takes longer.
LONG = 60


def start(bench, *before):
    """Runs programs/asked, which says that it is ready and waits for its standard input."""
    command = [*before, bench.heaptap, "run", "-o", bench.path("trace.ctf"), "--", bench.program("asked"), "idle"]
    env = bench.environment({"HEAPTAP_LIBRARY": bench.library})
    process = subprocess.Popen(command, env=env, cwd=bench.directory, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(process.stdout.readline(), b"ready\n", "its first line")
    return process


def title(bench, *before):
    """The first line of the view."""
    command = [*before, bench.heaptap, "top", "--once", bench.path("trace.ctf")]
    return subprocess.check_output(command, timeout=LONG).decode().splitlines()[0]


def shows(bench, part, *before):
    """Waits until the view says this."""
    deadline = time.monotonic() + LONG
    while part not in title(bench, *before):
        expect(time.monotonic() < deadline, f"no {part!r} in {title(bench, *before)!r}")
        time.sleep(0.05)


def kill_descendants(pid):
    """The program before those that wait for it."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        kill_descendants(int(child))
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@family({"here": ((), ()), "in_a_container": (NAMESPACE, ()), "seen_from_a_container": ((), NAMESPACE)})
def live_until_it_is_killed(bench, program, viewer):
    """In a container, the number of the process is that of another one outside, or of none."""
    if shutil.which("unshare") is None or subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode:
        raise Skip("no pid namespace can be made here")
    process = start(bench, *program)
    try:
        shows(bench, " live, ", *viewer)
        time.sleep(0.5)
        expect(" live, " in title(bench, *viewer), f"it has ended: {title(bench, *viewer)!r}")
    finally:
        kill_descendants(process.pid)
        process.communicate(timeout=LONG)
    shows(bench, " ended after ", *viewer)
    lines = subprocess.check_output([*viewer, bench.heaptap, "top", "--json", bench.path("trace.ctf")], timeout=LONG)
    states = [json.loads(line)["state"] for line in lines.splitlines()]
    equal(states, ["killed"], "its states")


@scenario
def an_idle_program_has_a_duration(bench):
    process = start(bench)
    time.sleep(1.5)
    process.communicate(b"\n", timeout=LONG)
    equal(process.returncode, 0, "its exit status")

    def duration():
        facts = subprocess.check_output([bench.heaptap, "info", "--json", bench.path("trace.ctf")])
        return json.loads(facts)["duration_us"]

    expect(duration() >= 1_500_000, f"it lasted {duration()} us")
    # The trace alone says so, too.
    (bench.directory / "trace.ctf.probes").unlink()
    expect(duration() >= 1_500_000, f"without its sidecar it lasted {duration()} us")
    expect("ended after" in title(bench), title(bench))
    bench.sound()
    bench.babeltrace()
