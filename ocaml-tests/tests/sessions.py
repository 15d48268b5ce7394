"""Traces of a running program, started and stopped by commands: `heaptap start`, `stop`, `mark`, `ps`."""

import json
import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

from bench import HERE, Failure, equal, expect, family, scenario
from commands import LONG, Asked, asked, wait_for

# How often a trace is started and stopped in each program.
CYCLES = int(os.environ.get("HEAPTAP_SESSIONS", 10))


def changed(pid):
    """How many bytes of the process's code are not those of the files."""
    count = {}
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            addresses, access, offset, _, _, *path = line.split()
            if "x" not in access or not path or not path[0].startswith("/"):
                continue
            start, end = (int(address, 16) for address in addresses.split("-"))
            with open(path[0], "rb") as file:
                file.seek(int(offset, 16))
                in_file = file.read(end - start)
            memory.seek(start)
            in_memory = memory.read(len(in_file))
            # The memory of a process that has ended meanwhile is empty.
            if not in_memory and in_file:
                raise ProcessLookupError(f"process {pid} has ended")
            if in_memory != in_file:
                count[path[0]] = sum(a != b for a, b in zip(in_memory, in_file))
    return count


def words(answer):
    expect(answer.startswith("ok"), answer)
    return dict(word.split("=", 1) for word in answer.split()[1:])


def is_exact(stopped):
    """At rate 1 every word is a sample."""
    equal(int(stopped["samples"]), int(stopped["words"]), "sampled words and the collector's own count")


def switch(bench, program, count=CYCLES, check=is_exact):
    """Starts and stops traces of a program at random moments."""
    equal(changed(program.pid), {}, "changed code before the first start")
    chance = random.Random(seed := random.randrange(1 << 30))
    print(f"seed {seed}")
    for number in range(count):
        file = bench.path(f"{number}.ctf")
        started = words(program.ask(f"start {file} 1 wait={LONG}"))
        equal((started["file"], started["rate"]), (file, "1"), "what was started")
        expect(changed(program.pid), "no code is changed while it is traced")
        time.sleep(chance.uniform(0, 0.02))
        stopped = words(program.ask(f"stop wait={LONG}"))
        equal(changed(program.pid), {}, f"changed code after stop {number}")
        equal(stopped["lost"], "0", "lost blocks")
        check(stopped)
        bench.sound(f"{number}.ctf")
        os.unlink(file)


WAYS = {"fifty_threads": ("fifty", "switched"), "fifty_threads_bytecode": ("fifty", "switched.byte"),
        "resized_heaps": ("resizes", "switched"), "resized_heaps_bytecode": ("resizes", "switched.byte"),
        "forking": ("forking", "switched"), "forking_bytecode": ("forking", "switched.byte"),
        "busy": ("busy", "switched"), "threads": ("threads", "switched"), "overflow": ("overflow", "switched"),
        "busy_bytecode": ("busy", "switched.byte"), "threads_bytecode": ("threads", "switched.byte"),
        "busy_debug": ("busy", "switched.debug")}


@family(WAYS)
def started_and_stopped(bench, way, name):
    """Again and again in one program, which prints the same as ever. Nothing is left of it."""
    # The debug runtime says what it does, which nobody reads before the end: not all of it.
    is_debug = name.endswith(".debug")
    env, err = ({"OCAMLRUNPARAM": "v=0"}, None) if is_debug else ({}, "")
    with asked(bench, way, program=name, prints=b"all right\n", env=env, err=err) as program:
        switch(bench, program, count=2)
        descriptors = os.listdir(f"/proc/{program.pid}/fd")
        switch(bench, program)
        equal(len(os.listdir(f"/proc/{program.pid}/fd")), len(descriptors), "open files")


@scenario
def blocked(bench):
    """A program that waits in the kernel."""
    with asked(bench, "idle") as program:
        switch(bench, program, count=3)


