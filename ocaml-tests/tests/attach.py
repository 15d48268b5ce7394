"""Programs that were started without heaptap, and attached to at random moments: `heaptap attach`."""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time

from bench import HERE, Skip, equal, expect, family, scenario
from commands import LONG
from sessions import changed, words

# Attaches over all programs, and attachers that are killed; each program is started anew for each.
ATTACHES = int(os.environ.get("HEAPTAP_ATTACHES", 32))
KILLS = int(os.environ.get("HEAPTAP_ATTACH_KILLS", 24))

SOURCES = HERE.parent / "crates/inject/tests/programs"
LIBRARIES = ("unix", "threads", "dynlink")

# What an attach may say of a program that is starting or has ended.
PASSING = ("ended", "connection", "program exits", "no process", "no such process", "not started", "no OCaml runtime", "not glibc", "does not stop")


def compile(bench, name, compiler="ocamlopt", suffix="cmxa"):
    place = bench.directory / f"{name}.{compiler}"
    place.mkdir(exist_ok=True)
    shutil.copy(SOURCES / f"{name}.ml", place)
    libraries = [f"{library}.{suffix}" for library in LIBRARIES]
    subprocess.run([compiler, "-thread", "-w", "-a", *libraries, f"{name}.ml", "-o", name], cwd=place, check=True)
    return str(place / name)


def plugins(bench):
    shutil.copy(SOURCES / "plugin.ml", bench.directory)
    subprocess.run(["ocamlopt", "-shared", "plugin.ml", "-o", "plugin.cmxs"], cwd=bench.directory, check=True)
    return [compile(bench, "plugins"), "150", "."]


def compiler(bench):
    """The stock compiler, on a file of some hundred functions."""
    functions = [f"let f{i} a b = match List.map (fun x -> x * {i}) a with [] -> b | x :: _ when x > b -> x + {i} "
                 f"| _ -> List.fold_left (+) {i} a" for i in range(1200)]
    (bench.directory / "large.ml").write_text("\n".join(functions) + "\n")
    return ["ocamlopt.opt", "-c", "-w", "-a", "-S", "large.ml"]


def documentation(bench):
    """Another stock program."""
    if not shutil.which("ocamldoc.opt"):
        raise Skip("ocamldoc.opt is not installed")
    lines = [f"(** {i}. *)\nlet f{i} x = match x with [] -> {i} | a :: b -> a + List.length b" for i in range(1500)]
    (bench.directory / "many.ml").write_text("\n".join(lines) + "\n")
    (bench.directory / "html").mkdir(exist_ok=True)
    return ["ocamldoc.opt", "-html", "-d", "html", "many.ml"]


PROGRAMS = {
    "trees": lambda bench: [compile(bench, "trees"), "20000"],
    "threads": lambda bench: [compile(bench, "threads"), "3000"],
    "overflow": lambda bench: [compile(bench, "overflow"), "150"],
    "plugins": plugins,
    "mallocs": lambda bench: [compile(bench, "mallocs"), "4000"],
    "bytecode": lambda bench: ["ocamlrun", compile(bench, "trees", "ocamlc", "cma"), "1500"],
    "compiler": compiler,
    "documentation": documentation,
}


