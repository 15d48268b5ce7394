"""Programs that use liblua."""

from bench import equal, expect, scenario


def lines(bench, line, words=7):
    return sum(1 for alloc in bench.allocs() if alloc.line() == line and alloc.words == words)


@scenario
def a_state_in_each_thread(bench):
    """Four threads with three states each, one after the other, beside one that stays open: what is closed has ended."""
    bench.same(bench.built("host"), "threads", oracle=True)
    bench.sound()
    counted, live = bench.counted()
    traced = bench.traced()
    equal(traced, counted, "what was traced")
    equal(lines(bench, 3), 13 * 6000, "tables")
    expect(live > 0, "the last state was not closed")


@scenario
def one_state_after_the_other(bench):
    """When a state is made, what those before have left is dead; the last one's is alive."""
    bench.same(bench.built("host"), "reopened", oracle=True)
    bench.sound()
    equal(lines(bench, 3), 3 * 6000, "tables")
    ended = {line.split(" ")[2] for line in bench.dump() if line.endswith(" collect")}
    tables = [alloc.id in ended for alloc in bench.allocs() if alloc.line() == 3 and alloc.words == 7]
    expect(all(tables[:12000]), "a table of a closed state is alive")
    alive = tables[12000:].count(False)
    expect(600 <= alive < 6000, f"{alive} tables of the last state are alive")


@scenario
def memory_that_cannot_be_had(bench):
    bench.same(bench.built("host"), "refused", oracle=True)
    bench.sound()
    # Closing makes a table for finalisers.
    equal(bench.traced().blocks, bench.counted()[0].blocks - 1, "blocks")


@scenario
def errors_in_threads(bench):
    """A thread that an error has ended does not run any more."""
    bench.same(bench.built("host"), "errors")
    equal(lines(bench, 3), 6000, "tables")
    expect(all(len(alloc.frames) <= 1 for alloc in bench.allocs() if alloc.line() == 3), "a stack has other frames")
