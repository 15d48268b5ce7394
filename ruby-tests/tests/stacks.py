"""Stacks are those of the program: files, lines and names."""

from bench import equal, expect, place, scenario


@scenario
def allocation_places(bench):
    """Each object that Ruby's own tracing has seen was allocated at a place that the trace has, too. The other tracer
    has a hook of its own, and sees what it sees without ours."""
    result = bench.same("places.rb")
    found = {(file, line) for it in bench.allocs() for _, file, line in [place(it.frames[-1])]}
    for text in result.out.splitlines():
        file, _, line = text.rpartition(" ")
        expect((file, int(line)) in found, f"nothing was allocated at {text}")
    equal(len(result.out.splitlines()), 10, "objects")


@scenario
def whole_stacks(bench):
    """Frame by frame what `caller_locations` prints. Methods have their class in front of them; the outermost
    frame of every stack is the interpreter's own."""
    result = bench.same("backtraces.rb")
    wanted = [line.rsplit(" ", 2) for line in result.out.splitlines()]
    wanted = [(name, file, int(line)) for name, file, line in reversed(wanted)]
    line, script = wanted[-1][2], wanted[-1][1]
    stacks = [[place(frame) for frame in it.frames] for it in bench.allocs()]
    made = [stack for stack in stacks if stack[-1] == ("Class#new", script, line)]
    # The first is what Ruby makes to remember the method.
    equal(len(made), 2, "objects that were made there")
    plain = [(name.replace("#", ".").rpartition(".")[2] or name, file, line) for name, file, line in made[1]]
    equal(plain[1:-1], wanted, "the stack")
    names = [name for name, _, _ in made[1]]
    expect("Array#each" in names and "Object#inner" in names and "Kernel#eval" in names, f"names: {names}")
