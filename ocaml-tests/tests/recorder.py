"""A flight recorder: the last moments of a program, written when it is asked or dies."""

import itertools
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from bench import Skip, equal, expect, family, scenario
from commands import LONG
from pressure import MIB, limited_group

SECONDS = 1.5


def variables(bench, recorder="1s", name="r.ctf", rate=0.01, **more):
    return bench.preload(name, rate, HEAPTAP_RECORDER=recorder, HEAPTAP_TIMELINE=1, **more)


def directories(bench, name="r"):
    return sorted(path.name for path in bench.directory.glob(f"{name}.recording-*"))


def parts(bench, directory="r.recording-1"):
    return sorted(path for path in (bench.directory / directory).iterdir() if path.suffix == ".ctf")


def question(bench, verb, *files, code=(0,)):
    command = [bench.heaptap, *verb.split(), "--json", *map(str, files)]
    answer = subprocess.run(command, capture_output=True, timeout=LONG)
    expect(answer.returncode in code, f"{verb}: {answer.returncode}, {answer.stderr.decode()[-500:]}")
    return json.loads(answer.stdout)


def log(bench, directory):
    """The lines of the log in all parts."""
    lines = []
    for part in parts(bench, directory):
        if not Path(f"{part}.probes").exists():
            continue
        shown = subprocess.run([bench.heaptap, "probes", "--json", part], capture_output=True, timeout=LONG)
        lines += [entry["text"] for entry in json.loads(shown.stdout).get("log", [])]
    return lines


def is_recording(bench, reason, directory="r.recording-1", seconds=1.0):
    """All parts are sound and read as one trace, which has what it should."""
    found = parts(bench, directory)
    expect(found, f"{directory} has no parts")
    for part in found:
        bench.sound(part.relative_to(bench.directory))
        equal(part.stat().st_mode & 0o777, 0o600, f"mode of {part.name}")
        expect(Path(f"{part}.series").exists(), f"{part.name} has no sidecar")
    equal((bench.directory / directory).stat().st_mode & 0o777, 0o700, "mode of the directory")
    checked = subprocess.run([bench.heaptap, "check", bench.directory / directory], capture_output=True, text=True)
    expect(checked.returncode == 0, checked.stdout + checked.stderr)
    expect(f" {len(found) - 1} boundar" in checked.stdout and "not compared" not in checked.stdout, checked.stdout)
    report = question(bench, "report --top 0", bench.directory / directory)
    covered = report["duration_us"] / 1e6 if "duration_us" in report else report["totals"]["duration_us"] / 1e6
    last_work = Path(bench.path("last-work"))
    if last_work.exists():
        # On a busy machine a program may stand still for a while before it dies: what was recorded goes on to its last work.
        begun = question(bench, "info", found[0])["start_unix_us"] / 1e6
        idle = found[-1].stat().st_mtime - float(last_work.read_text())
        expect(begun + covered >= float(last_work.read_text()) - 0.1, f"{covered} s are covered, and {idle} s before the death are not")
        covered += idle
    expect(covered >= 0.9 * seconds, f"{covered} s are covered")
    if reason is not None:
        lines = log(bench, directory)
        expect(any(f"recorder: written ({reason})" in line for line in lines), f"the log has {lines}")
    return report


# Without core dumps, and with signals as a program has them that is no job in the background.
PLAIN = ("prlimit", "--core=0", "env", "--default-signal=INT,QUIT")


def died(bench, mode, *arguments, reason, program="recorded", **more):
    """The program ends as it does untraced, and what came before is there."""
    untraced = bench.run(program, mode, 0.05, *arguments, code=None, under=PLAIN, env=more)
    expect(untraced.code, "it ended with 0")
    env = variables(bench, LAST_WORK=bench.path("last-work"), **more)
    traced = bench.run(program, mode, SECONDS, *arguments, code=None, env=env, under=PLAIN)
    equal(traced.code, untraced.code, "how it ended")
    equal(traced.out, untraced.out, "what it printed")
    own = [line for line in traced.err.splitlines() if line.startswith("heaptap:")]
    others = [line for line in traced.err.splitlines() if not line.startswith("heaptap:")]
    equal(others, untraced.err.splitlines(), "what it said")
    equal(directories(bench), ["r.recording-1"], "directories")
    expect(len(own) == 1 and own[0].startswith(f"heaptap: {reason}: the last ") and "r.recording-1" in own[0], f"said {own}")
    return is_recording(bench, reason)