@scenario
def from_the_beginning(bench):
    """A trace that the environment has asked for is stopped, and others follow."""
    env = {"HEAPTAP": bench.path("first.ctf"), "HEAPTAP_RATE": 1}
    with asked(bench, "busy", program="switched", prints=b"all right\n", env=env) as program:
        expect(changed(program.pid), "no code is changed while it is traced")
        answer = program.ask(f"start {bench.path('second.ctf')}")
        expect(answer.startswith("error the program is traced already, into ") and "first.ctf" in answer, answer)
        expect("state=tracing rate=1 " in program.ask("status"), program.ask("status"))
        words(program.ask("mark some text"))
        words(program.ask("stop"))
        bench.sound("first.ctf")
        # _exit and execve.
        equal([path for path in changed(program.pid) if "libc" not in path], [], "changed code")
        words(program.ask(f"start {bench.path('second.ctf')} 0.5"))
        expect("state=tracing rate=0.5 " in program.ask("status"), program.ask("status"))
    bench.sound("second.ctf")


@scenario
def refusals(bench):
    """Each says why, and leaves neither a file nor a change."""
    with asked(bench, "busy", program="switched", prints=b"all right\n") as program:
        for line, why in [("stop", "the program is not traced"),
                          ("mark text", "is not traced, so nothing is marked"),
                          ("start /no/such/directory/x.ctf", "cannot make the trace file /no/such/directory/x.ctf"),
                          (f"start {bench.path('a.ctf')} 1e-9", "no sampling rate: from 1e-7"),
                          ("start a.ctf", "must be absolute")]:
            answer = program.ask(line)
            expect(answer.startswith("error ") and why in answer, f"{line}: {answer}")
        (bench.directory / "text").write_text("mine")
        expect("is not a trace" in program.ask(f"start {bench.path('text')}"), "a file of another kind")
        equal((bench.directory / "text").read_text(), "mine", "the file")
        equal(changed(program.pid), {}, "changed code")
        equal([path.name for path in bench.directory.glob("*.ctf*")], [], "files")


@scenario
def a_profile_of_its_own(bench):
    with asked(bench, "profile", program="switched", prints=b"all right\n") as program:
        file = bench.path("a.ctf")
        answer = program.ask(f"start {file}")
        expect(answer.startswith("error ") and "a profile of its own: have it call Gc.Memprof.stop" in answer, answer)
        equal([path.name for path in bench.directory.glob("*.ctf*")], [], "files")
        equal(changed(program.pid), {}, "changed code")
        program.process.stdin.write(b"\n")
        program.process.stdin.flush()
        equal(program.process.stdout.readline(), b"ready\n", "its next line")
        switch(bench, program, count=2)


@scenario
def a_client_that_goes(bench):
    """What it has asked for is given up, where the program cannot be interrupted."""
    with asked(bench, "computes", 5) as program:
        for _ in range(3):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(program.socket))
                client.sendall(f"start {bench.path('a.ctf')} wait=60\n".encode())
                time.sleep(0.1)
        # Where the loop polls, a trace may have begun before.
        program.ask("stop")
        start = time.monotonic()
        answer = program.ask(f"start {bench.path('b.ctf')} wait=0.5")
        expect(time.monotonic() - start < 3, "the clients that have gone are waited for")
        if answer.startswith("error"):
            expect("within 0.5 s" in answer, answer)
            equal([path.name for path in bench.directory.glob("*.ctf*")], [], "files")


