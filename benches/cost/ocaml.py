"""The cost of tracing OCaml programs, compared with the runtime's own sampler.

The programs run unmodified, with the library preloaded; in the configurations called "own" untraced, under `Gc.Memprof`
with full call stacks and callbacks that only return. Every round runs all configurations, and ratios are taken within a
round. The compiler stops before it runs the assembler, which is another program and not traced.

Each round uses another size of the young heap. What a minor collection has to promote depends on when it happens, and
the runtime's sampler, which allocates, changes that: with one size for all rounds its runs had up to 6 % less to promote
than untraced ones, or a third more, by chance. heaptap allocates nothing in the young heap.
"""

import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import callgrind
from build import HERE, environment, run
from programs import AGAIN, UNTRACED, measure
from report import name_of, ratio, table
from spread import Spread

SOURCES = HERE.parent / "ocaml"
RATES = ["1e-6", "1e-5", "1e-4", "1e-3"]
# For programs with shallow stacks: a sample costs so little that only at this rate the cost exceeds the noise.
HIGH = "1e-2"
OWN = {f"own {rate}": rate for rate in [*RATES, HIGH]}
WAYS = [UNTRACED, AGAIN, *RATES, *(f"own {rate}" for rate in RATES)]
# Modules of the standard library that together are one large module to compile.
LARGE = ["camlinternalFormat", "format", "scanf", "hashtbl", "map", "set", "list", "bytes", "filename", "arg"]


COMPILE = ("-w", "-a", "-c", "-stop-after", "scheduling")
COUNTED = [UNTRACED, "1e-4", "1e-3", "own 1e-4", "own 1e-3"]
# Sizes of the young heap, in thousands of words; the runtime's default is 256.
YOUNG = range(192, 321)


@dataclass(frozen=True)
class Program:
    """A program with its arguments for timing, and for the smaller run that is counted."""

    name: str
    arguments: tuple
    counted: tuple
    shallow: bool = False

    def ways(self):
        return [*WAYS, HIGH, f"own {HIGH}"] if self.shallow else WAYS


PROGRAMS = [
    Program("trees", ("17",), ("15",), shallow=True),
    Program("lists", ("4000",), ("600",)),
    Program("maps", ("300000",), ("40000",), shallow=True),
    Program("json", ("20",), ("3",), shallow=True),
    Program("lazies", ("900",), ("120",)),
    Program("compiler", (*COMPILE, "large.ml"), (*COMPILE, "smaller.ml")),
]


class BuiltOcaml:
    """The compiled programs, and the module that the compiler compiles."""

    def __init__(self, built, programs):
        self.directory = built.directory / "ocaml"
        self.library = built.libdir / "libheaptap.so"
        self.directory.mkdir(parents=True, exist_ok=True)
        for program in programs:
            self._compile(program.name)
        self._module("large", LARGE)
        self._module("smaller", LARGE[:1])

    def _compile(self, name):
        inside = self.directory / f"{name}.dir"
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir()
        sources = [shutil.copy(SOURCES / f"{source}.ml", inside) for source in ("own_profile", name)]
        libraries = ["-package", "compiler-libs.optcomp", "-linkpkg"] if name == "compiler" else []
        run("ocamlfind", "ocamlopt", "-g", *libraries, *sources, "-o", self.directory / name)

    def _module(self, name, parts):
        library = Path(run("ocamlfind", "ocamlopt", "-where").strip())
        with open(self.directory / f"{name}.ml", "w", encoding="utf-8") as module:
            for part in parts:
                source = (library / f"{part}.ml").read_text(encoding="utf-8")
                module.write(f"module {part[0].upper()}{part[1:]} = struct\n{source}\nend\n")

    def command(self, program, way, file, arguments):
        env = environment()
        if way in (*RATES, HIGH):
            env |= {"LD_PRELOAD": str(self.library), "HEAPTAP": file, "HEAPTAP_RATE": way}
        if way in OWN:
            env |= {"OWN_PROFILE": OWN[way]}
        return [str(self.directory / program.name), *arguments], env


def shuffled(among):
    return random.sample(among, len(among))


def times(built, programs, rounds, seconds, say):
    """{(program, configuration): [Run of each round]}, {(program, rate): bytes of the trace}."""
    runs, sizes = {}, {}
    begin = last = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "trace.ctf")
        os.chdir(built.directory)
        for number in range(rounds):
            for program in shuffled(programs):
                young = {"OCAMLRUNPARAM": f"s={random.choice(YOUNG)}k"}
                # All configurations in succession, so that a ratio is of runs close in time.
                for way in shuffled(program.ways()):
                    line, env = built.command(program, way, file, program.arguments)
                    # Truncating an older trace is not part of the cost of tracing.
                    Path(file).unlink(missing_ok=True)
                    runs.setdefault((program.name, way), []).append(measure(line, env | young))
                    if way in RATES:
                        sizes[program.name, way] = os.path.getsize(file)
            now = time.monotonic()
            say(f"OCaml programs: round {number + 1} done after {now - begin:.0f} s")
            if 2 * now - last - begin > seconds:
                break
            last = now
    for program in programs:
        sums = {done.checksum for way in program.ways() for done in runs[program.name, way]}
        if len(sums) != 1:
            raise SystemExit(f"{program.name} computes {sums}: tracing has changed the result")
    return runs, sizes


