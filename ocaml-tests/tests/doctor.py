"""`heaptap doctor`: the leak of a real program is named by holder and line, and a steady program is said to be well."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time

import leak_programs
from bench import alone, equal, expect, scenario
from leak_programs import SOURCES

# What a small terminal shows.
LINES = 24


def compiled(bench, name):
    """A program of programs/leaks, compiled for this scenario."""
    return str(leak_programs.compiled(SOURCES / f"{name}.ml", bench.directory))


def environment(bench):
    (bench.directory / "run").mkdir(mode=0o700, exist_ok=True)
    return {"HEAPTAP_LIBRARY": bench.library, "XDG_RUNTIME_DIR": bench.path("run")}


def doctor(bench, *arguments, code):
    return bench.run(bench.heaptap, "doctor", *arguments, env=environment(bench), code=code)


@contextlib.contextmanager
def running(bench, *command):
    process = subprocess.Popen(command, cwd=bench.directory, env=bench.environment(environment(bench)),
                               stdout=subprocess.DEVNULL)
    try:
        time.sleep(2)
        yield process
    finally:
        process.kill()
        process.wait()


def line_of(name, text):
    lines = (SOURCES / f"{name}.ml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def fits(text):
    expect(0 < len(text.splitlines()) <= LINES, f"{len(text.splitlines())} lines:\n{text}")


def string_bytes(bench, snapshot):
    """How much of each string the snapshot has."""
    return json.loads(bench.run(bench.heaptap, "info", "--json", bench.path(snapshot)).out)["string_bytes"]


def names_the_leak(text):
    """That of l01_cache: a table that is never emptied."""
    line = line_of("l01_cache", "let make i =")
    expect("L01_cache.cache" in text, f"the holder is not named:\n{text}")
    expect(f"l01_cache.ml:{line}" in text, f"line {line} is not named:\n{text}")


@scenario
@alone
def a_program_that_runs(bench):
    """It is traced for the time, and left as it was; the files give the same diagnosis."""
    program = compiled(bench, "l01_cache")
    with running(bench, program, "120") as process:
        result = doctor(bench, process.pid, "--for", "56s", "-o", "kept", code=3)
        fits(result.out)
        names_the_leak(result.out)
        expect(process.poll() is None, "the program has ended")
        listed = json.loads(bench.run(bench.heaptap, "ps", "--json", env=environment(bench)).out)
        states = [one["state"] for one in listed if one["pid"] == process.pid]
        equal(states, ["idle"], "what it does afterwards")
    equal(string_bytes(bench, "kept/snapshot-1.heap"), None, "contents in the snapshot")
    page = (bench.directory / "kept" / "doctor.html").read_text()
    expect("L01_cache.cache" in page and "<svg" in page and "<script" not in page, "the page")
    equal(os.stat(bench.path("kept")).st_mode & 0o777, 0o700, "mode of the directory")
    equal(os.stat(bench.path("kept/doctor.html")).st_mode & 0o777, 0o600, "mode of the page")
    again = doctor(bench, "kept", code=3)
    fits(again.out)
    names_the_leak(again.out)
    found = json.loads(doctor(bench, "--json", "kept", code=3).out)
    equal(found["verdict"]["outcome"], "found", "the verdict as JSON")
    leak = found["findings"][0]
    equal((leak["kind"], leak["holder"]["name"].split(" ")[0]), ("leak", "L01_cache.cache"), "the first finding")
    expect(3e5 < leak["bytes_per_second"] < 2e6, f"grows by {leak['bytes_per_second']} bytes a second")


@scenario
@alone
def a_program_that_is_traced(bench):
    """It is only watched: its trace goes on."""
    program = compiled(bench, "l01_cache")
    traced = bench.preload(rate=1e-3, HEAPTAP_LISTEN=1, **{"XDG_RUNTIME_DIR": environment(bench)["XDG_RUNTIME_DIR"]})
    process = subprocess.Popen([program, "120"], cwd=bench.directory, env=bench.environment(traced),
                               stdout=subprocess.DEVNULL)
    try:
        time.sleep(2)
        # It is as young as a program that fills a cache or its first batch.
        result = doctor(bench, process.pid, "--for", "12s", "-o", "kept", code=4)
        names_the_leak(result.out)
        expect("may leak" in result.out and "is young" in result.out, result.out)
        listed = json.loads(bench.run(bench.heaptap, "ps", "--json", env=environment(bench)).out)
        states = [one["state"] for one in listed if one["pid"] == process.pid]
        equal(states, ["tracing"], "what it does afterwards")
    finally:
        process.kill()
        process.wait()


@scenario
@alone
def a_program_that_is_started(bench):
    """It runs as by itself; without --for to its end."""
    program = compiled(bench, "l01_cache")
    result = doctor(bench, "-o", "kept", "--", program, "15", code=4)
    fits(result.out)
    names_the_leak(result.out)
    expect("ended with status 0" in result.out and "too soon" in result.out, result.out)
    ended = doctor(bench, "--for", "8s", "-o", "shorter", "--", program, "120", code=4)
    names_the_leak(ended.out)
    expect("SIGTERM" in ended.out, ended.out)


@scenario
@alone
def a_steady_program(bench):
    """Nothing wrong is seen in it, and nothing is left behind."""
    program = compiled(bench, "s07_shrink")
    before = set(os.listdir("/tmp"))
    with running(bench, program, "120") as process:
        result = doctor(bench, process.pid, "--for", "20s", code=0)
    fits(result.out)
    expect("Nothing wrong" in result.out, result.out)
    left = [name for name in set(os.listdir("/tmp")) - before if name.startswith("heaptap-doctor-")]
    equal(left, [], "directories that are left")


@scenario
@alone
def copies_of_strings(bench):
    """They are counted if it is asked for, and then contents are in the snapshots."""
    program = str(leak_programs.compiled(SOURCES.parent / "copies.ml", bench.directory))
    with running(bench, program, "60") as process:
        result = doctor(bench, process.pid, "--for", "14s", "--with-strings", "-o", "kept", code=0)
    found = re.search(r"(\d+) copies of (\d+) strings, and Copies.table", result.out)
    # 300,000 copies and the 50 originals; libraries may have some, too.
    copies, strings = map(int, found.groups()) if found else (0, 0)
    expect(300_050 <= copies < 300_100 and 50 <= strings < 60, result.out)
    equal(string_bytes(bench, "kept/snapshot-1.heap"), 256, "contents in the snapshot")


@scenario
@alone
def too_little_to_tell(bench):
    """One snapshot decides nothing, and the command that would is named."""
    program = compiled(bench, "s07_shrink")
    bench.run(bench.heaptap, "run", "-o", "short.ctf", "--snapshot", "exit", "--snapshot-file", "exit.heap", "--",
              program, "1", env=environment(bench))
    result = doctor(bench, "exit.heap", code=4)
    fits(result.out)
    expect("Cannot tell" in result.out and "heaptap doctor" in result.out, result.out)


@scenario
@alone
def a_hostile_name(bench):
    """The name of a program is no part of the page's markup."""
    program = compiled(bench, "l02_fast")
    hostile = bench.path("<b onload=alert(1)>&")
    shutil.copy(program, hostile)
    doctor(bench, "--for", "8s", "-o", "kept", "--", hostile, "60", code=4)
    page = (bench.directory / "kept" / "doctor.html").read_text()
    expect("<b onload" not in page and "&lt;b onload" in page, "the name is not escaped")
