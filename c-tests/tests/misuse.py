"""Calls that should not be: misuse.c in all its groups."""

from bench import expect, family

GROUPS = ("options", "environment", "files", "handles", "hooks", "order", "stopped", "frames", "stacks", "words")


@family({group: (group,) for group in GROUPS})
def group(bench, name):
    result = bench.run("misuse", name, bench.directory, code=None)
    expect(result.code == 0, f"ended with {result.code}: {result.out.strip()[-1500:]} {result.err.strip()[-500:]}")
    for file in bench.directory.glob("*.ctf"):
        if file.name != "locked.ctf":
            bench.check(str(file))


@family({"files": ("files", 12), "options": ("options", 40), "hooks": ("hooks", 0), "order": ("order", 0)})
def messages(bench, name, most):
    """Standard error has at most a line for each failure that matters, none for a wrong call of a hook."""
    lines = bench.run("misuse", name, bench.directory, code=None).err.splitlines()
    expect(len(lines) <= most, f"{len(lines)} lines: {lines[:5]}")
    for line in lines:
        expect(line.startswith("heaptap: "), f"a line that does not say who speaks: {line!r}")
