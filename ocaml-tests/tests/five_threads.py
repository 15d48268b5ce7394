"""Snapshots of domains with several threads: each stack is recorded with its thread, its frames and their functions."""

import json
import subprocess

from bench import equal, expect, family, scenario
from commands import LONG, Asked
from snapshots import dumped, reachable

# Bytes of an element of a list, with the header.
ELEMENT = 24


class Waiting:
    """A snapshot of programs5/waiting, and what the program has printed about its threads."""

    def __init__(self, bench, program, *arguments, options=()):
        self.bench, self.heap = bench, bench.directory / "waiting.heap"
        (bench.directory / "run").mkdir(mode=0o700)
        env = bench.environment({"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1, "XDG_RUNTIME_DIR": bench.path("run")})
        with subprocess.Popen([bench.program(program), *map(str, arguments)], env=env, cwd=bench.directory, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                lines = [line.split() for line in iter(process.stdout.readline, "ready\n") if line]
                Asked(bench, process).snapshot("-o", self.heap, *options)
                out, err = process.communicate("\n", timeout=LONG)
            finally:
                process.kill()
        equal((process.returncode, out, err), (0, "", ""), "its end")
        reachable(bench, self.heap)
        # Function and thread, with the domain and the bytes of the list.
        self.threads = {(name, int(thread)): (int(domain), ELEMENT * int(elements))
                        for name, thread, domain, elements in lines}

    def rows(self, level):
        """The rows of `heaptap heap --by`."""
        command = [self.bench.heaptap, "heap", "--types", "none", "--json", "--by", level, "-n", "0", self.heap]
        return json.loads(subprocess.check_output(command))["table"]["rows"]

    def frames(self):
        """Function and thread of each frame that holds a list, with what only the frame holds."""
        found = {}
        for row in self.rows("frame"):
            for name, thread in self.threads:
                if name in row["name"] and f"thread {thread} " in f"{row['name']} ":
                    found[name, thread] = row["exclusive_bytes"]
        return found

    def roots(self, kind):
        return [root for root in dumped(self.bench, self.heap)["root"] if root[1] == kind]


def stripped(bench, program):
    bench.run("strip", bench.program(program), "-o", bench.path(program))
    return bench.path(program)


@family({f"{kind}.domains_{domains}": (kind, domains) for domains in (1, 4)
         for kind in ("native", "stripped", "sync", "bytecode")})
def each_list_is_held_by_its_frame(bench, kind, domains):
    program = {"stripped": lambda: stripped(bench, "waiting"), "bytecode": lambda: "waiting.byte"}.get(kind, lambda: "waiting")()
    waiting = Waiting(bench, program, domains, options=["--sync"] if kind == "sync" else [])
    equal(len(waiting.threads), 4 * domains - 1, "threads that wait")
    equal(waiting.frames(), {key: size for key, (_, size) in waiting.threads.items()}, "what frames hold")
    equal(waiting.roots("hook"), [], "roots of a hook")
    # The library counts all threads of the program together.
    domain_of = {int(thread): int(domain) for thread, domain, *_ in dumped(bench, waiting.heap)["thread"]}
    equal(len(domain_of), 4 * domains, "threads")
    for (name, thread), (domain, _) in waiting.threads.items():
        equal(domain_of.get(thread), domain, f"the domain of {name}, thread {thread}")


@family({"native": ("waiting",), "bytecode": ("waiting.byte",)})
def beside_the_hook_of_another_library(bench, program):
    """Its root is that of a hook, and comes before the threads."""
    waiting = Waiting(bench, program, 4, "other")
    equal(waiting.frames(), {key: size for key, (_, size) in waiting.threads.items()}, "what frames hold")
    equal(len(waiting.roots("hook")), 1, "roots of a hook")


@scenario
def a_thread_with_other_roots(bench):
    """What is reported for one thread is not what its stack has: it stays with the hook, and nothing is lost."""
    waiting = Waiting(bench, "waiting", 1, "twice")
    frames = waiting.frames()
    lost = [size for key, (_, size) in waiting.threads.items() if key not in frames]
    equal(len(lost), 1, f"threads without a frame: {frames}")
    equal(frames, {key: size for key, (_, size) in waiting.threads.items() if key in frames}, "what frames hold")
    [hooks] = [row for row in waiting.rows("kind") if row["name"] == "hooks"]
    expect(hooks["exclusive_bytes"] >= lost[0], f"hooks hold {hooks}, and not {lost[0]} bytes more")
