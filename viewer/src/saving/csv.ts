// Tables as comma-separated values, with the columns of `heaptap report --csv` where they mean the same.

import type { HotFragment, RowTable, SiteFrame, Sum, TableRow } from "../query/types";
import { sizeOf, type Layout } from "../icicle/layout";

type Cell = string | number | null | undefined;

/** Quoted if need be. A spreadsheet takes what begins like a formula for one: that is kept from being one. */
function quoted(cell: Cell): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "number") return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(head: readonly string[], rows: Iterable<readonly Cell[]>): string {
  let text = `${head.join(",")}\n`;
  for (const row of rows) text += `${row.map(quoted).join(",")}\n`;
  return text;
}

const numbers = (sum: Sum | null): Cell[] => (sum ? [sum.samples, sum.bytes, sum.error, sum.low, sum.high] : ["", "", "", "", ""]);

export function tableCsv({ rows, sites }: RowTable): string {
  const head = [
    "name", "file", "line", "start_char", "end_char", "samples", "bytes", "error", "low", "high", "share",
    "total_samples", "total_bytes", "total_error", "total_low", "total_high", "total_share", "blocks", "blocks_error", "sites",
  ];
  return csv(head, rows.map((row) => tableCells(row, sites)));
}

function tableCells(row: TableRow, sites: SiteFrame): Cell[] {
  const position = row.line ? [row.line, ...(row.chars ?? [0, 0])] : ["", "", ""];
  return [
    row.name, row.file ?? "", ...position, ...numbers(row), row.share,
    ...numbers(row.total), row.total ? row.total_share : "", row.blocks?.count, row.blocks?.error, sites,
  ];
}

/**
 * The cells of a subtree in preorder. A call path is the rows from a cell over its parents: written out, those of
 * deep recursion would be too long.
 */
export function treeCsv(layout: Layout, root: number): string {
  const { tree } = layout;
  const size = (samples: number, known?: number): Cell[] => {
    const { bytes, error } = sizeOf(tree, samples, known);
    // Of several rates, a count is no number of samples.
    return [known === undefined ? samples : null, bytes, error];
  };
  const rows: Cell[][] = [];
  for (let cell = root; cell < layout.count; cell++) {
    // The subtree is over where a cell has a parent before it.
    if (cell > root && layout.parent(cell) < root) break;
    const site = cell === 0 || layout.isJoined(cell) ? { name: layout.name(cell) } : layout.site(cell);
    const { self, repeats, count, errors, self_errors } = tree.cells;
    rows.push([
      cell - root, cell === root ? "" : layout.parent(cell) - root, layout.depth[cell]! - layout.depth[root]!, site.name, site.file ?? "", site.line ?? "",
      ...size(layout.width[cell]!, errors?.[cell]), ...size(self[cell] ?? 0, self_errors?.[cell]), repeats[cell], count[cell],
    ]);
  }
  return csv(["row", "parent", "depth", "name", "file", "line", "samples", "bytes", "error", "self_samples", "self_bytes", "self_error", "repeats", "frames"], rows);
}

/** A row for each frame: the number of its fragment, and its place from the allocation outwards. */
export function hotCsv(fragments: readonly HotFragment[]): string {
  const rows = fragments.flatMap((fragment, at) =>
    fragment.frames.map((frame, place): Cell[] => [
      at + 1, place + 1, frame.name, frame.file ?? "", frame.line ?? "", fragment.bytes, fragment.error, fragment.low, fragment.high, fragment.share, fragment.own_share,
    ]));
  return csv(["fragment", "frame", "name", "file", "line", "bytes", "error", "low", "high", "share", "own_share"], rows);
}
