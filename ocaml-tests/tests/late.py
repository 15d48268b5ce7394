"""A C program opens a library that contains OCaml, after main."""

import os
import subprocess

from bench import HERE, Skip, equal, expect, family, scenario
from exact import counted
from variants import copy_programs


def runtime_folder():
    return subprocess.run(["ocamlc", "-where"], capture_output=True, text=True).stdout.strip()


def library(bench, kind):
    """Builds a library from the program `young`, and a host for it."""
    copy_programs(bench, "check.ml", "young.ml", "library_stubs.c")
    sources = ["-g", "-w", "-a", "check.ml", "young.ml", "library_stubs.c"]
    where = runtime_folder()
    if kind == "native":
        bench.run("ocamlopt", "-output-obj", "-runtime-variant", "_pic", *sources, "-o", "young.so")
    elif kind == "bytecode":
        bench.run("ocamlc", "-output-obj", "-runtime-variant", "_pic", *sources, "-o", "young.so")
    else:
        if not os.path.exists(f"{where}/libasmrun_shared.so"):
            raise Skip("there is no libasmrun_shared.so")
        bench.run("ocamlopt", "-output-obj", *sources[:-1], "-o", "program.o")
        bench.run("gcc", "-shared", "-fPIC", f"-I{where}", "program.o", "library_stubs.c", f"-L{where}",
                  "-lasmrun_shared", f"-Wl,-rpath,{where}", "-lm", "-ldl", "-o", "young.so")
    bench.run("gcc", HERE / "programs/library_host.c", "-pthread", "-ldl", "-o", "main")


@family({"native": ("native",), "bytecode": ("bytecode",), "shared_runtime": ("shared_runtime",),
         "with_threads": ("native", "threads")})
def opened(bench, kind, *arguments):
    library(bench, kind)
    untraced = bench.run("./main", "./young.so", *arguments)
    traced = bench.trace("./main", "./young.so", *arguments)
    equal(traced.out.splitlines()[0], untraced.out.splitlines()[0], "what it printed when traced")
    equal(traced.err, "", "what it said when traced")
    counted(bench, traced)
    if kind != "bytecode":
        # Bytecode in an object has no debug section.
        expect(any(frame.startswith("Young.combined@young.ml:") for frame in bench.frames()), "no frame has a place")


@scenario
def without_a_trace(bench):
    """Without a request for a trace, the library does nothing."""
    library(bench, "native")
    result = bench.run("./main", "./young.so", env={"LD_PRELOAD": bench.library})
    expect(result.out.startswith("sum "), f"printed {result.out!r}")


@scenario
def nobody_inherits(bench):
    """Programs that the host starts are not traced, although the environment could not be changed."""
    library(bench, "native")
    (bench.directory / "young.ml").write_text(
        'let () = ignore (Sys.command "echo HEAPTAP=$HEAPTAP MEMTRACE=$MEMTRACE")\n')
    bench.run("ocamlopt", "-output-obj", "-runtime-variant", "_pic", "young.ml", "library_stubs.c", "-o", "young.so")
    for arguments in [[], ["threads"]]:
        result = bench.trace("./main", "./young.so", *arguments)
        equal(result.out, "HEAPTAP= MEMTRACE=\n", "what a child sees of us")


@scenario
def with_the_tool(bench):
    library(bench, "native")
    result = bench.run(bench.heaptap, "run", "-o", "trace.ctf", "-r", "1", "--", "./main", "./young.so",
                       env={"HEAPTAP_LIBRARY": bench.library})
    expect(" samples, about " in result.err, f"said {result.err!r}")
    counted(bench, result)


@scenario
def an_unknown_runtime(bench):
    """A library that calls secure_getenv like OCaml, but is not: untouched; the next caller is examined."""
    (bench.directory / "main.c").write_text(
        "#define _GNU_SOURCE\n#include <stdlib.h>\n#include <stdio.h>\n"
        'int main(void) { puts(secure_getenv("OCAMLRUNPARAM")); puts(secure_getenv("HOME")); return 0; }\n')
    bench.run("gcc", "main.c", "-o", "main")
    result = bench.run("./main", env={**bench.preload(), "OCAMLRUNPARAM": "b", "HOME": "here"})
    equal((result.out, result.err), ("b\nhere\n", ""), "what it said")
