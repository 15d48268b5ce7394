"""`heaptap run`: one command, and the program's behaviour is unchanged."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import threading

from bench import Skip, equal, expect, family, scenario


def run(bench, *arguments, **how):
    env = {"HEAPTAP_LIBRARY": bench.library, **dict(how.pop("env", {}))}
    return bench.run(bench.heaptap, "run", *arguments, env=env, **how)


LINE = r"heaptap: \S*trace\.ctf: (\d+) samples?, about (\d+) words ± [\d.]+% allocated, 0 dropped, [\d.]+ \w+(?:, and [\d.]+ \w+ in \.probes)?\n"


@scenario
def traces(bench):
    result = run(bench, "-o", "trace.ctf", "-r", "1", "--", bench.program("young"))
    equal(result.out, bench.run("young").out, "what it printed")
    found = re.fullmatch(LINE, result.err)
    expect(found, f"said {result.err!r}")
    bench.sound()
    equal(int(found.group(1)), sum(alloc.samples for alloc in bench.allocs()), "samples")
    equal(found.group(1), found.group(2), "words at rate 1")


@scenario
def the_same_seed_gives_the_same_samples(bench):
    def samples(name, seed):
        run(bench, "-o", name, "-r", "0.01", "--seed", seed, "--", bench.program("young"))
        return [(alloc.id, alloc.length, alloc.samples, alloc.source) for alloc in bench.allocs(name)]

    first = samples("a.ctf", 7)
    expect(len(first) > 100, f"only {len(first)} samples")
    equal(samples("b.ctf", 7) == first, True, "the same seed")
    equal(samples("c.ctf", 8) == first, False, "another seed")


@family({"exit": ("exit", 3, ", 0 dropped"), "exception": ("exception", 2, ", 0 dropped"),
         "_exit": ("_exit", 5, ", ended by _exit or exec,"), "exec": ("exec", 3, ", ended by _exit or exec,"),
         "kill": ("kill", -signal.SIGKILL, ", ended abruptly")})
def ends_as_the_program_does(bench, how, code, said):
    result = run(bench, "-o", "trace.ctf", "-r", "1", "--", bench.program("endings"), how, code=code)
    expect(said in result.err, f"said {result.err!r}")
    bench.sound()


@family({"success": ("young", (), 2), "failure": ("endings", ("exit",), 3)})
def a_full_disk(bench, program, arguments, code):
    """No total is made up, and a program that succeeds does not hide the failure."""
    under = ["bash", "-c", 'ulimit -f 2; exec "$@"', "-"]
    result = run(bench, "-o", "trace.ctf", "-r", "1", "--", *under, bench.program(program), *arguments, code=code)
    said = re.search(r"cut short: .*could not be written.*; (\d+) of the (\d+) samples until then are in it", result.err)
    expect(said and "words" not in result.err, f"said {result.err!r}")
    expect(int(said.group(2)) > 1_000, f"only {said.group(2)} samples were taken")
    equal(sum(alloc.samples for alloc in bench.allocs()), int(said.group(1)), "samples in the file")
    check = subprocess.run([bench.heaptap, "check", "--strict", bench.path("trace.ctf")], capture_output=True)
    equal(check.returncode, 1, "the status of check --strict")


@scenario
def signals_pass_through(bench):
    command = [bench.heaptap, "run", "-o", bench.path("trace.ctf"), "--", bench.program("endings"), "term"]
    env = bench.environment({"HEAPTAP_LIBRARY": bench.library})
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        equal(process.stdout.readline(), b"ready\n", "the program's first line")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    equal(process.returncode, -signal.SIGTERM, "how it ended")


@scenario
def follows_children(bench):
    result = run(bench, "--follow", "-o", "f-%p.ctf", "-r", "1", "--", bench.program("endings"), "spawn", code=3)
    summary = re.fullmatch(rf"heaptap: 2 traces in {bench.directory}: (\d+) samples, about (\d+) words ± 0.00% allocated, "
                           rf"0 dropped, [\d.]+ \w+(?:, and [\d.]+ \w+ in \.probes)?\n(?:heaptap:   endings +\d+ samples  f-\d+\.ctf\n){{2}}heaptap: for details: heaptap report \S+\n",
                           result.err)
    expect(summary, f"said {result.err!r}")
    files = list(bench.directory.glob("f-*.ctf"))
    equal(len(files), 2, "files")
    samples = sum(alloc.samples for file in files for alloc in bench.allocs(file.name))
    equal((int(summary.group(1)), int(summary.group(2))), (samples, samples), "samples and words at rate 1")
    report = subprocess.run([bench.heaptap, "report", "--json", bench.directory], capture_output=True, check=True)
    equal(json.loads(report.stdout)["totals"]["samples"], samples, "samples in the report of the directory")
    result = run(bench, "--follow", "-o", "f.ctf", "--", bench.program("endings"), "spawn", code=2)
    expect("%p" in result.err, f"said {result.err!r}")


@family({"relative": ("tr/%e-%p.ctf",), "default": ()})
def files_are_where_run_was_started(bench, *name):
    """Although the program changes its directory before it starts others: one child, and one by exec."""
    (bench.directory / "tr").mkdir()
    (bench.directory / "elsewhere").mkdir()
    output = ("-o", *name) if name else ()
    run(bench, "--follow", *output, "-r", "1", "--", bench.program("endings"), "chdir", bench.path("elsewhere"), code=3)
    folder = bench.directory / ("tr" if name else ".")
    sidecars = list(folder.glob("endings-*.probes"))
    files = [file for file in folder.glob("endings-*.ctf*") if file not in sidecars]
    equal(len(files), 3, "files")
    expect(all(file.with_suffix("") in files for file in sidecars), f"sidecars without a trace: {sidecars}")
    for file in files:
        bench.sound(file.relative_to(bench.directory))
    equal(list((bench.directory / "elsewhere").iterdir()), [], "files in the program's directory")


@scenario
def a_relative_variable_is_the_programs_directory(bench):
    """HEAPTAP without the tool is an ordinary file name of the program's."""
    (bench.directory / "sub").mkdir()
    bench.run("sh", "-c", f"cd sub && exec {bench.program('young')}", env=bench.preload(HEAPTAP="trace.ctf"))
    bench.sound("sub/trace.ctf")


