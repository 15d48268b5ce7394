"""Probes of domains."""

from bench import family
from probes import DOMAINS, THREADS, check_probes, compile_probed
from scenarios import SCENARIOS

# The scenarios of `probes` are for the distribution's OCaml.
SCENARIOS[:] = [(name, function) for name, function in SCENARIOS if not name.startswith("probes.")]


@family({"domains": (DOMAINS, "ocamlopt", "cmxa"), "threads": (THREADS, "ocamlopt", "cmxa"),
         "debug": (DOMAINS, "ocamlopt", "cmxa", "-runtime-variant", "d"), "bytecode": (DOMAINS, "ocamlc", "cma", "-custom")})
def every_kind(bench, main, compiler, archive, *arguments):
    compile_probed(bench, bench.ocaml / "bin" / compiler, archive, *arguments, main=main,
                   library=(f"BIN={bench.ocaml}/bin/",), include=("-I", "+unix", "-I", "+threads"))
    env = {"OCAMLRUNPARAM": "v=0"}
    bench.run("./probed", env=env)
    check_probes(bench, bench.trace("./probed", rate=1e-3, env={"HEAPTAP_TIMELINE": 1, **env}))
