"""The programs whose truth is known, programs/leaks: a file `l…` leaks, a file `s…` does not.

A name that ends in 4 or 5 is for that version of OCaml only.
"""

import pathlib
import shutil
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "programs" / "leaks"


def sources(wanted=()):
    """Those for the compiler that is there, or those of them whose names begin with one of these."""
    version = subprocess.run(["ocamlopt", "-version"], capture_output=True, text=True, check=True).stdout
    every = sorted(SOURCES.glob("*.ml"))
    every = [source for source in every if source.stem[-1] not in "45" or version.startswith(source.stem[-1])]
    return [source for source in every if not wanted or source.stem.startswith(tuple(wanted))]


def compiled(source, folder):
    """The program of a source, compiled in a folder of its own in this one."""
    folder = folder / source.stem
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, folder)
    command = ["ocamlopt", "-thread", "-I", "+unix", "-g", "-w", "-a", "unix.cmxa", "threads.cmxa"]
    subprocess.run([*command, source.name, "-o", source.stem], cwd=folder, check=True)
    return folder / source.stem
