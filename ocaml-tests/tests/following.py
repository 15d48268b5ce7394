"""A program that is watched while it runs: every client sees every event once, soon, and ends with the figures of a
report. The clients are `heaptap top --json`, which follows a trace as the screens and `heaptap serve` do."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

from bench import Skip, equal, expect, scenario

# The time after which something that should happen has not.
LONG = 60
# Far above what benches/live measures: here other scenarios run beside, and all share a few processors.
LATE = 5000


class Client:
    """One that follows a trace."""

    def __init__(self, bench, what, feed=None):
        self.what = what
        self.feed = feed and subprocess.Popen(feed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process = subprocess.Popen([bench.heaptap, "top", what, "--json"], cwd=bench.directory,
                                        stdin=self.feed.stdout if feed else subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self):
        """All that it printed, after the end of the trace."""
        out, err = self.process.communicate(timeout=LONG)
        self.stop()
        equal((self.process.returncode, err.decode()), (0, ""), f"top {self.what}: status and messages")
        self.lines = [json.loads(line) for line in out.splitlines()]
        expect(len(self.lines) > 1, f"top {self.what} printed {out[:500]!r}")
        return self.lines[-1]

    def stop(self):
        for process in filter(None, (self.process, self.feed)):
            process.kill()
            process.wait()


@contextlib.contextmanager
def running(bench, *arguments, name="trace.ctf", env=()):
    """Runs programs/paced, traced, from the moment at which its trace has a first packet."""
    command = [bench.program("paced"), *map(str, arguments)]
    with subprocess.Popen(command, env=bench.environment({**bench.preload(name), **dict(env)}), cwd=bench.directory,
                          stdout=subprocess.PIPE) as program:
        try:
            equal(program.stdout.readline(), b"ready\n", "its first line")
            deadline = time.monotonic() + LONG
            while not os.path.exists(bench.path(name)) or os.path.getsize(bench.path(name)) == 0:
                expect(time.monotonic() < deadline, "there is no trace")
                time.sleep(0.01)
            yield program
        finally:
            program.kill()


def clients(bench, program):
    """By name, by process, and through a pipe."""
    tail = ["tail", "-c", "+1", "-s", "0.1", "-f", f"--pid={program.pid}", bench.path("trace.ctf")]
    return [Client(bench, "trace.ctf"), Client(bench, str(program.pid)), Client(bench, "-", tail)]


def question(bench, verb, name="trace.ctf"):
    return json.loads(subprocess.check_output([bench.heaptap, *verb.split(), bench.path(name)], stderr=subprocess.DEVNULL))


def compare(bench, client, state="ended", name="trace.ctf", peak=True):
    """What a client saw at the end is what is in the file."""
    last = client.finish()
    who = f"top {client.what}"
    equal(last["state"], state, f"{who}: how the trace ended")
    found, expected = last["report"], question(bench, "report --json --metric live --top 0", name)
    equal((last["events"], found["events"]), (expected["events"],) * 2, f"{who}: events")
    for parts in (found, expected):
        # The mark of an unfinished trace went through the pipe before it was removed.
        for part in ("trace", *([] if peak else ["timeline"]), *(["cut_short"] if client.what == "-" else [])):
            parts.pop(part)
        if not peak:
            parts["totals"] = {key: value for key, value in parts["totals"].items() if "peak" not in key}
    expect(len(expected["table"]["rows"]) > 2, f"a report with {len(expected['table']['rows'])} rows")
    equal(found, expected, f"{who}: the figures")
    events = [line["events"] for line in client.lines]
    expect(events == sorted(events) and events[0] < events[-1], f"{who}: events over time: {events}")
    expect(0 < last["worst_lag_ms"] < LATE, f"{who}: events were up to {last['worst_lag_ms']} ms late")


@scenario
def three_clients(bench):
    with running(bench, 3) as program:
        following = clients(bench, program)
        equal(program.wait(LONG), 0, "its status")
    for client in following:
        compare(bench, client)


@scenario
def a_killed_writer(bench):
    with running(bench, 60) as program:
        following = clients(bench, program)
        time.sleep(2)
        program.send_signal(signal.SIGKILL)
    for client in following:
        # Nobody can tell the end of a pipe from a writer that was killed between two packets.
        compare(bench, client, state="ended" if client.what == "-" else "killed")


@scenario
def a_rotated_writer(bench):
    """The name is given to the trace of another program while the first one runs."""
    with running(bench, 60) as first:
        client = Client(bench, "trace.ctf")
        time.sleep(1.5)
        os.rename(bench.path("trace.ctf"), bench.path("old.ctf"))
        with running(bench, 3) as second:
            equal(second.wait(LONG), 0, "the status of the second")
        last = client.finish()
        equal(last["replaced"], 1, "traces that took the place of the first")
        expect(first.poll() is None, "the first runs on")
    found, expected = last["report"], question(bench, "report --json --metric live --top 0")
    equal(found, {**expected, "trace": "trace.ctf"}, "the figures of the second")


@scenario
def go_tool_pprof(bench):
    """Its own profiler shows a program in OCaml that runs: what is alive, and what is allocated in a second."""
    if not shutil.which("go"):
        raise Skip("go is not installed")
    with running(bench, 60) as program:
        serve = [bench.heaptap, "serve", "--no-open", "--live", str(program.pid)]
        with subprocess.Popen(serve, cwd=bench.directory, stdout=subprocess.PIPE, text=True) as server:
            try:
                address, _, token = re.search(r"(http://\S+)/\?(token=)(\S+)", server.stdout.readline()).groups()
                time.sleep(1)
                for profile in ("heap?", "allocs?seconds=1&"):
                    url = f"{address}/debug/pprof/{profile}token={token}"
                    env = {"HOME": bench.path("."), "PPROF_TMPDIR": bench.path("pprof")}
                    shown = bench.run("go", "tool", "pprof", "-top", url, env=env).out
                    expect(re.search(r"Type: (inuse|alloc)_space", shown), shown[:500])
                    expect(re.search(r" Stdlib\.List\.init", shown), f"List.init is not in {shown[:800]}")
            finally:
                server.terminate()
