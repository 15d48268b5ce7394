"""Five domains, watched while they run. Their packets are not in the order of time, so that the end of a block may come
before its allocation."""

from bench import equal, scenario
from following import LONG, clients, compare, running


@scenario
def five_domains(bench):
    with running(bench, 3, 5) as program:
        following = clients(bench, program)
        equal(program.wait(LONG), 0, "its status")
    for client in following:
        # A pipe cannot be read again in the order of time: only the peak depends on it.
        compare(bench, client, peak=client.what != "-")
