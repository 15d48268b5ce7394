"""A trace that is a series of files, and is read as one.

HEAPTAP_SERIES_KILLS says how many programs are killed while they rotate: 3, and 24 in `make test-long`.
"""

import json
import math
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time

from bench import equal, expect, scenario

KILLS = int(os.environ.get("HEAPTAP_SERIES_KILLS", 3))
ROUNDS = 25000


def series(bench, rotate, keep=1000, name="parts/s.ctf", rate=1, **more):
    """The variables that request a series."""
    (bench.directory / "parts").mkdir(exist_ok=True)
    return {**bench.preload(name, rate), "HEAPTAP_ROTATE": rotate, "HEAPTAP_KEEP": keep, **more}


def parts(bench):
    return sorted(path for path in (bench.directory / "parts").iterdir() if path.suffix == ".ctf")


def question(bench, verb, *files, code=(0,)):
    command = [bench.heaptap, *verb.split(), "--json", *map(str, files)]
    answer = subprocess.run(command, capture_output=True, timeout=300)
    expect(answer.returncode in code, f"{verb}: {answer.returncode}, {answer.stderr.decode()[-500:]}")
    return json.loads(answer.stdout)


def sizes(bench, *files, metrics=("allocated", "promoted", "peak", "live")):
    """What a report says, without what depends on time."""
    found = {}
    for metric in metrics:
        report = question(bench, f"report --metric {metric} --top 1000", *files)
        found[metric] = report["table"]["rows"], report["table"]["total"]
        found["totals"] = {key: report["totals"][key] for key in
                           ("allocated", "external", "peak", "live_at_peak", "live", "live_young", "promotion")}
        found["survivors"] = report["totals"]["survivors"]
    return found


def remove(part):
    for suffix in ("", ".series", ".probes"):
        if os.path.exists(f"{part}{suffix}"):
            os.remove(f"{part}{suffix}")


def all_sound(bench):
    for part in parts(bench):
        bench.sound(f"parts/{part.name}")
        expect(os.path.exists(f"{part}.series"), f"{part.name} has no sidecar")
    checked = subprocess.run([bench.heaptap, "check", "--strict", bench.path("parts")], capture_output=True, text=True)
    expect(checked.returncode == 0 and ": sound\n" in checked.stdout, checked.stdout + checked.stderr)
    compared = sum(map(int, re.findall(r" (\d+) boundar", checked.stdout)))
    boundaries = len(parts(bench)) - checked.stdout.count("  series: ")
    expect(compared == boundaries and "not compared" not in checked.stdout, checked.stdout)


@scenario
def a_series_has_the_figures_of_one_trace(bench):
    # With a small young heap: what no collection has seen yet counts as alive, and would take half of a part.
    young = {"OCAMLRUNPARAM": "s=4k"}
    for drops in (0, 1):
        # When the collector collects depends on addresses: runs are of two or three kinds, whatever is written.
        for _ in range(12):
            bench.run("rotated", ROUNDS, 0, drops, env=series(bench, "500KB", **young))
            bench.run("rotated", ROUNDS, 0, drops, env={**bench.preload("one.ctf"), **young})
            found = [sizes(bench, bench.path(name), metrics=("live",)) for name in ("parts", "one.ctf")]
            if found[0] == found[1]:
                break
            for part in parts(bench):
                remove(part)
        expect(len(parts(bench)) >= 20, f"{len(parts(bench))} parts; {found}")
        all_sound(bench)
        equal(sizes(bench, bench.path("parts")), sizes(bench, bench.path("one.ctf")), "the report of the series")
        # What is alive is known without the oldest parts.
        for part in parts(bench)[:-4]:
            remove(part)
        only = ("live",)
        equal(sizes(bench, bench.path("parts"), metrics=only)["live"],
              sizes(bench, bench.path("one.ctf"), metrics=only)["live"], "what is alive, without the oldest parts")
        for part in parts(bench):
            remove(part)


