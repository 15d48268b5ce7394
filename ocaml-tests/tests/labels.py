"""The label that a program sets is the outermost frame of what it allocates."""

import json
import shutil

from bench import HERE, equal, expect, needs_from_distribution, scenario


def expected(result):
    """The label of each block, by its size."""
    lines = [line.split(" ", 2) for line in result.out.splitlines() if line.startswith("label ")]
    return {int(size): name for _, size, name in lines}


def labels(bench, result):
    """Compares the labels in a trace with those that the program printed."""
    wanted, found = expected(result), {}
    for line in bench.run(bench.heaptap, "dump", "--json", "trace.ctf").out.splitlines():
        event = json.loads(line)
        if event["event"] == "alloc" and event["length"] in wanted:
            outermost = event["frames"][0]["locations"]
            first = outermost[0] if outermost else {"file": "", "definition": ""}
            found[event["length"]] = first["definition"] if first["file"] == "label" else ""
    equal(found, wanted, "labels by size")
    expect(len(wanted) > 30, f"only {len(wanted)} blocks")
    selected = bench.run(bench.heaptap, "report", "--json", "--label", "^GET /$", "trace.ctf").out
    expect("Labels" in selected and selected != bench.run(bench.heaptap, "report", "--json", "trace.ctf").out, f"--label selects {selected!r:.300}")


def compile_library(bench, *arguments):
    bench.run("make", "-s", "-C", HERE.parent / "ocaml", f"BUILD={bench.path('library')}", *arguments)


def write_program(bench):
    shutil.copy(HERE / "programs5/labels.ml", bench.directory)
    (bench.directory / "main.ml").write_text("let () = Labels.basics (); Labels.threads (); Labels.threads ()\n")


def compile_on_four(bench, compiler, suffix, *more):
    """Does not use ocamlfind, which knows the libraries of one compiler only."""
    compile_library(bench)
    write_program(bench)
    archives = [f"{name}.{suffix}" for name in ("unix", "threads", "heaptap")]
    bench.run(compiler, "-g", "-w", "-a", "-thread", "-I", "library", *more, *archives, "labels.ml", "main.ml", "-o", "labels")


@scenario
def native(bench):
    compile_on_four(bench, "ocamlopt", "cmxa")
    labels(bench, bench.trace("./labels", env={"HEAPTAP_FRAMES": 3}))


@scenario
def bytecode(bench):
    compile_on_four(bench, "ocamlc", "cma", "-custom")
    labels(bench, bench.trace("./labels", env={"HEAPTAP_FRAMES": 3}))


@scenario
def built_by_dune(bench):
    """The folder is copied into a dune project."""
    needs_from_distribution("dune")
    shutil.copytree(HERE.parent / "ocaml", bench.directory / "heaptap", ignore=shutil.ignore_patterns("_build"))
    (bench.directory / "dune-project").write_text("(lang dune 2.8)\n")
    write_program(bench)
    (bench.directory / "dune").write_text("""(executable
 (name main)
 (flags (:standard -w -a))
 (libraries heaptap-labels unix threads.posix))
""")
    bench.run("dune", "build", "--root", ".", "./main.exe")
    labels(bench, bench.trace("_build/default/main.exe", env={"HEAPTAP_FRAMES": 3}))


@scenario
def not_position_independent(bench):
    compile_on_four(bench, "ocamlopt", "cmxa", "-ccopt", "-no-pie")
    labels(bench, bench.trace("./labels", env={"HEAPTAP_FRAMES": 3}))