def reading(path, read):
    """A thread that opens the FIFO as soon as there is a writer, and reads from it."""

    def body():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            read(descriptor)
        finally:
            os.close(descriptor)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread


@family({"exit": ("exit", 3, " samples, about "), "_exit": ("_exit", 5, "its reader has the trace"),
         "kill": ("kill", -signal.SIGKILL, "its reader has the trace")})
def into_a_fifo(bench, how, code, says):
    """The tool ends with the program, and the reader has the whole trace."""
    os.mkfifo(bench.path("fifo"))
    # Open for reading all the time, so that the program finds a reader.
    held = os.open(bench.path("fifo"), os.O_RDONLY | os.O_NONBLOCK)
    received = []

    def read(descriptor):
        os.close(held)
        while data := os.read(descriptor, 65536):
            received.append(data)

    reader = reading(bench.path("fifo"), read)
    result = run(bench, "-o", "fifo", "-r", "1", "--", bench.program("endings"), how, code=code, timeout=30)
    reader.join(30)
    expect(not reader.is_alive(), "the reader sees no end")
    (bench.directory / "trace.ctf").write_bytes(b"".join(received))
    bench.sound()
    expect(says in result.err, f"said {result.err!r}")
    if how == "exit":
        equal(re.search(r"(\d+) samples", result.err).group(1), str(sum(a.samples for a in bench.allocs())), "samples")


