"""A trace whose rate changes as the program does, to keep a budget or because it was asked for.

HEAPTAP_BUDGET_RUNS says how many runs are compared with the collector's counters: 4, and 50 in `make test-long`.
"""

import contextlib
import os
import re
import stat
import subprocess
from math import sqrt

from bench import equal, expect, family, scenario
from commands import LONG, Asked
from series import question

RUNS = int(os.environ.get("HEAPTAP_BUDGET_RUNS", 4))
ROUNDS, UNITS, QUIET = 3, 1500, 0.3


def budgeted(bench, budget, name="trace.ctf", **more):
    variables = bench.preload(name, HEAPTAP_BUDGET=budget, **more)
    del variables["HEAPTAP_RATE"], variables["HEAPTAP_SEED"]
    return {**variables, **more}


def truth(printed):
    """The words that the collector has counted."""
    return float(printed.split()[-3])


def allocated(bench, *files):
    totals = question(bench, "report --top 0", *files)["totals"]
    return totals["allocated"], totals["samples"]


def strays(bench, name="trace.ctf"):
    """How many bytes are beside the trace."""
    return os.path.getsize(bench.path(f"{name}.series"))


@contextlib.contextmanager
def listening(bench, *arguments, env=()):
    """The program with phases, while it takes commands."""
    (bench.directory / "run").mkdir(mode=0o700, exist_ok=True)
    environment = {"XDG_RUNTIME_DIR": bench.path("run"), "LD_PRELOAD": bench.library, "HEAPTAP_LISTEN": 1, **dict(env)}
    with subprocess.Popen([bench.program("phases"), *map(str, arguments)], env=bench.environment(environment),
                          cwd=bench.directory, stdout=subprocess.PIPE, text=True) as process:
        try:
            equal(process.stdout.readline(), "ready\n", "its first line")
            yield Asked(bench, process)
        finally:
            process.kill()


def printed_by(program):
    printed = program.process.communicate(timeout=LONG)[0]
    equal(program.process.returncode, 0, "exit status")
    return printed


def close(distances, what):
    """Distances from the truth in standard errors have mean 0 ± 1/√n and, with many runs, mean square 1 ± √(2/n): both
    within 4 sigma."""
    count, said = len(distances), " ".join(f"{distance:.2f}" for distance in distances)
    mean = sum(distances) / count
    expect(abs(mean) < 4 / sqrt(count), f"{what}, {count} runs: {mean:.2f} standard errors off in the mean: {said}")
    if count >= 20:
        square = sum(distance * distance for distance in distances) / count
        expect(square < 1 + 4 * sqrt(2 / count), f"{what}, {count} runs: mean square {square:.2f}: {said}")


@family({"native": ("20%", "phases"), "bytecode": ("20%", "phases.byte")})
def estimates_hold_under_a_budget(bench, budget, program):
    """What the summary of `heaptap run` and what a report say, against the collector's counters. A rate that ends far below
    the one before leaves a report few samples, whose errors are not normal: such runs count for the summary only."""
    summaries, reports = [], []
    for _ in range(RUNS):
        said = run_with(bench, budget, program)
        bench.sound()
        words, line = truth(said.stdout), summary(said)
        summaries.append((line[0] - words) / line[1])
        found, samples = allocated(bench, bench.path("trace.ctf"))
        if samples >= 50:
            reports.append((found["bytes"] / 8 - words) / (found["error"] / 8))
    close(summaries, "summaries")
    if reports:
        close(reports, "reports")


def run_with(bench, budget, program):
    """What `heaptap run` and the program print."""
    command = [bench.heaptap, "run", "--budget", budget, "--no-timeline", "-o", bench.path("trace.ctf"), "--",
               bench.program(program), str(ROUNDS), str(UNITS), str(QUIET)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=bench.directory, timeout=300,
                          env=bench.environment({"HEAPTAP_LIBRARY": bench.library}))
    equal(said.returncode, 0, f"exit status: {said.stderr}")
    return said


