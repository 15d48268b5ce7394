#!/usr/bin/env python3
"""Runs the scenarios on OCaml 5, one line each; the last line says how many passed and failed.

    five.py --build DIR --libdir DIR --heaptap PROGRAM --ocaml PREFIX [PATTERN ...]

Those for OCaml 4 that hold for any OCaml are among them, on the same programs built by OCaml 5.
"""

import fnmatch
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import scenarios  # noqa: E402
from bench import Bench  # noqa: E402
import exact, estimates, stacks, loading, endings, tool, commands, sessions, moments, snapshot_failures, heap_types, heap_names, bytecode_heaps  # noqa: E402, E401, F401
import five_exact, five_lives, five_reuse, five_stacks, five_labels, five_probes, five_estimates, five_endings, five_others, five_stress  # noqa: E402, E401, F401
import five_sessions, five_snapshots, five_holders, five_threads, heap, heap_graph, following, five_following, recorder  # noqa: E402, E401, F401

# Of the scenarios for OCaml 4: what is about its stack or its compiler, and what has nothing to do with a version.
NOT_FOR_FIVE = [
    "exact.by_chance.overflow", "exact.overflow*", "exact.plugins*", "estimates.*.weak_*", "endings.own_profile", "endings.not_ocaml",
    "endings.an_unwritable_file", "endings.a_full_disk", "endings.a_wrong_rate",
    "stacks.names_without_debug_information", "stacks.*.overflow", "stacks.as_the_runtime_walks_them.*_bytecode",
    # Where there are several handlers its unwinder goes wrong, see stacks.without_handlers.
    "loading.as_the_runtime_walks_them.*", "tool.not_ocaml", "tool.static", "tool.an_unknown_runtime",
    "tool.another_version.*", "tool.nothing_to_run", "tool.a_file_that_cannot_be_made",
    # Pieces of its heap are not ordered by address.
    "exact.the_same_collections.*",
    # Its stacks are so deep that an overflow takes a second.
    "sessions.started_and_stopped.overflow",
    # The program for OCaml 5 has domains in their place (five_sessions).
    "sessions.started_and_stopped.fifty_threads*", "sessions.started_and_stopped.resized_heaps*",
    "sessions.started_and_stopped.forking*", "sessions.a_program_that_*", "sessions.plugins_between_traces.*",
    # It reserves more than that for its young heaps.
    "tool.a_memory_limit.v_25000",
    # Its copy cannot collect, see five_snapshots.
    "snapshots.*",
    # Of several domains too, see five_estimates.
    "estimates.words_of_each_place.*",
    # OCaml 5.3.0 itself crashes under so many signals: 3 of 5 runs of the program without heaptap.
    "moments.at_random_moments.signals",
]


class Five(Bench):
    """A bench with an installation of OCaml 5."""

    def __init__(self, options, directory):
        super().__init__(options, directory)
        self.ocaml = Path(options.ocaml)
        self.toplevel = str(self.ocaml / "bin/ocaml")
        self.compiler = str(self.ocaml / "bin/ocamlc")
        # See five_stacks.without_handlers.
        self.handlers_are_frames = True
        self.copies_collect = False
        # Of domains that have ended, see five_snapshots.a_domain_that_is_not_swept.
        self.garbage_dangles = True


if __name__ == "__main__":
    scenarios.SCENARIOS[:] = [(name, function) for name, function in scenarios.SCENARIOS
                              if not any(fnmatch.fnmatch(name, pattern) for pattern in NOT_FOR_FIVE)]
    parser = scenarios.parser(__doc__)
    parser.add_argument("--ocaml", required=True)
    sys.exit(scenarios.run("ocaml-tests-5", parser.parse_args(), Five))
