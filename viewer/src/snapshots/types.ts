// The document about the heap snapshots of a page, as `heaptap` writes it. Sizes are exact unless
// they are a `Size`, which has an error. The field names are those of `heaptap heap --json` and
// `heaptap heap-diff --json`. Generated from Rust's structs.

export type {
  DominatorTree, Finding, Growth, GrowthRow, HeapRow, HeapSize, HeapTable, HeldBlock, HeldSite, PairGrowth, SiteRow, SiteTable, Snapshot,
  SnapshotDocument,
} from "../query/figures";
