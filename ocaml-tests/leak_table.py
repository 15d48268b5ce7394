#!/usr/bin/env python3
"""What `heaptap leaks` says of programs whose truth is known: those of programs/leaks.

A file `l…` leaks, a file `s…` does not. Each is traced once at 1e-2 with two snapshots, and judged at
lower rates by thinning that trace with several seeds: the samples differ, the run does not.

  python3 ocaml-tests/leak_table.py --heaptap target/release/heaptap --out /tmp/leaks [--seconds 60]
      [--seeds 5] [--rates 1e-2,1e-3,1e-4] [--only l01,s12] [--jobs 2]

A cell is the number of runs with each verdict: G keeps growing, W was growing, N no site seen
growing, ? cannot tell; G! accuses a site of another file.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import shutil

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE / "programs" / "leaks"


def compiled(source, out):
    folder = out / (source.stem + ".build")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, folder)
    program = out / source.stem
    command = ["ocamlfind", "ocamlopt", "-thread", "-g", "-package", "unix,threads.posix", "-linkpkg"]
    subprocess.run([*command, source.name, "-o", str(program)], cwd=folder, check=True)
    return program


def traced(options, source):
    program = compiled(source, options.out)
    trace = options.out / (source.stem + ".ctf")
    # Two of them, at two fifths and four fifths of the run.
    every = f"{options.seconds * 2 // 5}s"
    heaps = str(options.out / (source.stem + "-%n.heap"))
    command = [options.heaptap, "run", "-q", "-o", trace, "-r", "1e-2", "--seed", "1"]
    command += ["--snapshot", f"every:{every}", "--snapshot-file", heaps, "--", program]
    subprocess.run([*map(str, command), str(options.seconds)], check=True)
    return trace


def said(heaptap, trace):
    run = subprocess.run([heaptap, "leaks", "--json", "--sites", "own", str(trace)], stdout=subprocess.PIPE)
    return json.loads(run.stdout)


def verdict(found, stem):
    """The letter, and whether every site that is accused is one of the program's own file."""
    own = all(leak["site"].get("file") == stem + ".ml" for leak in found["leaks"])
    if found["leaks"]:
        return "G" if own else "G!"
    if not found["conclusive"]:
        return "?"
    return "W" if "growing up to" in found["verdict"] and "no site" not in found["verdict"] else "N"


def judged(options, source):
    trace = traced(options, source)
    cells = []
    for rate in options.rates.split(","):
        tally = {}
        for seed in range(1 if float(rate) >= 1e-2 else options.seeds):
            at = trace
            if float(rate) < 1e-2:
                at = options.out / f"{source.stem}-{rate}-{seed}.ctf"
                thin = [options.heaptap, "thin", "--rate", rate, "--seed", str(seed), str(trace), str(at)]
                subprocess.run(thin, check=True, stderr=subprocess.DEVNULL)
                shutil.copy(f"{trace}.probes", f"{at}.probes")
            letter = verdict(said(options.heaptap, at), source.stem)
            tally[letter] = tally.get(letter, 0) + 1
        cells.append(" ".join(f"{letter}{count}" for letter, count in sorted(tally.items())))
    return source.stem, cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--heaptap", default="target/release/heaptap")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rates", default="1e-2,1e-3,1e-4")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.heaptap = str(pathlib.Path(options.heaptap).resolve())
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    # l06 needs OCaml 5.
    wanted = tuple(filter(None, options.only.split(",")))
    sources = [path for path in sorted(SOURCES.glob("*.ml"))
               if "5.ml" not in path.name and (not wanted or path.name.startswith(wanted))]
    print("program", *options.rates.split(","), sep="\t")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for stem, cells in pool.map(lambda source: judged(options, source), sources):
            print(stem, *cells, sep="\t", flush=True)


main()
