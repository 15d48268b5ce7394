"""Unmodified, stripped programs of the distribution."""

import shutil

import compiling
from bench import Skip, equal, family, scenario
from stock import GRAMMAR


def needs(program):
    path = shutil.which(program)
    if not path:
        raise Skip(f"{program} is not installed")
    return path


@family({"rate_1e-5": (1e-5,), "rate_1e-3": (1e-3,), "rate_1": (1,)})
def ocamlopt_opt(bench, rate):
    compiling.the_same(bench, needs("ocamlopt.opt"), rate)


@scenario
def ocamlopt_opt_with_an_error(bench):
    compiling.an_error(bench, needs("ocamlopt.opt"))


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
