"""At low rates Ruby keeps its fast path; no sample is missed, and no object lives on because it was sampled."""

import math

from bench import SLOT, equal, expect, family, scenario

OBJECTS = 2_000_000


@family({str(rate): (rate,) for rate in (1e-5, 1e-4, 1e-3)})
def samples(bench, rate):
    """Binomial; 5 sigma. The same at 1e-3, where the gate is hardly ever closed."""
    words = OBJECTS * SLOT
    bench.same("many.rb", OBJECTS, rate=rate)
    found = sum(it.samples for it in bench.allocs() if it.frames[-1].startswith("Class#new@")
                and "many.rb:2:" in it.frames[-1])
    sigma = math.sqrt(words * rate)
    print(f"seed 1, rate {rate}: {found} samples, {words * rate:.0f} expected, {(found - words * rate) / sigma:+.2f} sigma")
    expect(abs(found - words * rate) < 5 * sigma, f"{found} samples, {words * rate:.0f} expected")


@scenario
def sampled_objects_die(bench):
    """Without a last collection: only those since the collection before it are not known to be dead, one in a
    hundred here."""
    bench.trace("many.rb", OBJECTS, rate=1e-4)
    made = [it.id for it in bench.allocs() if it.frames[-1].startswith("Class#new@") and "many.rb" in it.frames[-1]]
    dead = bench.ended("collect") & set(made)
    expect(len(dead) > 0.97 * len(made) > 500, f"{len(dead)} of {len(made)} are dead")


@scenario
def another_tool_sees_all(bench):
    result = bench.same("other_tool.rb", rate=1e-5)
    equal(result.out, "20000\n", "objects that the other tool has seen")


@scenario
def a_session_by_the_tool(bench):
    """`heaptap run`, and what the tool says of the trace."""
    done = bench.run("many.rb", 200_000, ruby=(bench.heaptap, "run", "-q", "-r", "1e-3", "-o", "trace.ctf", "--", "ruby"),
                     env={})
    equal(done.out, "", "output")
    expect("CRuby 3.1.2" in bench.tool("info", "trace.ctf"), "info does not name the runtime")
    expect("Class#new" in bench.tool("report", "trace.ctf"), "the report does not name the site")