def summary(said):
    """The estimate of `heaptap run` and its error, in words."""
    line = re.search(r"(\d+) samples, about (\d+) words ± ([\d.]+)% allocated", said.stderr)
    expect(line and int(line[1]) > 50, said.stderr)
    return float(line[2]), float(line[2]) * float(line[3]) / 100


@scenario
def a_budget_changes_the_rate_and_writes_one_file(bench):
    """On any machine, this program at this rate costs far more than 1 %."""
    with listening(bench, 4, UNITS, QUIET, env=bench.preload(rate=1e-2)) as program:
        expect(program.ask("budget 1%").startswith("ok "), "the budget is refused")
        printed_by(program)
    names = sorted(path.name for path in bench.directory.iterdir() if path.is_file())
    equal(names, ["trace.ctf", "trace.ctf.series"], "files")
    equal(stat.S_IMODE(os.stat(bench.path("trace.ctf.series")).st_mode), 0o600, "mode of the sidecar")
    expect(strays(bench) > 200, "no block was sampled at another rate")
    # Without its sidecar it is a trace at one rate.
    os.remove(bench.path("trace.ctf.series"))
    bench.sound()
    equal(question(bench, "info", bench.path("trace.ctf"))["sample_rate"], 1e-2, "its rate")


@scenario
def a_budget_begins_at_a_rate_that_one_can_expect_to_keep_it(bench):
    bench.run("phases", 1, 10, 0, env=budgeted(bench, "1%"))
    equal(question(bench, "info", bench.path("trace.ctf"))["sample_rate"], 0.01 / 2 ** 7,
          "its rate: the first one of the grid below 1e-4")


@scenario
def the_highest_rate_is_kept(bench):
    """A rate beside a budget is the highest one."""
    environment = budgeted(bench, "50%")
    environment["HEAPTAP_RATE"] = "1e-6"
    printed = bench.run("phases", ROUNDS, UNITS, QUIET, env=environment).out
    _, samples = allocated(bench, bench.path("trace.ctf"))
    most = truth(printed) * 1e-6
    expect(samples < most + 5 * sqrt(most), f"{samples} samples, at most about {most:.0f}")


@scenario
def budgets_and_rates_are_changed_by_commands(bench):
    with listening(bench, 4, UNITS, QUIET, env=bench.preload(rate=1e-3)) as program:
        file = bench.path("trace.ctf")
        equal(program.ask("rate 0.0001"), f"ok file={file}", "the answer to rate")
        expect("rate=0.0001 budget=0 " in program.ask("status"), "the rate has not changed")
        answer = program.ask("budget 5%")
        equal(answer, f"ok file={file} rate=0.0001 budget=0.05", "the answer to budget")
        expect(" budget=0.05 cost=" in program.ask("status"), "no budget in the status")
        expect(program.ask("budget 0.001%").startswith("error 0.001% is no budget: from 0.01%"), "a budget below all")
        expect(program.ask("budget 60%").startswith("error 60% is no budget"), "a budget above all")
        answer = program.ask("budget off")
        expect(re.fullmatch(rf"ok file={file} rate=[0-9.]+ budget=0", answer), answer)
        equal(program.ask("rate 0.001"), f"ok file={file}", "the answer to rate")
        expect(" budget=0 " in program.ask("status"), "a rate does not end the budget")
        expect(program.ask("rotate").startswith("error the trace is one file"), "rotation of one file")
        printed = printed_by(program)
    bench.sound()
    found, samples = allocated(bench, bench.path("trace.ctf"))
    distance = (found["bytes"] / 8 - truth(printed)) / (found["error"] / 8)
    expect(abs(distance) < 4.5, f"{found} is {distance:.1f} standard errors from {truth(printed)}")


@scenario
def what_a_rate_without_samples_hides_is_in_the_error(bench):
    """At one in ten million words nothing of two million is sampled, in four of five runs: no estimate may pretend to know
    them."""
    with listening(bench, 1, 1, 2, env=bench.preload(rate=0.05)) as program:
        equal(program.ask("rate 0.0000001"), f"ok file={bench.path('trace.ctf')}", "the answer to rate")
        printed = printed_by(program)
    bench.sound()
    found, samples = allocated(bench, bench.path("trace.ctf"))
    expect(samples < truth(printed) * 0.05 / 2, f"{samples} samples: the rate has not changed in time")
    distance = (found["bytes"] / 8 - truth(printed)) / (found["error"] / 8)
    expect(abs(distance) < 4.5, f"{found} is {distance:.1f} standard errors from {truth(printed)}")
    expect(found["high"] / 8 > truth(printed), f"{found} excludes {truth(printed)}")


