#!/usr/bin/env python3
"""What `heaptap doctor` says of programs whose truth is known: those of programs/leaks.

A file `l…` leaks, a file `s…` does not. Each is started and watched for some seconds.

  python3 ocaml-tests/doctor_table.py --heaptap target/release/heaptap --library target/release/libheaptap.so
      --out /tmp/doctor [--seconds 60] [--rate 1e-3] [--runs 1] [--only l01,s12] [--jobs 4] [--pid] [--listen] [--again]

A line is a run: `ok`, `MISSED` if the leak is not named by its holder and a line where it is allocated, or `FALSE` if
something else is said to leak (`false?`: that it may), or `asleep` if the program did too little to be attached to; and
what was said. With --pid the program runs by itself, and the doctor gets its number; with --listen, too, it has the
library loaded, as programs of OCaml 5 need. With --again what an earlier call has kept is diagnosed again.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "tests"))
from leak_programs import SOURCES, compiled, sources

# The variable that holds a leak, and what stands on the lines where it is allocated. Of what no variable holds, its kind.
TRUTH = {
    "l01": (("cache",), ("let make i",)),
    "l02": (("cache",), ("let make i",)),
    "l03": (("handlers",), ("let on_event",)),
    "l04": (("audit",), ("let note i",)),
    "l05": (("q",), ("Queue.push", "let job")),
    "l06": (("waiting",), ("let spawn", "let data", "| Wait i", "serve 1000.")),
    "l07": (("finalisers", "finaliser"), ("let c =", "c.close <-", "Gc.finalise")),
    "l08": (("images",), ("let load i",)),
    "l09": (("log", "ids"), ("Buffer.add_string log", "let push")),
    "l10": (("cache",), ("Hashtbl.add cache",)),
    "l11": (("errors",), ("errors :=",)),
    "l12": (("log",), ("log :=",)),
    "l13": (("listeners",), ("listeners :=",)),
    "l14": (("table",), ("Hashtbl.replace table",)),
    "l15": (("names",), ("names :=", "Names.add")),
    "l16": (("total",), ("total :=",)),
    "l17": (("session",), ("Bytes.create 120",)),
    "l18": (("Users",), ("Users.note", "H.replace")),
    "l19": (("shutdown",), ("let request", "let on p")),
    "l20": (("bus",), ("let data", "method subscribe")),
    "l21": (("by_id", "by_name"), ("visits = [", "Hashtbl.replace by_id", "f !i done")),
    "l22": (("eph",), ("E.create ()", "E.set_data", "eph :=")),
    "l23": (("slots",), ("slots.(k) <-",)),
}


def diagnosed(options, program, run):
    folder = options.out / f"{program.name}-{run}"
    if options.again:
        call = [options.heaptap, "doctor", "--json", folder]
        return subprocess.run(list(map(str, call)), capture_output=True, text=True)
    shutil.rmtree(folder, ignore_errors=True)
    call = [options.heaptap, "doctor", "--json", "-o", folder, "-r", options.rate, "--for", f"{options.seconds}s"]
    environment = {**os.environ, "HEAPTAP_LIBRARY": str(options.library)}
    longer = str(options.seconds * 2 + 30)
    if options.pid:
        listens = {"LD_PRELOAD": str(options.library), "HEAPTAP_LISTEN": "1"} if options.listen else {}
        with subprocess.Popen([program, longer], stdout=subprocess.DEVNULL, env={**os.environ, **listens}) as process:
            time.sleep(1)
            said = subprocess.run([*map(str, call), str(process.pid)], capture_output=True, text=True, env=environment)
            process.kill()
    else:
        said = subprocess.run([*map(str, call), "--", str(program), longer], capture_output=True, text=True,
                              env=environment)
    return said


def lines_of(stem, texts):
    lines = (SOURCES / f"{stem}.ml").read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if any(text in line for text in texts)}


def is_truth(finding, stem):
    if stem[:3] not in TRUTH:
        return False
    holders, texts = TRUTH[stem[:3]]
    name = (finding.get("holder") or {}).get("name", "")
    holder = any(name.startswith(f"{stem.capitalize()}.{one}") or one in name.lower().split() for one in holders)
    if stem.startswith("l07"):
        holder = holder or "finalis" in (name + finding["kind"] + finding["sentence"]).lower()
    lines = {site["site"].get("line") for site in finding.get("sites", [])}
    return holder and bool(lines & lines_of(stem, texts))


def judged(said, stem):
    """`ok`, `MISSED` or `FALSE`, and what was said."""
    if said.returncode == 2 and "did not allocate" in said.stderr:
        return "asleep", said.stderr.splitlines()[-1]
    if said.returncode not in (0, 3, 4):
        return "FAILED", said.stderr
    found = json.loads(said.stdout)
    problems = [one for one in found["findings"] if one["is_problem"]]
    words = " | ".join(f"{one['certainty']} {one['kind']}: {one['sentence']}" for one in problems)
    words = words or found["verdict"]["sentence"]
    right = [one for one in problems if is_truth(one, stem)]
    # Other problems than leaks may well be true of a program that leaks.
    of_leaks = ("leak", "finaliser_cycle") if stem[:3] in TRUTH else [one["kind"] for one in problems]
    wrong = [one for one in problems if one not in right and one["kind"] in of_leaks]
    if stem[:3] in TRUTH and not right:
        return "MISSED", words
    if wrong:
        return "FALSE" if any(one["certainty"] != "possible" for one in wrong) else "false?", words
    return "ok", words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heaptap", required=True)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", default="1e-3")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--pid", action="store_true")
    parser.add_argument("--listen", action="store_true")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    options.heaptap, options.library = os.path.abspath(options.heaptap), options.library.resolve()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in options.only.split(",") if one]
    programs = [options.out / source.stem / source.stem if options.again else compiled(source, options.out)
                for source in sources(chosen)]
    counts = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = {pool.submit(diagnosed, options, program, run): program.name
                for run in range(1, options.runs + 1) for program in programs}
        for done in concurrent.futures.as_completed(runs):
            letter, words = judged(done.result(), runs[done])
            counts[letter] = counts.get(letter, 0) + 1
            print(f"{letter:7} {runs[done]:14} {words}", flush=True)
    print(", ".join(f"{count} {letter}" for letter, count in sorted(counts.items())))
    return 0 if set(counts) <= {"ok", "asleep"} else 1


if __name__ == "__main__":
    sys.exit(main())