@family({"at_once": (0, 20), "after_a_packet": (1, 3), "later": (100_000, 3)})
def a_fifo_whose_reader_goes_away(bench, enough, times):
    """The program goes on: it is not killed by SIGPIPE, whoever writes when the reader has gone."""
    expected = bench.run("young").out
    for _ in range(times):
        fifo = bench.directory / "fifo"
        fifo.unlink(missing_ok=True)
        os.mkfifo(fifo)

        # Open for reading until the thread is, so that the program finds a reader. With "at_once" it may find
        # none, or lose it between opening the FIFO and the first packet.
        held = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK) if enough else None

        def read(descriptor, held=held, left=enough):
            if held is not None:
                os.close(held)
            while left > 0 and (data := os.read(descriptor, left)):
                left -= len(data)

        reader = reading(fifo, read)
        result = run(bench, "-o", "fifo", "-r", "1", "--", bench.program("young"), timeout=60, code=None)
        equal(result.out, expected, "what it printed")
        # A trace that could not be opened, or not written to its end, is no success.
        cut_short = "Broken pipe" in result.err
        equal(result.code, 2 if cut_short or "not tracing" in result.err else 0, "how it ended")
        expect("heaptap: " in result.err and (cut_short or not enough), f"said {result.err!r}")
        expect("disk" not in result.err and "covers nothing" not in result.err, f"said {result.err!r}")
        expect(not cut_short or re.search(r"fifo: the trace is cut short: its reader has gone.* (\d+) samples? were taken", result.err),
               f"said {result.err!r}")
        if reader.is_alive():
            # It never found a writer: the program came first, and was not traced.
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
            reader.join(10)


@scenario
def a_trace_that_cannot_be_made(bench):
    """The program runs as usual, and `run` ends with 2 if the program ends with 0, as for a trace that is cut short."""
    result = run(bench, "-o", "no/such/directory/trace.ctf", "--", bench.program("young"), code=2)
    expect("no/such/directory/trace.ctf" in result.err and "not tracing" in result.err, f"said {result.err!r}")
    equal(result.out, bench.run("young").out, "what it printed")
    run(bench, "-o", "no/such/directory/trace.ctf", "--", bench.program("endings"), "exit", code=3)


@scenario
def standard_output_is_no_file(bench):
    """HEAPTAP=- is refused with a message, as `run -o -` is, and writes no file of that name."""
    result = bench.run("young", env={"LD_PRELOAD": bench.library, "HEAPTAP": "-"})
    expect("HEAPTAP=-: standard output belongs to the program" in result.err, f"said {result.err!r}")
    expect(not (bench.directory / "-").exists(), "there is a file called -")


@scenario
def a_file_size_limit_of_0(bench):
    """What is written on a thread of the program must not kill it by SIGXFSZ."""
    under = ["bash", "-c", 'ulimit -f 0; exec "$@"', "-"]
    result = run(bench, "-o", "trace.ctf", "-r", "1", "--", *under, bench.program("young"), code=2)
    expect(re.fullmatch(r"heaptap: cannot write \S*trace.ctf: File too large .*\nheaptap: there is no summary: .*\n",
                        result.err), f"said {result.err!r}")


@scenario
def nobody_reads_standard_error(bench):
    """A message that cannot be written does not end the program."""
    ours, theirs = os.pipe()
    os.close(ours)
    env = bench.environment(bench.preload(HEAPTAP_RATE="often"))
    process = subprocess.run([bench.program("young")], stdout=subprocess.PIPE, stderr=theirs, env=env)
    os.close(theirs)
    equal(process.returncode, 0, "how it ended")