class Target:
    """A program that runs without heaptap."""

    def __init__(self, bench, command):
        self.bench, self.command = bench, command
        (bench.directory / "run").mkdir(mode=0o700, exist_ok=True)
        self.env = bench.environment({"XDG_RUNTIME_DIR": bench.path("run"), "HEAPTAP_LIBRARY": bench.library})
        self.out, self.err = open(bench.path("out"), "wb+"), open(bench.path("err"), "wb+")
        self.process = subprocess.Popen(command, cwd=bench.directory, env=self.env, stdin=subprocess.PIPE,
                                        stdout=self.out, stderr=self.err)
        self.pid = self.process.pid

    def attach(self, *options, pid=None):
        return subprocess.run([self.bench.heaptap, "attach", str(pid or self.pid), *map(str, options)],
                              env=self.env, cwd=self.bench.directory, capture_output=True, text=True, timeout=LONG * 5)

    def attacher(self, *options):
        """One that goes on."""
        return subprocess.Popen([self.bench.heaptap, "attach", str(self.pid), *map(str, options)], env=self.env,
                                cwd=self.bench.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ask(self, line, pid=None):
        """The answer, or None if the program has ended."""
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(LONG * 5)
                client.connect(str(self.bench.directory / f"run/heaptap/{pid or self.pid}.sock"))
                client.sendall(line.encode() + b"\n")
                with client.makefile() as answer:
                    lines = answer.read().splitlines()
        except (ConnectionError, FileNotFoundError):
            return None
        return lines[-1] if lines else None

    def is_running(self):
        return self.process.poll() is None

    def outcome(self):
        """Waits for the end: status and output."""
        self.process.stdin.close()
        code = self.process.wait(LONG * 10)
        texts = []
        for file in (self.out, self.err):
            file.seek(0)
            texts.append(file.read())
            file.close()
        return code, *texts

    def unchanged(self):
        """Whether the code is that of the files. True of a program that ends meanwhile."""
        try:
            found = changed(self.pid)
            if found:
                print(f"changed code: {found}")
            return not found
        except (OSError, ValueError):
            self.process.wait(LONG)
            return True


@contextlib.contextmanager
def running(bench, command):
    target = Target(bench, command)
    try:
        yield target
    finally:
        target.process.kill()
        target.process.wait()


def alone(bench, command):
    """What the program does without us."""
    with running(bench, command) as target:
        begin = time.monotonic()
        outcome = target.outcome()
        return outcome, time.monotonic() - begin


def is_exact(bench, file, stopped):
    """At rate 1 every word of the heap is a sample; memory outside of it comes on top."""
    equal(stopped["lost"], "0", "lost blocks")
    if stopped["samples"] != stopped["words"]:
        in_heap = sum(alloc.samples for alloc in bench.allocs(file) if alloc.source != "external")
        equal(in_heap, int(stopped["words"]), "sampled words of the heap and the collector's own count")


def seeded():
    chance = random.Random(seed := int(os.environ.get("HEAPTAP_SEED", random.randrange(1 << 30))))
    print(f"HEAPTAP_SEED={seed}")
    return chance


@family({name: (name,) for name in PROGRAMS})
def random_moments(bench, name):
    """Attached, traced for a moment at rate 1, stopped; some of them again. Nothing is left of it."""
    command = PROGRAMS[name](bench)
    untouched, duration = alone(bench, command)
    chance = seeded()
    attached, again, ended, uncleared = 0, 0, 0, 0
    share = -(-ATTACHES // len(PROGRAMS))
    while attached < share:
        with running(bench, command) as target:
            time.sleep(chance.uniform(0, duration * 0.9))
            first = target.attach("-o", "0.ctf", "-r", 1, "--detach", "--timeout", LONG)
            if first.returncode != 0:
                expect(any(text in first.stderr for text in PASSING), first.stderr)
                ended += 1
            else:
                attached += 1
                uncleared += trace_and_stop(bench, target, chance, "0.ctf")
            if first.returncode == 0 and target.is_running() and chance.random() < 0.3:
                second = target.attach("-o", "1.ctf", "-r", 1, "--detach", "--timeout", LONG)
                if second.returncode == 0:
                    again += 1
                    trace_and_stop(bench, target, chance, "1.ctf")
                else:
                    expect(any(text in second.stderr for text in PASSING) or "is not known" in second.stderr
                           or not target.is_running() or target.process.wait(LONG) == untouched[0], second.stderr)
            equal(target.outcome(), untouched, "status and output")
        for file in bench.directory.glob("?.ctf*"):
            file.unlink()
    print(f"{name}: {attached} attached, {again} again, {ended} had ended")
    equal(uncleared, 0, "programs whose code was not that of the files after a stop")
    equal([path.name for path in bench.directory.glob("run/heaptap/*") if path.suffix != ".sock"], [], "files left")


def trace_and_stop(bench, target, chance, file):
    """Ends the trace after a moment, unless the program ends first. Returns whether code is left."""
    time.sleep(chance.uniform(0, 0.03))
    answer = target.ask(f"stop wait={LONG}")
    if answer is None or not answer.startswith("ok"):
        # It ends, and has written the trace before.
        target.process.wait(LONG)
        expect(answer is None or "exits" in answer or "has ended" in answer or "not traced" in answer, answer)
        left = False
    else:
        left = not target.unchanged()
        is_exact(bench, file, words(answer))
    bench.sound(file)
    return left


@scenario
def the_attacher_is_killed(bench):
    """At random moments. The program is not harmed, a trace with a time ends by itself, and the next attach works."""
    chance = seeded()
    killed = worked = 0
    programs = {name: make(bench) for name, make in PROGRAMS.items() if name in ("trees", "threads", "overflow", "mallocs")}
    outcomes = {name: alone(bench, command) for name, command in programs.items()}
    while killed < KILLS:
        name = chance.choice(list(programs))
        untouched, duration = outcomes[name]
        with running(bench, programs[name]) as target:
            time.sleep(chance.uniform(0.01, duration * 0.3))
            while target.is_running() and killed < KILLS:
                attacher = target.attacher("-o", "k.ctf", "-r", 1, "--for", "100ms")
                time.sleep(chance.uniform(0, 0.15))
                attacher.kill()
                attacher.communicate()
                killed += 1
                if chance.random() < 0.3 and target.is_running():
                    target.ask(f"stop wait={LONG}")
                    result = target.attach("-o", "l.ctf", "--for", "100ms", "--timeout", LONG)
                    worked += result.returncode == 0
                    passes = result.returncode == 0 or any(text in result.stderr for text in PASSING)
                    expect(passes or "traced already" in result.stderr or not target.is_running()
                           or target.process.wait(LONG) == untouched[0], result.stderr)
            equal(target.outcome(), untouched, f"status and output of {name}")
        for file in bench.directory.glob("[kl].ctf*"):
            file.unlink()
    print(f"{killed} attachers killed, {worked} attaches worked in between")


@scenario
def a_trace_ends_in_time_without_its_attacher(bench):
    with running(bench, [compile(bench, "trees"), "2000000"]) as target:
        attacher = target.attacher("-o", "a.ctf", "-r", "1e-3", "--for", "1s")
        line = attacher.stderr.readline()
        expect("tracing into " in line, line)
        attacher.kill()
        attacher.communicate()
        deadline = time.monotonic() + LONG
        while "state=idle" not in target.ask("status"):
            expect(time.monotonic() < deadline, "the trace goes on")
            time.sleep(0.05)
        expect(target.unchanged(), "code is changed")
        bench.sound("a.ctf")


@scenario
def what_it_says(bench):
    """From the first message to the summary; a second trace; a program that is traced already; Ctrl-C; `--detach`."""
    with running(bench, [compile(bench, "trees"), "2000000"]) as target:
        time.sleep(0.2)
        first = target.attach("-o", "a b.ctf", "-r", 1, "--for", "200ms")
        equal(first.returncode, 0, first.stderr)
        expect("tracing into " in first.stderr and "a b.ctf at rate 1, for 200 ms" in first.stderr, first.stderr)
        expect("sampled words" in first.stdout and "allocated" in first.stdout, first.stdout)
        attacher = target.attacher("-o", "c.ctf", "-r", "1e-2")
        line = attacher.stderr.readline()
        expect("until Ctrl-C" in line, line)
        other = target.attach("-o", "d.ctf")
        equal(other.returncode, 2, other.stderr)
        expect(f"it is traced already, into {bench.path('c.ctf')}; `heaptap stop {target.pid}` ends that" in other.stderr,
               other.stderr)
        attacher.send_signal(signal.SIGINT)
        out, err = attacher.communicate(timeout=LONG)
        equal(attacher.returncode, 0, err)
        expect("c.ctf: " in out, out + err)
        expect(target.unchanged(), "code is changed")
        detached = target.attach("--detach")
        expect(f"until `heaptap stop {target.pid}`" in detached.stderr, detached.stderr)
        expect("state=tracing" in target.ask("status"), "it is traced")
        words(target.ask("stop"))
        default = bench.path(f"trees-{target.pid}.ctf")
        for file in ("a b.ctf", "c.ctf", default):
            bench.sound(file)
        expect(not os.path.exists(bench.path("d.ctf")), "a file without a trace")


@scenario
def the_program_ends_first(bench):
    """Then its trace is whole, and the attacher says so."""
    command = [compile(bench, "trees"), "15000"]
    untouched, _ = alone(bench, command)
    with running(bench, command) as target:
        time.sleep(0.1)
        result = target.attach("-o", "a.ctf", "-r", "1e-2")
        equal(result.returncode, 0, result.stderr)
        expect("the program has ended, and its trace with it" in result.stderr, result.stderr)
        equal(target.outcome(), untouched, "status and output")
    bench.sound("a.ctf")


@scenario
def two_attachers_at_once(bench):
    """One of them traces, the other one is told so."""
    for number in range(5):
        with running(bench, [compile(bench, "trees"), "2000000"]) as target:
            time.sleep(0.1)
            attachers = [target.attacher("-o", f"{index}.ctf", "-r", "1e-2", "--for", "1s") for index in range(2)]
            said = [attacher.communicate(timeout=LONG)[1] for attacher in attachers]
            equal(sorted(attacher.returncode for attacher in attachers), [0, 2], f"{said}")
            refused = said[0] if attachers[0].returncode else said[1]
            expect("traced already" in refused or "another attach is under way" in refused
                   or "try again" in refused, refused)
            expect(target.unchanged(), "code is changed")


@scenario
def forks(bench):
    """A program that forks all the time while it is traced, and afterwards."""
    command = [compile(bench, "forks"), "60"]
    untouched, duration = alone(bench, command)
    chance = seeded()
    for _ in range(4):
        with running(bench, command) as target:
            time.sleep(chance.uniform(0, duration / 2))
            result = target.attach("-o", "%p.ctf", "-r", "1e-2", "--for", "100ms")
            expect(result.returncode == 0 or any(text in result.stderr for text in PASSING), result.stderr)
            equal(target.outcome(), untouched, "status and output")


@scenario
def a_snapshot_first(bench):
    """What was there before is in a snapshot beside the trace."""
    with running(bench, [compile(bench, "trees"), "2000000"]) as target:
        time.sleep(0.2)
        result = target.attach("-o", "a.ctf", "-r", 1, "--for", "100ms", "--snapshot")
        equal(result.returncode, 0, result.stderr)
        expect("a.ctf.heap: " in result.stderr and " of heap; the program stood still" in result.stderr, result.stderr)
    bench.sound("a.ctf")
    bench.run(bench.heaptap, "snapshot", "--check", "a.ctf.heap")
    before = json.loads(bench.run(bench.heaptap, "report", "a.ctf", "--json").out)["before_attach"]
    heap = json.loads(bench.run(bench.heaptap, "heap", "a.ctf.heap", "--json").out)
    equal((before["bytes"], before["blocks"]), (heap["reachable"]["bytes"], heap["reachable"]["blocks"]), "what was there before")
    equal(sum(part["bytes"] for part in before["held_by"]), before["bytes"], "the parts of all holders")
    expect("Trees.make" in before["held_by"][0]["holder"], before["held_by"])
    shown = bench.run(bench.heaptap, "report", "a.ctf").out
    expect("before the attach: exactly " in shown and " exact " in shown, shown)
    expect("before the attach" not in bench.run(bench.heaptap, "report", "a.ctf", "--no-before").out, "it is left out")
    shutil.copy(bench.path("a.ctf"), bench.path("b.ctf"))
    expect("before the attach" not in bench.run(bench.heaptap, "report", "b.ctf").out, "there is no snapshot beside it")


@scenario
def refusals(bench):
    """Each says why and what to do, and the program does what it does."""
    def refused(pid, *words):
        run = subprocess.run([bench.heaptap, "attach", str(pid), "--timeout", "1", *words[1:]],
                             env=bench.environment({"HEAPTAP_LIBRARY": bench.library}), cwd=bench.directory,
                             capture_output=True, text=True)
        equal(run.returncode, 2, run.stderr)
        expect(words[0] in run.stderr, run.stderr)
    refused(2 ** 22 - 1, "there is no process")
    with subprocess.Popen(["sleep", "60"]) as other:
        time.sleep(0.1)
        refused(other.pid, "no OCaml runtime")
        other.kill()
    with running(bench, [compile(bench, "sleeper")]) as target:
        time.sleep(0.3)
        refused(target.pid, "did not allocate")
        expect(target.unchanged(), "code is changed")
    with running(bench, [compile(bench, "memprof")]) as target:
        time.sleep(0.3)
        refused(target.pid, "Gc.Memprof")
    # A file that cannot be made leaves the library, idle.
    with running(bench, [compile(bench, "trees"), "2000000"]) as target:
        time.sleep(0.1)
        result = target.attach("-o", "/no/such/directory/x.ctf")
        equal(result.returncode, 2, result.stderr)
        expect("/no/such/directory/x.ctf" in result.stderr, result.stderr)
        expect(target.unchanged(), "code is changed")


def may_unshare():
    """Skips the scenario without the right to make namespaces."""
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True)
    if done.returncode:
        raise Skip("no right to make namespaces")


@scenario
def a_container(bench):
    """Another mount namespace, with another /tmp, and other numbers of processes. The library is copied there."""
    may_unshare()
    program = compile(bench, "trees")
    libraries = os.path.dirname(bench.library)
    # The directory of the scenario may be below /tmp.
    with contextlib.ExitStack() as stack:
        place = f"/var/tmp/heaptap-container-{os.getpid()}"
        os.mkdir(place, 0o700)
        stack.callback(shutil.rmtree, place)
        shutil.copy(program, f"{place}/inside")
        script = f"mount -t tmpfs none /tmp && if [ -d {libraries} ]; then mount -t tmpfs none {libraries}; fi && exec {place}/inside 2000000"
        target = stack.enter_context(running(bench, ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]))
        pid = None
        deadline = time.monotonic() + LONG
        while pid is None:
            expect(time.monotonic() < deadline, "the program has not begun")
            children = open(f"/proc/{target.pid}/task/{target.pid}/children").read().split()
            pid = next((int(child) for child in children if os.readlink(f"/proc/{child}/exe").endswith("inside")), None)
            time.sleep(0.02)
        for number in range(2):
            result = target.attach("-o", f"{number}.ctf", "-r", "1e-2", "--for", "200ms", "--snapshot", pid=pid)
            equal(result.returncode, 0, result.stderr)
            here = f"/proc/{pid}/root/tmp/{number}.ctf"
            expect(f"/tmp/{number}.ctf of its container ({here} while it runs)" in result.stderr, result.stderr)
            shutil.copy(here, bench.path("copied.ctf"))
            bench.sound("copied.ctf")
            left = [name for name in os.listdir(f"/proc/{pid}/root/tmp") if name.startswith(".heaptap-")]
            equal(left, [], "copies of the library that are left")
        refused = target.attach("-o", "a/b.ctf", pid=pid)
        expect(refused.returncode == 2 and "give an absolute name there" in refused.stderr, refused.stderr)


