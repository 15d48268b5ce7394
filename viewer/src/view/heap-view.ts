// The part of the view that is about heap snapshots, and how it stands in the address.

import { decoded, decodeNames, encodeNames, one, whole } from "./fragment";

/** What is shown of a snapshot. */
export type Part = "tree" | "table" | "growth" | "sites";
export const PARTS: Part[] = ["tree", "table", "growth", "sites"];

export interface HeapView {
  /** null is the last one. */
  snapshot: number | null;
  part: Part;
  /** The path from the program to the focused cell of the tree, and from there to the selected one. */
  within: readonly string[];
  cell: readonly string[];
  /** What a row of the table is, how its rows are sorted (`-` before it: the smallest first), and the one that is open. */
  table: string;
  sort: string;
  row: string | null;
  /** The snapshot that it is compared with; null is the one before. */
  since: number | null;
  /** What a row of the difference is. */
  growth: string;
  /** What is stacked over time. */
  stack: string;
}

export const HEAP_DEFAULTS: HeapView = { snapshot: null, part: "tree", within: [], cell: [], table: "variable", sort: "", row: null, since: null, growth: "variable", stack: "module" };

/** What differs from the default, as `key=value`. */
export function encodeHeap(heap: HeapView): string[] {
  const parts: string[] = [];
  const put = (key: string, value: string, standard: string) => {
    if (value !== standard) parts.push(`${key}=${value}`);
  };
  put("snapshot", String(heap.snapshot ?? ""), "");
  put("part", heap.part, HEAP_DEFAULTS.part);
  put("within", encodeNames(heap.within), "");
  put("cell", encodeNames(heap.cell), "");
  put("table", encodeURIComponent(heap.table), HEAP_DEFAULTS.table);
  put("sort", encodeURIComponent(heap.sort), "");
  if (heap.row !== null) put("held", encodeURIComponent(heap.row), "");
  put("since", String(heap.since ?? ""), "");
  put("changes", encodeURIComponent(heap.growth), HEAP_DEFAULTS.growth);
  put("stack", encodeURIComponent(heap.stack), HEAP_DEFAULTS.stack);
  return parts;
}

/** How each key changes the view. */
export function heapSetters(heap: HeapView): Record<string, (value: string) => void> {
  return {
    snapshot: (value) => (heap.snapshot = whole(value, null)),
    part: (value) => (heap.part = one(value, PARTS, HEAP_DEFAULTS.part)),
    within: (value) => (heap.within = decodeNames(value)),
    cell: (value) => (heap.cell = decodeNames(value)),
    table: (value) => (heap.table = decoded(value)),
    sort: (value) => (heap.sort = decoded(value)),
    held: (value) => (heap.row = decoded(value)),
    since: (value) => (heap.since = whole(value, null)),
    changes: (value) => (heap.growth = decoded(value)),
    stack: (value) => (heap.stack = decoded(value)),
  };
}
