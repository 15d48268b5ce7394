"""Forked children: each is in the summary of `heaptap run`, its time begins with the fork, and it has a file even if
nothing was sampled."""

import json
import re

from bench import equal, expect, family, scenario
from labels import compile_library
from tool import run

WORKERS = """let () =
  let workers = int_of_string Sys.argv.(1) in
  for worker = 1 to workers do
    if Unix.fork () = 0 then begin
      if worker > 1 then ignore (Sys.opaque_identity (List.init (worker * 1_000) string_of_int));
      if worker mod 3 = 0 then Unix._exit 0 else exit 0
    end
  done;
  for _ = 1 to workers do ignore (Unix.wait ()) done
"""


def compile_workers(bench):
    (bench.directory / "workers.ml").write_text(WORKERS)
    bench.run("ocamlopt", "-w", "-a", "unix.cmxa", "workers.ml", "-o", "workers")


def traces(bench):
    return sorted(bench.directory.glob("*.ctf"))


@family({"few": (5,), "many": (20,)})
def all_are_counted(bench, workers):
    """At rate 1, so that each has samples, but for the first, which allocates nothing."""
    compile_workers(bench)
    result = run(bench, "-r", "1", "--", "./workers", workers)
    equal(len(traces(bench)), workers + 1, "files")
    for trace in traces(bench):
        bench.sound(trace.name)
    samples = sum(alloc.samples for trace in traces(bench) for alloc in bench.allocs(trace.name))
    expect(result.err.startswith(f"heaptap: {workers + 1} traces in {bench.directory}: {samples} samples, about {samples} words"),
           f"{samples} samples, and said {result.err!r}")
    expect("were there before" not in result.err and "abruptly" not in result.err, f"said {result.err!r}")
    rows = re.findall(r"^heaptap:   workers  .*", result.err, re.M)
    equal(len(rows), workers + 1 if workers < 8 else 1, "rows of programs")
    report = json.loads(bench.run(bench.heaptap, "report", "--json", ".").out)
    equal(report["totals"]["samples"], samples, "samples in the report of the directory")


@scenario
def without_a_sample(bench):
    """At the lowest rate: each child that exits has a file."""
    compile_workers(bench)
    result = run(bench, "-r", "1e-7", "--", "./workers", 2)
    equal(len(traces(bench)), 3, "files")
    expect(result.err.startswith("heaptap: 3 traces in "), f"said {result.err!r}")
    for trace in traces(bench):
        bench.sound(trace.name)
    equal(list(bench.directory.glob("*.probes")), [], "sidecars that say nothing")


LOGS = """let () =
  Heaptap.log "of the parent";
  if Unix.fork () = 0 then begin
    let before = Unix.gettimeofday () in
    Heaptap.log "of the child";
    let after = Unix.gettimeofday () in
    Unix.sleepf 0.3;
    ignore (Sys.opaque_identity (List.init 100_000 string_of_int));
    Printf.printf "%.6f %.6f\\n" before after
  end
  else ignore (Unix.wait ())
"""


@scenario
def lines_of_the_log_have_their_time(bench):
    """Although they are written before anything is sampled, and the line of the parent is not repeated."""
    compile_library(bench)
    (bench.directory / "logs.ml").write_text(LOGS)
    bench.run("ocamlopt", "-w", "-a", "-I", "library", "unix.cmxa", "heaptap.cmxa", "logs.ml", "-o", "logs")
    result = run(bench, "-r", "1e-3", "--", "./logs")
    before, after = map(float, result.out.split())
    sidecars = [json.loads(bench.run(bench.heaptap, "probes", "--json", path.name).out) for path in bench.directory.glob("*.probes")]
    equal(sorted([line["text"] for line in sidecar["log"]] for sidecar in sidecars), [["of the child"], ["of the parent"]],
          "the logs")
    child = next(sidecar for sidecar in sidecars if sidecar["log"][0]["text"] == "of the child")
    logged = (child["trace_start_us"] + child["log"][0]["time_us"]) / 1e6
    expect(before - 0.02 <= logged <= after + 0.02, f"logged at {logged:.6f}, in truth from {before} to {after}")
