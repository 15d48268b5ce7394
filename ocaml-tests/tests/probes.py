"""Probes and the time line say what the program knows of itself."""

import json
import shutil

from bench import HERE, equal, expect, family, scenario
from labels import compile_library

THREADS = """let run workers work =
  List.iter Thread.join (List.init workers (fun worker -> Thread.create work worker))
let () = Probed.all run
"""

DOMAINS = """let run workers work =
  List.iter Domain.join (List.init workers (fun worker -> Domain.spawn (fun () -> work worker)))
let () = Probed.all run
"""


def compile_probed(bench, compiler, archive, *arguments, main=THREADS, library=(), include=("-thread",)):
    compile_library(bench, *library)
    shutil.copy(HERE / "programs5/probed.ml", bench.directory)
    (bench.directory / "main.ml").write_text(main)
    archives = [f"{name}.{archive}" for name in ("unix", "threads", "heaptap")]
    bench.run(compiler, "-g", "-w", "-a", *include, "-I", "library", *arguments, *archives, "probed.ml", "main.ml", "-o", "probed")


def truth(result):
    """What the program printed of itself."""
    return json.loads(result.out.partition("truth ")[2])


def read(bench, name):
    """The sidecar: each probe by name, and everything."""
    said = json.loads(bench.run(bench.heaptap, "probes", "--json", name).out)
    return {probe["name"]: probe for probe in said["probes"]}, said


def check_probes(bench, result, name="trace.ctf"):
    """Compares the sidecar of a program with what it printed."""
    known = truth(result)
    probes, said = read(bench, name)
    equal(probes["work/passes"]["total"], known["passes"], "passes")
    check_timer(probes["work/time"], known)
    values = {field: probes["work/depth"][field] for field in ("last", "least", "greatest")}
    equal(values, {"last": 5, "least": -7, "greatest": 12}, "a value")
    equal(probes["work/ratio"]["last"], 0.25, "a value that is no whole number")
    equal(probes["work/state"]["text"], "höt; \"done\"", "a text")
    check_tags(probes, known)
    fields = ("bindings", "buckets", "longest bucket", "empty buckets")
    equal({field: probes[f"observed/table/{field}"]["last"] for field in fields}, {field: known[field] for field in fields},
          "the table's statistics")
    equal(probes["observed/number"]["last"], 42, "what was observed last")
    check_log(said)
    check_time_line(bench, name, known)


def check_timer(timer, known):
    equal((timer["runs"], timer["running"]), (known["runs"], 0), "runs of the timer")
    # The two clocks may differ by 500 parts in a million while the system's is adjusted, and by a microsecond at
    # each end.
    low, high = known["least time"] * 0.9995 - 50e-6, known["most time"] * 1.0005 + 50e-6
    measured = timer["total_ns"] / 1e9
    expect(low <= measured <= high, f"{measured} s of the timer, not from {low} to {high}")


def check_tags(probes, known):
    def state(tag):
        return {field: probes[tag][field] for field in ("live", "marked", "size_bytes", "size_is_least")}

    equal(state("tags/trees"), {"live": known["live trees"], "marked": 3_000, "size_bytes": known["tree words"] * 8,
                                "size_is_least": False}, "a tag")
    equal(state("tags/all dead"), {"live": 0, "marked": 3_000, "size_bytes": 0, "size_is_least": False},
          "a tag whose values are all dead")
    equal(probes["tags/closures"]["live"], 10, "closures in the middle of others")


def check_log(said):
    lines = [line["text"] for line in said["log"]]
    equal(lines[:2], ["a line", ("another 7" + "x" * 2_000)[:1_024]], "the log")
    expect(any("raised Failure(\"cannot\")" in line for line in lines), f"no word of the function that raised: {lines[2:]}")
    equal([stop["text"] for stop in said["stops"]], ["look here"], "stops")
    expect(said["complete"], "the sidecar is not complete")


def check_time_line(bench, name, known):
    """Collections after the last moment that was recorded may be missing."""
    total = json.loads(bench.run(bench.heaptap, "report", "--timeline", "--json", name).out)["total"]
    for kind in ("minor", "major"):
        count, wanted = total[f"{kind}_collections"], known[f"{kind} collections"]
        expect(wanted - 2 <= count <= wanted + 5, f"{count} {kind} collections, not {wanted}")
    minor = total["minor"]
    # Each domain has its own pause in OCaml 5.
    expect(minor["count"] >= known["minor collections"] - 2 and 0 < minor["total_ns"] < 60e9, f"pauses: {minor}")
    expect(0 < minor["longest_ns"] <= minor["total_ns"], f"pauses: {minor}")
    expect(1e6 < total["rss_bytes"] < 4e9 and total["threads"] >= 2, f"the process: {total}")
    expect(total["heap_bytes"] >= total["heap_used_bytes"] > known["tree words"] * 8, f"the heap: {total}")


UNCALLED = """let called = ref 0
let () =
  for number = 1 to 3 do Heaptap.log_with (fun line -> incr called; line "%s %d" "number" number) done;
  print_int !called
"""


@scenario
def a_line_is_formatted_only_if_it_is_recorded(bench):
    compile_library(bench)
    (bench.directory / "lines.ml").write_text(UNCALLED)
    bench.run("ocamlopt", "-w", "-a", "-I", "library", "unix.cmxa", "heaptap.cmxa", "lines.ml", "-o", "lines")
    equal(bench.run("./lines").out, "0", "calls when it is not traced")
    equal(bench.trace("./lines").out, "3", "calls when it is traced")
    _, said = read(bench, "trace.ctf")
    equal([line["text"] for line in said["log"]], ["number 1", "number 2", "number 3"], "the log")


@family({"native": ("ocamlopt", "cmxa"), "bytecode": ("ocamlc", "cma", "-custom")})
def every_kind(bench, compiler, archive, *arguments):
    compile_probed(bench, compiler, archive, *arguments)
    untraced = bench.run("./probed")
    equal(truth(untraced)["live trees"], 500, "what the program keeps")
    check_probes(bench, bench.trace("./probed", env={"HEAPTAP_TIMELINE": 1}))
    # A rate at which little is sampled changes no probe.
    check_probes(bench, bench.trace("./probed", name="seldom.ctf", rate=1e-4, env={"HEAPTAP_TIMELINE": 1}), "seldom.ctf")
