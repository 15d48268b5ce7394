"""heaptap_ocaml.o linked into programs, especially into static ones."""

import shutil

from bench import HERE, equal, expect, family, needs_from_distribution, scenario
from exact import counted
from variants import copy_programs

STATIC = ["-ccopt", "-static"]


def link(bench, compiler, program, *arguments):
    """Links a program with the object. Returns its path."""
    stubs = [f"{program}_stubs.c"] if program in ["callbacks", "endings"] else []
    copy_programs(bench, "check.ml", f"{program}.ml", *stubs)
    libraries = [f"{name}.{'cma' if 'ocamlc' in compiler else 'cmxa'}" for name in ["unix", "threads"]]
    bench.run(*compiler, "-g", "-w", "-a", "-thread", *libraries, "check.ml", *stubs, f"{program}.ml", bench.object,
              *arguments, "-o", program)
    return bench.path(program)


def asked(bench, **more):
    """The variables that request a trace, without the preloaded library."""
    variables = bench.preload(**more)
    del variables["LD_PRELOAD"]
    return variables


WAYS = {
    "static": (["ocamlopt"], *STATIC),
    "static_stripped": (["ocamlopt"], *STATIC, "-ccopt", "-s"),
    "dynamic": (["ocamlopt"],),
    "no_pie": (["ocamlopt"], "-ccopt", "-no-pie"),
    "debug_runtime_static": (["ocamlopt", "-runtime-variant", "d"], *STATIC),
    "bytecode": (["ocamlc", "-custom"],),
    "bytecode_static": (["ocamlc", "-custom"], *STATIC),
}


@family(WAYS)
def ways(bench, compiler, *arguments):
    program = link(bench, compiler, "young", *arguments)
    untraced = bench.run(program)
    expect(not list(bench.directory.glob("*.ctf")), "a trace was made that nobody asked for")
    traced = bench.run(program, env=asked(bench))
    bench.sound()
    equal(traced.out, untraced.out, "what it printed when traced")
    counted(bench, traced)
    expect(any(frame.startswith("Young.combined@young.ml:") for frame in bench.frames()), "no frame has a place")


@family({name: (name,) for name in "major marshalled threads exceptions weak callbacks".split()})
def static(bench, name):
    program = link(bench, ["ocamlopt"], name, *STATIC)
    untraced = bench.run(program)
    traced = bench.run(program, env=asked(bench))
    bench.sound()
    equal((traced.out, traced.err), (untraced.out, untraced.err), "what it said when traced")
    counted(bench, traced)


@scenario
def static_with_overflows(bench):
    program = link(bench, ["ocamlopt"], "overflow", *STATIC)
    result = bench.run(program, env=asked(bench, rate=0.3), under=["bash", "-c", 'ulimit -s 512; exec "$@"', "-"])
    bench.sound()
    equal(result.out.count("caught"), 20, "overflows caught")


@family({"static": STATIC, "dynamic": []})
def plugins_in_bytecode(bench, *arguments):
    """The pointers to the runtime's functions that load code are replaced in this case too."""
    copy_programs(bench, "check.ml", "plugin_interface.ml", "loader.ml")
    bench.run("ocamlc", "-custom", "-g", "-w", "-a", "dynlink.cma", "check.ml", "plugin_interface.ml", "loader.ml", bench.object,
              *arguments, "-o", "loader")
    result = bench.run(bench.path("loader"), bench.build / "plugin.cmo", env=asked(bench))
    bench.sound()
    counted(bench, result)
    expect(any(frame.startswith("Plugin.build@plugin.ml:1:") for frame in bench.frames()), "no frame of the plugin has a place")


@family({"static": STATIC, "dynamic": []})
def own_profile(bench, *arguments):
    """The runtime's own profiler is still in the program, and works while heaptap does not trace."""
    program = link(bench, ["ocamlopt"], "own_profile", *arguments)
    expect(bench.run(program).out.startswith("started\n"), "without a trace it cannot profile itself")
    traced = bench.run(program, env=asked(bench))
    equal(traced.out.splitlines()[0], "Gc.Memprof.start: heaptap is tracing this program", "Gc.Memprof.start")


@family({way: (way, code) for way, code in [("exit", 3), ("exception", 2), ("fork", 0), ("_exit", 5), ("exec", 3)]})
def endings(bench, way, code):
    program = link(bench, ["ocamlopt"], "endings", *STATIC)
    result = bench.run(program, way, env=asked(bench, name="t-%p.ctf"), code=code)
    files = [file.name for file in bench.directory.glob("*.ctf")]
    equal(len(files), 2 if way == "fork" else 1, "files")
    for file in files:
        bench.sound(file)
    if "counted" in result.out:
        counted(bench, result, files[0])


@scenario
def with_the_tool(bench):
    program = link(bench, ["ocamlopt"], "young", *STATIC, "-ccopt", "-s")
    result = bench.run(bench.heaptap, "run", "-o", "trace.ctf", "-r", "1", "--", program,
                       env={"HEAPTAP_LIBRARY": bench.library})
    expect(" samples, about " in result.err, f"said {result.err!r}")
    counted(bench, result)


@scenario
def linked_and_preloaded(bench):
    """With both the object and the library, one of them traces."""
    program = link(bench, ["ocamlopt"], "young")
    result = bench.run(program, env=bench.preload(HEAPTAP_FOLLOW=1))
    equal((sorted(file.name for file in bench.directory.glob("trace*")), result.err), (["trace.ctf"], ""), "files")
    bench.sound()
    counted(bench, result)


@scenario
def found_by_findlib(bench):
    """The documented ocamlfind command, with the files where `make install` puts them."""
    needs_from_distribution("ocamlfind")
    installed = bench.directory / "lib/heaptap"
    installed.mkdir(parents=True)
    shutil.copy(bench.object, installed)
    shutil.copy(HERE.parent / "crates/ocaml-object/META", installed)
    copy_programs(bench, "check.ml", "young.ml")
    bench.run("ocamlfind", "ocamlopt", "-package", "heaptap", "-linkpkg", "-g", "-w", "-a", *STATIC, "check.ml",
              "young.ml", "-o", "young", env={"OCAMLPATH": bench.directory / "lib"})
    counted(bench, bench.run(bench.path("young"), env=asked(bench)))


@scenario
def built_by_dune(bench):
    """The documented line for dune, in a static executable."""
    needs_from_distribution("dune")
    copy_programs(bench, "check.ml", "young.ml")
    (bench.directory / "dune-project").write_text("(lang dune 2.8)\n")
    (bench.directory / "dune").write_text(f"""(executable
 (name young)
 (libraries unix)
 (flags (:standard -w -a))
 (link_flags (-ccopt -static -ccopt {bench.object})))
""")
    bench.run("dune", "build", "--root", ".", "./young.exe")
    counted(bench, bench.run(bench.path("_build/default/young.exe"), env=asked(bench)))
