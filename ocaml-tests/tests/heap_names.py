"""`heaptap heap` names variables and types without being told where the compiler's files are.

Each program plants a table in a variable. The row that holds most is that variable, by its name and type, wherever and
however the program was built; where the files are not there, or are of another build, no name is claimed.
"""

import json
import os
import shutil
from pathlib import Path

from bench import Skip, equal, expect, needs_from_distribution, scenario
from heap_types import tool

TABLE = """
type entry = { key : int; text : string }
let table : (int, entry) Hashtbl.t = Hashtbl.create 16
let fill n = for i = 1 to n do Hashtbl.replace table i { key = i; text = String.make 50 'x' } done
"""
HIDDEN = "val fill : int -> unit\n"
MAIN = "let () = %s.fill 20000\n"


def environment(bench, **more):
    """What discovery sees: the compiler under test is on the PATH, behind others."""
    path = os.environ["PATH"]
    if "/" in bench.compiler:
        path += ":" + str(Path(bench.compiler).parent)
    return {"PATH": path, "XDG_CACHE_HOME": bench.path("cache"), **more}


def write(bench, files):
    for name, text in files.items():
        path = bench.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def compile_in(bench, directory, *arguments, compiler="ocamlopt"):
    (bench.directory / directory).mkdir(exist_ok=True)
    bench.run(tool(bench, compiler), *arguments, under=("env", "-C", bench.path(directory)))


def by_hand(bench, directory, *options, compiler="ocamlopt", files=("store.ml", "main.ml"), program="prog"):
    write(bench, {f"{directory}/store.ml": TABLE, f"{directory}/main.ml": MAIN % "Store"})
    compile_in(bench, directory, "-g", *options, *files, "-o", program, compiler=compiler)


def snapshot(bench, program, name="names.heap"):
    settings = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": bench.path(name)}
    path = program if os.path.isabs(program) else bench.path(program)
    bench.run(path, env=settings)


def heap(bench, *options, name="names.heap", where="elsewhere", env=(), verb="heap"):
    """The figures, asked for from a directory that has nothing to do with the program."""
    (bench.directory / where).mkdir(exist_ok=True)
    result = bench.run(bench.heaptap, verb, bench.path(name), *options, "--json", "-n", 0,
                       env={**environment(bench), **dict(env)}, under=("/usr/bin/env", "-C", bench.path(where)))
    return json.loads(result.out)


def top(figures):
    return figures["table"]["rows"][0]["name"]


def expect_name(bench, name, *places, **how):
    """Expects the row that holds most to have this name, from files in these places. Returns the figures."""
    figures = heap(bench, **how)
    equal(top(figures), name, f"the variable that holds most; {figures.get('type_files')}")
    found = figures["type_files"]
    for place in places:
        expect(any(place in found["directory"] for found in found["places"]), f"{place} is not in {found}")
    return figures


def expect_none(bench, *words, **how):
    """Expects that no name is claimed, and that these words say why."""
    figures = heap(bench, **how)
    expect("field" in top(figures), f"{top(figures)} is claimed: {figures['type_files']}")
    said = figures["type_files"]["text"] + "\n".join(figures.get("types", {}).get("notes", ()))
    for word in words:
        expect(word in said, f"{word!r} is not in {said!r}")


STORE = "Store.table : (int, Store.entry) Hashtbl.t"


@scenario
def compiled_by_hand(bench):
    by_hand(bench, "project", "-bin-annot")
    snapshot(bench, "project/prog")
    figures = expect_name(bench, STORE, "project")
    equal(figures["types"]["notes"], [], "notes")
    found = figures["type_files"]
    equal(found["typed"], found["modules"], f"modules with types: {found}")
    # In words, and in the other verbs.
    text = bench.run(bench.heaptap, "heap", "names.heap", env=environment(bench)).out
    expect("types        of " in text and "from project" in text, text)
    grown = bench.run(bench.heaptap, "heap-diff", "names.heap", "names.heap", "--by", "type", env=environment(bench)).out
    expect("types     of " in grown, grown)
    none = heap(bench, "--types", "none")
    expect("type_files" not in none and "types" not in none and "field" in top(none), f"{none}")