def words(built, program):
    """How many words the smaller run allocates, according to the runtime's counters."""
    line, env = built.command(program, UNTRACED, None, program.counted)
    done = subprocess.run(line, env=env | {"OCAMLRUNPARAM": "v=0x400"}, check=True, capture_output=True, text=True)
    counters = {name: float(value) for name, value in re.findall(r"^(\w+): ([\d.]+)$", done.stderr, re.MULTILINE)}
    return counters["minor_words"] + counters["major_words"] - counters["promoted_words"]


def counts(built, programs, say):
    """{(program, configuration): callgrind.Count} and {program: words allocated}. Runs two at a time, which does not
    affect counts."""

    def one(job):
        program, way = job
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "trace.ctf")
            line, env = built.command(program, way, file, program.counted)
            counted = callgrind.count(line, os.path.join(directory, "counts"), env)
        say(f"OCaml programs: {program.name}, {way} counted")
        return counted

    os.chdir(built.directory)
    jobs = [(program, way) for program in programs for way in COUNTED]
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        counted = {(program.name, way): count for (program, way), count in zip(jobs, pool.map(one, jobs))}
    return counted, {program.name: words(built, program) for program in programs}


def per_sample(counted, allocated, program, low, high):
    """The instructions of each additional sample at the higher rate."""
    more = counted[program.name, high].total - counted[program.name, low].total
    rates = [float(OWN.get(way, way)) for way in (low, high)]
    return more / (allocated[program.name] * (rates[1] - rates[0]))


def count_tables(counted, allocated, programs):
    lines = ["### OCaml programs, instructions by callgrind of smaller runs: ratio to untraced", "",
             "Of all threads, with the start and the end of the trace; without what the kernel does.", ""]
    rows = [["untraced, millions"] + [f"{counted[program.name, UNTRACED].total / 1e6:.1f}" for program in programs]]
    for way in COUNTED[1:]:
        rows.append([way if way in OWN else name_of(way)]
                    + [f"{counted[program.name, way].total / counted[program.name, UNTRACED].total:.3f}"
                       for program in programs])
    names = [""] + [program.name for program in programs]
    lines += table(names, rows)
    lines += ["", "A sample, in instructions of all threads: what rate 1e-3 takes more than 1e-4, by the samples that",
              "are expected to fall more. So without the start.", ""]
    rows = [[title] + [f"{per_sample(counted, allocated, program, low, high):,.0f}" for program in programs]
            for title, low, high in (("heaptap", "1e-4", "1e-3"), ("own", "own 1e-4", "own 1e-3"))]
    return lines + table(names, rows) + [""]


def ratios(runs, program, way, base, what):
    pairs = zip(runs[program.name, way], runs[program.name, base])
    return Spread.of([getattr(done, what) / getattr(plain, what) for done, plain in pairs])


def tables(runs, sizes, programs):
    lines = []
    rounds = len(runs[programs[0].name, UNTRACED])
    for what, title in (("cpu", "OCaml programs, processor time of all threads"), ("wall", "OCaml programs, wall time")):
        lines += [f"### {title}: ratio to untraced, median (quartiles) of {rounds} rounds", "",
                  "Own: not traced, under `Gc.Memprof` with full call stacks and callbacks that only return.", ""]
        medians = [Spread.of([getattr(done, what) for done in runs[program.name, UNTRACED]]) for program in programs]
        rows = [["untraced, seconds"] + [f"{spread.median:.3f}" for spread in medians]]
        for way in WAYS[1:]:
            rows.append([way if way in OWN else name_of(way)]
                        + [ratio(ratios(runs, program, way, UNTRACED, what)) for program in programs])
        for rate in RATES:
            rows.append([f"rate {rate} to own"]
                        + [ratio(ratios(runs, program, rate, f"own {rate}", what)) for program in programs])
        lines += table([""] + [program.name for program in programs], rows) + [""]
    lines += high_table(runs, [program for program in programs if program.shallow])
    rows = [[name_of(rate)] + [f"{sizes[program.name, rate]:,}" for program in programs] for rate in RATES]
    return lines + ["### OCaml programs, bytes of the trace", ""] + table([""] + [p.name for p in programs], rows) + [""]


def high_table(runs, programs):
    """The cost at a rate where it exceeds the noise: the mean of all rounds, which is more precise than the median, with
    its standard error."""
    lines = [f"### Shallow stacks at {HIGH}, processor time of all threads: mean ratio ± its standard error", ""]
    rows = []
    for title, way, base in ((f"rate {HIGH}", HIGH, UNTRACED), (f"own {HIGH}", f"own {HIGH}", UNTRACED),
                             (f"rate {HIGH} to own", HIGH, f"own {HIGH}")):
        found = [[done.cpu / plain.cpu for done, plain in zip(runs[program.name, way], runs[program.name, base])]
                 for program in programs]
        rows.append([title] + [f"{mean(values):.3f} ± {stdev(values) / len(values) ** 0.5:.3f}" if len(values) > 1 else "–"
                               for values in found])
    return lines + table([""] + [program.name for program in programs], rows) + [""]


def raw_of(runs, sizes, programs):
    """All measurements."""
    return [
        {"program": program.name, "arguments": " ".join(program.arguments), "way": way,
         "cpu": [round(done.cpu, 6) for done in runs[program.name, way]],
         "wall": [round(done.wall, 6) for done in runs[program.name, way]],
         "bytes": sizes.get((program.name, way))}
        for program in programs for way in program.ways()
    ]
