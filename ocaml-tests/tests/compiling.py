"""Scenarios for every traced compiler."""

from bench import expect

MODULE = "".join(
    f"type t{i} = A{i} of int * t{i} | B{i} of {{ x : int; y : string }} [@@warning \"-37\"]\n"
    f"let rec f{i} n = function A{i} (m, t) -> (m + n) :: f{i} m t | B{i} {{ x; y }} -> [ x; String.length y; n ]\n"
    f"module M{i} = Map.Make (struct type t = int * string let compare = compare end)\n"
    f"let g{i} l = List.fold_left (fun m (k, v) -> M{i}.add k (Printf.sprintf \"%d %s\" v \"x\") m) M{i}.empty l\n"
    for i in range(60)
)


def the_same(bench, compiler, rate):
    """It compiles a large module to the same code as untraced."""
    (bench.directory / "large.ml").write_text(MODULE)
    arguments = ["-c", "-g", "large.ml"]
    bench.run(compiler, *arguments)
    before = (bench.directory / "large.o").read_bytes(), (bench.directory / "large.cmx").read_bytes()
    bench.same(compiler, *arguments, rate=rate)
    after = (bench.directory / "large.o").read_bytes(), (bench.directory / "large.cmx").read_bytes()
    expect(before == after, "it compiled something else when traced")
    if rate != 1:
        bench.babeltrace()
    if rate == 1e-3:
        expect(any("Optmain" in frame for frame in bench.frames()), "no frames of the compiler")


def an_error(bench, compiler):
    """It reports the same error as untraced."""
    (bench.directory / "wrong.ml").write_text("let x : int = \"text\"\n")
    bench.same(compiler, "-c", "wrong.ml", code=2, rate=1e-2)
