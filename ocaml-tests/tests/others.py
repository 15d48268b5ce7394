"""Programs from the distribution, stripped, as they are."""

import shutil

from bench import Skip, equal, expect, family, scenario

MODULE = "".join(
    f"type t{i} = A{i} of int * t{i} | B{i} of {{ x : int; y : string }} [@@warning \"-37\"]\n"
    f"let rec f{i} n = function A{i} (m, t) -> (m + n) :: f{i} m t | B{i} {{ x; y }} -> [ x; String.length y; n ]\n"
    f"module M{i} = Map.Make (struct type t = int * string let compare = compare end)\n"
    f"let g{i} l = List.fold_left (fun m (k, v) -> M{i}.add k (Printf.sprintf \"%d %s\" v \"x\") m) M{i}.empty l\n"
    for i in range(60)
)


def needs(program):
    path = shutil.which(program)
    if not path:
        raise Skip(f"{program} is not installed")
    return path


@family({"rate_1e-5": (1e-5,), "rate_1e-3": (1e-3,), "rate_1": (1,)})
def ocamlopt_opt(bench, rate):
    compiler = needs("ocamlopt.opt")
    (bench.directory / "large.ml").write_text(MODULE)
    arguments = ["-c", "-g", "large.ml"]
    bench.run(compiler, *arguments)
    before = (bench.directory / "large.o").read_bytes(), (bench.directory / "large.cmx").read_bytes()
    bench.trace(compiler, *arguments, rate=rate)
    after = (bench.directory / "large.o").read_bytes(), (bench.directory / "large.cmx").read_bytes()
    expect(before == after, "it compiled something else when traced")
    if rate != 1:
        bench.babeltrace()
    if rate == 1e-3:
        expect(any("Optmain" in frame for frame in bench.frames()), "no frames of the compiler")


@scenario
def ocamlopt_opt_with_an_error(bench):
    compiler = needs("ocamlopt.opt")
    (bench.directory / "wrong.ml").write_text("let x : int = \"text\"\n")
    bench.same(compiler, "-c", "wrong.ml", code=2, rate=1e-2)


GRAMMAR = "%token <int> INT\n%token PLUS TIMES OPEN CLOSE EOF\n%left PLUS\n%left TIMES\n%start <int> main\n%type <int> expr\n%%\n" \
    "main: e = expr EOF { e }\nexpr: i = INT { i } | OPEN e = expr CLOSE { e }\n" \
    "| a = expr PLUS b = expr { a + b } | a = expr TIMES b = expr { a * b }\n"


@scenario
def menhir(bench):
    program = needs("menhir")
    (bench.directory / "grammar.mly").write_text(GRAMMAR)
    bench.run(program, "grammar.mly")
    before = (bench.directory / "grammar.ml").read_bytes()
    bench.same(program, "grammar.mly", rate=1e-2)
    equal((bench.directory / "grammar.ml").read_bytes(), before, "the parser it made")
    bench.babeltrace()


@scenario
def ocamllex(bench):
    program = needs("ocamllex.opt")
    rules = "".join(f"| \"word{i}\" ['0'-'9']* {{ {i} }}\n" for i in range(60))
    (bench.directory / "lexer.mll").write_text("rule token = parse\n" + rules + "| eof { 0 }\n")
    bench.same(program, "lexer.mll", rate=1e-2)
    bench.babeltrace()


@scenario
def ocamlbuild(bench):
    program = needs("ocamlbuild")
    bench.same(program, "-version", rate=1)
    bench.babeltrace()
