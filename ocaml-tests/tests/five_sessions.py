"""Traces of a running program with several domains, started and stopped by commands."""

from bench import expect, family
from commands import asked
from sessions import is_exact, switch


def is_nearly_exact(stopped):
    """The collector's counters forget the last words of a domain that ends."""
    samples, words = int(stopped["samples"]), int(stopped["words"])
    expect(words <= samples <= words + words // 1000 + 100, f"{samples} sampled words, {words} counted")


@family({"that_stay": ("domains", is_exact), "that_come_and_go": ("comings", is_nearly_exact)})
def domains(bench, way, check):
    with asked(bench, way, program="switched", prints=b"all right\n") as program:
        switch(bench, program, check=check)
