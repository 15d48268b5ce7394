// The tree of a comparison as the icicle takes it. A cell is as wide as the larger of its sides, and
// at least as its children together: where one child took another's place, they need more room than
// their caller has on either side.

import type { MergedTree, Tree } from "../query/types";

export function asTree({ sites, cells, depth }: MergedTree): Tree {
  const width = cells.before.map((before, cell) => Math.max(before, cells.after[cell] ?? 0));
  const children = new Array<number>(width.length).fill(0);
  // Children come after their parent.
  for (let cell = width.length - 1; cell > 0; cell--) {
    width[cell] = Math.max(width[cell]!, children[cell]!);
    children[cells.parent[cell]!]! += width[cell]!;
  }
  if (width.length > 0) width[0] = Math.max(width[0]!, children[0]!);
  const bytes = width[0] ?? 0;
  const total = { samples: bytes, bytes, error: 0, low: bytes, high: bytes };
  return {
    total,
    focus_total: total,
    sites,
    cells: { ...cells, samples: width, self: width.map(() => 0), repeats: width.map(() => 1) },
    depth,
    // The sizes are bytes; how sure they are is in `certain`.
    error_of: { a: 0, b: 0 },
    scale: 1,
    omitted: 0,
    before: cells.before,
    after: cells.after,
    certain: cells.certain,
  };
}
