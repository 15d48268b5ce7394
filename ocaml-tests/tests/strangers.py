"""Who else may be on the control socket: other users, garbage, and programs that leave it.

HEAPTAP_GARBAGE says how many lines of garbage are sent: 2,000, and 100,000 in `make test-long`.
"""

import os
import random
import socket
import subprocess
import time

from bench import Skip, equal, expect, family, scenario
from commands import LONG, Asked, asked, wait_for
from sessions import switch, words

GARBAGE = int(os.environ.get("HEAPTAP_GARBAGE", 2000))

# Words of which lines are made. Names of files are added, in the scenario's own directory.
WORDS = [b"snapshot", b"status", b"flush", b"start", b"stop", b"mark", b"rotate", b"rate", b"budget", b"ok", b"error",
         b"wait=0", b"wait=0.01", b"wait=", b"wait=-1", b"wait=99999999999999999999", b"wait=3600.1", b"sync", b"strings=4096",
         b"strings=4097", b"rotate=64KB", b"rotate=asked", b"rotate=", b"rotate=%zz", b"keep=2", b"keep=0", b"keep=-1",
         b"keep=18446744073709551616", b"1", b"0", b"1e-7", b"1e-400", b"nan", b"inf", b"-0", b"0x1", b"%", b"%00", b"%zz", b"%0a",
         b"relative", b"\x00", b"\xff\xfe", b"\r", b"\t", b"\x1b[2J", b"A" * 2000]


def garbage(chance, directory):
    """A line, or less, or more."""
    kind = chance.random()
    if kind < 0.2:
        return chance.randbytes(chance.choice([0, 1, 7, 100, 1000, 20000]))
    parts = [chance.choice(WORDS) for _ in range(chance.randrange(6))]
    if kind < 0.5:
        parts.insert(min(len(parts), 1), f"{directory}/{chance.choice(['a', 'b.ctf', '%25p.ctf', 's%2', 'no/such', ''])}".encode())
    line = b" ".join(parts)
    if kind > 0.8 and line and b"/" not in line:
        at = chance.randrange(len(line))
        line = line[:at] + chance.randbytes(chance.randrange(3)) + line[at + 1:]
    # What could be a name elsewhere on this machine is none.
    if b"/" in line and str(directory).encode() not in line:
        line = line.replace(b"/", b"_")
    return line + chance.choice([b"\n", b"\n", b"\n", b"\r\n", b"", b"\nstatus\n"])


@scenario
def garbage_harms_nothing(bench):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    place = bench.directory / "garbage"
    place.mkdir()
    said = None
    with asked(bench, "busy", program="switched", prints=b"all right\n", err=said) as program:
        waiting = []
        for number in range(GARBAGE):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(LONG)
            client.connect(str(program.socket))
            try:
                client.sendall(garbage(chance, place))
                if chance.random() < 0.5:
                    client.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            waiting.append(client)
            # Some wait for their answer, and some go away.
            if len(waiting) > 20:
                gone = waiting.pop(0)
                if chance.random() < 0.02:
                    try:
                        gone.shutdown(socket.SHUT_WR)
                        expect(gone.recv(1 << 16)[:4] in (b"ok\n", b"ok f", b"ok p", b"ok", b"erro", b"wait"), "no answer")
                    except ConnectionResetError:
                        pass
                    except OSError as error:
                        expect(not isinstance(error, TimeoutError), "no answer")
                gone.close()
            if number % 500 == 0:
                expect(program.ask("status").startswith("ok pid="), "the status")
        for client in waiting:
            client.close()
        deadline = time.monotonic() + LONG
        while not program.ask("stop wait=60").startswith("error the program is not traced"):
            expect(time.monotonic() < deadline, "it is traced for ever")
        switch(bench, program, count=2)
        descriptors = len(os.listdir(f"/proc/{program.pid}/fd"))
        expect(descriptors < 20, f"{descriptors} open files are left")


def as_nobody(*command):
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *map(str, command)],
                          capture_output=True, text=True, timeout=LONG)


ASK = """import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(sys.argv[2].encode() + b"\\n")
print(client.makefile().read())"""