def lives(bench, mode, *arguments, program="recorded", code=0, **more):
    """The program runs as it does untraced, and nothing is written."""
    untraced = bench.run(program, mode, 0.05, *arguments, code=code, env=more)
    traced = bench.run(program, mode, 0.3, *arguments, code=code, env=variables(bench, **more))
    equal(traced.out, untraced.out, "what it printed")
    equal(list(bench.directory.iterdir()), [], "files")
    return traced


@family({f"{way}{variant}": (f"recorded{variant}", way) for variant in ["", ".byte"] for way in ["raise", "raise_handled"]})
def an_uncaught_exception(bench, program, way):
    died(bench, way, reason="uncaught exception", program=program)


@family({way: (way,) for way in ["raise_caught", "raise_in_thread"]})
def an_exception_that_ends_nothing(bench, way):
    traced = lives(bench, way)
    expect("the recorder has written nothing" in traced.err, f"said {traced.err!r}")


@scenario
def an_exit_status_of_2_is_no_exception(bench):
    lives(bench, "exit", code=2)


SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS", "SIGSYS", "SIGXCPU",
           "SIGXFSZ", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2"]


@family({name: (name,) for name in SIGNALS})
def a_signal(bench, name):
    report = died(bench, "send", int(getattr(signal, name)), reason=name)
    expect(report["totals"]["live"]["bytes"] > 0, "nothing is alive")


@family({f"{way}{variant}": (f"recorded{variant}", way, name) for variant in ["", ".byte"]
         for way, name in [("fault", "SIGSEGV"), ("division", "SIGFPE"), ("abort", "SIGABRT")]})
def a_fault_in_c(bench, program, way, name):
    died(bench, way, reason=name, program=program)


@scenario
def a_stack_that_overflows_in_c(bench):
    """If there is a stack for the handler. Untraced bytecode has none, and ends the same."""
    died(bench, "deep_in_c", reason="SIGSEGV")


@family({name: (name,) for name in ["recorded", "recorded.byte"]})
def an_overflow_of_the_stack_is_an_exception(bench, program):
    # OCaml 5 and bytecode would take a minute for the stacks that they allow.
    traced = lives(bench, "overflow", program=program, OCAMLRUNPARAM="l=500k")
    equal(traced.out, "ready\nStack_overflow\nStack_overflow\n", "what it printed")


@scenario
def a_fault_after_an_overflow(bench):
    died(bench, "overflow_and_fault", reason="SIGSEGV", OCAMLRUNPARAM="l=500k")


# By OCaml's numbers, which are negative.
OCAML_TERM, OCAML_HUP, OCAML_SEGV = -11, -4, -10


@family({"own": ("own", OCAML_TERM), "ignored": ("ignored", OCAML_HUP), "own_in_c": ("own_in_c", int(signal.SIGTERM)),
         "own_in_c_segv": ("own_in_c", int(signal.SIGSEGV))})
def a_handler_of_the_program(bench, way, number):
    lives(bench, way, number)


@scenario
def a_signal_that_the_program_has_reset(bench):
    """It has what it asks for: the default, by which it ends without a word."""
    untraced = bench.run("recorded", "default", 0.05, OCAML_TERM, code=-signal.SIGTERM)
    traced = bench.run("recorded", "default", 0.3, OCAML_TERM, code=-signal.SIGTERM, env=variables(bench))
    equal((traced.out, traced.err, directories(bench)), (untraced.out, "", []), "what it did")