@scenario
def root_attaches_to_a_program_of_another_user(bench):
    """The program writes the trace, with its own rights: nothing of root's is touched."""
    if os.geteuid() != 0:
        raise Skip("only root may")
    place = bench.directory / "of_nobody"
    place.mkdir()
    shutil.copy(compile(bench, "trees"), place)
    shutil.copy(bench.library, place)
    secret = bench.directory / "secret"
    secret.write_text("mine")
    secret.chmod(0o600)
    for path in (place, *place.iterdir()):
        os.chown(path, 65534, 65534)
    bench.directory.chmod(0o711)
    environment = bench.environment({"HEAPTAP_LIBRARY": place / "libheaptap.so"})
    environment.pop("XDG_RUNTIME_DIR", None)
    user = {"user": 65534, "group": 65534, "extra_groups": []}
    with subprocess.Popen([place / "trees", "2000000"], cwd="/", env=environment, **user) as process:
        try:
            def attach(*options):
                return subprocess.run([bench.heaptap, "attach", str(process.pid), *options], env=environment,
                                      cwd=bench.directory, capture_output=True, text=True, timeout=LONG)
            time.sleep(0.2)
            os.symlink(secret, place / "trap.ctf")
            for file in ("secret", "of_nobody/trap.ctf", "/root/x.ctf"):
                result = attach("-o", file, "--for", "100ms")
                equal(result.returncode, 2, result.stderr)
                expect("ermission denied" in result.stderr or "cannot" in result.stderr, result.stderr)
            equal(secret.read_text(), "mine", "a file of root's")
            result = attach("-o", "of_nobody/a.ctf", "--for", "100ms")
            equal(result.returncode, 0, result.stderr)
            equal((place / "a.ctf").stat().st_uid, 65534, "the owner of the trace")
        finally:
            process.kill()
    bench.sound("of_nobody/a.ctf")


# Runs a program with a filter of system calls that allows all of them.
FILTERED = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer((0x06).to_bytes(2, "little") + bytes(2) + (0x7fff0000).to_bytes(4, "little"))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
program = Program(1, ctypes.addressof(code))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
    sys.exit(9)
os.execv(sys.argv[1], sys.argv[1:])
"""


@scenario
def a_filter_of_system_calls(bench):
    """It may kill: it is refused unless the user knows better."""
    with running(bench, ["python3", "-c", FILTERED, compile(bench, "trees"), "2000000"]) as target:
        while not os.readlink(f"/proc/{target.pid}/exe").endswith("trees"):
            expect(target.is_running(), "filters are not allowed here")
            time.sleep(0.02)
        time.sleep(0.1)
        refused = target.attach("--for", "100ms")
        equal(refused.returncode, 2, refused.stderr)
        expect("filter of system calls (seccomp)" in refused.stderr, refused.stderr)
        expect(target.ask("status") is None, "it takes commands")
        result = target.attach("-o", "a.ctf", "--for", "100ms", "--despite-seccomp")
        equal(result.returncode, 0, result.stderr)
    bench.sound("a.ctf")
