"""Backtraces equal those of the runtime's own unwinder, through all fibers and in all domains."""

import re
from collections import Counter
from itertools import zip_longest

from bench import expect, family, scenario, walked_by
from stacks import codes, same_allocations, without_handlers


def trace_with(bench, unwinder, program, *arguments):
    env = {**walked_by(unwinder), "HEAPTAP_FRAMES": 20_000, "OCAMLRUNPARAM": "v=0"}
    bench.trace(program, *arguments, name=unwinder + ".ctf", under=["setarch", "-R"], env=env)
    return unwinder + ".ctf"


@family({f"{work}_{program}": (work, program) for work in "fibers turns calls trees marshalling raising".split()
         for program in ("many", "many.debug", "many.byte")})
def in_one_domain(bench, work, program):
    """With the same seed, heaptap's walk and the runtime's give the same trace."""

    def events(unwinder):
        name = trace_with(bench, unwinder, program, work, 1)
        return (re.sub(r" common=\d+", "", line).split(" ", 1)[1] for line in bench.dump(name))

    count = 0
    for ours, theirs in zip_longest(events("tables"), events("runtime"), fillvalue="nothing"):
        expect(ours == theirs, f"event {count}: {ours[-300:]}, should be {theirs[-300:]}")
        count += 1
    expect(count > 500, f"only {count} events")


# Not calls in bytecode: neither walk knows the handlers below a callback from C (caml_bytecode_interpreter resets
# trap_sp_off, runtime/interp.c, 5.3.0), so both take them for frames.
@family({f"{work}_{program}": (work, program) for work, program in [
    ("fibers", "many"), ("turns", "many"), ("calls", "many"), ("raising", "many"), ("locals", "many"),
    ("fibers", "many.byte"), ("turns", "many.byte"), ("raising", "many.byte"), ("locals", "many.byte")]})
def in_several_domains(bench, work, program):
    """The schedule differs from run to run; what is allocated where does not."""

    def allocations(unwinder):
        return Counter(codes(bench, trace_with(bench, unwinder, program, work, 3)))

    ours, theirs = allocations("tables"), allocations("runtime")
    if program.endswith(".byte"):
        theirs = without_handlers(ours, theirs)
    same_allocations(ours, theirs)


@family({"native": ("many",), "debug": ("many.debug",), "bytecode": ("many.byte",)})
def through_all_fibers(bench, program):
    """In a chain of 96 fibers below the main one, a backtrace contains them all."""
    bench.trace(program, "fibers", 1, env={"HEAPTAP_FRAMES": 20_000, "OCAMLRUNPARAM": "v=0"})
    deepest = max(len(re.findall(r"Fibers\.chain", alloc.frames)) for alloc in bench.allocs())
    expect(deepest >= 97, f"at most {deepest} calls of a chain of 97")
    outermost = {alloc.frames.split(" ")[0].split("@")[0] for alloc in bench.allocs() if "Fibers.chain" in alloc.frames}
    expect(outermost <= {"caml_program", "Many"}, f"the outermost frames: {sorted(outermost)}")


@scenario
def of_a_plugin_in_several_domains(bench):
    """One domain loads the plugin, all call it."""

    def allocations(unwinder):
        return Counter(codes(bench, trace_with(bench, unwinder, "host.byte", bench.build / "plugin.cmo")))

    ours = allocations("tables")
    same_allocations(ours, without_handlers(ours, allocations("runtime")))


# Two domains that allocate by loaded code.
BUSY = """let stop = Atomic.make false
let rec build n = if n = 0 then [] else n :: build (n - 1)
let rec busy rounds = if Atomic.get stop then rounds else (ignore (Sys.opaque_identity (build 20)); busy (rounds + 1))
let domains = List.init 2 (fun _ -> Domain.spawn (fun () -> busy 0))
"""


@scenario
def of_domains_while_another_loads(bench):
    """While the toplevel loads and frees phrases, the backtraces of the other domains have all their frames."""
    phrases = "".join(f"let f{number} x = x + {number}\nlet _ = f{number} {number}\n" for number in range(500))
    end = "let () = Atomic.set stop true\nlet () = if List.exists (( = ) 0) (List.map Domain.join domains) then exit 3\n"
    (bench.directory / "script.ml").write_text(BUSY + phrases + end)
    bench.trace(bench.toplevel, "-noinit", "script.ml", rate=1e-3, env={"HEAPTAP_FRAMES": 100})
    lists = [alloc for alloc in bench.allocs() if alloc.domain > 0 and alloc.source == "minor" and alloc.length == 2]
    expect(len(lists) > 500, f"only {len(lists)} samples of the other domains")
    stack = re.compile(r"Stdlib__Domain\.spawn\S+ busy@\./script\.ml:3:\S+( build@\./script\.ml:2:\S+){1,20}")
    wrong = [alloc.frames for alloc in lists if not stack.fullmatch(alloc.frames)]
    expect(not wrong, f"{len(wrong)} of {len(lists)}: {wrong[:1]}")