@scenario
def check_finds_what_is_lost_or_counted_twice_between_files(bench):
    def check(*says):
        answer = subprocess.run([bench.heaptap, "check", bench.path("parts")], capture_output=True, text=True)
        equal(answer.returncode, 1, answer.stdout + answer.stderr)
        lines = answer.stdout.replace("\n    ", " ").splitlines()
        expect(any(all(word in line for word in says) for line in lines), f"{says} are not in {answer.stdout}")
        expect(any(line.startswith("  first defect: ") for line in lines), answer.stdout)

    bench.run("rotated", 10000, 0, 0, env=series(bench, "500KB", OCAMLRUNPARAM="s=4k"))
    all_sound(bench)
    names = parts(bench)
    middle, following = names[4], names[5]
    # The tail of a trace goes.
    whole = middle.read_bytes()
    middle.write_bytes(whole[:len(whole) * 2 // 3])
    check(f"{following.name}.series: ", "not alive at the end of ", middle.name)
    middle.write_bytes(whole)
    all_sound(bench)
    # One part is there twice.
    copies = [following.with_name(f"copy.ctf{suffix}") for suffix in ("", ".series")]
    for copy, suffix in zip(copies, ("", ".series")):
        with open(f"{following}{suffix}", "rb") as one:
            copy.write_bytes(one.read())
    check("part 6 of its series, as ")
    for copy in copies:
        copy.unlink()
    # A sidecar without its tail: what became of earlier blocks is lost.
    sidecar = f"{middle}.series"
    with open(sidecar, "rb") as one:
        listed = one.read()
    base_only = 8
    with open(sidecar, "wb") as one:
        # Chunks: their length, their checksum, their records. The last ones have the ends.
        chunks = []
        while base_only < len(listed):
            size = 8 + int.from_bytes(listed[base_only:base_only + 4], "little")
            chunks.append(listed[base_only:base_only + size])
            base_only += size
        expect(len(chunks) > 2, f"{len(chunks)} chunks")
        one.write(listed[:8] + b"".join(chunks[:-2]))
    check(f"{following.name}.series: ", "alive at the end of ", "not listed")
    with open(sidecar, "wb") as one:
        one.write(listed)
    remove(middle)
    check("first defect: ", "part 5, which is missing")


def dumped(bench, *traces):
    """The events of traces in which every block is sampled: by id what became of it, and the order of the allocations."""
    blocks, order, last = {}, [], None
    output = bench.run(bench.heaptap, "dump", "--json", *traces).out
    for line in output.splitlines():
        event = json.loads(line)
        if event["event"] == "alloc":
            stack = [[place["definition"] for place in frame["locations"]] for frame in event["frames"]]
            own = stack[-1:] if stack else []
            expect(event["id"] not in blocks, f"{event['id']} is allocated twice")
            blocks[event["id"]] = [event["length"], event["samples"], event["source"], own]
            order.append(event["id"])
        else:
            blocks[event["id"]].append(event["event"])
        if event["time_us"] >= 0:
            expect(last is None or event["time_us"] >= last, f"{event} is before {last}")
            last = event["time_us"]
    return [blocks[block] for block in order]


def joined_is_one_trace(bench, found):
    """What `recode`, `thin` and `anonymise` make of the parts has these events, and the figures of the series."""
    for verb in ("recode", "anonymise", "thin --rate 1 --seed 5"):
        bench.run(bench.heaptap, *verb.split(), bench.path("parts"), bench.path("joined.ctf"))
        bench.sound("joined.ctf")
        events = dumped(bench, bench.path("joined.ctf"))
        # Names differ in an anonymous trace.
        bare = [block[:3] + block[4:] for block in events], [block[:3] + block[4:] for block in found]
        expect(bare[0] == bare[1], f"{verb}: {len(events)} blocks, not {len(found)}")
        if verb != "anonymise":
            expect(events == found, f"{verb}: the stacks differ")
            equal(sizes(bench, bench.path("joined.ctf")), sizes(bench, bench.path("parts")), f"the report after {verb}")


@scenario
def dump_and_info_have_the_events_of_one_trace(bench):
    environment = series(bench, "300KB", OCAMLRUNPARAM="s=4k")
    bench.run("rotated", 3000, 0, 0, env=environment)
    all_sound(bench)
    found = dumped(bench, bench.path("parts"))
    # Where the first collection comes depends on addresses: runs are of two or three kinds.
    for _ in range(12):
        bench.run("rotated", 3000, 0, 0, env={**bench.preload("one.ctf"), "OCAMLRUNPARAM": "s=4k"})
        one = dumped(bench, bench.path("one.ctf"))
        if one == found:
            break
    expect(one == found, f"{len(found)} blocks, and {len(one)} in one trace")
    facts, of_one = (question(bench, "info", bench.path(name)) for name in ("parts", "one.ctf"))
    for figure in ("allocations", "promotions", "collections", "samples"):
        equal(facts["events"][figure], of_one["events"][figure], figure)
    equal(facts["words"], of_one["words"]["words"], "words")
    equal([file["part"] for file in facts["files"]], list(range(1, len(parts(bench)) + 1)), "parts")
    equal(facts["bytes"], sum(path.stat().st_size for path in (bench.directory / "parts").iterdir()), "bytes")
    equal(len(facts["stretches"]), 1, "stretches")
    joined_is_one_trace(bench, found)
    # Without the first parts: what is alive then, and what comes later.
    for part in parts(bench)[:3]:
        remove(part)
    rest = question(bench, "info", bench.path("parts"))
    later = sum(question(bench, "info", part)["events"]["allocations"] for part in parts(bench))
    equal(rest["events"]["allocations"], later, "allocations of the parts that are left")
    events = [json.loads(line) for line in bench.run(bench.heaptap, "dump", "--json", bench.path("parts")).out.splitlines()]
    before = [event for event in events if event["event"] == "alloc" and event["time_us"] < 0]
    equal(len(before), rest["events"]["alive_before"], "blocks alive before the first part")
    equal([event["id"] for event in before], sorted(event["id"] for event in before), "in the order of births")
    expect(all(event["sample_rate"] == 1 for event in events if event["event"] == "alloc"), "rates")
    said = bench.run(bench.heaptap, "recode", bench.path("parts"), bench.path("rest.ctf")).err
    expect(f"{len(before)} sampled blocks alive when the first trace begins left out" in said, said)
    bench.sound("rest.ctf")
    equal(question(bench, "info", bench.path("rest.ctf"))["events"]["allocations"], later, "allocations of the rest")


def held_by_kept(bench, heap, *options):
    """What the join says of all that the variable `kept` of programs/rotated retains."""
    return json.loads(subprocess.check_output([bench.heaptap, "heap", "--json", "--by", "site", "-n", "0", "--within",
                                               "^Rotated, field 0$", *options, heap]))


@scenario
def a_snapshot_joins_the_blocks_of_all_parts(bench):
    heap = bench.path("end.heap")
    snapshot = {"HEAPTAP_SNAPSHOT": "exit", "HEAPTAP_SNAPSHOT_FILE": heap}
    bench.run("rotated", 10000, 0, 0, env=series(bench, "500KB", OCAMLRUNPARAM="s=4k", **snapshot))
    all_sound(bench)
    expect(len(parts(bench)) > 8, f"{len(parts(bench))} parts")
    # At rate 1, the samples are all that it retains. So they are when the first parts are gone.
    for gone in (0, 5):
        for part in parts(bench)[:gone]:
            remove(part)
        for options in ((), ("--trace", bench.path("parts")), ("--trace", parts(bench)[0])):
            joined = held_by_kept(bench, heap, *options)
            expect(joined["exact_bytes"] > 10000 // 7 * 11 * 8, joined)
            equal(joined["estimated"]["bytes"], joined["exact_bytes"], f"bytes of the samples, without {gone} parts")
    report = question(bench, "report --metric live --top 0 --heap " + heap, bench.path("parts"))
    row, = [row for row in report["table"]["rows"] if row["name"].endswith("Rotated.leak")]
    equal(row["in_snapshot"]["bytes"], row["bytes"], "what is alive of Rotated.leak, and in the snapshot")
    for part in parts(bench):
        remove(part)
    # At several rates, within the stated error.
    environment = series(bench, "asked", rate=0.05, HEAPTAP_LISTEN=1, **snapshot)
    with subprocess.Popen([bench.program("rotated"), "20000", "0.002"], cwd=bench.directory, stdout=subprocess.PIPE,
                          env=bench.environment(environment)) as program:
        program.stdout.readline()
        for rate in ("0.2", "0.02"):
            time.sleep(0.2)
            bench.run(bench.heaptap, "rate", program.pid, rate)
        program.communicate(timeout=300)
    equal(len(parts(bench)), 3, "parts")
    joined = held_by_kept(bench, heap)
    found, exact = joined["estimated"], joined["exact_bytes"]
    off = (found["bytes"] - exact) / found["error"]
    print(f"{found['bytes']:.0f} ± {found['error']:.0f}, {off:.2f} standard errors from {exact}")
    expect(abs(off) < 4.5, f"{found} is {off:.1f} standard errors from {exact}")


@scenario
def a_leak_is_found_whose_first_parts_are_gone(bench):
    bench.run("rotated", 25000, 0.01, env=series(bench, "500KB", keep=6))
    numbers = [int(part.name.split(".")[1]) for part in parts(bench)]
    expect(len(numbers) <= 6 and numbers[0] > 4, f"the parts {numbers} are kept")
    all_sound(bench)
    found = question(bench, "leaks", bench.path("parts"))
    expect(any("leak" in json.dumps(leak) for leak in found["leaks"]), f"leaks: {json.dumps(found)[:2000]}")


@scenario
def what_is_killed_while_it_rotates_is_sound(bench):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(KILLS):
        with subprocess.Popen([bench.program("rotated"), "100000000"], cwd=bench.directory, stdout=subprocess.DEVNULL,
                              env=bench.environment(series(bench, "300KB", keep=8))) as program:
            time.sleep(0.3 + chance.random())
            program.send_signal(signal.SIGKILL)
        expect(len(parts(bench)) <= 8, f"{len(parts(bench))} parts are kept")
    # The last part of each process is cut short, and says so.
    for part in parts(bench):
        check = subprocess.run([bench.heaptap, "check", "--strict", part], capture_output=True)
        said = (check.stdout + check.stderr).decode()
        expect(check.returncode == 0, f"{part.name}: {said[-500:]}")
    whole = question(bench, "report --metric allocated --top 0", bench.path("parts"), code=(0, 1))
    each = [question(bench, "report --top 0", part) for part in parts(bench) if os.path.getsize(part)]
    samples = sum(report["totals"]["samples"] for report in each)
    equal(whole["totals"]["samples"], samples, "samples of the series, and of its parts")


@scenario
def estimates_hold_over_changes_of_the_rate(bench):
    bench.run("rotated", 40000, 0, env=bench.preload("one.ctf"))
    exact = question(bench, "report --top 0", bench.path("one.ctf"))
    truth = exact["totals"]["allocated"]["bytes"]
    environment = series(bench, "asked", rate=1e-2, HEAPTAP_LISTEN=1)
    with subprocess.Popen([bench.program("rotated"), "40000", "0.002"], cwd=bench.directory, stdout=subprocess.PIPE,
                          env=bench.environment(environment)) as program:
        program.stdout.readline()
        for rate in ("1e-4", "0.1", "1e-2"):
            time.sleep(0.2)
            subprocess.run([bench.heaptap, "rate", str(program.pid), rate], check=True, capture_output=True)
        program.communicate(timeout=300)
    equal(len(parts(bench)), 4, "parts")
    all_sound(bench)
    report = question(bench, "report --top 0", bench.path("parts"))
    equal(report["sample_rates"], [1e-4, 1e-2, 0.1], "rates")
    facts = question(bench, "info", bench.path("parts"))
    equal([rate["sample_rate"] for rate in facts["rates"]], report["sample_rates"], "rates in info")
    equal([stretch["sample_rate"] for stretch in facts["stretches"]], [1e-2, 1e-4, 0.1, 1e-2], "stretches")
    expect(math.isclose(facts["allocated_bytes"], report["totals"]["allocated"]["bytes"], rel_tol=1e-9), f"{facts} {report['totals']}")
    expect(math.isclose(facts["allocated_bytes"] * facts["relative_error"], report["totals"]["allocated"]["error"], rel_tol=1e-6),
           f"{facts} {report['totals']}")
    sampled = {}
    for line in bench.run(bench.heaptap, "dump", "--json", bench.path("parts")).out.splitlines():
        event = json.loads(line)
        if event["event"] == "alloc":
            sampled[event["sample_rate"]] = sampled.get(event["sample_rate"], 0) + event["samples"]
    equal(sampled, {rate["sample_rate"]: rate["samples"] for rate in facts["rates"]}, "samples by rate in dump and info")
    for verb in ("recode", "anonymise"):
        refused = subprocess.run([bench.heaptap, verb, bench.path("parts"), bench.path("joined.ctf")], capture_output=True, text=True)
        equal(refused.returncode, 2, refused.stderr)
        expect("several rates (0.0001, 0.01, 0.1)" in refused.stderr and "thin --rate 0.0001 " in refused.stderr, refused.stderr)
        expect(not os.path.exists(bench.path("joined.ctf")), "there is a copy")
    bench.run(bench.heaptap, "thin", "--rate", "1e-4", bench.path("parts"), bench.path("thin.ctf"))
    bench.sound("thin.ctf")
    thin = question(bench, "report --top 0", bench.path("thin.ctf"))["totals"]["allocated"]
    off = (thin["bytes"] - truth) / math.sqrt(truth * 8 / 1e-4)
    print(f"thinned to 1e-4: {thin['bytes']:.0f}, {off:.2f} standard errors from {truth:.0f}")
    expect(abs(off) < 4.5, f"{thin} is {off:.1f} standard errors from {truth}")
    found = report["totals"]["allocated"]
    off = (found["bytes"] - truth) / found["error"]
    print(f"{found['bytes']:.0f} ± {found['error']:.0f}, {off:.2f} standard errors from {truth:.0f}")
    expect(abs(off) < 4.5, f"{found} is {off:.1f} standard errors from {truth}")
    # Each block counts by its own rate: the lowest alone would give this error.
    lowest = math.sqrt(truth * 8 / 1e-4)
    expect(found["error"] < 0.8 * lowest, f"{found} has an error as if all were sampled at 1e-4: {lowest}")
    # So do the rows: of a dozen, hardly one is so far off.
    truths = {row["name"]: row["bytes"] for row in exact["table"]["rows"]}
    compared = [row for row in report["table"]["rows"] if row["name"] in truths and row["samples"] >= 20]
    for row in compared:
        off = (row["bytes"] - truths[row["name"]]) / row["error"]
        expect(abs(off) < 5, f"{row['name']}: {row['bytes']} is {off:.1f} standard errors from {truths[row['name']]}")
    expect(compared, "no row has 20 samples")


@scenario
def what_watches_a_series_follows_it_from_file_to_file(bench):
    """The directory and the process, at one rate and at several."""
    for rates in ((), ("0.3", "0.7")):
        environment = series(bench, "200KB", HEAPTAP_LISTEN=1, OCAMLRUNPARAM="s=4k")
        with subprocess.Popen([bench.program("rotated"), "6000", "0.02"], cwd=bench.directory, stdout=subprocess.PIPE,
                              env=bench.environment(environment)) as program:
            program.stdout.readline()
            tops = []
            while len(parts(bench)) < 3:
                time.sleep(0.05)
            for target in (bench.path("parts"), str(program.pid)):
                tops.append(subprocess.Popen([bench.heaptap, "top", "--json", target], stdout=subprocess.PIPE))
            for rate in rates:
                time.sleep(0.3)
                bench.run(bench.heaptap, "rate", program.pid, rate)
            program.communicate(timeout=300)
        expect(len(parts(bench)) > 5, f"{len(parts(bench))} parts")
        said = [[json.loads(line) for line in top.communicate(timeout=300)[0].splitlines()] for top in tops]
        found = question(bench, "report --metric live --top 0", bench.path("parts"))["totals"]
        for lines in said:
            equal([line["state"] for line in lines], ["live"] * (len(lines) - 1) + ["ended"], "the states")
            for figure in ("live", "allocated", "peak", "samples"):
                equal(lines[-1]["totals"][figure], found[figure], f"{figure} in top and in the report, rates {rates}")
        once = bench.run(bench.heaptap, "top", "--once", bench.path("parts")).out
        expect(" ended after " in once and "Rotated.leak" in once, once)
        for part in parts(bench):
            remove(part)


def bytes_on_disk(directory):
    """Of all files, hidden ones too."""
    found = 0
    for entry in os.scandir(directory):
        try:
            found += entry.stat().st_size
        except FileNotFoundError:
            pass
    return found


@scenario
def the_bound_on_disk_always_holds(bench):
    """Although parts take more than they should, and other processes write into the same directory."""
    part, keep = 200_000, 4
    environment = series(bench, "200KB", keep=keep)
    for _ in range(3):
        with subprocess.Popen([bench.program("rotated"), "100000000"], cwd=bench.directory, stdout=subprocess.DEVNULL,
                              env=bench.environment(environment)) as program:
            most, last, end = 0, 0, time.monotonic() + 3
            while time.monotonic() < end:
                # While nothing changes: else a file that was counted gives way to another one that is.
                program.send_signal(signal.SIGSTOP)
                os.waitpid(program.pid, os.WUNTRACED)
                most = max(most, bytes_on_disk(bench.directory / "parts"))
                program.send_signal(signal.SIGCONT)
                time.sleep(0.001)
            last = parts(bench)[-1].name
            program.send_signal(signal.SIGKILL)
        print(f"at most {most} of {part * keep} bytes, up to {last}")
        expect(most <= part * keep, f"{most} bytes are on disk, where {part * keep} may be")
        expect(most > part * keep // 3, f"{most} bytes at most: more than needed was removed")


@scenario
def a_series_of_a_running_program(bench):
    """`start` with `rotate=` and `keep=`, again and again, while others rotate and start."""
    from commands import asked
    (bench.directory / "parts").mkdir()
    with asked(bench, "busy", program="switched", prints=b"all right\n") as program:
        for line, why in [("keep=3", "add rotate=WHEN"), ("rotate=1B", "a size (such as"), ("rotate=1MB keep=1", "from 2 to")]:
            answer = program.ask(f"start {bench.path('parts/s.ctf')} 1 {line}")
            expect(answer.startswith("error ") and why in answer, answer)
        expect("one file" not in program.ask("rotate"), program.ask("rotate"))
        stop = threading.Event()
        odd = []

        def others():
            while not stop.is_set():
                for line in ("rotate", "rate 0.5", "status", "rotate", "rate 1"):
                    answer = program.ask(line)
                    if not answer.startswith(("ok", "error the program is not traced", "error the trace has ended")):
                        odd.append((line, answer))
                # Goes away before the answer.
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(str(program.socket))
                    client.sendall(b"rotate\n")

        threads = [threading.Thread(target=others) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(8):
                answer = program.ask(f"start {bench.path('parts/s.ctf')} 1 rotate=asked keep=1000 wait=60")
                expect(answer.startswith("ok "), answer)
                time.sleep(0.3)
                answer = program.ask("stop wait=60")
                expect(answer.startswith("ok ") and " lost=0 " in answer, answer)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        equal(odd, [], "odd answers")
    expect(len(parts(bench)) > 16, f"{len(parts(bench))} parts")
    all_sound(bench)
    for part in parts(bench):
        check = subprocess.run([bench.heaptap, "check", "--strict", part], capture_output=True)
        expect(check.returncode == 0, f"{part.name}: {check.stderr.decode()[-500:]}")
    question(bench, "report --top 0", bench.path("parts"))