@scenario
def a_segv_that_somebody_sends(bench):
    """The runtime survives the first one, and the second one ends it."""
    number = int(signal.SIGSEGV)
    untraced = bench.run("recorded", "send", 0.05, number, code=None)
    traced = bench.run("recorded", "send", 0.3, number, code=None, env=variables(bench))
    equal((traced.code, traced.out), (untraced.code, untraced.out), "how it ended")


@scenario
def a_forked_child_writes_nothing(bench):
    lives(bench, "fork")


@scenario
def a_traced_child_has_a_recorder_of_its_own(bench):
    traced = bench.run("recorded", "fork", SECONDS, env=variables(bench, name="r-%p.ctf"))
    equal(traced.out, "ready\nthe child ended by SIGTERM\n", "what it printed")
    [child] = bench.directory.glob("r-*.recording-1")
    is_recording(bench, "SIGTERM", child.name, seconds=0.2)


def started(bench, *arguments, env):
    """A program that is recording, when it is ready."""
    program = subprocess.Popen([bench.program("recorded"), *map(str, arguments)], cwd=bench.directory,
                               env=bench.environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    program.stdout.readline()
    return program


def ask(bench, pid, *arguments, code=0):
    asked = subprocess.run([bench.heaptap, "recorder", str(pid), *arguments], cwd=bench.directory, capture_output=True, timeout=LONG)
    expect(asked.returncode == code, f"recorder: {asked.returncode}, {asked.stderr.decode()}")
    return asked.stdout.decode(), asked.stderr.decode()


@scenario
def asked(bench):
    """Any number of times, into directories that are new; the program goes on."""
    with started(bench, "live", 6, env=variables(bench, HEAPTAP_LISTEN=1)) as program:
        time.sleep(2)
        equal(list(bench.directory.iterdir()), [], "files before it is asked")
        said, _ = ask(bench, program.pid)
        expect(re.match(re.escape(bench.path("r.recording-1")) + r": the last [1-4]\.\d s, ", said), f"said {said!r}")
        ask(bench, program.pid)
        ask(bench, program.pid, "-o", "named")
        _, refused = ask(bench, program.pid, "-o", "named", code=2)
        expect("File exists" in refused, f"said {refused!r}")
        _, refused = ask(bench, program.pid, "-o", "nowhere/named", code=2)
        expect("No such file" in refused, f"said {refused!r}")
        listed = json.loads(subprocess.check_output([bench.heaptap, "ps", "--json"]))
        [own] = [entry for entry in listed if entry["pid"] == program.pid]
        equal((own["state"], own["lost"]), ("recording", 0), "its state")
        expect(1 <= own["covered"] <= 6 and 0 < own["bytes"] <= 64 * MIB, f"it says {own}")
        equal(program.wait(LONG), 0, "how it ended")
        equal(program.stderr.read(), b"", "what it said")
    for directory in ("r.recording-1", "r.recording-2", "named"):
        is_recording(bench, "asked", directory)
    equal(sorted(path.name for path in bench.directory.iterdir()), ["named", "r.recording-1", "r.recording-2"], "files")


@scenario
def a_recorder_that_is_started_and_stopped(bench):
    listening = {"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1}
    with started(bench, "send", 8, int(signal.SIGTERM), env=listening) as program:
        for turn in (1, 2):
            start = [bench.heaptap, "start", str(program.pid), "-o", "r.ctf", "-r", "0.01", "--recorder", "1s,16MiB"]
            subprocess.run(start, cwd=bench.directory, check=True, capture_output=True)
            time.sleep(SECONDS)
            ask(bench, program.pid)
            is_recording(bench, "asked", f"r.recording-{turn}")
            top = subprocess.run([bench.heaptap, "top", "--once", str(program.pid)], capture_output=True, text=True)
            expect("keeps its trace in memory" in top.stderr and f"`heaptap recorder {program.pid}`" in top.stderr, top.stderr)
            written = sum(path.stat().st_size for path in (bench.directory / f"r.recording-{turn}").iterdir())
            stopped = subprocess.check_output([bench.heaptap, "stop", str(program.pid)], text=True)
            expect("kept in memory, " in stopped and " of recordings written" in stopped, f"{stopped}, and {written} bytes are there")
            _, refused = ask(bench, program.pid, code=2)
            expect("not traced" in refused, f"said {refused!r}")
        # Nothing of the recorder is left.
        equal(program.wait(LONG), -signal.SIGTERM, "how it ended")
        equal(program.stderr.read(), b"", "what it said")
    equal(directories(bench), ["r.recording-1", "r.recording-2"], "directories")


@scenario
def the_last_events_of_an_ordinary_trace(bench):
    """At rate 1 the recording has the same allocations as the end of a trace of the same program, and the same is
    alive."""
    work = ("rotated", 20_000, 0.01)
    bench.run(*work, env=variables(bench, "1s,exit", rate=1))
    recorded = list(itertools.chain.from_iterable(bench.allocs(part.relative_to(bench.directory)) for part in parts(bench)))
    expect(parts(bench)[0].name != "r.000001.ctf", "nothing was dropped")
    is_recording(bench, "exit")
    bench.run(*work, env=bench.preload("one.ctf"))
    ordinary = list(bench.allocs("one.ctf"))
    expect(1000 < len(recorded) < len(ordinary), f"{len(recorded)} of {len(ordinary)} allocations")

    def shape(alloc):
        return alloc.length, alloc.samples, alloc.source, alloc.frames

    expect([*map(shape, recorded)] == [*map(shape, ordinary[-len(recorded):])], "the allocations differ")
    metric = "report --metric live --top 1000"
    for _ in range(12):
        # Where the first collection comes depends on addresses.
        found = [question(bench, metric, bench.path(name))["table"]["rows"] for name in ("r.recording-1", "one.ctf")]
        if found[0] == found[1]:
            break
        bench.run(*work, env=bench.preload("one.ctf"))
    equal(found[0], found[1], "what is alive at the end")


@scenario
def memory_is_bounded(bench):
    """However much is allocated, and however much is alive: the recording covers less, and says so."""
    with started(bench, "storm", 10 * LONG, env=variables(bench, "1h,8MiB", rate=1, HEAPTAP_LISTEN=1)) as program:
        try:
            sizes, began = [0], time.monotonic()
            # Until parts have been dropped, and for a while longer.
            while time.monotonic() < began + LONG and not (max(sizes) > 6 * MIB and len(sizes) > 60):
                time.sleep(0.1)
                listed = json.loads(subprocess.check_output([bench.heaptap, "ps", "--json"]))
                sizes += [entry["bytes"] for entry in listed if entry["pid"] == program.pid]
            ran = time.monotonic() - began
            said, _ = ask(bench, program.pid)
        finally:
            program.kill()
    expect(6 * MIB < max(sizes) <= 8 * MIB, f"{max(sizes)} bytes in memory")
    expect(parts(bench)[0].name != "r.000001.ctf", "no part was dropped")
    written = sum(path.stat().st_size for path in (bench.directory / "r.recording-1").iterdir())
    expect(written <= 8 * MIB, f"{written} bytes in files")
    seconds = float(said.split("the last ")[1].split(" s")[0])
    for part in parts(bench):
        bench.sound(part.relative_to(bench.directory))
    expect(0 < seconds < ran, f"it covers {seconds} s of {ran}")


@family({way: (way,) for way in ["asked", "SIGTERM"]})
def a_directory_that_cannot_be_written(bench, way):
    if os.geteuid() == 0:
        # Root may write everywhere, but there.
        name = "/proc/r.ctf"
    else:
        (bench.directory / "locked").mkdir(mode=0o500)
        name = bench.path("locked/r.ctf")
    env = {**variables(bench, HEAPTAP_LISTEN=1), "HEAPTAP": name}
    with started(bench, "send", 2, int(signal.SIGTERM), env=env) as program:
        if way == "asked":
            _, refused = ask(bench, program.pid, code=2)
            expect("cannot write the recording to" in refused, f"said {refused!r}")
        equal(program.wait(LONG), -signal.SIGTERM, "how it ended")
        said = program.stderr.read().decode()
    expect("SIGTERM: cannot write the recording to" in said, f"said {said!r}")


@scenario
def a_full_disk(bench):
    """What is newest is there, and a message says what is missing."""
    mount = bench.directory / "small"
    mount.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "none", mount], capture_output=True).returncode != 0:
        raise Skip("no small file system can be mounted")
    try:
        env = {**variables(bench, "5s,64MiB", rate=1), "HEAPTAP": str(mount / "r.ctf")}
        with started(bench, "send", 3, int(signal.SIGTERM), env=env) as program:
            equal(program.wait(LONG), -signal.SIGTERM, "how it ended")
            said = program.stderr.read().decode()
        expect("could not be written: No space left on device" in said or "cannot write the recording" in said, f"said {said!r}")
        for directory in mount.iterdir():
            found = sorted(path for path in directory.iterdir() if path.suffix == ".ctf")
            expect(found and found[0].name != "r.000001.ctf", f"{directory} has {found}")
            for part in found:
                check = subprocess.run([bench.heaptap, "check", "--strict", part], capture_output=True)
                equal(check.returncode, 0, f"check of {part}")
    finally:
        subprocess.run(["umount", mount], check=True)


