#!/usr/bin/env python3
"""How long `heaptap doctor PID` takes to its diagnosis of programs/large_leak.ml, and what that costs the program.

  python3 ocaml-tests/doctor_cost.py --heaptap target/release/heaptap --library target/release/libheaptap.so --out /tmp/cost

The program is older than a minute when it is looked at, since a younger one is only suspected. Its processor time is
compared with that of as many seconds without the doctor: its work is the same in each second.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import time

SOURCE = pathlib.Path(__file__).resolve().parent / "programs" / "large_leak.ml"
AGE = 61
TICK = os.sysconf("SC_CLK_TCK")


def compiled(out):
    shutil.copy(SOURCE, out)
    subprocess.run(["ocamlopt", "-I", "+unix", "-g", "-w", "-a", "unix.cmxa", SOURCE.name, "-o", "large_leak"], cwd=out,
                   check=True)
    return out / "large_leak"


def processor_seconds(pid):
    """Of the program: in its own code, in the system, and in copies of it that have ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    user, system, of_children, system_of_children = (int(field) / TICK for field in fields[11:15])
    return user, system, of_children + system_of_children


def spent(pid, action):
    before, began = processor_seconds(pid), time.monotonic()
    action()
    seconds = time.monotonic() - began
    return seconds, [after - was for was, after in zip(before, processor_seconds(pid))]


def line(name, seconds, spent):
    user, system, copies = (100 * part / seconds for part in spent)
    print(f"{name:20} {seconds:5.1f} s: {user:4.1f} % of a processor in its code, {system:4.1f} % in the system, "
          f"{copies:4.1f} % in copies of it")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heaptap", required=True, type=pathlib.Path)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "HEAPTAP_LIBRARY": str(options.library.resolve())}
    with subprocess.Popen([compiled(options.out.resolve())], stdout=subprocess.DEVNULL) as program:
        try:
            time.sleep(AGE - 30)
            line("by itself", *spent(program.pid, lambda: time.sleep(30)))
            call = [options.heaptap.resolve(), "doctor", str(program.pid)]
            line("with the doctor", *spent(program.pid, lambda: subprocess.run(call, env=environment)))
            line("afterwards", *spent(program.pid, lambda: time.sleep(30)))
        finally:
            program.kill()


main()
