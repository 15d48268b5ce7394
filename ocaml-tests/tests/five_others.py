"""Unmodified programs of an OCaml 5 installation, stripped; versions that cannot be traced."""

import re
import subprocess

import compiling
from bench import HERE, expect, family, scenario


def stripped(bench, program):
    bench.run("strip", bench.ocaml / "bin" / program, "-o", bench.path(program))
    return bench.path(program)


@family({"rate_1e-5": (1e-5,), "rate_1e-3": (1e-3,), "rate_1": (1,)})
def ocamlopt_opt(bench, rate):
    compiling.the_same(bench, stripped(bench, "ocamlopt.opt"), rate)


@scenario
def ocamlopt_opt_with_an_error(bench):
    compiling.an_error(bench, stripped(bench, "ocamlopt.opt"))


@scenario
def ocamlrun(bench):
    """Bytecode under the interpreter of the installation."""
    for name in ("check_stubs.c", "check.ml", "team.ml", "trees.ml"):
        (bench.directory / name).write_text((HERE / "programs5" / name).read_text())
    (bench.directory / "main.ml").write_text("let () = print_int (Trees.run 3)\n")
    bench.run(bench.ocaml / "bin/ocamlc", "-g", "team.ml", "trees.ml", "main.ml", "-o", "main.byte")
    bench.same(bench.ocaml / "bin/ocamlrun", "main.byte", rate=1e-2)
    expect(any(frame.startswith("Trees.") for frame in bench.frames()), "no frames of the program")
    # babeltrace2 requires the events of a file to be in the order of time, but each domain has its own packets.
    bench.run(bench.heaptap, "recode", "--format", "2", "trace.ctf", "flat.ctf")
    bench.babeltrace("flat.ctf")


@scenario
def ocaml_5_1(bench):
    """Refused with a message; the program runs."""
    prefix = subprocess.run([HERE / "provide", "5.1.0"], capture_output=True, text=True, check=True).stdout.strip()
    interpreter = prefix + "/bin/ocamlrun"
    plain = bench.run(interpreter, "-version")
    traced = bench.run(bench.heaptap, "run", "-o", "trace.ctf", "--", interpreter, "-version",
                       env={"HEAPTAP_LIBRARY": bench.library}, code=2)
    expect(traced.out == plain.out, f"printed {traced.out!r}, should be {plain.out!r}")
    expect(re.search(r"5\.0 to 5\.2", traced.err), f"said {traced.err!r}")
    expect(not (bench.directory / "trace.ctf").exists(), "a file was made")
