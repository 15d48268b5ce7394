"""Probes of a C host: probes.c in all its groups, and what is in the sidecar."""

import json

from bench import equal, expect, family, scenario


def read(bench, group):
    result = bench.run("probes", group, bench.directory, code=None)
    expect(result.code == 0, f"ended with {result.code}: {result.out.strip()[-1500:]} {result.err.strip()[-500:]}")
    bench.check(bench.path("trace.ctf"))
    said = json.loads(bench.tool("probes", "--json", bench.path("trace.ctf")).out)
    expect(said["complete"] and said["damage"] is None, "the sidecar is not complete")
    said["printed"] = result.out
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
def rotated(bench):
    """Another file begins with the state of all probes, and nothing is counted in both."""
    first, said = read(bench, "rotated")
    second_file = bench.directory / "second.ctf"
    bench.check(second_file)

    def second(*options):
        read = json.loads(bench.tool("probes", "--json", *options, second_file).out)
        return {probe["name"]: probe for probe in read["probes"]}, read

    begun, _ = second("--at", "0s")
    ended, said_then = second()
    equal((begun["count"]["total"], ended["count"]["total"]), (100, 120), "passes before the file and at its end")
    equal(begun["count"]["total"], first["count"]["total"], "passes at the end of one file and the start of the other")
    expect(80 < 20 / ended["count"]["rate"] * 1000 < 60e3, f"a rate of {ended['count']['rate']}/s for 20 passes in 250 ms")
    for probes in (begun, ended):
        equal([probes["depth"][field] for field in ("last", "least", "greatest")], [20.5] * 3, "a value that was set before")
        equal(probes["state"]["text"], "ready", "a text that was set before")
        equal((probes["timer"]["runs"], probes["timer"]["total_ns"]), (1, first["timer"]["total_ns"]), "a timer that ran before")
        equal((probes["blocks"]["live"], probes["blocks"]["marked"]), (3, 3), "blocks that were marked before")
        expect("last" not in probes["never set"], "a value that was never set has one")
    equal(([line["text"] for line in said["log"]], said_then["log"]), (["line 1"], []), "the log")
    totals = [json.loads(bench.tool("report", "--timeline", "--json", file).out)["total"] for file in (bench.path("trace.ctf"), second_file)]
    equal([total["minor"]["count"] for total in totals], [3, 2], "collections in each of the files")
    expect(all(total["rss_bytes"] for total in totals), "a file does not know the memory of the process")


@scenario
def observed(bench):
    """A function of the host is called on a thread of heaptap, until it is ended."""
    probes, said = read(bench, "observed")
    made = int(said["printed"].partition("calls ")[2].split()[0])
    asked = probes["asked (value)"]
    equal([asked[field] for field in ("last", "least", "greatest")], [made, 1, made], "what the function has returned")
    equal(probes["slow (value)"]["last"], -1, "what the slow function has returned")


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
