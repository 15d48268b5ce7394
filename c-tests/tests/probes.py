"""Probes of a C host: probes.c in all its groups, and what is in the sidecar."""

import json

from bench import equal, expect, family, scenario


def read(bench, group):
    result = bench.run("probes", group, bench.directory, code=None)
    expect(result.code == 0, f"ended with {result.code}: {result.out.strip()[-1500:]} {result.err.strip()[-500:]}")
    bench.check(bench.path("trace.ctf"))
    said = json.loads(bench.tool("probes", "--json", bench.path("trace.ctf")).out)
    expect(said["complete"] and said["damage"] is None, "the sidecar is not complete")
    return {probe["name"] + (" (value)" if probe["kind"] == "value" else ""): probe for probe in said["probes"]}, said


@scenario
def kinds(bench):
    probes, said = read(bench, "kinds")
    equal(probes["threads/passes"]["total"], 4 * 500_000 * 4, "passes of four threads")
    equal((probes["threads/busy"]["runs"], probes["threads/busy"]["running"]), (4 * 500_000, 0), "intervals of four threads")
    endless = probes["endless"]
    equal((endless["runs"], endless["running"]), (0, 1), "an interval that has not ended")
    expect(20e6 <= endless["total_ns"] < 60e9, f"{endless['total_ns']} ns of at least 20,000,000")
    temperature = probes["temperature (value)"]
    equal([temperature[field] for field in ("last", "least", "greatest")], [19, -3, 20.5], "a value")
    equal(probes["state"]["text"], "ready�", "a text that is no UTF-8")
    equal([line["text"] for line in said["log"]], ["line 1"], "the log")
    equal([stop["text"] for stop in said["stops"]], ["here"], "stops")


@scenario
def swept(bench):
    probes, _ = read(bench, "swept")
    equal((probes["blocks"]["live"], probes["blocks"]["marked"]), (1, 11), "blocks that are swept")
    equal((probes["others"]["live"], probes["others"]["marked"]), (1, 10), "the same blocks with another tag")


@scenario
def by_address(bench):
    probes, _ = read(bench, "by_address")
    equal((probes["blocks"]["live"], probes["blocks"]["marked"]), (8, 11), "blocks that are followed by address")


@scenario
def slices(bench):
    """A C host's collector is in the time line."""
    read(bench, "slices")
    total = json.loads(bench.tool("report", "--timeline", "--json", bench.path("trace.ctf")).out)["total"]
    for kind in ("minor", "major"):
        equal(total[kind]["count"], 5, f"{kind} slices")
        expect(5e6 <= total[kind]["total_ns"] < 60e9 and total[kind]["longest_ns"] >= 1e6, f"{kind} slices: {total[kind]}")
    expect(total["major"]["total_ns"] >= total["minor"]["total_ns"], "an inner slice is longer than the outer one")
    equal(total["finalisers"]["count"], 0, "finalisers")


@scenario
def misuse(bench):
    """Wrong calls get a status; too many probes and lines are refused and counted."""
    probes, said = read(bench, "misuse")
    equal(len(said["probes"]), 4_096, "probes")
    expect(len(said["log"]) + said["lost_log_lines"] == 5_000 and said["log"], f"{len(said['log'])} lines and {said['lost_log_lines']} lost")


@family({"text": (lambda path: path.write_text("precious"),), "link": (lambda path: path.symlink_to("elsewhere"),)})
def nothing_is_destroyed(bench, make):
    """A file that has the sidecar's name stays as it is; one line says so, and the trace is complete."""
    make(bench.directory / "trace.ctf.probes")
    result = bench.run("probes", "kinds", bench.directory)
    bench.check(bench.path("trace.ctf"))
    lines = result.err.splitlines()
    expect(len(lines) == 1 and "trace.ctf.probes" in lines[0] and "goes on without" in lines[0], f"messages: {lines}")
    left = bench.directory / "trace.ctf.probes"
    expect(left.is_symlink() or left.read_text() == "precious", "the file was changed")
    expect(not (bench.directory / "elsewhere").exists(), "the link was followed")
