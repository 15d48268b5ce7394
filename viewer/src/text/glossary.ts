// What the words of the page mean: the glossary of its help, and the titles of its terms.

export const GLOSSARY = {
  sample: ["sample", "A word of memory that the tracer happened to choose when its block was allocated, each with the same probability: the sampling rate. Sizes are estimated from samples."],
  error: ["standard error (±)", "How far an estimate typically is from the truth, as a share of it. In 95 of 100 cases the truth is in the 95 % interval, which is about two of them to either side."],
  block: ["block", "What one allocation made: its words and a header. The number of blocks is estimated from those with a sample."],
  allocated: ["allocated", "Everything that was allocated, whatever became of it."],
  live: ["live", "Allocated and not yet collected. What is garbage already, but was not collected yet, counts as live."],
  peak: ["peak", "The moment when most was live. A part of the program may have had its own largest size at another moment."],
  promoted: ["promoted", "Moved from the minor heap to the major heap, because a minor collection found it in use."],
  survived: ["survived", "Live at the end, and seen by a collection: by any, minor or major; or by a major one, where the page says so."],
  self: ["self", "What a function, a line or a file allocates itself. With own code, the library code that it calls belongs to it."],
  total: ["total", "What is allocated while it is anywhere on the stack, by itself and by all that it calls. Recursion counts once, and the totals of several rows overlap."],
  own: ["own code", "What is not of a standard library, of a runtime or vendored. With own code, a block counts at the innermost frame of your code; without it at the innermost frame of all, which allocates."],
  callPath: ["call path", "The functions on the stack when a block was allocated, from the outermost call to the allocation."],
  hot: ["hot fragment", "A run of calls, anywhere in call paths, under which much is allocated."],
  minor: ["minor heap", "Where small blocks begin. A minor collection promotes those in use to the major heap; the others cost nothing more."],
  heap: ["heap", "In the lanes below the time line: the major heap, with what is free in it; the minor heap is not in it. “in use” is the part of it that has blocks, dead ones too."],
  external: ["external", "Memory outside the heap that blocks of the heap hold, such as bigarrays and buffers."],
  label: ["label, domain", "What a program says it works on, such as a request; and the parallel parts of an OCaml 5 program."],
} as const satisfies Record<string, readonly [term: string, meaning: string]>;

/** Words of heap snapshots. */
export const HEAP_GLOSSARY: readonly (readonly [string, string])[] = [
  ["retained", "What would be freed without a block or a holder: all that is reachable through it alone, with itself."],
  ["exclusive", "Reachable from this row and from no other: it would be freed without it."],
  ["first", "What this row reaches, less what rows before it in the order of the walk reach too: so the column adds up to all that is reachable."],
  ["reachable", "What can be reached from roots: globals, stacks, C roots. The rest is garbage."],
  ["holder", "A root, module or variable that keeps memory alive."],
  ["Server, field 1", "A value of the module Server of which only the place is known. With --types DIR, where the .cmt files of the program are, it has its name and its type."],
];

export type Term = keyof typeof GLOSSARY;

/** The meaning of a word, as a title. */
export function meaning(term: Term): string {
  return `${GLOSSARY[term][1]} (? has all words)`;
}
