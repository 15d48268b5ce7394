// The document about the heap snapshots of a page, as `heaptap` writes it. Sizes are exact unless
// they are a `Size`, which has an error. The field names are those of `heaptap heap --json` and
// `heaptap heap-diff --json`.

import type { Site, Size } from "../query/types";

export interface HeapSize {
  blocks: number;
  bytes: number;
}

export interface SnapshotDocument {
  /** In the order in which they were taken. */
  snapshots: Snapshot[];
  failed: { name: string; error: string }[];
  /** Each snapshot compared with the one before; nothing for the first. */
  growths: Growth[][];
}

export interface Snapshot {
  name: string;
  program: string;
  runtime: string;
  reason: string;
  pid: number | null;
  /** Microseconds since the Unix epoch. */
  taken_us: number | null;
  /** The trace of the page that was being written, and the time in it. */
  trace: number | null;
  at_us: number | null;
  all: HeapSize;
  reachable: HeapSize;
  outside_bytes: number;
  /** Pointers that lead to no block. */
  dangling: number;
  /** Tables without a row are left out. */
  tables: HeapTable[];
  /** By module, block and kind of root: names and the bytes that they reach first, the most first. */
  stacks: { by: string; rows: [string, number][] }[];
  findings: Finding[];
  tree: DominatorTree;
  /** For rows of the table "block": the block of that kind that retains most. */
  paths: HeldBlock[];
  sites: SiteTable | null;
}

export interface HeapTable {
  by: string;
  rows: HeapRow[];
  other_rows: number;
  other_first_reached: HeapSize;
}

export interface HeapRow {
  name: string;
  /** Only of holders. */
  roots?: number;
  reachable_bytes: number;
  /** What would be freed without it. */
  exclusive_bytes: number;
  /** What it reaches and no row before it does; these add up to all that is reachable. */
  first_reached: HeapSize;
  outside_bytes: number;
}

export interface Finding {
  kind: "accumulation" | "finaliser cycle" | "ephemeron chain" | "outside memory";
  text: string;
  /** The names of cells of the tree, from a holder down. */
  path: string[];
  elements: number;
  retained_bytes: number;
  outside_bytes: number;
  /** Against the snapshot before. */
  growth?: { elements: number; retained_bytes: number };
}

/** Blocks that are alike and held alike are one cell. Parents come before children; cell 0 is the program. */
export interface DominatorTree {
  names: string[];
  /** -1 for cell 0. */
  parent: number[];
  /** Index into `names`; -1 is a cell that joins small ones. */
  name: number[];
  /** 1 for a holder (variable, stack frame, …), 0 for blocks. */
  holder: (0 | 1)[];
  retained: number[];
  own: number[];
  blocks: number[];
  outside: number[];
  /** How many cells a joined cell stands for. */
  joined: number[];
}

export interface HeldBlock {
  /** The name of its row. */
  row: string;
  block: string;
  retained_bytes: number;
  shortest: string[];
  dominators: string[];
  holders: string[];
  other_holders: number;
}

export interface Growth {
  by: string;
  /** The greatest changes first. */
  rows: GrowthRow[];
  other_rows: number;
  other_growth_bytes: number;
}

export interface GrowthRow {
  name: string;
  change: "new" | "gone" | "grown" | "shrunk" | "same";
  before: HeapSize;
  after: HeapSize;
  growth_bytes: number;
}

/** Where what is reachable was allocated, estimated from the blocks that the trace follows. */
export interface SiteTable {
  trace: string;
  exact_bytes: number;
  estimated: Size;
  sampled_blocks: number;
  rows: SiteRow[];
  other_rows: number;
  other_share: number;
}

export interface SiteRow {
  site: Site;
  sampled_blocks: number;
  samples: number;
  size: Size;
  share: number;
  median_age_us: number;
  oldest_us: number;
  /** The holder that retains most of them, and its share of them. */
  holder: string;
  holder_share: number;
}
