"""Hosts that were compiled with an older header, on today's library."""

from bench import expect, scenario


@scenario
def the_first_header(bench):
    """A host of version 0.1.0 traces as ever: 100 young blocks, one in the major heap, one outside."""
    result = bench.run("old_host", bench.path("old.ctf"), code=None)
    expect(result.code == 0, f"ended with {result.code}: {result.out.strip()[-1500:]} {result.err.strip()[-500:]}")
    bench.check(bench.path("old.ctf"))
    events = [event for event in bench.dump(bench.path("old.ctf")) if event.kind == "alloc"]
    expect(len(events) == 102, f"{len(events)} allocations, should be 102")
