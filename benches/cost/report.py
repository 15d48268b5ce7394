"""Tables and records of measurements."""

import dataclasses
import datetime
import json

from hooks import PARTS
from programs import AGAIN, COUNTED, IDLE, RATES, UNTRACED, WAYS, ratios, ways
from spread import Spread

NAMES = {UNTRACED: "untraced", AGAIN: "untraced, again", IDLE: "loaded, idle"}


def table(head, rows):
    """The lines of a Markdown table with aligned columns."""
    lines = [head] + rows
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]

    def cells(line):
        first = line[0].ljust(widths[0])
        return "| " + " | ".join([first] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2)] + ["-" * (width + 1) + ":" for width in widths[1:]]) + "|"
    return [cells(head), rule] + [cells(row) for row in rows]


def ratio(spread):
    if spread is None:
        return "-"
    return f"{spread.median:.3f} ({spread.lower:.3f} to {spread.upper:.3f})"


def ns(spread):
    digits = 0 if spread.median >= 1000 else 1
    return f"{spread.median:,.{digits}f} ({spread.lower:,.{digits}f} to {spread.upper:,.{digits}f})"


def name_of(way):
    return NAMES.get(way, f"rate {way}")


def program_tables(runs, programs):
    lines = []
    for what, title in (("cpu", "Processor time of all threads"), ("wall", "Wall time")):
        rounds = len(runs[programs[0].name, UNTRACED])
        lines += [f"### {title}: ratio to untraced, median (quartiles) of {rounds} rounds", ""]
        rows = []
        for way in WAYS[1:]:
            spreads = [ratios(runs, program, way, what) for program in programs]
            rows.append([name_of(way)] + [ratio(spread) for spread in spreads])
        medians = [Spread.of([getattr(run, what) for run in runs[program.name, UNTRACED]]) for program in programs]
        rows.insert(0, ["untraced, seconds"] + [f"{spread.median:.3f}" for spread in medians])
        lines += table([""] + [f"{program.name} {program.size}" for program in programs], rows) + [""]
    return lines


def count_tables(counts, programs):
    lines = ["### Instructions by callgrind, of smaller runs: ratio to untraced", "",
             "All: of the whole process, starting and ending the trace included. Own: of the program and its",
             "runtime alone, without the library's and the writer's.", ""]
    head = [""] + [f"{program.name} {program.counted_size}, {which}" for program in programs for which in ("all", "own")]
    rows = []
    for way in COUNTED:
        row = [name_of(way) + (", millions" if way == UNTRACED else "")]
        for program in programs:
            count, plain = counts[program.name, way], counts[program.name, UNTRACED]
            both = [(count.total, plain.total), (own(count, program), own(plain, program))]
            row += [f"{now / 1e6:.2f}" if way == UNTRACED else f"{now / base:.5f}" for now, base in both]
        rows.append(row)
    return lines + table(head, rows) + [""]


def own(count, program):
    return count.by_object[program.name]


def hook_tables(times, counts):
    lines = ["### One sampled block, on its mutator", "",
             "Processor time of a call of heaptap_young_hit in ns, median (quartiles); instructions by callgrind.",
             "Aim: 150 ns and 3 ns for each frame.", ""]
    rows = []
    for case, (hook, sweep) in times.items():
        instructions = f"{counts[case][0]:,.0f}" if case in counts else "-"
        aim = "-" if case in PARTS else f"{case.aim():,}"
        rows.append([case.change, case.rate, f"{case.depth:,}", ns(hook), aim, instructions, f"{sweep.median:.0f}"])
    head = ["since the last sample", "rate", "frames", "ns per block", "aim", "instructions", "sweep, ns"]
    lines += table(head, rows) + [""]
    if not counts:
        return lines
    rooms = sorted({room for _, by_room in counts.values() for room in by_room})
    lines += ["### Where a hook's instructions are", "",
              "Of code inlined from Rust's libraries, as of libc's, it is not known which room called it.", ""]
    rows = []
    for case, (total, by_room) in counts.items():
        what = f"{case.change}, rate {case.rate}, {case.depth:,} frames"
        rows.append([what, f"{total:,.0f}"] + [f"{by_room[room]:,.0f}" for room in rooms])
    return lines + table(["", "all", *rooms], rows) + [""]


def fact_lines(facts):
    return [f"- {name}: {value}" for name, value in facts.items()] + [""]


def write(directory, name, facts, lines, raw):
    """Writes the record as Markdown and JSON. Returns its path."""
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    directory.mkdir(parents=True, exist_ok=True)
    base = directory / f"{stamp}-{name}"
    base.with_suffix(".md").write_text("\n".join([f"# {name}, {stamp}", ""] + fact_lines(facts) + lines))
    base.with_suffix(".json").write_text(json.dumps({"date": stamp, "machine": facts} | raw, indent=1) + "\n")
    return base.with_suffix(".md")


def raw_of(runs, program_counts, hook_times, hook_counts, programs):
    """All measurements."""

    def case_of(case):
        return dataclasses.asdict(case)

    return {
        "programs": [
            {"program": program.name, "size": program.size, "way": way,
             "cpu": [round(run.cpu, 6) for run in runs[program.name, way]],
             "wall": [round(run.wall, 6) for run in runs[program.name, way]]}
            for program in programs for way in ways(program, WAYS)
        ],
        "program instructions": [
            {"program": program.name, "size": program.counted_size, "way": way, "all": count.total,
             "own": own(count, program), "library": count.of_objects("libheaptap")}
            for program in programs for way in COUNTED if (count := program_counts.get((program.name, way)))
        ],
        "hooks": [
            case_of(case) | {"hook ns": dataclasses.asdict(hook), "sweep ns": dataclasses.asdict(sweep)}
            for case, (hook, sweep) in hook_times.items()
        ],
        "hook instructions": [
            case_of(case) | {"all": round(total, 1), "rooms": {room: round(n, 1) for room, n in rooms.items()}}
            for case, (total, rooms) in hook_counts.items()
        ],
        "rates": RATES,
    }