@scenario
def a_signal_after_the_programs_end(bench):
    """Ends the tool, which here cannot print its last message: standard error is full."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    try:
        while True:
            os.write(theirs, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(theirs, True)
    command = [bench.heaptap, "run", "-o", bench.path("trace.ctf"), "--", "sh", "-c", "echo done"]
    env = bench.environment({"HEAPTAP_LIBRARY": bench.library})
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=env) as process:
        equal(process.stdout.readline(), b"done\n", "what it printed")
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        finally:
            process.kill()
    os.close(ours)
    os.close(theirs)
    equal(process.returncode, -signal.SIGTERM, "how it ended")


@scenario
def through_a_script(bench):
    result = run(bench, "-o", "trace.ctf", "-r", "0.01", "--", "sh", "-c", f"{bench.program('young')}; exit 4", code=4)
    expect(re.fullmatch(LINE, result.err), f"said {result.err!r}")


@scenario
def a_file_that_cannot_be_made(bench):
    """A message says so, and the program runs untraced."""
    result = run(bench, "-o", "none/trace.ctf", "--", bench.program("young"), code=2)
    equal(result.err, f"heaptap: cannot make the trace file {bench.path('none/trace.ctf')}: No such file or directory (os error 2); "
          "not tracing\n", "what it said")


@scenario
def not_ocaml(bench):
    result = run(bench, "-o", "trace.ctf", "--", "sh", "-c", "echo hello; exit 6", code=6)
    equal(result.out, "hello\n", "what it printed")
    expect("not a program that heaptap knows (OCaml " in result.err, f"said {result.err!r}")


@scenario
def static(bench):
    (bench.directory / "static.c").write_text("int main(void) { return 9; }\n")
    bench.run("gcc", "-static", "static.c", "-o", "static")
    result = run(bench, "--", "./static", code=9)
    expect("statically linked" in result.err, f"said {result.err!r}")


@scenario
def an_unknown_runtime(bench):
    """A program that looks like OCaml but is not runs unchanged."""
    (bench.directory / "fake.c").write_text(
        "void *Caml_state; int caml_memprof_main_ctx; void caml_alloc_shr(void) {}\nint main(void) { return 8; }\n")
    bench.run("gcc", "-rdynamic", "fake.c", "-o", "fake")
    result = run(bench, "-o", "trace.ctf", "--", "./fake", code=8)
    expect("its runtime has no usable caml_memprof_track_young" in result.err, f"said {result.err!r}")


@family({"5_4": ("caml_memprof_set_trigger", "no usable caml_memprof_sample_young"), "5_1": ("caml_domain_spawn", "5.0 to 5.2"),
         "4_11": ("caml_memprof_track_young", "4.10 or 4.11"), "4_08": ("caml_main", "older than")})
def another_version(bench, symbol, says):
    (bench.directory / "other.c").write_text(
        f"void caml_alloc_shr(void) {{}}\nvoid {symbol}(void) {{}}\nint main(void) {{ return 0; }}\n")
    bench.run("gcc", "-rdynamic", "other.c", "-o", "other")
    result = run(bench, "-o", "trace.ctf", "--", "./other", code=2)
    expect(says in result.err, f"said {result.err!r}")


@family({"unwinder": ("HEAPTAP_UNWINDER", "zzz", "`runtime`"), "follow": ("HEAPTAP_FOLLOW", "yes", "`1` or `0`"),
         "rate": ("HEAPTAP_RATE", "often", "a number from 1e-7 to 1"), "seed": ("HEAPTAP_SEED", "-1", "a whole number")})
def an_unknown_value_is_refused_by_name(bench, name, value, accepted):
    """Without the tool, too: the program runs untraced, and one line says why."""
    result = bench.run("young", env=bench.preload(**{name: value}))
    equal(result.out, bench.run("young").out, "what it printed")
    expect(re.fullmatch(f"heaptap: .*{name}={value} is not {re.escape(accepted)}.*correct or unset it; .*\n", result.err),
           f"said {result.err!r}")
    expect(not (bench.directory / "trace.ctf").exists(), "there is a trace")


@family({"v_25000": ("-v", 25_000), "v_300000": ("-v", 300_000), "d_10000": ("-d", 10_000)})
def a_memory_limit(bench, option, kib):
    """A program with little memory left runs untraced, and one line says so and how much would do."""
    under = ["bash", "-c", f'ulimit {option} {kib}; exec "$@"', "-"]
    untraced = bench.run("young", under=under)
    result = run(bench, "-o", "trace.ctf", "-r", "1", "--", *under, bench.program("young"), code=2)
    equal(result.out, untraced.out, "what it printed")
    said = re.fullmatch(rf"heaptap: this OCaml program is not traced: ulimit {option} {kib} leaves too little memory "
                        r"for tracing: set it to (\d+) or more; it runs untouched\n", result.err)
    expect(said, f"said {result.err!r}")
    enough = int(said.group(1)) + 1000
    run(bench, "-o", "trace.ctf", "-r", "1", "--", "bash", "-c", f'ulimit {option} {enough}; exec "$@"', "-",
        bench.program("young"))
    bench.sound()


@family({"not_ocaml": ("true",), "no_environment": ("env", "-i", "young"),
         "little_memory": ("bash", "-c", "ulimit -v 300000; exec young"), "no_file": ("young",), "few_descriptors": ("bash", "-c", "ulimit -n 20; exec young"),
         "unknown_name": ("sh", "-c", "young")})
def ran_but_not_traced(bench, *command):
    """One rule for all reasons: 2 in place of 0, the program's own status if that is not 0, and always with --keep-status."""
    reason = {"young": ("-o", "no/such/directory/trace.ctf"), "sh": ("--only", "absent")}.get(command[0], ())
    command = [word.replace("young", bench.program("young")) for word in command]
    for options, code in ((reason, 2), ((*reason, "--keep-status"), 0)):
        result = run(bench, *options, "--", *command, code=code)
        expect(result.err.count("heaptap: ") == 1, f"said {result.err!r}")
    run(bench, *reason, "--", "sh", "-c", '"$@"; exit 4', "-", *command, code=4)
    equal(list(bench.directory.glob("**/*.ctf*")), [], "files")


