"""Commands to programs that run, and snapshots that they take by themselves."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time

from bench import HERE, equal, expect, family, scenario

# The time after which something that should happen has not.
LONG = 60


class Asked:
    """A program that runs until its input ends."""

    def __init__(self, bench, process):
        self.bench, self.process, self.pid = bench, process, process.pid

    def snapshot(self, *options, code=0):
        env = {"XDG_RUNTIME_DIR": self.bench.path("run")}
        return self.bench.run(self.bench.heaptap, "snapshot", self.pid, *options, env=env, code=code)

    @property
    def socket(self):
        return self.bench.directory / "run/heaptap" / f"{self.pid}.sock"

    def ask(self, line):
        """The last line of the answer, over the socket itself."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(LONG)
            client.connect(str(self.socket))
            client.sendall(line.encode() + b"\n")
            with client.makefile() as answer:
                lines = answer.read().splitlines()
        expect(lines, "the program has closed the socket without an answer")
        return lines[-1]


@contextlib.contextmanager
def asked(bench, *arguments, program="asked", prints=b"500 entries\n", env=(), run=(), code=0, err=""):
    """Runs programs/asked or another, which listens, and expects it to end as if nobody had asked it anything, or with
    `code`."""
    (bench.directory / "run").mkdir(mode=0o700, exist_ok=True)
    preload = {} if run else {"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1}
    environment = bench.environment({"XDG_RUNTIME_DIR": bench.path("run"), "HEAPTAP_LIBRARY": bench.library, **preload, **dict(env)})
    command = [*run, bench.program(program), *map(str, arguments)]
    with subprocess.Popen(command, env=environment, cwd=bench.directory, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            equal(process.stdout.readline(), b"ready\n", "its first line")
            yield Asked(bench, process)
            out, said = process.communicate(b"\n", timeout=LONG)
        finally:
            process.kill()
    equal(process.returncode, code, "its exit status")
    expect(out.endswith(prints) or code, f"it printed {out!r}")
    if isinstance(err, re.Pattern):
        expect(err.fullmatch(said.decode()), f"what it said: {said.decode()!r}")
    elif err is not None:
        equal(said.decode(), err, "what it said")
    if code >= 0:
        equal([path.name for path in bench.directory.glob("run/heaptap/*")], [], "sockets that are left")


def is_snapshot(bench, path):
    """A whole snapshot, and nothing beside it that is half written."""
    path = bench.directory / path
    expect(path.exists(), f"there is no {path.name}: {sorted(os.listdir(path.parent))}")
    check = subprocess.run([bench.heaptap, "snapshot", "--check", path], capture_output=True)
    equal(check.returncode, 0, f"snapshot --check {path.name}: {(check.stdout + check.stderr).decode()[-500:]}")
    return reason(bench, path)


def reason(bench, path):
    """Why it was taken."""
    return json.loads(subprocess.check_output([bench.heaptap, "info", "--json", path]))["reason"]


def wait_for(path, process=None):
    """Waits until a file is there, which a program makes while it runs."""
    deadline = time.monotonic() + LONG
    while not path.exists():
        is_over = process is not None and process.poll() is not None
        expect(time.monotonic() < deadline and not is_over, f"there is no {path.name}")
        time.sleep(0.02)


@family({"busy": ("busy",), "idle": ("idle",), "sync": ("busy", "--sync"), "strings": ("busy", "--with-strings=8")})
def a_snapshot_on_request(bench, mode, *options):
    """Without a trace."""
    with asked(bench, mode) as program:
        result = program.snapshot("-o", "a b.heap", *options)
        expect(" blocks in " in result.out and "a b.heap: " in result.out, f"said {result.out!r}")
        is_snapshot(bench, "a b.heap")
        program.snapshot("-o", "a b.heap", *options)
        is_snapshot(bench, "a b.heap")
        program.snapshot()
        is_snapshot(bench, f"asked-{program.pid}-1.heap")
        answer = program.ask("status")
        expect(" trace= snapshots=yes" in answer and f"pid={program.pid} program=asked " in answer, answer)
        listed = bench.run(bench.heaptap, "snapshot", env={"XDG_RUNTIME_DIR": bench.path("run")}).out
        expect(f"{program.pid}  asked" in listed, listed)


@scenario
def a_traced_program(bench):
    """`heaptap run` lets it listen, unless that is turned off."""
    def child(parent):
        with open(f"/proc/{parent}/task/{parent}/children") as children:
            return int(children.read())

    run = [bench.heaptap, "run", "-o", "trace.ctf", "--"]
    with asked(bench, "busy", run=run, err=None) as program:
        program.pid = child(program.process.pid)
        program.snapshot("-o", "x.heap")
        is_snapshot(bench, "x.heap")
        equal(program.ask("flush"), "ok", "flush")
        expect(f" trace={bench.directory}/trace.ctf " in program.ask("status"), program.ask("status"))
    bench.sound()
    with asked(bench, "busy", run=[*run[:-1], "--no-listen", "--"], err=None) as program:
        program.pid = child(program.process.pid)
        result = program.snapshot("-o", "y.heap", code=2)
        expect("takes no commands" in result.err, result.err)


@scenario
def failures(bench):
    with asked(bench, "busy") as program:
        (bench.directory / "text").write_text("mine")
        result = program.snapshot("-o", "text", code=2)
        expect("exists and is not a heap snapshot" in result.err, result.err)
        equal((bench.directory / "text").read_text(), "mine", "the file")
        result = program.snapshot("-o", "/no/such/directory/x", code=2)
        expect("/no/such/directory/x: No such file" in result.err, result.err)
        result = program.snapshot("-o", "/dev/full", code=2)
        expect("no snapshot was taken" in result.err, result.err)
        expect(program.ask("unheard of").startswith("error unknown command `unheard`; known are: snapshot"), "an unknown command")
        expect(program.ask("snapshot relative").startswith("error "), "a relative name")
        for length in (16_384, 16_385, 100_000):
            expect(program.ask("x" * length).startswith("error "), "a long line")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(program.socket))
            client.sendall(b"snap")
        program.snapshot("-o", "x.heap")
    equal(sorted(path.name for path in bench.directory.glob("*.heap*")), ["x.heap"], "files")


@scenario
def no_safe_point(bench):
    """It computes without allocating: the request fails in time, and does not disturb it."""
    with asked(bench, "computes", 4) as program:
        start = time.monotonic()
        result = program.snapshot("-o", "x.heap", "--timeout", 1, code=None)
        if result.code:
            expect("within 1 s" in result.err and time.monotonic() - start < 30, result.err)


@family({"listening": (), "traced": ("HEAPTAP",), "by_signal": ("HEAPTAP_SNAPSHOT",)})
def a_loop_that_only_polls(bench, *asks):
    """It is as fast after a request as before, also if the client has gone at once. Where native code polls, since 4.13, a
    snapshot can be taken there; of OCaml 4, if it is traced or takes snapshots by itself."""
    version = [int(part) for part in bench.run(bench.compiler, "-version").out.split(".")[:2]]
    polls = version >= [4, 13] if asks else version >= [5]
    values = {"HEAPTAP": "trace.ctf", "HEAPTAP_SNAPSHOT": "signal:USR2"}
    command = f"snapshot {bench.path('x.heap')} wait=2\n".encode()
    with asked(bench, "counts", 2, env={name: values[name] for name in asks}, prints=b"as fast as before\n500 entries\n") as program:
        for pause in (0, 0.001, 0.01, 0.02, 0.1):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(program.socket))
                client.sendall(command)
                time.sleep(pause)
        answer = program.ask(command.decode().strip())
        if polls:
            expect(answer.startswith("ok "), answer)
            is_snapshot(bench, "x.heap")


