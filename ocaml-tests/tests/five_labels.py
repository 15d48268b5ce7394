"""Labels in domains, threads and fibers."""

import shutil

from bench import HERE, family
from labels import compile_library, labels
from scenarios import SCENARIOS

# The scenarios of `labels` are for the distribution's OCaml.
SCENARIOS[:] = [(name, function) for name, function in SCENARIOS if not name.startswith("labels.")]


@family({"native": ("ocamlopt", "cmxa"), "debug": ("ocamlopt", "cmxa", "-runtime-variant", "d"),
         "no_pie": ("ocamlopt", "cmxa", "-ccopt", "-no-pie"), "bytecode": ("ocamlc", "cma", "-custom")})
def everywhere(bench, compiler, archive, *arguments):
    compile_library(bench, f"BIN={bench.ocaml}/bin/")
    for name in ("labels.ml", "labels_five.ml"):
        shutil.copy(HERE / "programs5" / name, bench.directory)
    libraries = [f"{name}.{archive}" for name in ("unix", "threads", "heaptap", "heaptap_fibers")]
    bench.run(bench.ocaml / "bin" / compiler, "-g", "-w", "-a", "-I", "+unix", "-I", "+threads", "-I", "library",
              *arguments, *libraries, "labels.ml", "labels_five.ml", "-o", "labels")
    env = {"HEAPTAP_FRAMES": 3, "OCAMLRUNPARAM": "v=0"}
    bench.run("./labels", env=env)
    labels(bench, bench.trace("./labels", env=env))