@scenario
def a_full_disk_keeps_the_status_if_asked(bench):
    under = ["bash", "-c", 'ulimit -f 2; exec "$@"', "-"]
    result = run(bench, "--keep-status", "-o", "trace.ctf", "-r", "1", "--", *under, bench.program("young"))
    expect("cut short" in result.err, f"said {result.err!r}")


@scenario
def few_descriptors(bench):
    """The program keeps all that it has, and `run` needs none of them."""
    result = run(bench, "--", "bash", "-c", 'ulimit -n 6; exec "$@"', "-", bench.program("young"), code=2)
    equal(result.out, bench.run("young").out, "what it printed")
    said = re.fullmatch(r"heaptap: this OCaml program is not traced: ulimit -n 6 leaves too few descriptors for tracing: "
                        r"set it to (\d+) or more; it runs untouched\n", result.err)
    expect(said, f"said {result.err!r}")
    run(bench, "-o", "trace.ctf", "--", "bash", "-c", f'ulimit -n {said.group(1)}; exec "$@"', "-", bench.program("young"))
    bench.sound()
    within = ["bash", "-c", 'ulimit -n 5; exec "$@"', "-"]
    env = {"HEAPTAP_LIBRARY": bench.library}
    result = bench.run(bench.heaptap, "run", "--", bench.program("young"), env=env, under=within, code=2)
    equal(result.out, bench.run("young").out, "what it printed")
    expect("ulimit -n 5 leaves too few descriptors" in result.err, f"said {result.err!r}")


@family({"end_of_line": ("a\nb.ctf", r"a\x0ab.ctf"), "backslash": ("a\\nb.ctf", None)})
def a_name_with_any_byte(bench, name, shown):
    result = run(bench, "-o", name, "-r", "1e-2", "--", bench.program("young"))
    expect(re.match(r"heaptap: \S*" + re.escape(shown or r"a\\nb.ctf") + r": \d+ samples", result.err), f"said {result.err!r}")
    bench.sound(name)


@scenario
def a_long_name_has_a_sidecar(bench):
    name = "x" * 250
    result = run(bench, "-o", name, "-r", "1e-2", "--", bench.program("young"))
    expect(result.err.count("heaptap: ") == 1 and " samples, " in result.err, f"said {result.err!r}")
    equal(len(list(bench.directory.glob("*.probes"))), 1, "sidecars")
    bench.run(bench.heaptap, "report", "--timeline", name)