def status_is_prompt(program):
    """An answer that comes long before a client that is silent is given up."""
    start = time.monotonic()
    expect(program.ask("status").startswith("ok "), "status")
    expect(time.monotonic() - start < 4, f"status took {time.monotonic() - start:.1f} s")


@scenario
def clients_that_are_silent_or_killed(bench):
    """They delay nobody: neither some that send nothing, nor one whose snapshot is waited for, nor one that was killed."""
    def connected():
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(program.socket))
        return client

    with asked(bench, "computes", 30, code=-signal.SIGKILL) as program:
        wait_for(program.socket)
        for count in (3, 100):
            clients = [connected() for _ in range(count)]
            status_is_prompt(program)
            for client in clients:
                client.close()
        command = [bench.heaptap, "snapshot", str(program.pid), "-o", bench.path("x.heap"), "--timeout", "60"]
        with subprocess.Popen(command, env=bench.environment({"XDG_RUNTIME_DIR": bench.path("run")}),
                              stdout=subprocess.DEVNULL) as requester:
            time.sleep(0.5)
            status_is_prompt(program)
            requester.kill()
        # Where the loop polls, its snapshot was taken.
        if requester.returncode == 0:
            is_snapshot(bench, "x.heap")
            (bench.directory / "x.heap").unlink()
        status_is_prompt(program)
        # With its client goes the request, and the next one has its turn.
        answer = program.ask(f"snapshot {bench.path('y.heap')} wait=0.2")
        expect(answer.startswith("ok ") or "within 0.2 s" in answer, answer)
        program.process.kill()
    equal(list(bench.directory.glob("x.heap*")), [], "files of a request that was given up")


