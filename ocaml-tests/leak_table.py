#!/usr/bin/env python3
"""What `heaptap leaks` says of programs whose truth is known: those of programs/leaks.

A file `l…` leaks, a file `s…` does not. Each is traced once with two snapshots, and judged without them, with the last
and with both. At lower rates it is judged by thinning that trace with several seeds: the samples differ, the run does not.

  python3 ocaml-tests/leak_table.py --heaptap target/release/heaptap --out /tmp/leaks [--seconds 60]
      [--rate 1e-3] [--thin 1e-4] [--seeds 5] [--only l01,s12] [--jobs 2] [--sizes] [--traced]

A cell is a verdict: G keeps growing, W was growing, N no site seen growing, ? cannot tell; G! accuses a site of
another file. With --sizes: what was reachable when the last snapshot was taken by cycles, interpolated, and exactly, in MB.
With --traced: the traces of an earlier call are judged again.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "tests"))
from leak_programs import compiled, sources


def traced(options, source):
    """The trace, and the snapshots at two fifths and four fifths of the run."""
    trace = options.out / (source.stem + ".ctf")
    if not (options.traced and trace.exists()):
        program = compiled(source, options.out)
        for old in options.out.glob(f"{source.stem}-*.heap"):
            old.unlink()
        every = f"{options.seconds * 2 // 5}s"
        heaps = str(options.out / (source.stem + "-%n.heap"))
        command = [options.heaptap, "run", "-q", "-o", trace, "-r", options.rate, "--seed", "1"]
        command += ["--snapshot", f"every:{every}", "--snapshot-file", heaps, "--", program]
        # What the program prints is not asked for.
        subprocess.run([*map(str, command), str(options.seconds)], check=True, stdout=subprocess.DEVNULL)
    heaps = sorted(options.out.glob(f"{source.stem}-*.heap"), key=lambda path: path.stat().st_mtime)
    return trace, heaps[:2]


def said(heaptap, trace, heaps=()):
    given = [argument for heap in heaps for argument in ("--heap", str(heap))]
    call = [heaptap, "leaks", "--json", "--sites", "own", "--types", "none", *given, str(trace)]
    if not heaps:
        call = [argument for argument in call if argument not in ("--types", "none")]
    run = subprocess.run(call, stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)


def verdict(found, stem):
    """The letter, and whether every site that is accused is one of the program's own file."""
    own = all(leak["site"].get("file") == stem + ".ml" for leak in found["leaks"])
    if found["leaks"]:
        return "G" if own else "G!"
    if not found["conclusive"]:
        return "?"
    return "W" if "growing up to" in found["verdict"] and "no site" not in found["verdict"] else "N"


def sizes(options, trace, heaps):
    """By cycles and exactly, in MB, when the last snapshot was taken that two cycles are around."""
    reachable = [(one["at_us"], one["size"]["bytes"]) for one in said(options.heaptap, trace).get("reachable", [])]
    exact = {one["taken_us"]: one["reachable_bytes"] + one["outside_bytes"]
             for one in said(options.heaptap, trace, heaps)["snapshots"]}
    found = []
    for at, size in sorted(exact.items()):
        before = [one for one in reachable if one[0] <= at][-1:]
        after = [one for one in reachable if one[0] > at][:1]
        if before and after:
            (early, was), (late, is_then) = before[0], after[0]
            by_cycles = was + (is_then - was) * (at - early) / (late - early)
            found.append(f"{by_cycles / 1e6:.2f}/{size / 1e6:.2f} ({by_cycles / size - 1:+.1%})")
    return " ".join(found) or "-"


def judged(options, source):
    trace, heaps = traced(options, source)
    cells = [verdict(said(options.heaptap, trace, some), source.stem) for some in ([], heaps[-1:], heaps)]
    for rate in filter(None, options.thin.split(",")):
        tally = {}
        for seed in range(options.seeds):
            at = options.out / f"{source.stem}-{rate}-{seed}.ctf"
            thin = [options.heaptap, "thin", "--rate", rate, "--seed", str(seed), str(trace), str(at)]
            subprocess.run(thin, check=True, stderr=subprocess.DEVNULL)
            shutil.copy(f"{trace}.probes", f"{at}.probes")
            letter = verdict(said(options.heaptap, at), source.stem)
            tally[letter] = tally.get(letter, 0) + 1
            os.unlink(at)
        cells.append(" ".join(f"{letter}{count}" for letter, count in sorted(tally.items())))
    if options.sizes:
        cells.append(sizes(options, trace, heaps))
    return source.stem, cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--heaptap", default="target/release/heaptap")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rate", default="1e-3")
    parser.add_argument("--thin", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--traced", action="store_true")
    options = parser.parse_args()
    options.heaptap = str(pathlib.Path(options.heaptap).resolve())
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = list(filter(None, options.only.split(",")))
    columns = [options.rate, "last snapshot", "both", *filter(None, options.thin.split(","))]
    print("program", *columns, *["by cycles/exact"] * options.sizes, sep="\t")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for stem, cells in pool.map(lambda source: judged(options, source), sources(wanted)):
            print(stem, *cells, sep="\t", flush=True)


main()
