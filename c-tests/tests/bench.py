"""What scenarios share: running programs, reading traces, saying what is wrong."""

import os
import re
import subprocess
from pathlib import Path

from scenarios import Failure, Skip, alone, equal, expect, family, locked, scenario  # noqa: F401
from scenarios import Result as Ended

HERE = Path(__file__).resolve().parent.parent


class Result(Ended):
    """What a program on the runtime said."""

    def line(self, word):
        """The rest of the output's line that begins with a word."""
        for line in self.out.splitlines():
            if line.startswith(word + " "):
                return line[len(word) + 1 :]
        raise Failure(f"no line '{word}' in {self.out!r} {self.err!r}")

    def numbers(self, word):
        """The `name=number` fields of such a line."""
        return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", self.line(word))}

    def checksum(self):
        found = re.search(r"checksum (\w+)", self.out)
        expect(found, f"no checksum in {self.out!r} {self.err!r}")
        return found.group(1)


class Bench:
    """A directory of its own, and the programs, for one scenario."""

    def __init__(self, options, directory):
        self.directory = Path(directory)
        self.long = options.long
        self.heaptap = Path(options.heaptap).resolve()
        self.libdir = Path(options.libdir).resolve()
        self.include = Path(options.include).resolve()
        self.build = Path(options.build).resolve()

    def path(self, name):
        return str(self.directory / name)

    def make(self, *assignments):
        """Builds a variant; the plain one is there already. Scenarios that need the same one wait for each other."""
        command = ["make", "-s", "-j2", "-C", str(HERE), "build", f"BUILD={self.build}",
                   f"HEAPTAP_LIBDIR={self.libdir}", f"INCLUDE={self.include}"]
        self.build.mkdir(parents=True, exist_ok=True)
        with locked(self.build / "lock"):
            process = subprocess.run(command + list(assignments), capture_output=True)
        expect(process.returncode == 0, f"make {' '.join(assignments)}: {process.stderr.decode()[-2000:]}")

    def command(self, program, *arguments, variant="plain"):
        return [str(self.build / variant / program)] + [str(argument) for argument in arguments]

    def run(self, *command, code=0, variant="plain", timeout=300, under=(), env=None):
        """Runs a program that was built here, and expects it to end with a code."""
        full = list(under) + self.command(*command, variant=variant)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPTAP", "MEMTRACE"))}
        environment.update(env or {})
        process = subprocess.run(full, capture_output=True, timeout=timeout, env=environment, cwd=self.directory)
        result = Result(process)
        if code is not None:
            said = (result.err.strip() or result.out.strip())[-1500:]
            expect(result.code == code, f"{' '.join(command[:1])} ended with {result.code}: {said}")
        return result

    def trace(self, program, *arguments, rate=1, seed=1, name="trace.ctf", **how):
        """The same, traced into a file here."""
        file = self.path(name)
        result = self.run(program, *arguments, "--trace", file, "--rate", rate, "--seed", seed, **how)
        return file, result

    def tool(self, *arguments, codes=(0,)):
        process = subprocess.run([str(self.heaptap), *arguments], capture_output=True)
        result = Result(process)
        expect(
            result.code in codes,
            f"heaptap {arguments[0]} ended with {result.code}: {(result.err or result.out).strip()[-800:]}",
        )
        return result

    def check(self, file, strict=True):
        expect(os.path.exists(file), f"there is no {os.path.basename(file)}")
        self.tool("check", *(["--strict"] if strict else []), file)

    def dump(self, file):
        """The events of a trace, one at a time."""
        with subprocess.Popen([str(self.heaptap), "dump", file], stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                yield Event(line.decode())
            expect(process.wait() == 0, f"heaptap dump ended with {process.returncode}")


class Event:
    """One line of `heaptap dump`."""

    __slots__ = ("time", "domain", "id", "kind", "length", "samples", "source", "frames_text")

    def __init__(self, line):
        fields = line.rstrip("\n").split(" ", 9)
        self.time, self.domain, self.id = int(fields[0]), int(fields[1]), int(fields[2])
        self.kind = fields[3]
        if self.kind == "alloc":
            self.length = int(fields[4][len("length=") :])
            self.samples = int(fields[5][len("samples=") :])
            self.source = fields[6][len("source=") :]
            self.frames_text = fields[9] if len(fields) > 9 else ""

    def frames(self):
        """From the outermost to the innermost."""
        return self.frames_text.split(" ") if self.frames_text else []

    def site(self):
        """The function of the innermost frame."""
        return self.frames_text.rsplit(" ", 1)[-1].rsplit(";", 1)[-1].split("@", 1)[0]


class Tally:
    """What is in a trace, counted; and that every block lives once."""

    def __init__(self, events):
        self.blocks = {"minor": 0, "major": 0, "external": 0}
        self.words = dict(self.blocks)
        self.lengths = dict(self.blocks)
        self.samples = self.promotions = self.collections = 0
        allocated, promoted, collected = set(), set(), set()
        for event in events:
            if event.kind == "alloc":
                expect(event.id not in allocated, f"block {event.id} is allocated twice")
                allocated.add(event.id)
                self.blocks[event.source] += 1
                self.words[event.source] += event.samples
                self.lengths[event.source] += event.length
                self.samples += event.samples
            elif event.kind == "promote":
                expect(event.id not in promoted, f"block {event.id} is promoted twice")
                promoted.add(event.id)
                self.promotions += 1
            else:
                expect(event.id not in collected, f"block {event.id} is collected twice")
                collected.add(event.id)
                self.collections += 1
        expect(promoted <= allocated, "a block is promoted that was never allocated")
        expect(collected <= allocated, "a block is collected that was never allocated")
        self.allocations = len(allocated)
