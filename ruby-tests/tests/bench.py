"""Shared by the scenarios: running scripts traced and untraced, and reading traces."""

import os
import subprocess
from pathlib import Path

from scenarios import Result, Skip, equal, expect, family, scenario  # noqa: F401

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
# The words of an object.
SLOT = 5


class Alloc:
    """One allocation of a trace, from its line in a dump."""

    __slots__ = ("id", "length", "samples", "source", "frames")

    def __init__(self, line):
        _, _, number, _, length, samples, source, _, common = line.split(" ", 8)
        self.id = int(number)
        self.length = int(length.removeprefix("length="))
        self.samples = int(samples.removeprefix("samples="))
        self.source = source.removeprefix("source=")
        # Outermost first, each NAME@FILE:LINE:COLUMNS.
        self.frames = common.partition(" ")[2].split(" ")
        if self.frames == [""]:
            # Before the first frame.
            self.frames = ["none@none:0:0"]


def place(frame):
    """The name, file and line of a frame."""
    name, _, rest = frame.partition("@")
    file, line, _ = rest.rsplit(":", 2)
    return name, file, int(line)


def count_of(result):
    """The last line that a script prints."""
    return int(result.out.splitlines()[-1])


class Bench:
    """The directory of one scenario, and the scripts it may run."""

    def __init__(self, options, directory):
        self.directory = Path(directory)
        self.heaptap = str(Path(options.heaptap).resolve())
        self.library = str(Path(options.libdir).resolve() / "libheaptap.so")

    def path(self, name):
        return str(self.directory / name)

    def environment(self, extra=()):
        kept = {k: v for k, v in os.environ.items()
                if not k.startswith(("HEAPTAP", "MEMTRACE", "LD_", "RUBY"))}
        kept.update({k: str(v) for k, v in dict(extra).items()})
        return kept

    def run(self, script, *arguments, env=(), code=0, timeout=120, ruby=("ruby", "--disable-gems")):
        """Runs a script, and expects this exit code. Without RubyGems, of which each trace would be full."""
        command = [*ruby, str(PROGRAMS / script), *map(str, arguments)]
        process = subprocess.run(command, capture_output=True, timeout=timeout, env=self.environment(env),
                                 cwd=self.directory)
        result = Result(process)
        if code is not None:
            said = (result.err.strip() or result.out.strip())[-800:]
            expect(result.code == code, f"{script} ended with {result.code}: {said}")
        return result

    def preload(self, name="trace.ctf", rate=1, **more):
        """The variables that request a trace."""
        return {"HEAPTAP": self.path(name), "HEAPTAP_RATE": rate, "HEAPTAP_SEED": 1, "LD_PRELOAD": self.library,
                **more}

    def trace(self, script, *arguments, name="trace.ctf", rate=1, env=(), **how):
        """Runs a script traced, and checks the trace."""
        result = self.run(script, *arguments, env={**self.preload(name, rate), **dict(env)}, **how)
        self.sound(name)
        return result

    def same(self, script, *arguments, rate=1, code=0, counted=False, **how):
        """Runs a script untraced and traced, and expects the same output and exit code. With `counted` its last line is the
        number of objects that it has made, which is not quite the same from run to run: what remembers a method is collected,
        too, and made again."""
        untraced = self.run(script, *arguments, code=code, **how)
        traced = self.trace(script, *arguments, rate=rate, code=code, **how)
        if counted:
            expect(abs(count_of(traced) - count_of(untraced)) <= 5, "the count is another")
            equal(traced.out.splitlines()[:-1], untraced.out.splitlines()[:-1], "what it printed when traced")
        else:
            equal(traced.out, untraced.out, "what it printed when traced")
        equal(traced.err, untraced.err, "what it said when traced")
        return traced

    def tool(self, *arguments):
        """What the tool prints."""
        done = subprocess.run([self.heaptap, *arguments], capture_output=True, cwd=self.directory,
                              env=self.environment())
        expect(done.returncode == 0, f"heaptap {arguments}: {done.stderr.decode()[-500:]}")
        return done.stdout.decode()

    def sound(self, name="trace.ctf"):
        """Expects the trace to pass `heaptap check --strict`."""
        self.tool("check", "--strict", self.path(name))

    def lines(self, name="trace.ctf"):
        return self.tool("dump", self.path(name)).splitlines()

    def allocs(self, name="trace.ctf"):
        return [Alloc(line) for line in self.lines(name) if " alloc " in line]

    def ended(self, what, name="trace.ctf"):
        """The blocks that were collected or promoted."""
        return {int(line.split(" ")[2]) for line in self.lines(name) if line.split(" ")[3] == what}
