"""`heaptap run` of a command that only starts the program: that one is traced, and nothing else leaves a file."""

import re

from bench import equal, expect, family, needs_from_distribution, scenario
from tool import run

MAIN = """let () =
  let kept = List.init 20_000 string_of_int in
  ignore (Sys.opaque_identity (List.init 20_000 string_of_int));
  Printf.printf "%d\\n" (List.length kept);
  if Array.length Sys.argv > 1 then exit (int_of_string Sys.argv.(1))
"""


def project(bench):
    """A project whose program has another name when it is installed."""
    needs_from_distribution("dune")
    (bench.directory / "dune-project").write_text("(lang dune 2.8)\n(package (name listed))\n")
    (bench.directory / "dune").write_text("(executable (name main) (public_name listed) (package listed))\n")
    (bench.directory / "main.ml").write_text(MAIN)


def files(bench):
    """The traces and sidecars in the directory, without the numbers of processes."""
    return sorted({re.sub(r"-\d+", "", path.name) for path in bench.directory.glob("*.ctf*")} - {"main.exe.ctf.probes"})


def check_one(bench, result):
    """One trace, of main.exe, and the last line says so."""
    equal(files(bench), ["main.exe.ctf"], "files")
    traces = list(bench.directory.glob("*.ctf"))
    equal(len(traces), 1, "traces")
    bench.sound(traces[0].name)
    expect(re.search(rf"^heaptap: {traces[0]}: \d+ samples, ", result.err, re.M), f"said {result.err!r}")


@family({"exec": ("dune", "exec", "./main.exe"), "installed": ("dune", "exec", "listed"),
         "abbreviated": ("dune", "exe", "./main.exe"), "in_a_shell": ("sh", "-c", "true; dune exec ./main.exe; exit $?"),
         "timeout": ("timeout", "60", "nice", "env", "A=b", "dune", "exec", "--", "./main.exe"),
         "shell_inside": ("dune", "exec", "--", "sh", "-c", "./_build/default/main.exe; exit $?", "sh")})
def dune_exec(bench, *command):
    """Also while it builds the program, with compilers that are written in OCaml, and forks itself."""
    project(bench)
    if command[-1] == "sh":
        bench.run("dune", "build", "--root", ".", "./main.exe")
    result = run(bench, "-r", "1e-2", "--", *command, env={"DUNE_CACHE": "disabled"})
    equal(result.out, "20000\n", "what it printed")
    check_one(bench, result)


@scenario
def the_status_is_the_programs(bench):
    project(bench)
    result = run(bench, "-r", "1e-2", "--", "dune", "exec", "./main.exe", "7", code=7)
    check_one(bench, result)


@scenario
def a_program_that_is_not_built(bench):
    """No trace of the wrapper in its place, and a message that says what is missing."""
    project(bench)
    result = run(bench, "--", "dune", "exec", "./other.exe", code=1)
    expect("nothing was traced: dune started no program that heaptap knows" in result.err, f"said {result.err!r}")
    equal(files(bench), [], "files")


@family({"name": ("main",), "file": ("main.exe",), "path": ("./_build/default/main.exe",)})
def only(bench, name):
    """Through a build that is no wrapper, of all programs that it runs."""
    project(bench)
    (bench.directory / "dune").write_text(
        "(executable (name main))\n(rule (alias go) (action (run ./main.exe)))\n")
    result = run(bench, "-r", "1e-2", "--only", name, "--", "dune", "build", "--root", ".", "@go",
                 env={"DUNE_CACHE": "disabled"})
    check_one(bench, result)


@scenario
def only_the_wrapper(bench):
    project(bench)
    run(bench, "-o", "dune.ctf", "--only", "dune", "--", "dune", "exec", "./main.exe")
    bench.sound("dune.ctf")
    expect(any("Dune" in frame for frame in bench.frames("dune.ctf")), "no function of dune is in the trace")


@scenario
def only_what_is_not_there(bench):
    """Ends with 2, and says what there was instead."""
    project(bench)
    result = run(bench, "--only", "absent", "--", "dune", "exec", "./main.exe", code=2)
    expect(re.fullmatch(r"heaptap: nothing was traced: no traceable program called absent was started; there were .*dune.*main\.exe.*\n",
                        result.err), f"said {result.err!r}")
    equal(files(bench), [], "files")


@scenario
def ocamlfind_is_looked_through(bench):
    needs_from_distribution("ocamlfind")
    (bench.directory / "main.ml").write_text(MAIN)
    run(bench, "-o", "%e.ctf", "--", "ocamlfind", "ocamlopt", "-c", "main.ml")
    equal([path.name for path in bench.directory.glob("*.ctf")], ["ocamlopt.opt.ctf"], "traces")


@scenario
def follow_says_which_is_which(bench):
    project(bench)
    (bench.directory / "main.ml").write_text(
        f"let () = ignore (Sys.opaque_identity (List.init 9 succ)); exit (Sys.command {{|{bench.program('endings')} exit|}})\n")
    result = run(bench, "--follow", "-r", "1", "--", "dune", "exec", "./main.exe", code=3)
    for program in ("main.exe", "endings"):
        expect(re.search(rf"^heaptap:   {program} +\d+ samples  {program}-\d+\.ctf$", result.err, re.M),
               f"{program} is not in {result.err!r}")
    equal(len(list(bench.directory.glob("*.ctf"))), 2, "traces")
