"""Where traced OCaml programs spend processor time, by sampling them 10,000 times a second (perf).

Ratios of whole runs drown in the other load of the machine. The ratio of the samples inside heaptap's code to those
outside of it, in the same run, is stable. It does not show what tracing costs the program's own code: the
runtime's path to a hook, and the cache lines that hooks evict.
"""

import os
import re
import shutil
import statistics
import subprocess
import tempfile

from ocaml import OWN, shuffled
from programs import UNTRACED
from report import name_of, table

ROUNDS = 7
WAYS = [UNTRACED, "1e-4", "1e-3", "own 1e-4", "own 1e-3"]
LINE = re.compile(r"^\s*([\d.]+)%\s+(\S+)\s+(\S+)\s+\[.\]\s+(.*?)\s*$", re.MULTILINE)
# Functions of the runtime's sampler and what it calls for a sample (runtime/memprof.c, backtrace_nat.c), of the callback,
# and of the path from native code to the sampler, which heaptap replaces (runtime/signals_nat.c, minor_gc.c, signals.c).
SAMPLER = re.compile(r"caml_memprof|caml_next_frame_descriptor|caml_collect_current_callstack|realloc_entries"
                     r"|flush_deleted|rand_batch|run_alloc_callback|caml_callback|Gc.fun_|caml_alloc$"
                     r"|caml_garbage_collection|caml_alloc_small_dispatch|caml_do_pending_actions"
                     r"|caml_process_pending|caml_final_do_calls|caml_check_urgent_gc|caml_raise_if_exception")
WRITER = "heaptap"
WRITING = "the writer's kernel"
RECORD = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "10000", "-o"]


def found(command, env, directory):
    """{(thread, object, function): share} of one run."""
    data = os.path.join(directory, "clock")
    done = subprocess.run([*RECORD, data, "--", *command], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"perf record: {done.stderr[-1000:]}")
    said = subprocess.run(["perf", "report", "-i", data, "--no-children", "--stdio", "--sort", "comm,dso,symbol"],
                          capture_output=True, text=True, check=True).stdout
    shares = {}
    for share, thread, where, function in LINE.findall(said):
        key = (thread, where, function)
        shares[key] = shares.get(key, 0) + float(share)
    return shares


def parts(shares):
    """Shares in percent of the program's own time, without heaptap and the kernel."""
    def of(wanted):
        return sum(share for key, share in shares.items() if wanted(*key))

    hooks = of(lambda thread, where, _: "libheaptap" in where and not thread.startswith(WRITER))
    writer = of(lambda thread, where, _: thread.startswith(WRITER) and "[kernel" not in where)
    writing = of(lambda thread, where, _: thread.startswith(WRITER) and "[kernel" in where)
    kernel = of(lambda thread, where, _: "[kernel" in where and not thread.startswith(WRITER))
    sampler = of(lambda _, where, function: SAMPLER.search(function) and "libheaptap" not in where)
    program = 100 - hooks - writer - writing - kernel - sampler
    return {name: 100 * part / program for name, part in
            (("hooks", hooks), ("writer", writer), (WRITING, writing), ("kernel", kernel), ("sampler", sampler))}


def obstacle():
    """Why perf cannot be used; None if it can. Not an error, which would lose the measurements made before."""
    if shutil.which("perf") is None:
        return "there is no perf"
    with tempfile.TemporaryDirectory() as directory:
        tried = subprocess.run([*RECORD, os.path.join(directory, "clock"), "--", "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"perf record says: {tried.stderr.strip()[-300:]}"


def measure(built, programs, say):
    """{(program, configuration): medians of parts}; None, with a message, if perf cannot be used."""
    why_not = obstacle()
    if why_not is not None:
        say(f"shares are not measured: {why_not}")
        return None
    rounds = {}
    os.chdir(built.directory)
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "trace.ctf")
        for number in range(ROUNDS):
            for program in programs:
                for way in shuffled(WAYS):
                    command = built.command(program, way, file, program.arguments)
                    rounds.setdefault((program.name, way), []).append(parts(found(*command, directory)))
            say(f"OCaml programs: round {number + 1} of {ROUNDS} with a clock")
    return {key: {name: statistics.median(one[name] for one in all_rounds) for name in all_rounds[0]}
            for key, all_rounds in rounds.items()}


def tables(medians, programs):
    lines = ["### OCaml programs, shares of processor time found by a clock: percent of the program's own", "",
             f"Medians of {ROUNDS} rounds. The writer's kernel: the file, and waking up. Kernel: more than in the",
             "untraced program, which is starting, and page faults. Own: the runtime's sampler, the way to it, its walk",
             "and its callback.", ""]
    rows = []
    for rate in ("1e-4", "1e-3"):
        sums = []
        for part in ("hooks", "writer", WRITING, "kernel"):
            row = [medians[program.name, rate][part] for program in programs]
            if part == "kernel":
                row = [share - medians[program.name, UNTRACED][part] for share, program in zip(row, programs)]
            rows.append([f"{name_of(rate)}, {part}"] + [f"{share:.2f}" for share in row])
            sums.append(row)
        rows.append([f"{name_of(rate)}, all"] + [f"{sum(column):.2f}" for column in zip(*sums)])
    for own in (way for way in WAYS if way in OWN):
        rows.append([own] + [f"{medians[program.name, own]['sampler']:.2f}" for program in programs])
    return lines + table([""] + [program.name for program in programs], rows) + [""]
