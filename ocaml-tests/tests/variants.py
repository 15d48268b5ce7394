"""Other ways to link the same program, and other runtimes of the same version."""

import os
import shutil
import subprocess

from bench import HERE, Skip, expect, family, scenario
from exact import counted


def compile_young(bench, *arguments, output="young"):
    for name in ["check.ml", "young.ml"]:
        shutil.copy(HERE / "programs" / name, bench.directory)
    bench.run("ocamlfind", "ocamlopt", "-g", "-w", "-a", *arguments, "check.ml", "young.ml", "-o", output)


@family({"no_pie": ("-ccopt", "-no-pie"), "pic_runtime": ("-runtime-variant", "_pic"),
         "instrumented_runtime": ("-runtime-variant", "i"), "full_relro": ("-ccopt", "-Wl,-z,relro,-z,now"),
         "stripped": ("-ccopt", "-s")})
def linked(bench, *arguments):
    compile_young(bench, *arguments)
    counted(bench, bench.trace(bench.path("young")))


@family({"pie": ("-pie",), "no_pie": ("-no-pie",)})
def shared_runtime(bench, how):
    """The runtime is a library, and the program is C."""
    where = subprocess.run(["ocamlfind", "ocamlc", "-where"], capture_output=True, text=True).stdout.strip()
    if not os.path.exists(f"{where}/libasmrun_shared.so"):
        raise Skip("there is no libasmrun_shared.so")
    compile_young(bench, "-output-obj", output="program.o")
    (bench.directory / "main.c").write_text(
        "#include <caml/callback.h>\nint main(int argc, char **argv) { caml_main(argv); return 0; }\n")
    bench.run("gcc", how, f"-I{where}", "main.c", "program.o", f"-L{where}", "-lasmrun_shared", f"-Wl,-rpath,{where}",
              "-lm", "-ldl", "-o", "young")
    counted(bench, bench.trace(bench.path("young")))
    expect(any(frame.startswith("Young.combined@young.ml:") for frame in bench.frames()), "no frame has a place")


@scenario
def static(bench):
    """Says what to do."""
    compile_young(bench, "-ccopt", "-static")
    result = bench.run(bench.heaptap, "run", "-o", "trace.ctf", "--", "./young",
                       env={"HEAPTAP_LIBRARY": bench.library})
    expect("statically linked" in result.err, f"said {result.err!r}")


@family({"native": ("young",), "bytecode": ("young.byte",)})
def flat(bench, program):
    """With one frame each place has its exact number of words."""
    result = bench.run(bench.heaptap, "run", "-r", "1", "--frames", "1", "-o", "trace.ctf", "--",
                       bench.program(program), env={"HEAPTAP_LIBRARY": bench.library})
    counted(bench, result)
    by_place = {}
    for alloc in bench.allocs():
        place = alloc.frames.split(" ")[-1].split(";")[-1]
        by_place[place] = by_place.get(place, 0) + alloc.samples
    # `Some (x, [| x; x |])` is 2 + 3 + 3 words, 3,000 times, and each part has its place.
    parts = [words for place, words in by_place.items() if place.startswith("Young.combined@young.ml:10:")]
    # Bytecode makes the function itself there too: a closure, once.
    expect(sum(parts) % 3_000 < 10, f"words of a function that was called 3,000 times: {sum(parts)}")
    expect(sum(parts) >= 3_000 * 20, f"words by place: {parts}")