@scenario
def interfaces_alone(bench):
    """Without -bin-annot: exported variables have names, what an interface hides has none."""
    by_hand(bench, "open")
    snapshot(bench, "open/prog")
    figures = expect_name(bench, STORE, "open")
    expect("Store" in figures["type_files"]["without_types"], f"{figures['type_files']}")
    write(bench, {"closed/store.mli": HIDDEN})
    by_hand(bench, "closed", files=("store.mli", "store.ml", "main.ml"))
    snapshot(bench, "closed/prog")
    expect_none(bench, "only .cmi: ", "Store")
    write(bench, {"abstract/store.mli": "type t\nval table : t\nval fill : int -> unit\n"})
    write(bench, {"abstract/store.ml": TABLE.replace("let fill", "type t = (int, entry) Hashtbl.t\nlet fill"),
                  "abstract/main.ml": MAIN % "Store"})
    compile_in(bench, "abstract", "store.mli", "store.ml", "main.ml", "-o", "prog")
    snapshot(bench, "abstract/prog")
    expect_name(bench, "Store.table : Store.t", "abstract")


@scenario
def stripped_and_moved(bench):
    """The program says in its data where its sources were, and which interfaces they had."""
    by_hand(bench, "project", "-bin-annot")
    bench.run("strip", "project/prog")
    snapshot(bench, "project/prog")
    expect_name(bench, STORE, "project")
    (bench.directory / "bin").mkdir()
    shutil.move(bench.path("project/prog"), bench.path("bin/prog"))
    snapshot(bench, "bin/prog")
    # Nothing says where the project is; who is in it finds it.
    expect_none(bench, "no .cmt", "--types DIRECTORY")
    expect_name(bench, STORE, ".", where="project")
    # An absolute name does.
    source = bench.path("project/store.ml")
    compile_in(bench, "project", "-g", "-bin-annot", source, "main.ml", "-o", "../bin/prog2", "-I", bench.path("project"))
    snapshot(bench, "bin/prog2")
    expect_name(bench, STORE, "project")


@scenario
def sources_in_directories(bench):
    write(bench, {"project/src/deep/store.ml": TABLE, "project/bin/main.ml": MAIN % "Store"})
    compile_in(bench, "project", "-g", "-bin-annot", "-I", "src/deep", "src/deep/store.ml", "bin/main.ml", "-o", "bin/prog")
    snapshot(bench, "project/bin/prog")
    expect_name(bench, STORE, "src/deep")


@scenario
def dune(bench):
    """Several libraries and programs, wrapped and not; the program where it was built, and installed elsewhere."""
    needs_from_distribution("dune")
    write(bench, {
        "project/dune-project": "(lang dune 2.9)\n",
        "project/lib/dune": "(library (name lib))\n",
        "project/lib/store.ml": TABLE,
        "project/lib/store.mli": HIDDEN,
        "project/flat/dune": "(library (name flat) (wrapped false))\n",
        "project/flat/queue_of_all.ml": "let waiting = ref []\nlet fill n = for i = 1 to n do waiting := (i, float i) :: !waiting done\n",
        "project/bin/dune": "(executables (names one two) (modes exe byte) (libraries lib flat))\n",
        "project/bin/one.ml": MAIN % "Lib.Store",
        "project/bin/two.ml": MAIN % "Queue_of_all" + "let own = ref []\nlet () = for i = 1 to 50000 do own := Some i :: !own done\n",
    })
    bench.run("dune", "build", "--root", ".", under=("env", "-C", bench.path("project")))
    built = "project/_build/default/bin"
    name = "Lib.Store.table : (int, Lib.Store.entry) Hashtbl.t"
    snapshot(bench, f"{built}/one.exe")
    figures = expect_name(bench, name, "lib/.lib.objs")
    expect(figures["type_files"]["text"].find("(dune)") > 0, f"{figures['type_files']}")
    snapshot(bench, f"{built}/two.exe")
    figures = expect_name(bench, "Dune.exe.Two.own : int option list ref", "bin/.one.eobjs", "flat/.flat.objs")
    names = {row["name"] for row in figures["table"]["rows"]}
    expect("Queue_of_all.waiting : (int * float) list ref" in names, f"{names}")
    (bench.directory / "installed").mkdir()
    shutil.copy(bench.path(f"{built}/one.exe"), bench.path("installed/one"))
    bench.run("strip", "installed/one")
    snapshot(bench, "installed/one")
    expect_name(bench, name, "lib/.lib.objs", where="project/bin")
    shutil.copy(bench.path("installed/one"), bench.path("project/one"))
    snapshot(bench, "project/one")
    expect_name(bench, name, "lib/.lib.objs")