@scenario
def a_trace_is_started_with_a_budget_and_as_a_series(bench):
    (bench.directory / "parts").mkdir()
    file = bench.path("parts/s.ctf")
    with listening(bench, 4, UNITS, QUIET) as program:
        answer = program.ask(f"start {file} 0.001 budget=5%25 rotate=asked keep=3 wait={LONG}")
        expect(answer.startswith(f"ok file={bench.path('parts/s.000001.ctf')} rate="), answer)
        expect(" budget=0.05 " in program.ask("status"), "no budget in the status")
        for number in (2, 3, 4):
            equal(program.ask("rotate"), f"ok file={bench.path(f'parts/s.00000{number}.ctf')}", "the answer to rotate")
        expect(program.ask(f"stop wait={LONG}").startswith("ok"), "stop")
        for wrong, part in (("keep=3", "rotate=WHEN"), ("rotate=1", "at least 64KB"), ("rotate=asked keep=1", "from 2"),
                            ("budget=90%", "no budget")):
            answer = program.ask(f"start {file} {wrong}")
            expect(answer.startswith("error") and part in answer, f"start {wrong}: {answer}")
        printed_by(program)
    traces = sorted(path.name for path in (bench.directory / "parts").glob("*.ctf"))
    equal(traces, ["s.000002.ctf", "s.000003.ctf", "s.000004.ctf"], "traces that are kept")
    question(bench, "report --top 0", bench.path("parts"))


@scenario
def forked_children_have_budgets_of_their_own(bench):
    bench.run("endings", "fork", env=budgeted(bench, "5%", name="t-%p.ctf"), code=None)
    traces = sorted(bench.directory.glob("t-*.ctf"))
    expect(len(traces) >= 2, f"{traces}")
    for trace in traces:
        expect(os.path.exists(f"{trace}.series"), f"{trace.name} has no sidecar")
        bench.sound(trace.name)


@scenario
def a_budget_needs_a_file(bench):
    os.mkfifo(bench.path("trace.ctf"))
    # There is a reader before the program looks for one.
    reader = os.open(bench.path("trace.ctf"), os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = bench.run("phases", 1, 1, 0, env=budgeted(bench, "1%"))
    finally:
        os.close(reader)
    expect("is no file" in result.err and "name a file" in result.err, result.err)


@scenario
def what_is_left_of_an_earlier_series_does_not_count(bench):
    bench.run("phases", ROUNDS, UNITS, QUIET, env=budgeted(bench, "1%"))
    expect(os.path.exists(bench.path("trace.ctf.series")), "no sidecar")
    bench.run("phases", 1, 10, 0, env=bench.preload(rate=0.01))
    expect(not os.path.exists(bench.path("trace.ctf.series")), "the sidecar of the run before is left")
    bench.sound()


@scenario
def values_that_are_no_budget_are_refused(bench):
    for value in ("1", "0%", "200%", "nan%", "much"):
        result = bench.run("phases", 1, 1, 0, env=budgeted(bench, value))
        expect(f"HEAPTAP_BUDGET={value} is not a share" in result.err, result.err)
        said = subprocess.run([bench.heaptap, "run", "--budget", value, "--", bench.program("phases"), "1", "1", "0"],
                              capture_output=True, text=True, cwd=bench.directory, env=bench.environment())
        equal(said.returncode, 2, f"exit status of --budget {value}")
        expect("percent sign" in said.stderr, said.stderr)


@scenario
def a_run_says_what_its_budget_has_bought(bench):
    said = run_with(bench, "20%", "phases")
    expect(re.search(r"tracing took [\d.]+ % of the program's processor time, of which [\d.]+ s; the budget was 20 %",
                     said.stderr), said.stderr)
