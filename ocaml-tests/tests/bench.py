"""Shared by the scenarios: running programs traced and untraced, and reading traces."""

import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from scenarios import Failure, Result, Skip, alone, equal, expect, family, scenario  # noqa: F401

HERE = Path(__file__).resolve().parent.parent


def walked_by(unwinder):
    """The environment in which stacks are walked by "runtime", or by heaptap if it is any other word of that length.
    All have the same size, so that a stack overflows at the same depth."""
    name = "HEAPTAP_UNWINDER" if unwinder == "runtime" else "ANOTHER_UNWINDER"
    return {name: unwinder}


def needs_from_distribution(tool):
    """Skips the scenario without this tool, or if the compiler is not the distribution's, whose libraries it uses."""
    if not shutil.which(tool) or os.environ.get("OCAML"):
        raise Skip(f"{tool} is not for this compiler")


class Alloc:
    """One allocation of a trace, from its line in a dump. There are millions of them: no regular expression."""

    __slots__ = ("time", "domain", "id", "length", "samples", "source", "frames")

    def __init__(self, line):
        time, domain, self.id, _, length, samples, source, _, common = line.split(" ", 8)
        self.time = int(time)
        self.domain = int(domain)
        self.length = int(length.removeprefix("length="))
        self.samples = int(samples.removeprefix("samples="))
        self.source = source.removeprefix("source=")
        # What follows the last field, if anything.
        self.frames = common.partition(" ")[2]

    def words_at_rate_1(self):
        """The sampled words of a block in the heap: one more than its length, for the header."""
        expect(self.samples == self.length + 1,
               f"{self.samples} sampled words of a block whose length is {self.length}")
        return self.samples


class Bench:
    """The directory of one scenario, and the programs it may run."""

    def __init__(self, options, directory):
        self.directory = Path(directory)
        self.heaptap = str(Path(options.heaptap).resolve())
        self.library = str(Path(options.libdir).resolve() / "libheaptap.so")
        self.object = str(Path(options.libdir).resolve() / "heaptap_ocaml.o")
        self.build = Path(options.build).resolve()
        self.toplevel = "ocaml"
        self.compiler = "ocamlc"
        # Whether the runtime's own unwinder mistakes exception handlers in bytecode for frames.
        self.handlers_are_frames = False
        # Whether a copy of a process can have the runtime collect, see snapshots.kept.
        self.copies_collect = True
        # Whether garbage may point to what is gone, see snapshots.reachable.
        self.garbage_dangles = False

    def path(self, name):
        return str(self.directory / name)

    def program(self, name):
        built = self.build / name
        return str(built) if built.exists() else name

    def environment(self, extra=()):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPTAP", "MEMTRACE", "LD_PRELOAD"))}
        kept.update({k: str(v) for k, v in dict(extra).items()})
        return kept

    def run(self, program, *arguments, env=(), code=0, under=(), timeout=300):
        """Runs a program, and expects this exit code."""
        command = [*under, self.program(program), *map(str, arguments)]
        process = subprocess.run(command, capture_output=True, timeout=timeout,
                                 env=self.environment(env), cwd=self.directory)
        result = Result(process)
        if code is not None:
            said = (result.err.strip() or result.out.strip())[-800:]
            expect(result.code == code, f"{program} ended with {result.code}: {said}")
        return result

    def preload(self, name="trace.ctf", rate=1, **more):
        """The variables that request a trace, with the innermost 20 frames of each stack."""
        variables = {"HEAPTAP": self.path(name), "HEAPTAP_RATE": rate, "HEAPTAP_SEED": 1, "HEAPTAP_FRAMES": 20,
                     "LD_PRELOAD": self.library}
        variables.update(more)
        return variables

    def trace(self, program, *arguments, name="trace.ctf", rate=1, env=(), **how):
        """Runs a program traced, and checks the trace."""
        result = self.run(program, *arguments, env={**self.preload(name, rate), **dict(env)}, **how)
        self.sound(name)
        return result

    def same(self, program, *arguments, rate=1, code=0, **how):
        """Runs a program untraced and traced, and expects the same output and exit code."""
        untraced = self.run(program, *arguments, code=code, **how)
        traced = self.trace(program, *arguments, rate=rate, code=code, **how)
        equal(traced.out, untraced.out, "what it printed when traced")
        equal(traced.err, untraced.err, "what it said when traced")
        return traced

    def sound(self, name="trace.ctf"):
        """Expects the trace to pass `heaptap check --strict`."""
        check = subprocess.run([self.heaptap, "check", "--strict", self.path(name)], capture_output=True)
        expect(check.returncode == 0, f"check --strict: {(check.stdout + check.stderr).decode()[-500:]}")

    def babeltrace(self, name="trace.ctf"):
        """Expects babeltrace2 to read as many allocations as heaptap does."""
        if not shutil.which("babeltrace2"):
            raise Skip("babeltrace2 is not installed")
        folder = self.directory / "babeltrace"
        folder.mkdir()
        shutil.copy(HERE.parent / "docs/format/metadata.tsdl", folder / "metadata")
        shutil.copy(self.path(name), folder / "trace")
        read = subprocess.run(["babeltrace2", str(folder)], capture_output=True)
        expect(read.returncode == 0 and not read.stderr, f"babeltrace2: {read.stderr.decode()[-300:]}")
        count = len(re.findall(rb" (?:alloc|short_alloc)\w*:", read.stdout))
        equal(count, sum(1 for _ in self.allocs(name)), "allocations that babeltrace2 reads")

    def dump(self, name="trace.ctf"):
        """Yields the lines of a trace, which may be too many to hold at once."""
        with subprocess.Popen([self.heaptap, "dump", self.path(name)], stdout=subprocess.PIPE) as read:
            for line in io.TextIOWrapper(read.stdout, "utf-8", "replace", newline="\n"):
                yield line.rstrip("\n")
        expect(read.returncode == 0, f"dump ended with {read.returncode}")

    def allocs(self, name="trace.ctf"):
        return (Alloc(line) for line in self.dump(name) if " alloc " in line)

    def same_parameters(self, program):
        """The trace info has the runtime's parameters as the program sees them. With a large first heap, OCaml 4
        needs some milliseconds from the first one that it sets to the last."""
        for parameters in ("v=0", "b,c,s=64k,o=200,M=50,v=0", "s=4k,a=1,w=5,O=300,i=200k,l=2M,v=0", "h=16M,w=7,l=3M,v=0"):
            result = self.trace(program, rate=1e-3, env={"OCAMLRUNPARAM": parameters})
            info = json.loads(subprocess.check_output([self.heaptap, "info", "--json", self.path("trace.ctf")]))
            equal(info["runtime_params"], result.out.strip(), f"parameters with {parameters}")

    def frames(self, name="trace.ctf"):
        """The set of all frames in all backtraces."""
        return {frame for alloc in self.allocs(name) for frame in re.split("[ ;]", alloc.frames)}