@scenario
def another_user_gets_nothing(bench):
    """Neither as the socket is, nor if somebody has opened its directory to all."""
    if os.geteuid() != 0:
        raise Skip("only root can be another user")
    if as_nobody("true").returncode != 0:
        raise Skip("setpriv cannot change the user here")
    with asked(bench, "busy", program="switched", prints=b"all right\n") as program:
        def ask(line):
            return as_nobody("python3", "-c", ASK, program.socket, line)

        bench.directory.chmod(0o755)
        (bench.directory / "run").chmod(0o755)
        expect("PermissionError" in ask("status").stderr, "the directory is open")
        (bench.directory / "run/heaptap").chmod(0o755)
        expect("PermissionError" in ask("status").stderr, "the socket is open")
        program.socket.chmod(0o777)
        for line in ("status", f"start {bench.path('x.ctf')} 1", f"snapshot {bench.path('x.heap')}", "stop", "\xff"):
            answer = ask(line)
            equal(answer.stdout.strip(), "error the process belongs to the user 0; only that user and root may ask", line)
        equal([path.name for path in bench.directory.iterdir() if path.name.startswith("x.")], [], "files")
        expect("state=idle" in program.ask("status"), program.ask("status"))
        program.socket.chmod(0o600)
        (bench.directory / "run/heaptap").chmod(0o700)


@scenario
def root_commands_the_program_of_another_user(bench):
    """Whose files are that user's."""
    if os.geteuid() != 0:
        raise Skip("only root can be another user")
    if as_nobody("true").returncode != 0:
        raise Skip("setpriv cannot change the user here")
    bench.directory.chmod(0o755)
    place = bench.directory / "theirs"
    place.mkdir(mode=0o700)
    os.chown(place, 65534, 65534)
    shown = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-r", bench.library])
    if shown.returncode != 0:
        raise Skip("another user cannot read the library here")
    environment = bench.environment({"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1, "XDG_RUNTIME_DIR": str(place)})
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", bench.program("switched"), "busy"]
    with subprocess.Popen(command, env=environment, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            equal(process.stdout.readline(), b"ready\n", "its first line")
            program = Asked(bench, process)
            program.bench = type("Place", (), {"directory": bench.directory})
            socket_file = place / "heaptap" / f"{process.pid}.sock"
            wait_for(socket_file)

            def ask(line):
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(LONG)
                    client.connect(str(socket_file))
                    client.sendall(line.encode() + b"\n")
                    return client.makefile().read().splitlines()[-1]

            words(ask(f"start {place}/x.ctf 1 wait={LONG}"))
            words(ask(f"stop wait={LONG}"))
            equal((place / "x.ctf").stat().st_uid, 65534, "whose trace it is")
            equal((place / "x.ctf").stat().st_mode & 0o777, 0o600, "its mode")
            out, _ = process.communicate(b"\n", timeout=LONG)
            equal((process.returncode, out), (0, b"all right\n"), "its end")
        finally:
            process.kill()


@family({"that_listens": (1,), "that_does_not": (0,)})
def a_daemon(bench, forks):
    """It leaves its parent, and closes every descriptor: it has a socket of its own if it is asked to."""
    (bench.directory / "run").mkdir(mode=0o700)
    env = bench.environment({"LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1, "HEAPTAP_LISTEN_FORKS": forks,
                             "XDG_RUNTIME_DIR": bench.path("run")})
    with subprocess.Popen([bench.program("switched"), "daemon"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pid = int(process.stdout.readline())
        equal(process.stdout.readline(), b"ready\n", "its line")
        program = Asked(bench, type("Daemon", (), {"pid": pid}))
        equal(process.wait(LONG), 0, "the end of its first process")
        if forks:
            wait_for(program.socket)
            switch(bench, program, count=3)
        else:
            time.sleep(0.5)
            equal([path.name for path in bench.directory.glob("run/heaptap/*")], [], "sockets")
        process.stdin.write(b"\n")
        process.stdin.close()
        equal(process.stdout.read(), b"all right\n", "what it prints")
    deadline = time.monotonic() + LONG
    while list(bench.directory.glob("run/heaptap/*")):
        expect(time.monotonic() < deadline, "its socket is left")
        time.sleep(0.02)
