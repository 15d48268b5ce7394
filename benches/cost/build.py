"""Builds what is measured: the library, the reference runtime's programs, and a host that only calls hooks."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-g", "-pthread"]


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    return done.stdout


def environment(libraries=None, **more):
    """The environment without variables that start a trace; with `libraries` as the directory to load libraries from."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HEAPTAP", "MEMTRACE"))}
    if libraries is not None:
        env["LD_LIBRARY_PATH"] = str(libraries)
    return env | more


class Built:
    """The directories and programs that were built."""

    def __init__(self, options):
        self.directory = Path(options.build).resolve()
        self.c_tests = Path(options.c_tests).resolve()
        self.include = ROOT / "include"
        if options.libdir is None:
            run("cargo", "build", "--release", "--manifest-path", ROOT / "Cargo.toml", "-p", "heaptap")
            target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
            self.libdir = (target / "release").resolve()
        else:
            self.libdir = Path(options.libdir).resolve()
        self.link = ["-rdynamic", "-Wl,-z,now", f"-L{self.libdir}", f"-Wl,-rpath,{self.libdir}", "-lheaptap"]
        self._runtime()
        self._recursion()
        self._hook()
        self._absent()

    def program(self, name):
        own = self.directory / name
        return str(own if own.exists() else self.directory / "plain" / name)

    def _runtime(self):
        run("make", "-s", "-C", self.c_tests, "build", f"BUILD={self.directory}", f"INCLUDE={self.include}",
            f"HEAPTAP_LIBDIR={self.libdir}")

    def _recursion(self):
        runtime = sorted((self.directory / "plain" / "runtime").glob("*.o"))
        run("gcc", *FLAGS, f"-I{self.include}", f"-I{self.c_tests}", HERE / "recursion.c", *runtime, *self.link,
            "-ldl", "-lm", "-o", self.directory / "recursion")

    def _hook(self):
        run("gcc", *FLAGS, f"-I{self.include}", HERE / "hook.c", *self.link, "-o", self.directory / "hook")

    def _absent(self):
        """A library with the plugin's name, all of whose functions report that no trace is requested."""
        self.absent = self.directory / "absent"
        self.absent.mkdir(exist_ok=True)
        header = (self.include / "heaptap.h").read_text(encoding="utf-8")
        not_asked = re.search(r"#define HEAPTAP_STATUS_NOT_ASKED (\d+)", header).group(1)
        exported = run("nm", "-D", "--defined-only", self.libdir / "libheaptap.so")
        names = re.findall(r" T (heaptap_\w+)$", exported, re.MULTILINE)
        source = self.absent / "absent.c"
        source.write_text("".join(f"int {name}(void) {{ return {not_asked}; }}\n" for name in names))
        soname = re.search(r"SONAME +(\S+)", run("objdump", "-p", self.libdir / "libheaptap.so")).group(1)
        run("gcc", "-shared", "-fPIC", source, "-o", self.absent / soname)