@scenario
def the_tool(bench):
    """`run --listen`, `ps`, `start`, `mark`, `flush`, `stop`."""
    env = {"XDG_RUNTIME_DIR": bench.path("run")}

    def tool(*arguments, code=0):
        return bench.run(bench.heaptap, *arguments, env=env, code=code)

    # Programs of others may listen on this machine: this one has a name of its own.
    name = f"switched-{os.getpid()}"
    shutil.copy(bench.program("switched"), bench.path(name))
    with asked(bench, "busy", program=bench.path(name), prints=b"all right\n", run=[bench.heaptap, "run", "--listen", "--"]) as program:
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(bench.path("run/heaptap/999999999.sock"))
        [listed] = [one for one in json.loads(tool("ps", "--json").out) if one.get("program") == name]
        equal((listed["state"], listed["file"], listed["sessions"]), ("idle", "", "yes"), "ps")
        expect(not (bench.directory / "run/heaptap/999999999.sock").exists(), "the name of a socket is left")
        program.pid = listed["pid"]
        equal(changed(program.pid), {}, "changed code")
        said = tool("start", name, "-o", "%e.ctf", "-r", "0.5").out
        equal(said, f"{bench.path(f'{name}.ctf')}: began, at rate 0.5\n", "start")
        tool("mark", program.pid, "100% done")
        tool("flush", program.pid)
        [row] = [line.split() for line in tool("ps").out.splitlines() if f" {name} " in line]
        expect("tracing" in row and "0.5" in row, row)
        expect("traced already" in tool("start", program.pid, code=2).err, "a second start")
        said = tool("stop", program.pid, "--timeout", LONG).out
        expect(said.startswith(f"{bench.path(f'{name}.ctf')}: ") and "has allocated" in said, said)
        expect("not traced" in tool("stop", name, code=2).err, "a second stop")
        expect("takes commands" in tool("stop", "unheard-of", code=2).err, "another program")
        expect("100% done" in tool("probes", f"{name}.ctf").out, "the mark")
        bench.sound(f"{name}.ctf")


@scenario
def forked_children(bench):
    """They take commands of their own if they are asked to."""
    (bench.directory / "run").mkdir(mode=0o700)
    for asks in (1, 0):
        env = {"HEAPTAP_LISTEN_FORKS": asks}
        program = subprocess.Popen([bench.program("switched"), "forks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=bench.environment({"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1,
                                                          "XDG_RUNTIME_DIR": bench.path("run"), **env}))
        try:
            other = Asked(bench, type("Child", (), {"pid": int(program.stdout.readline())}))
            equal(program.stdout.readline(), b"ready\n", "its line")
            parent = Asked(bench, program)
            if asks:
                wait_for(other.socket)
                expect(f"ok pid={other.pid} " in other.ask("status"), other.ask("status"))
                for _ in range(2):
                    switch(bench, other, count=2)
                    switch(bench, parent, count=2)
            else:
                time.sleep(0.5)
                expect(not other.socket.exists(), "the child listens")
            out, _ = program.communicate(b"\n", timeout=LONG)
            equal((program.returncode, out), (0, b"all right\n"), "its end")
        finally:
            program.kill()


