"""Bytecode loaded while the program runs has frames and locations: plugins, and all that the toplevel runs."""

import re
import shutil
from collections import Counter

from bench import HERE, equal, expect, family, scenario, walked_by
from flat import FLAT, words_of_lines
from stacks import as_decoded, codes, same_allocations

# Before 5.0 the toplevel keeps the locations of a script only with this option.
PLACES = {"OCAMLPARAM": "_,g=1"}
# Whole stacks.
WHOLE = {"HEAPTAP_FRAMES": 10_000}
# Blocks of 1,000 words are all sampled: the probability that one is not is 1e-22.
LARGE = 0.05


def toplevel(bench, script, env=(), **how):
    """Traces the toplevel while it runs a script with this text."""
    (bench.directory / "script.ml").write_text(script)
    return bench.trace(bench.toplevel, "-noinit", "script.ml", env={**PLACES, **dict(env)}, **how)


def program(name):
    return (HERE / "programs" / name).read_text()


def as_a_module(name, text):
    """The text of a file as a module, whose lines keep their numbers in that file."""
    return f"module {name.capitalize()} = struct\n# 1 \"{name}.ml\"\n{text}end;;\n"


def script_of(bench, **how):
    return toplevel(bench, program("loaded.ml"), **how)


def plugin_of(bench, **how):
    return bench.trace("loader.byte", bench.build / "loaded.cmo", **how)


def archive_of(bench, **how):
    return bench.trace("loader.byte", bench.build / "plugins.cma", **how)


WAYS = {"script": (script_of,), "plugin": (plugin_of,), "archive": (archive_of,)}


@family(WAYS)
def as_the_runtime_decodes_them(bench, run):
    result = run(bench, rate=LARGE, env=WHOLE)
    as_decoded(bench, result, "mark")


@family(WAYS)
def as_the_runtime_walks_them(bench, run):
    """With the same seed, heaptap's walk and the runtime's give the same trace.

    The traces go into another folder, because the toplevel reads the names of all files in its own."""
    (bench.directory / "traces").mkdir()

    def allocations(unwinder):
        name = f"traces/{unwinder}.ctf"
        run(bench, name=name, rate=3e-3, under=["setarch", "-R"], env={**WHOLE, **walked_by(unwinder)})
        return Counter(codes(bench, name))

    ours, theirs = allocations("ourtabs"), allocations("runtime")
    same_allocations(ours, theirs)
    loaded = sum(any(int(code, 16) >> 32 for code in backtrace) for _, backtrace in ours)
    expect(loaded > 100, f"only {loaded} backtraces are of loaded code")


@family({"plugin": ("plugin",), "plugins": ("plugin", "loaded", "plugin")})
def as_untraced(bench, *plugins):
    bench.same("loader.byte", *(bench.build / f"{plugin}.cmo" for plugin in plugins))


@scenario
def words_of_each_line_of_a_script(bench):
    """Exact to the word, as for a compiled program."""
    script = as_a_module("check", "let finish () = print_endline \"done\"\n") + "# 1 \"flat.ml\"\n" + program("flat.ml")
    toplevel(bench, script)
    wanted = {**FLAT, 20: 400 * (2 + 3)}
    equal(words_of_lines(bench, wanted), wanted, "words of each line")


def places_of_marks(bench, file):
    """By length of the large blocks: line and first character of the allocation."""
    found = {}
    for alloc in bench.allocs():
        if alloc.source == "major" and alloc.length > 1_000:
            place = re.search(rf"@{re.escape(file)}:(\d+):(\d+)-\d+$", alloc.frames)
            found[alloc.length] = place and (int(place.group(1)), int(place.group(2)))
    return found


@scenario
def phrases_whose_code_is_freed(bench):
    """The toplevel frees the code of a phrase without functions, and loads the next one to the same address."""
    phrases = 200
    script = "".join(f"let _ = Array.make {1_000 + line} {line}\n" for line in range(1, phrases + 1))
    toplevel(bench, script, rate=LARGE)
    wanted = {1_000 + line: (line, len("let _ = ")) for line in range(1, phrases + 1)}
    found = places_of_marks(bench, "./script.ml")
    equal({length: found.get(length) for length in wanted}, wanted, "places of blocks")


@scenario
def phrases_that_raise(bench):
    """Typed in, so that each phrase is line 1: every other one raises, and its code is freed."""
    phrases, begin = 100, ["let _ = ", "failwith @@ string_of_int @@ Array.length @@ "]
    typed = "".join(f"{' ' * number}{begin[number % 2]}Array.make {1_000 + number} 0;;\n" for number in range(1, phrases + 1))
    (bench.directory / "typed.ml").write_text(typed)
    result = bench.trace(bench.toplevel, "-noinit", rate=LARGE, under=["sh", "-c", 'exec "$@" <typed.ml', "-"])
    equal(result.out.count("Exception: Failure"), phrases // 2, "exceptions")
    wanted = {1_000 + number: (1, number + len(begin[number % 2])) for number in range(1, phrases + 1)}
    found = places_of_marks(bench, "//toplevel//")
    equal({length: found.get(length) for length in wanted}, wanted, "places of blocks")


@scenario
def a_plugin_loaded_twice(bench):
    """Two pieces of code with the same locations."""
    bench.trace("loader.byte", bench.build / "plugin.cmo", bench.build / "plugin.cmo", env=WHOLE)
    built = [alloc for alloc in bench.allocs() if re.search(r"Plugin\.build@plugin\.ml:1:40-77$", alloc.frames)]
    equal(len(built), 2 * (100 + 200), "cells that line 1 built")
    dump = bench.run(bench.heaptap, "dump", "--json", bench.path("trace.ctf")).out
    pieces = {int(code, 16) >> 32 for code in re.findall(r'"code":"(?:0x)?(\w+)"', dump)} - {0}
    equal(pieces, {1, 2}, "pieces of code")


@scenario
def without_debug_information(bench):
    """The frames are there, without locations."""
    for name in ("plugin_interface.ml", "plugin.ml"):
        shutil.copy(HERE / "programs" / name, bench.directory)
    bench.run(bench.compiler, "-c", "plugin_interface.ml", "plugin.ml")
    bench.trace("loader.byte", "plugin.cmo", env=WHOLE)
    deepest = max(len(re.findall(r" 0x1[0-9a-f]{8}\b", alloc.frames)) for alloc in bench.allocs())
    expect(200 <= deepest <= 205, f"{deepest} frames of a recursion of 200")
