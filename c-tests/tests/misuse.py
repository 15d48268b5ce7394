"""Calls that should not be: misuse.c in all its groups."""

from bench import expect, family, scenario

GROUPS = ("options", "environment", "files", "handles", "hooks", "order", "stopped", "frames", "stacks", "words")


@family({group: (group,) for group in GROUPS})
def group(bench, name):
    result = bench.run("misuse", name, bench.directory, code=None)
    expect(result.code == 0, f"ended with {result.code}: {result.out.strip()[-1500:]} {result.err.strip()[-500:]}")
    for file in bench.directory.glob("*.ctf"):
        bench.check(str(file))


@family({group: (group,) for group in ("sources", "walks")})
def snapshots(bench, name):
    """A host that describes its heap wrongly gets a status and no snapshot; after that a good one is taken."""
    result = bench.run("misuse_snapshots", name, bench.directory, code=None)
    expect(result.code == 0, f"ended with {result.code}: {result.out.strip()[-1500:]} {result.err.strip()[-500:]}")
    expect(result.err == "", f"standard error: {result.err!r}")
    files = sorted(bench.directory.iterdir())
    expect([file.name for file in files] == ["misuse.heap"], f"files that are left: {files}")
    bench.tool("snapshot", "--check", str(files[0]))


# How many of a group's failures a person can do something about: files and the environment.
MESSAGES = {"files": 6, "environment": 7, "options": 0, "hooks": 0, "order": 0, "stopped": 0}


@family({group: (group, most) for group, most in MESSAGES.items()})
def messages(bench, name, most):
    """Standard error has one line for each failure that matters, and none for a wrong call of the host's."""
    lines = bench.run("misuse", name, bench.directory, code=None).err.splitlines()
    expect(len(lines) <= most, f"{len(lines)} lines: {lines[:8]}")
    for line in lines:
        expect(line.startswith("heaptap: "), f"a line that does not say who speaks: {line!r}")


@scenario
def the_other_trace(bench):
    """A file that another process traces into is left alone, and the message says why."""
    result = bench.run("misuse", "files", bench.directory, code=None)
    expect(any("locked.ctf" in line and "not a trace" not in line for line in result.err.splitlines()), result.err)
    events = [event for event in bench.dump(bench.path("locked.ctf")) if event.kind == "alloc"]
    expect(len(events) == 100, f"{len(events)} allocations of the other process, should be 100")
