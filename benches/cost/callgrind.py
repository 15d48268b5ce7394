"""Counts instructions with callgrind."""

import collections
import re
import subprocess
from pathlib import Path

LINE = re.compile(r"^[+\-*0-9]\S* (\d+)$")
NAME = re.compile(r"^(ob|fl|fi|fe|fn)=(.*)$")


class Count:
    """The instructions of one run: in total, and by object, source file and function."""

    def __init__(self, output):
        self.by_object = collections.Counter()
        self.by_file = collections.Counter()
        self.by_function = collections.Counter()
        at = {"ob": "", "fl": "", "fn": ""}
        callee = False
        with open(output, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("calls="):
                    callee = True  # the next line is the cost of the callee
                elif (cost := LINE.match(line)) is not None:
                    if not callee:
                        self._add(at, int(cost.group(1)))
                    callee = False
                elif (name := NAME.match(line)) is not None:
                    # fi and fe: start and end of code inlined from another file.
                    key = "fl" if name.group(1) in ("fi", "fe") else name.group(1)
                    at[key] = name.group(2).strip()
        self.total = sum(self.by_object.values())

    def _add(self, at, instructions):
        self.by_object[Path(at["ob"]).name] += instructions
        self.by_file[at["fl"]] += instructions
        self.by_function[at["fn"]] += instructions

    def of_objects(self, prefix):
        return sum(count for name, count in self.by_object.items() if name.startswith(prefix))


def count(command, output, env, inside=None):
    """Runs a command under callgrind. With `inside`, counts only the calls of that function."""
    # The library patches code of OCaml's runtime before main: hence --smc-check.
    under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", "--smc-check=all",
             "--compress-strings=no", "--compress-pos=no"]
    if inside is not None:
        under.append(f"--toggle-collect={inside}")
    done = subprocess.run(under + command, env=env, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} under callgrind: {done.stderr.decode(errors='replace')[-1500:]}")
    return Count(output)