@family({"native": ("ocamlopt", "cmxa"), "bytecode": ("ocamlc", "cma", "-custom")})
def by_the_program_itself(bench, compiler, suffix, *more):
    """`Heaptap.command`."""
    prefix = bench.compiler.removesuffix("ocamlc")
    bench.run("make", "-s", "-C", HERE.parent / "ocaml", f"BUILD={bench.path('library')}", f"BIN={prefix}")
    (bench.directory / "main.ml").write_text("""let print line =
  print_endline (match Heaptap.command line with Ok words -> "ok " ^ words | Error reason -> "no: " ^ reason)
let work () = for _ = 1 to 10 do ignore (Sys.opaque_identity (List.init 500 string_of_int)) done
let () =
  print "stop"; print ("start " ^ Sys.argv.(1) ^ " 1"); work (); print "mark half"; print "flush"; print "stop";
  print ("start " ^ Sys.argv.(1) ^ " 1"); work ()
""")
    bench.run(prefix + compiler, "-g", "-I", "library", *more, f"heaptap.{suffix}", "main.ml", "-o", "main")
    env = {"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1, "XDG_RUNTIME_DIR": bench.path("")}
    lines = bench.run("./main", bench.path("a.ctf"), env=env).out.splitlines()
    equal(lines[0], "no: the program is not traced", "stop")
    expect(lines[1].startswith("ok file=") and lines[2:4] == ["ok ", "ok "], lines)
    is_exact(words(lines[4]))
    expect(lines[5].startswith("ok file=") and lines[5].split()[1].endswith("a.ctf.1"), lines)
    bench.sound("a.ctf")
    bench.sound("a.ctf.1")
    lines = bench.run("./main", bench.path("b.ctf")).out.splitlines()
    expect(all(line.startswith("no: ") and "heaptap run" in line for line in lines), lines)


@scenario
def a_program_that_never_allocates(bench):
    with asked(bench, "never", program="switched", prints=b"all right\n") as program:
        switch(bench, program, count=3)


@scenario
def a_program_that_becomes_another(bench):
    """By `exec`, with the same number. Followed, the next image listens, and knows nothing of the trace before."""
    with asked(bench, "execs", 5, 5, program="switched", prints=b"all right\n", env={"HEAPTAP_FOLLOW": 1}) as program:
        answers = []
        for number in range(200):
            try:
                answers.append(program.ask(f"start {bench.path('x.ctf')} 1 wait={LONG}"))
                time.sleep(0.03)
                answers.append(program.ask(f"stop wait={LONG}"))
            except (ConnectionError, FileNotFoundError, Failure):
                # Between two images.
                time.sleep(0.01)
            if len(answers) > 60:
                break
        deadline = time.monotonic() + LONG
        while True:
            try:
                expect("state=idle" in program.ask("status"), program.ask("status"))
                break
            except (ConnectionError, FileNotFoundError):
                # The image before has left its name.
                expect(time.monotonic() < deadline, "the last image does not listen")
                time.sleep(0.02)
        odd = [answer for answer in answers if not answer.startswith("ok ") and "not traced" not in answer
               and "traced already" not in answer and "the program exits" not in answer
               # While it is replaced, the kernel lets it have no more threads.
               and "cannot start a thread" not in answer]
        equal(odd, [], "odd answers")
        # It may have been the image before the last one that answered: each has a stack elsewhere.
        image = None
        while image != (image := Path(f"/proc/{program.pid}/stat").read_text().split()[27]):
            time.sleep(1)
        switch(bench, program, count=1)
    for path in bench.directory.glob("x.ctf*"):
        if path.suffix not in (".probes",):
            # What was traced when the image was replaced is cut short, and sound.
            check = subprocess.run([bench.heaptap, "check", "--strict", path], capture_output=True, text=True)
            # The kernel ends the writer thread, which may be inside a write.
            is_cut = check.returncode == 1 and "the file ends inside a packet" in check.stderr
            expect(check.returncode == 0 or is_cut, f"{path.name}: {check.stdout[-500:]}{check.stderr[-500:]}")


@family({"native": ("switched", "plugin.cmxs"), "bytecode": ("switched.byte", "plugin.cmo")})
def plugins_between_traces(bench, name, plugin):
    """What is loaded after a stop is known to the next trace, and what is loaded while a trace is taken."""
    with asked(bench, "plugins", program=name, prints=b"all right\n") as program:
        for number in range(6):
            if number % 2:
                words(program.ask(f"start {bench.path(f'{number}.ctf')} 1 wait={LONG}"))
            program.process.stdin.write(bench.program(plugin).encode() + b"\n")
            program.process.stdin.flush()
            equal(program.process.stdout.readline(), f"{number + 1}\n".encode(), "its line")
            if number % 2 == 0:
                words(program.ask(f"start {bench.path(f'{number}.ctf')} 1 wait={LONG}"))
            time.sleep(0.1)
            stopped = words(program.ask(f"stop wait={LONG}"))
            bench.sound(f"{number}.ctf")
            totals = json.loads(bench.run(bench.heaptap, "report", "--json", "--top", "0", bench.path(f"{number}.ctf")).out)["totals"]
            # A bytecode plugin is read through a channel, whose buffer is outside the collector's heap.
            outside = round(totals["external"]["bytes"] / 8)
            equal(int(stopped["samples"]), int(stopped["words"]) + outside, "sampled words")
            sites = bench.run(bench.heaptap, "report", "--top", "100", "--metric", "allocated", bench.path(f"{number}.ctf")).out
            expect("Plugin.build" in sites, f"the plugin's function has no name in trace {number}: {sites}")
            equal(changed(program.pid), {}, "changed code")
