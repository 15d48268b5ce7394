"""What is kept is found by its lines, with Ruby's own collections as evidence."""

from bench import expect, scenario


@scenario
def by_line(bench):
    bench.trace("leak.rb", rate="1e-2")
    found = bench.tool("leaks", "trace.ctf")
    for line in "leak.rb:3", "leak.rb:10":
        expect(line in found, f"{line} is not among {found[-600:]}")
    expect("leak.rb:9:" not in found, f"garbage is among {found[-600:]}")
