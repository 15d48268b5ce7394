"""Programs that come with OCaml or are written in it, as somebody else has built them, and something for them to do."""

import shutil
from dataclasses import dataclass

from bench import Skip

GRAMMAR = "%token <int> INT\n%token PLUS TIMES OPEN CLOSE EOF\n%left PLUS\n%left TIMES\n%start <int> main\n%type <int> expr\n%%\n" \
    "main: e = expr EOF { e }\nexpr: i = INT { i } | OPEN e = expr CLOSE { e }\n" \
    "| a = expr PLUS b = expr { a + b } | a = expr TIMES b = expr { a * b }\n"


@dataclass
class StockProgram:
    name: str
    arguments: tuple


def needs(program):
    """Skips the scenario without it."""
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


def source(bench):
    lines = [f"(** {index}. *)\nlet f{index} x = match x with [] -> {index} | a :: b -> a + List.length b" for index in range(1500)]
    (bench.directory / "many.ml").write_text("\n".join(lines) + "\n")


def ocamlopt(bench):
    source(bench)
    return StockProgram("ocamlopt.opt", ("-c", "many.ml"))


def ocamlc(bench):
    source(bench)
    return StockProgram("ocamlc.opt", ("-c", "many.ml"))


def ocamllex(bench):
    rules = "".join(f"| \"word{i}\" ['0'-'9']* {{ {i} }}\n" for i in range(60))
    (bench.directory / "lexer.mll").write_text("rule token = parse\n" + rules + "| eof { 0 }\n")
    return StockProgram("ocamllex.opt", ("lexer.mll",))


def ocamldep(bench):
    source(bench)
    return StockProgram("ocamldep.opt", ("many.ml",))


# On every version.
PROGRAMS = {"ocamlopt": ocamlopt, "ocamlc": ocamlc, "ocamllex": ocamllex, "ocamldep": ocamldep}


def ocamldoc(bench):
    source(bench)
    (bench.directory / "html").mkdir()
    return StockProgram("ocamldoc.opt", ("-html", "-d", "html", "many.ml"))


def menhir(bench):
    (bench.directory / "grammar.mly").write_text(GRAMMAR)
    return StockProgram("menhir", ("grammar.mly",))


def dune(bench):
    (bench.directory / "dune-project").write_text("(lang dune 2.0)\n")
    (bench.directory / "dune").write_text("(rule (targets a) (action (with-stdout-to a (echo \"a\"))))\n")
    return StockProgram("dune", ("build", "--root", ".", "./a"))


# From the distribution.
OTHERS = {"ocamldoc": ocamldoc, "menhir": menhir, "dune": dune}
