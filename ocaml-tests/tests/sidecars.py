"""The file of probes stays small, and a file that is truncated while it is written begins again."""

import json
import os
import re
import subprocess

from bench import equal, expect, scenario
from following import LONG, Client, question, running
from labels import compile_library

# Thousands of minor collections in a second.
SMALL = """let () =
  Gc.set { (Gc.get ()) with Gc.minor_heap_size = 512 };
  let finish = Unix.gettimeofday () +. 1. in
  while Unix.gettimeofday () < finish do
    for i = 1 to 10_000 do ignore (Sys.opaque_identity (ref i)) done
  done;
  Gc.minor (); (* so that what follows fits into the minor heap *)
  print_endline (string_of_int (Gc.quick_stat ()).Gc.minor_collections)
"""

# Writes more lines than the file has room for, in the time that they need to be read.
TALKING = """let () =
  let rest = String.make 900 'x' in
  for i = 1 to 6_000 do
    Heaptap.logf "line %d %s" i rest;
    if i mod 100 = 0 then Unix.sleepf 0.05
  done
"""


@scenario
def few_rows_for_many_collections(bench):
    """However many collections there are, a tick takes few bytes, and their sum is exact."""
    (bench.directory / "small.ml").write_text(SMALL)
    bench.run("ocamlfind", "ocamlopt", "-package", "unix", "-linkpkg", "small.ml", "-o", "small")
    env = {"HEAPTAP_LIBRARY": bench.library}
    result = bench.run(bench.heaptap, "run", "-r", "1e-6", "-o", "trace.ctf", "--", bench.path("small"), env=env)
    collections = int(result.out)
    expect(collections > 5_000, f"only {collections} collections")
    line = json.loads(bench.run(bench.heaptap, "report", "--timeline", "--json", "trace.ctf").out)
    equal(line["total"]["minor_collections"], collections, "collections")
    equal(line["total"]["minor"]["count"], collections, "pauses")
    seconds, size = line["duration_us"] / 1e6, os.path.getsize(bench.path("trace.ctf.probes"))
    expect(size < 8_000 * (seconds + 1), f"{size} bytes in {seconds} s for {collections} collections")
    expect(re.search(r", and [\d.]+ \w+ in \.probes\n", result.err), f"run said {result.err!r}")


@scenario
def thinned_while_it_is_followed(bench):
    """A follower prints each line once although the file is replaced by shorter ones."""
    compile_library(bench)
    (bench.directory / "talking.ml").write_text(TALKING)
    bench.run("ocamlopt", "-thread", "-I", "library", "unix.cmxa", "threads.cmxa", "heaptap.cmxa", "talking.ml", "-o", "talking")
    env = bench.environment(bench.preload(rate=1e-3, HEAPTAP_PROBES_LIMIT=4))
    printed = bench.directory / "printed"
    with subprocess.Popen([bench.path("talking")], env=env, cwd=bench.directory) as program, printed.open("wb") as out:
        follow = subprocess.Popen([bench.heaptap, "probes", "--follow", "trace.ctf"], cwd=bench.directory, stdout=out)
        equal(program.wait(LONG), 0, "its status")
        equal(follow.wait(LONG), 0, "the status of the follower")
    numbers = [int(line.split()[2]) for line in printed.read_text().splitlines()]
    wrong = next((pair for pair in zip(numbers, range(1, 6_001)) if pair[0] != pair[1]), None)
    equal((wrong, len(numbers)), (None, 6_000), "the first line that is not as it was written, and how many were printed")
    expect(os.path.getsize(bench.path("trace.ctf.probes")) <= 4 << 20, "it is larger than its limit")
    said = json.loads(bench.run(bench.heaptap, "probes", "--json", "trace.ctf").out)
    equal(len(said["log"]) + said["lost_log_lines"], 6_000, "lines that are in the file, or counted")
    equal([name for name in os.listdir(bench.directory) if name.startswith(".")], [], "files left behind")


@scenario
def truncated_while_it_is_written(bench):
    """`copytruncate`: the trace and its sidecar begin again, what follows them goes on, and the file can be used again."""
    with running(bench, 6, env={"HEAPTAP_TIMELINE": 1}) as program:
        follower = Client(bench, "trace.ctf")
        while b'"events":0' in follower.process.stdout.readline():
            pass
        for name in ("trace.ctf", "trace.ctf.probes"):
            os.truncate(bench.path(name), 0)
        equal(program.wait(LONG), 0, "its status")
        last = follower.finish()
    bench.sound()
    report = question(bench, "report --json --metric live --top 0")
    equal((last["state"], last["events"], last["report"]["totals"]), ("ended", report["events"], report["totals"]), "what top saw at the end")
    expect(last["replaced"] >= 1, f"top has not seen it: {last['replaced']}")
    line = json.loads(bench.run(bench.heaptap, "report", "--timeline", "--json", "trace.ctf").out)
    expect(line["complete"] and line["duration_us"] < 5.9e6, f"the time line: {line['duration_us']} µs")
    again = bench.run(bench.heaptap, "run", "-r", 1, "-o", "trace.ctf", "--", bench.program("paced"), 0.2, env={"HEAPTAP_LIBRARY": bench.library})
    expect(" samples, about " in again.err, f"the next run: {again.err!r}")
    bench.sound()