@scenario
def a_child_does_not_answer(bench):
    """Its exit does not remove its parent's socket either."""
    with asked(bench, "fork") as program:
        program.snapshot("-o", "x.heap")
        is_snapshot(bench, "x.heap")


@scenario
def descriptors_that_the_program_closes(bench):
    """The socket is opened again."""
    with asked(bench, "closes") as program:
        program.snapshot("-o", "x.heap")
        is_snapshot(bench, "x.heap")
        program.snapshot("-o", "y.heap")


@scenario
def a_socket_that_was_left(bench):
    """By a program that was killed: the list removes it."""
    (bench.directory / "run").mkdir(mode=0o700)
    env = bench.environment({"XDG_RUNTIME_DIR": bench.path("run"), "LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1})
    with subprocess.Popen([bench.program("asked"), "idle"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.kill()
    left = bench.directory / "run/heaptap" / f"{process.pid}.sock"
    expect(left.exists(), "a killed process cannot remove it")
    bench.run(bench.heaptap, "snapshot", env={"XDG_RUNTIME_DIR": bench.path("run")})
    expect(not left.exists(), "it is still there")


@family({"untraced": ({},), "traced": ({"HEAPTAP": "trace.ctf"},)})
def by_itself(bench, trace):
    """At exit, after a number of collections, after a time and at a signal; the default names are beside the trace."""
    env = {**trace, "HEAPTAP_SNAPSHOT": "exit,major:3,major:5,every:300ms,signal:USR2"}
    with asked(bench, "majors", 6, env=env) as program:
        def name(number):
            return bench.directory / f"asked-{program.pid}-{number}.heap"

        wait_for(name(3))
        program.process.send_signal(signal.SIGUSR2)
        wait_for(name(5))
    files = sorted(bench.directory.glob("*.heap*"), key=lambda path: path.stat().st_mtime_ns)
    reasons = [is_snapshot(bench, path) for path in files]
    equal(reasons.count("major collection"), 2, "snapshots after collections")
    expect("timer" in reasons and "signal" in reasons, reasons)
    equal((reasons.count("exit"), reasons[-1]), (1, "exit"), "the last one")


@scenario
def only_at_exit(bench):
    """Has no thread and no socket for it."""
    with asked(bench, "busy", env={"HEAPTAP_LISTEN": 0, "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": "heap-%n-%%"}) as program:
        equal(len(os.listdir(f"/proc/{program.pid}/task")), 1, "threads")
        expect("takes no commands" in program.snapshot(code=2).err, "it listens")
    is_snapshot(bench, "heap-1-%")


@scenario
def a_snapshot_by_itself_that_fails(bench):
    said = "heaptap: no snapshot was taken (exit): /no/such/directory/1: No such file or directory (os error 2)\n"
    env = {"HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": "/no/such/directory/%n"}
    with asked(bench, "busy", env=env, err=said):
        pass


@scenario
def the_programs_own_handler_wins(bench):
    with asked(bench, "handles", env={"HEAPTAP_SNAPSHOT": "signal:USR2"}) as program:
        program.process.send_signal(signal.SIGUSR2)
    equal(list(bench.directory.glob("*.heap")), [], "snapshots")


@scenario
def a_wrong_trigger(bench):
    env = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "often", "HEAPTAP": "trace.ctf"}
    result = bench.run("young", env=env)
    expect("HEAPTAP_SNAPSHOT=often is not a comma-separated list of `exit`" in result.err, result.err)
    expect("correct or unset it" in result.err and not (bench.directory / "trace.ctf").exists(), result.err)


@scenario
def programs_that_are_not_ocaml_do_not_listen(bench):
    (bench.directory / "run").mkdir(mode=0o700)
    env = {"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1, "XDG_RUNTIME_DIR": bench.path("run")}
    result = bench.run("sh", "-c", 'ls "$XDG_RUNTIME_DIR"; echo $HEAPTAP_LISTEN', env=env)
    equal((result.out, result.err), ("1\n", ""), "what it said")


@family({"native": ("ocamlopt", "cmxa"), "bytecode": ("ocamlc", "cma", "-custom")})
def from_the_program(bench, compiler, suffix, *more):
    """`Heaptap.snapshot`, traced, listening and neither."""
    # Those of OCaml 5 are not on the path.
    prefix = bench.compiler.removesuffix("ocamlc")
    bench.run("make", "-s", "-C", HERE.parent / "ocaml", f"BUILD={bench.path('library')}", f"BIN={prefix}")
    (bench.directory / "main.ml").write_text("""let keep = List.init 1000 (fun i -> (i, string_of_int i))
let print = function Ok file -> print_endline file | Error reason -> print_endline ("no: " ^ reason)
let () =
  print (Heaptap.snapshot ~file:"own name.heap" ());
  print (Heaptap.snapshot ());
  print (Heaptap.snapshot ~file:"/no/such/directory/x" ());
  print (Heaptap.snapshot ~file:"a\\000b" ());
  print_int (List.length keep)
""")
    bench.run(prefix + compiler, "-g", "-I", "library", *more, f"heaptap.{suffix}", "main.ml", "-o", "main")
    for env in ({"HEAPTAP_LISTEN": 1}, {"HEAPTAP": bench.path("trace.ctf")}):
        lines = bench.run("./main", env={"LD_PRELOAD": bench.library, **env}).out.splitlines()
        equal(lines[0], bench.path("own name.heap"), "the file's name")
        equal(is_snapshot(bench, "own name.heap"), "program", "the reason")
        expect(lines[1].startswith(bench.path("main-")) and lines[1].endswith("-1.heap"), lines[1])
        is_snapshot(bench, lines[1])
        equal(lines[2:], ["no: /no/such/directory/x: No such file or directory (os error 2)",
                          "no: a file's name cannot contain a NUL", "1000"], "the rest")
    for env in ({}, {"LD_PRELOAD": bench.library}):
        lines = bench.run("./main", env=env).out.splitlines()
        expect(all(line.startswith("no: ") and "heaptap run" in line for line in lines[:3]), lines)
        equal(lines[4], "1000", "the last line")