@scenario
def ocamlbuild(bench):
    needs_from_distribution("ocamlbuild")
    write(bench, {"project/src/store.ml": TABLE, "project/main.ml": MAIN % "Store"})
    bench.run("ocamlbuild", "-I", "src", "-tags", "debug,bin_annot", "main.native", under=("env", "-C", bench.path("project")))
    snapshot(bench, "project/main.native")
    figures = expect_name(bench, STORE, "_build/src")
    expect("(ocamlbuild)" in figures["type_files"]["text"], f"{figures['type_files']}")


@scenario
def installed_packages(bench):
    """A package that OCAMLPATH names."""
    by_hand(bench, "packages/store", "-bin-annot", "-c", files=("store.ml",), program="store.cmx")
    write(bench, {"project/main.ml": MAIN % "Store"})
    compile_in(bench, "project", "-I", "../packages/store", "../packages/store/store.cmx", "main.ml", "-o", "../prog")
    snapshot(bench, "prog")
    expect_none(bench, "no .cmt")
    expect_name(bench, STORE, "packages/store", env={"OCAMLPATH": bench.path("packages")})


@scenario
def the_same_names(bench):
    """Two projects with modules of the same names, in one directory above: each program has its own."""
    other = TABLE.replace("text : string", "text : string; more : float").replace("'x' }", "'x'; more = 1.5 }")
    by_hand(bench, "one", "-bin-annot", program="../one.exe")
    write(bench, {"two/store.ml": other, "two/main.ml": MAIN % "Store"})
    compile_in(bench, "two", "-g", "-bin-annot", "store.ml", "main.ml", "-o", "../two.exe")
    for project, other in [("one", "two"), ("two", "one")]:
        snapshot(bench, f"{project}.exe")
        expect_name(bench, STORE, ".", where=project)
        # The files of the other one are seen, and are not taken.
        expect_none(bench, "another build", where=other)


@scenario
def another_build(bench):
    """The code was compiled again, and its interface is the same: nothing is claimed for certain."""
    write(bench, {"project/store.mli": HIDDEN})
    by_hand(bench, "project", "-bin-annot", files=("store.mli", "store.ml", "main.ml"))
    snapshot(bench, "project/prog")
    expect_name(bench, STORE, "project")
    write(bench, {"project/store.ml": TABLE.replace("let fill", "let more x = x + 1\nlet fill")})
    compile_in(bench, "project", "-g", "-bin-annot", "-c", "store.ml")
    figures = heap(bench)
    expect("(guessed)" in top(figures) or "field" in top(figures), top(figures))
    expect("compiled again" in "".join(figures["types"]["notes"]), f"{figures['types']}")
    # The whole program was built again after the snapshot.
    compile_in(bench, "project", "-g", "-bin-annot", "store.mli", "store.ml", "main.ml", "-o", "prog")
    figures = heap(bench)
    expect("written after the snapshot" in "".join(figures["types"]["notes"]), f"{figures['types']}")
    expect("(guessed)" in top(figures), top(figures))
    (bench.directory / "project/prog").unlink()
    figures = heap(bench)
    expect("cannot be read" in "".join(figures["types"]["notes"]), f"{figures['types']}")
    expect("(guessed)" in top(figures), top(figures))


