"""A snapshot that fails does not disturb the program: it goes on to its own end, one line says what happened, and no
file is left, complete or not."""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from bench import Skip, equal, expect, family, scenario
from commands import LONG, asked, is_snapshot, wait_for

# Blocks whose snapshot has more than a page, and blocks that are walked for a few tenths of a second.
SOME, MANY = 200_000, 1_000_000

METHODS = {"copied": (), "synchronous": ("--sync",)}


def nothing_left(directory):
    equal([path.name for path in Path(directory).iterdir() if "heap" in path.name.replace("heaptap", "")], [], "files that are left")


def refused(program, *options, name="x.heap", says):
    result = program.snapshot("-o", name, *options, code=2)
    expect(says in result.err and "no snapshot was taken" in result.err, result.err)
    # On a busy machine it also says that it waits.
    lines = [line for line in result.err.splitlines() if "still busy with the snapshot" not in line]
    equal(len(lines), 1, f"lines of {result.err!r}")


@contextlib.contextmanager
def small_disk(bench):
    point = bench.directory / "small"
    point.mkdir()
    if os.geteuid() != 0:
        raise Skip("only root mounts a small file system")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", point], capture_output=True)
    if made.returncode != 0:
        raise Skip(f"cannot mount: {made.stderr.decode().strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=False)


@family(METHODS)
def full_disk(bench, *options):
    with small_disk(bench) as point:
        with asked(bench, "large", SOME) as program:
            refused(program, *options, name="small/x.heap", says="No space left on device")
            program.snapshot("-o", "y.heap", *options)
        is_snapshot(bench, "y.heap")
        equal(os.listdir(point), [], "files on the full disk")


@scenario
def full_disk_at_exit(bench):
    # In the walk or when its end is written, as much as fits before.
    said = re.compile(r"heaptap: no snapshot was taken \(exit\): (the file could not be written to its end|/.*/1\.heap): "
                      r"No space left on device \(os error 28\)\n")
    with small_disk(bench) as point:
        # At exit little may be alive, and its snapshot small.
        (point / "full").write_bytes(bytes(4096))
        with asked(bench, "large", SOME, env={"HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": point / "%n.heap"}, err=said):
            pass
        equal(os.listdir(point), ["full"], "files on the full disk")


@family({f"{name}_{limit}": (limit, *options) for name, options in METHODS.items() for limit in (0, 100, 4096)})
def file_limit(bench, limit, *options):
    """SIGXFSZ, which would end the program, is not delivered."""
    with asked(bench, "large", SOME) as program:
        subprocess.run(["prlimit", "--pid", str(program.pid), f"--fsize={limit}"], check=True)
        refused(program, *options, says="File too large")
    nothing_left(bench.directory)


@scenario
def killed_copy(bench):
    """A copy is killed while it walks the heap."""
    with asked(bench, "large", MANY) as program:
        with subprocess.Popen([bench.heaptap, "snapshot", str(program.pid), "-o", bench.path("x.heap")], stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=bench.environment({"XDG_RUNTIME_DIR": bench.path("run")})) as client:
            os.kill(copy_of(program.pid), signal.SIGKILL)
            _, err = client.communicate(timeout=LONG)
        equal(client.returncode, 2, f"exit status ({err})")
        expect(b"the copy of the process was killed; if memory is short, ask for a synchronous snapshot" in err, err)
        nothing_left(bench.directory)
        program.snapshot("-o", "y.heap")
        is_snapshot(bench, "y.heap")


def copy_of(process):
    """The copy of a process, once there is one."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                for child in map(int, children.read_text().split()):
                    if Path(f"/proc/{child}/comm").read_text() == "heaptap-copy\n":
                        return child
    raise Skip("this system does not show the children of a process")


@scenario
def killed_program(bench):
    """Nothing is left of a snapshot whose program is killed, where the file system has files without names."""
    try:
        os.close(os.open(bench.directory, os.O_TMPFILE | os.O_RDWR))
    except OSError as error:
        raise Skip(f"there are no files without names here: {error}") from error
    with asked(bench, "large", MANY, code=-signal.SIGKILL) as program:
        with subprocess.Popen([bench.heaptap, "snapshot", str(program.pid), "-o", bench.path("x.heap")], stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=bench.environment({"XDG_RUNTIME_DIR": bench.path("run")})) as client:
            copy = copy_of(program.pid)
            program.process.kill()
            client.communicate(timeout=LONG)
        equal(client.returncode, 2, "exit status")
        while os.path.exists(f"/proc/{copy}"):
            time.sleep(0.01)
    nothing_left(bench.directory)


@scenario
def no_memory(bench):
    """There are no addresses left for what the walk needs. The program itself needs no more while it waits."""
    with asked(bench, "idle") as program:
        # What is made once has its memory.
        program.snapshot("-o", "x.heap")
        (bench.directory / "x.heap").unlink()
        no_more_addresses(program)
        result = program.snapshot("-o", "x.heap", code=2)
        expect("memory" in result.err and result.err.count("\n") == 1, result.err)
        nothing_left(bench.directory)
        limit(program, "as", "unlimited")
        program.snapshot("-o", "y.heap")
        is_snapshot(bench, "y.heap")


@scenario
def no_memory_from_the_first(bench):
    """Nor for what is made once. Whether there is a snapshot depends on what `free` gives back; the program goes on."""
    with asked(bench, "idle") as program:
        wait_for(program.socket)
        program.ask("status")
        no_more_addresses(program)
        answer = program.ask(f"snapshot {bench.path('x.heap')} wait={LONG}")
        expect(answer.startswith(("ok ", "error ")), f"answered {answer!r}")
        limit(program, "as", "unlimited")
        program.snapshot("-o", "y.heap")
        is_snapshot(bench, "y.heap")


def no_more_addresses(program):
    pages = int(Path(f"/proc/{program.pid}/statm").read_text().split()[0])
    limit(program, "as", os.sysconf("SC_PAGESIZE") * pages)


def limit(program, what, soft):
    subprocess.run(["prlimit", "--pid", str(program.pid), f"--{what}={soft}:"], check=True)