@scenario
def memory_pressure(bench):
    with limited_group(200 * MIB) as group:
        def enter():
            (group / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run([bench.program("recorded"), "hoard", "2"], cwd=bench.directory, env=bench.environment(variables(bench, "1s,8MiB")),
                              preexec_fn=enter, capture_output=True, timeout=LONG)
    if done.returncode == 0:
        raise Skip("the limit of a control group does not hold here")
    equal(done.returncode, -signal.SIGKILL, "how it ended")
    expect(b"memory runs short: the last " in done.stderr, f"said {done.stderr!r}")
    is_recording(bench, "memory runs short")


@scenario
def nothing_is_written_to_files_until_then(bench):
    if not Path("/usr/bin/strace").exists():
        raise Skip("strace is not installed")
    traced = bench.run("/usr/bin/strace", "-f", "-e", "trace=openat,open,creat,mkdir,mkdirat,rename", bench.program("recorded"), "live", SECONDS,
                       env=variables(bench))
    made = [line for line in traced.err.splitlines() if "O_CREAT" in line or "O_WRONLY" in line or "O_RDWR" in line or "mkdir" in line]
    equal([line for line in made if "/dev/null" not in line], [], "files that were made")


@scenario
def run_by_the_tool(bench):
    """`heaptap run` says what the recorder has done, and how to ask for more."""
    program = bench.program("recorded")
    run = [bench.heaptap, "run", "-r", "0.01", "-o", "r.ctf"]

    def said(*options, mode, code):
        done = subprocess.run([*run, *options, "--", program, mode, "1.2"], cwd=bench.directory, capture_output=True, timeout=LONG,
                              env=bench.environment())
        equal(done.returncode, code, f"{options}: {done.stderr.decode()}")
        return done.stderr.decode()

    text = said("--recorder", "1s", mode="live", code=0)
    expect("nothing written by the recorder: `heaptap recorder " in text and text.count("\n") == 1, f"said {text!r}")
    equal(said("--recorder", "1s", "-q", mode="live", code=0), "", "what it said when quiet")
    text = said("--recorder", "1s,exit", mode="live", code=0)
    expect("exit: the last 1." in text and "r.recording-1" in text, f"said {text!r}")
    is_recording(bench, "exit")
    text = said("--recorder", "1s", mode="raise", code=2)
    expect("uncaught exception: the last 1." in text and "r.recording-2" in text, f"said {text!r}")
    for wrong in (["--recorder", "1"], ["--recorder", "1s", "--rotate", "1m"]):
        expect("--rec" in said(*wrong, mode="live", code=2), f"{wrong} is accepted")
