"""The same program linked in other ways, and with other runtimes of the same version."""

import os
import shutil
import subprocess

from bench import HERE, Skip, equal, expect, family, scenario
from exact import counted
from flat import FLAT, words_of_lines


def copy_programs(bench, *names):
    for name in names:
        shutil.copy(HERE / "programs" / name, bench.directory)


def compile_young(bench, *arguments, output="young"):
    copy_programs(bench, "check.ml", "young.ml")
    bench.run("ocamlopt", "-g", "-w", "-a", *arguments, "check.ml", "young.ml", "-o", output)


@family({"no_pie": ("-ccopt", "-no-pie"), "pic_runtime": ("-runtime-variant", "_pic"),
         "instrumented_runtime": ("-runtime-variant", "i"), "full_relro": ("-ccopt", "-Wl,-z,relro,-z,now"),
         "stripped": ("-ccopt", "-s")})
def linked(bench, *arguments):
    compile_young(bench, *arguments)
    counted(bench, bench.trace(bench.path("young")))


@family({"pie": ("-pie",), "no_pie": ("-no-pie",)})
def shared_runtime(bench, how):
    """The runtime is a shared library, and the program is in C."""
    where = subprocess.run(["ocamlc", "-where"], capture_output=True, text=True).stdout.strip()
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
    """It runs, a message names the remedy, and the status says that there is no trace."""
    compile_young(bench, "-ccopt", "-static")
    result = bench.run(bench.heaptap, "run", "-o", "trace.ctf", "--", "./young",
                       env={"HEAPTAP_LIBRARY": bench.library}, code=2)
    expect("statically linked" in result.err and "sum " in result.out, f"said {result.err!r}, printed {result.out!r}")


@family({"native": ("flat", {20: 400 * 3}), "bytecode": ("flat.byte", {20: 400 * (2 + 3)}),
         "debug": ("flat.debug", {20: 400 * 3})})
def flat(bench, program, floats):
    """With one frame, at rate 1, the report by location has the exact number of words of each line.

    `floats` differs: bytecode boxes the float that native code keeps in a register."""
    result = bench.run(bench.heaptap, "run", "-r", "1", "--frames", "1", "-o", "trace.ctf", "--",
                       bench.program(program), env={"HEAPTAP_LIBRARY": bench.library})
    counted(bench, result)
    wanted = {**FLAT, **floats}
    equal(words_of_lines(bench, wanted), wanted, "words of each line")
