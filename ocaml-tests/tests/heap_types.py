"""Types of blocks in a heap snapshot are those that the program gave them.

The program prints how many blocks of each type it has made. Its own compiler reads the types from the .cmt files, which
`heaptap heap --types` asks for; the rest follows from the pointers in the snapshot.
"""

import json
import shutil
from pathlib import Path

from bench import HERE, equal, expect, scenario

SOURCES = ["typed_store.mli", "typed_store.ml", "typed.ml"]


def tool(bench, name):
    """A program of the compiler under test."""
    return str(Path(bench.compiler).with_name(name)) if "/" in bench.compiler else name


def build(bench, *options):
    """Compiles the program, and takes a snapshot as it exits. Returns what it printed."""
    for source in SOURCES:
        shutil.copy(HERE / "programs" / source, bench.directory)
    bench.run(tool(bench, "ocamlopt"), "-g", "-w", "-a", *options, *SOURCES, "-o", "typed")
    return snapshot(bench, "typed")


def snapshot(bench, program):
    settings = {"LD_PRELOAD": bench.library, "HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": bench.path("typed.heap")}
    return bench.run(bench.path(program), env=settings).out


def heap(bench, *options, code=0):
    return bench.run(bench.heaptap, "heap", "typed.heap", "--ocaml", tool(bench, "ocaml"), *options, code=code)


def by_type(bench, *directories):
    options = [word for directory in directories for word in ("--types", directory)]
    return json.loads(heap(bench, *options, "--by", "type", "-n", 0, "--json").out)


@scenario
def as_the_program_says(bench):
    printed = build(bench, "-bin-annot")
    found = by_type(bench, ".")
    rows = {row["name"]: row["first_reached"]["blocks"] for row in found["table"]["rows"]}
    truth = {name: int(blocks) for blocks, name in (line.split(" ", 1) for line in printed.splitlines())}
    equal({name: rows.get(name) for name in truth}, truth, "blocks by type")
    types = found["types"]
    expect(types["declared"]["blocks"] > 15 * types["guessed"]["blocks"], f"{types}")
    notes = "\n".join(types["notes"])
    expect("1 block does not look like the declared type, most often Typed.position" in notes, notes)
    expect("1 block has two declared types" in notes, notes)
    variables = json.loads(heap(bench, "--types", ".", "-n", 0, "--json").out)["table"]["rows"]
    names = {row["name"] for row in variables}
    for name in ["Typed_store.main : Typed_store.entry Typed_store.t", "Typed_store.secret : (string * int) list ref",
                 "Typed_store.Inner.tree : Typed_store.Inner.node ref", "Typed.shapes : Typed.shape list Typed.Table.t",
                 "Typed.shadowed : string ref", "Typed.shadowed : string ref list ref", "Typed.hidden : Typed.hidden ref"]:
        expect(name in names, f"{name} is not among {sorted(names)}")
    path = heap(bench, "--types", ".", "--path", "^Typed.Sealed.t$").out
    expect("Typed.Sealed" in path and "Typed.Sealed.t at 0x" in path, path)
    grown = bench.run(bench.heaptap, "heap-diff", "typed.heap", "typed.heap", "--types", ".", "--by", "type",
                      "--ocaml", tool(bench, "ocaml"), "--json").out
    equal(json.loads(grown)["tables"][0]["by"], "type", "what heap-diff compares")


@scenario
def only_interfaces(bench):
    """Without .cmt files the exported variables have types, and abstract types stay closed."""
    build(bench)
    found = by_type(bench, ".")
    rows = {row["name"]: row["first_reached"]["blocks"] for row in found["table"]["rows"]}
    expect("Typed_store.entry Typed_store.t (guessed)" in rows, f"{rows}")
    equal(rows.get("string Typed.rose"), 31, "blocks of a type that is exported")
    expect("Typed_store.entry" not in rows, "an abstract type is seen through")


@scenario
def another_build(bench):
    """The files are of a program with one variable more, in front: no type is declared by them."""
    build(bench, "-bin-annot")
    (bench.directory / "other").mkdir()
    for source in SOURCES:
        text = (HERE / "programs" / source).read_text()
        (bench.directory / "other" / source).write_text("let more = ref 1.5\n" + text if source == "typed.ml" else text)
    compiler = tool(bench, "ocamlopt")
    bench.run("sh", "-c", f"cd other && {compiler} -w -a -bin-annot -c {' '.join(SOURCES)}")
    types = by_type(bench, "other")["types"]
    expect(any("Typed" in note and "another build" in note for note in types["notes"]), f"{types}")


@scenario
def what_is_wrong(bench):
    """Each message names the file and the remedy."""
    build(bench, "-bin-annot")
    (bench.directory / "empty").mkdir()
    (bench.directory / "bad").mkdir()
    for name, contents in [("typed.cmt", b"Caml1999T001" + bytes(64)), ("typed_store.cmi", b"text"), ("other.cmt", b"")]:
        (bench.directory / "bad" / name).write_bytes(contents)
    for options, words in [
        (["--types", "empty"], ["empty", "no .cmt or .cmi", "-bin-annot"]),
        (["--types", "none", "--types", "."], ["--types none", "./none"]),
        (["--types", "nowhere"], ["nowhere", "no such directory"]),
        (["--types", "typed.ml"], ["typed.ml", "not a directory"]),
        (["--types", ".", "--ocaml", "no-such-ocaml"], ["no-such-ocaml", "no such program"]),
        (["--types", ".", "--ocaml", "true"], ["true -vnum", "toplevel"]),
        (["--by", "type", "--types", "none"], ["leave out --types none"]),
    ]:
        command = ["heap", "typed.heap", *options]
        if "--ocaml" not in options:
            command += ["--ocaml", tool(bench, "ocaml")]
        result = bench.run(bench.heaptap, *command, code=2)
        for word in words:
            expect(word in result.err, f"{word!r} is not in {result.err!r}")
    without = bench.run(bench.heaptap, "heap", "typed.heap", "--types", ".", env={"PATH": bench.path("empty")}, code=2)
    expect("no `ocaml` on the PATH" in without.err and "--ocaml" in without.err, without.err)
    # Files that cannot be read are named, and the others used.
    notes = "\n".join(by_type(bench, "bad", ".")["types"]["notes"])
    for words in ["bad/typed.cmt: written by another version of the compiler (Caml1999T001",
                  "bad/typed_store.cmi: not a file of the OCaml compiler"]:
        expect(words in notes, f"{words!r} is not in {notes!r}")