@scenario
def bytecode(bench):
    by_hand(bench, "project", "-bin-annot", compiler="ocamlc")
    snapshot(bench, "project/prog")
    expect_name(bench, STORE, "project")
    if not (bench.directory / "project/prog").read_bytes().startswith(b"#!"):
        return
    (bench.directory / "bin").mkdir()
    shutil.move(bench.path("project/prog"), bench.path("bin/prog"))
    snapshot(bench, "bin/prog")
    expect_name(bench, STORE, ".", where="project")


@scenario
def the_stock_compiler(bench):
    """The distribution's, stripped; its types are those of its libraries."""
    needs_from_distribution("ocamlopt.opt")
    if not Path("/usr/lib/ocaml/compiler-libs").is_dir():
        raise Skip("the compiler's libraries are not installed")
    functions = "\n".join(f"let f{i} x = List.map (fun y -> x + y * {i}) [ x; {i} ]" for i in range(400))
    write(bench, {"big.ml": functions})
    settings = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": bench.path("names.heap")}
    bench.run("ocamlopt.opt", "-c", "big.ml", env=settings)
    figures = heap(bench)
    names = {row["name"] for row in figures["table"]["rows"]}
    expect("X86_proc.asm_code : X86_ast.asm_line list ref" in names, f"{sorted(names)[:20]}")
    expect("(package)" in figures["type_files"]["text"], f"{figures['type_files']}")


@scenario
def the_compiler_is_missing(bench):
    by_hand(bench, "project", "-bin-annot")
    snapshot(bench, "project/prog")
    nowhere = {"PATH": bench.path("elsewhere"), "HOME": bench.path("elsewhere")}
    if Path("/usr/bin/ocaml").exists() and "/" not in bench.compiler and not os.environ.get("OCAML"):
        return
    expect_none(bench, "is not on the PATH", "--ocaml PROGRAM", env=nowhere)
    figures = heap(bench, "--ocaml", tool(bench, "ocaml") if "/" in bench.compiler else shutil.which("ocaml"), env=nowhere)
    equal(top(figures), STORE, "with --ocaml")


@scenario
def kept_for_the_next_time(bench):
    """What the compiler said is kept by what it read; damage and changes are noticed, others cannot read it."""
    by_hand(bench, "project", "-bin-annot")
    snapshot(bench, "project/prog")
    cache = bench.directory / "cache/heaptap/types"
    expect_name(bench, STORE)
    files = list(cache.iterdir())
    equal(len(files), 1, "files that are kept")
    equal([oct(path.stat().st_mode & 0o777) for path in [cache, *files]], ["0o700", "0o600"], "modes")
    # A program that is not the compiler any more is not asked.
    said = files[0].read_bytes()
    expect_name(bench, STORE)
    equal([path.name for path in cache.iterdir()], [files[0].name], "files after the second time")
    files[0].write_bytes(said.replace(b"table", b"tablE"))
    expect_name(bench, STORE)
    equal(files[0].read_bytes(), said, "the file after it was damaged")
    files[0].write_bytes(b"")
    expect_name(bench, STORE)
    os.utime(bench.directory / "project/store.cmt")
    expect_name(bench, STORE)
    equal(len(list(cache.iterdir())), 2, "files after the .cmt was touched")
    cache.chmod(0o777)
    expect_name(bench, STORE)
    equal(len(list(cache.iterdir())), 2, "files of a directory that others may write")


@scenario
def files_of_others(bench):
    """A file that others may write is not read unless it is named."""
    by_hand(bench, "project", "-bin-annot")
    snapshot(bench, "project/prog")
    for path in (bench.directory / "project").glob("*.cm*"):
        path.chmod(0o666)
    expect_none(bench, "belongs to another user, or others may write it")
    figures = heap(bench, "--types", bench.path("project"), "--ocaml", tool(bench, "ocaml"))
    equal(top(figures), STORE, "with --types")
