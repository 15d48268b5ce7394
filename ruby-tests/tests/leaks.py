"""What is kept is found by its lines, with Ruby's own collections as evidence."""

import json

from bench import equal, expect, scenario


@scenario
def by_line(bench):
    """Those that keep growing, and no garbage."""
    bench.trace("leak.rb", rate="1e-2", env={"HEAPTAP_TIMELINE": 1})
    found = json.loads(bench.tool("leaks", "--json", "trace.ctf"))["leaks"]
    sites = sorted((site["site"]["line"], site["site"]["name"], site["judged"]["verdict"]) for site in found)
    equal(sites, [(3, "Session#initialize", "keeps growing"), (10, "Class#new", "keeps growing")], "sites")


@scenario
def time_line(bench):
    """Collections are on the time line, with the program's own count of them."""
    result = bench.trace("leak.rb", rate="1e-3", env={"HEAPTAP_TIMELINE": 1})
    expect(int(result.out) >= 10, f"major collections: {result.out}")
    shown = bench.tool("report", "--timeline", "trace.ctf")
    expect(" pauses, " in shown and "live est." in shown, f"the time line: {shown[-600:]}")
