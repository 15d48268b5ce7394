"""Shared by the scenarios: running programs traced and untraced, and reading traces."""

import io
import os
import subprocess
from pathlib import Path

from scenarios import Failure, Result, Skip, alone, equal, expect, family, scenario  # noqa: F401

HERE = Path(__file__).resolve().parent.parent
LUA = "lua5.4"
# For the program that is measured.
ORACLE = "oracle"


class Counts:
    """Blocks, their words, and those that have ended."""

    def __init__(self, blocks=0, words=0, ended=0):
        self.blocks, self.words, self.ended = blocks, words, ended

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __repr__(self):
        return f"{self.blocks} blocks of {self.words} words, {self.ended} ended"


class Alloc:
    """One allocation of a trace, from its line in a dump."""

    __slots__ = ("id", "words", "samples", "frames")

    def __init__(self, line):
        _, _, self.id, _, length, samples, _, _, _, *self.frames = line.split(" ")
        self.words = int(length.removeprefix("length="))
        self.samples = int(samples.removeprefix("samples="))

    def line(self):
        """That of the innermost frame; 0 without one."""
        return int(self.frames[-1].rsplit(":", 2)[1]) if self.frames else 0


class Bench:
    """The directory of one scenario, and the programs it may run."""

    def __init__(self, options, directory):
        self.directory = Path(directory)
        self.heaptap = str(Path(options.heaptap).resolve())
        self.library = str(Path(options.libdir).resolve() / "libheaptap.so")
        self.build = Path(options.build).resolve()

    def path(self, name):
        return str(self.directory / name)

    def built(self, name):
        return str(self.build / name)

    def script(self, name):
        return str(HERE / "programs" / f"{name}.lua")

    def write(self, name, text):
        Path(self.path(name)).write_text(text, encoding="utf-8")
        return self.path(name)

    def run(self, *command, env=(), code=0, timeout=100):
        """Runs a program, and expects this exit code."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPTAP", "MEMTRACE", "LD_PRELOAD", "ORACLE"))}
        kept.update({k: str(v) for k, v in dict(env).items()})
        process = subprocess.run(list(map(str, command)), capture_output=True, timeout=timeout, env=kept, cwd=self.directory)
        result = Result(process)
        if code is not None:
            said = (result.err.strip() or result.out.strip())[-800:]
            expect(result.code == code, f"{command} ended with {result.code}: {said}")
        return result

    def preload(self, name="trace.ctf", rate=1, oracle=False, **more):
        """The variables that request a trace, with the innermost 20 frames of each stack."""
        variables = {"HEAPTAP": self.path(name), "HEAPTAP_RATE": rate, "HEAPTAP_SEED": 1, "HEAPTAP_FRAMES": 20,
                     "LD_PRELOAD": self.library}
        if oracle:
            variables.update(ORACLE=self.path(ORACLE), LD_PRELOAD=f"{self.library}:{self.built('oracle.so')}")
        variables.update(more)
        return variables

    def same(self, *command, code=0, said="", **how):
        """Runs a program untraced and traced, and expects the same output and exit code. Traced it says `said`, too."""
        untraced = self.run(*command, code=code)
        traced = self.run(*command, code=code, env=self.preload(**how))
        equal(traced.out, untraced.out, "what it printed when traced")
        equal(traced.err, said + untraced.err, "what it said when traced")
        return traced

    def tool(self, *arguments, code=0):
        return self.run(self.heaptap, *arguments, code=code)

    def sound(self, name="trace.ctf"):
        """Expects the trace to pass `heaptap check --strict`."""
        self.tool("check", "--strict", self.path(name))

    def dump(self, name="trace.ctf"):
        """Yields the lines of a trace, which may be too many to hold at once."""
        with subprocess.Popen([self.heaptap, "dump", self.path(name)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as read:
            for line in io.TextIOWrapper(read.stdout, "utf-8", "replace", newline="\n"):
                yield line.rstrip("\n")

    def allocs(self, name="trace.ctf"):
        return (Alloc(line) for line in self.dump(name) if " alloc " in line)

    def traced(self, name="trace.ctf"):
        """What a trace at rate 1 has counted."""
        counts = Counts()
        for line in self.dump(name):
            if " alloc " in line:
                alloc = Alloc(line)
                equal(alloc.samples, alloc.words, "the samples of a block")
                counts.blocks += 1
                counts.words += alloc.words
            elif line.endswith(" collect"):
                counts.ended += 1
        return counts

    def counted(self):
        """What the oracle has counted, and the words that were alive at the end."""
        *counts, live = map(int, Path(self.path(ORACLE)).read_text(encoding="utf-8").split())
        return Counts(*counts), live