@scenario
def a_program_that_changes_its_root(bench):
    """The report is complete although its file cannot be opened by its name any more."""
    if os.geteuid() != 0:
        raise Skip("only root may change the root directory")
    (bench.directory / "root").mkdir()
    (bench.directory / "jailed.ml").write_text("""let work () = ignore (Sys.opaque_identity (List.init 10_000 string_of_int))
let () = work (); Unix.chroot "root"; Unix.chdir "/"; work ()
""")
    bench.run("ocamlopt", "-w", "-a", "unix.cmxa", "jailed.ml", "-o", "jailed")
    result = run(bench, "-o", "trace.ctf", "-r", "1", "--", "./jailed")
    expect(re.fullmatch(LINE, result.err), f"said {result.err!r}")
    bench.sound()


@scenario
def no_sidecar_that_says_nothing(bench):
    (bench.directory / "short.ml").write_text("let () = print_endline (String.concat \" \" [ \"a\"; \"b\" ])\n")
    bench.run("ocamlopt", "short.ml", "-o", "short")
    run(bench, "-o", "trace.ctf", "-r", "1", "--", "./short")
    equal([path.name for path in bench.directory.glob("trace.ctf*")], ["trace.ctf"], "files")


@scenario
def the_newest_trace_is_the_default(bench):
    """For the verbs that look at a trace, and said on standard error."""
    for name in ("old.ctf", "z.ctf", "new.ctf"):
        run(bench, "-o", name, "-r", "1e-2", "--", bench.program("young"))
    for verb in ("report", "leaks", "hot", "info", "top --once", "dump", "export --to folded", "report --timeline"):
        default = bench.run(bench.heaptap, *verb.split())
        expect(default.err.startswith("heaptap: new.ctf, the newest of 3 traces here\n"), f"{verb} said {default.err!r}")
        equal(default.out, bench.run(bench.heaptap, *verb.split(), "new.ctf").out, f"what {verb} printed")
    (bench.directory / "empty").mkdir()
    result = subprocess.run([bench.heaptap, "report"], cwd=bench.path("empty"), capture_output=True, text=True)
    equal(result.returncode, 2, "the status without a trace")
    expect("there is none in this directory" in result.stderr, f"said {result.stderr!r}")


@scenario
def what_to_try_next(bench):
    """On a terminal only, and not with --quiet."""
    def typed(*options):
        command = [bench.heaptap, "run", *options, "--", bench.program("young")]
        ours, theirs = pty.openpty()
        env = bench.environment({"HEAPTAP_LIBRARY": bench.library})
        subprocess.run(command, cwd=bench.directory, stdout=subprocess.DEVNULL, stderr=theirs, env=env, check=True)
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):
            while data := os.read(ours, 4096):
                said += data
        os.close(ours)
        return said.decode().replace("\r\n", "\n")

    said = typed()
    for verb in ("report", "leaks", "serve"):
        expect(re.search(rf"heaptap {verb}  +\w", said), f"{verb} is not in {said!r}")
    (bench.directory / "traces").mkdir()
    expect("heaptap report traces/t.ctf" in typed("-o", "traces/t.ctf"), "the file is not named")
    equal(typed("--quiet"), "", "with --quiet")
    equal(run(bench, "-q", "--", bench.program("young")).err, "", "with -q")
    expect("next:" not in run(bench, "--", bench.program("young")).err, "commands for a script")


@scenario
def nothing_to_run(bench):
    result = run(bench, "--", "/no/such/program", code=127)
    expect("/no/such/program" in result.err, f"said {result.err!r}")
    result = bench.run(bench.heaptap, "run", "--", "true", env={"HEAPTAP_LIBRARY": "/no/such/library.so"}, code=2)
    expect("HEAPTAP_LIBRARY" in result.err, f"said {result.err!r}")
