// Where the cells of a tree are. Widths are samples, so that the same layout serves every width of
// the screen; within one depth the cells are in the order of their left edges, which is what makes
// culling and hit testing a binary search.

import type { Site, Tree } from "../query/types";
import { label, parts, siteKey } from "../text/sites";
import { bytes, count, percent, relative } from "../text/units";

/** What stands for joined cells in a path. */
export const JOINED: Site = { name: "(small frames)" };

/** What a cell is called, and the tree of them. */
export interface CellWords {
  one: string;
  many: string;
  tree: string;
}
export const FRAMES: CellWords = { one: "frame", many: "frames", tree: "Call tree" };

export class Layout {
  readonly count: number;
  readonly left: Float64Array;
  readonly width: Float64Array;
  readonly depth: Int32Array;
  /** The cells of each depth, from left to right. */
  readonly rows: number[][];
  readonly firstChild: Int32Array;
  readonly nextSibling: Int32Array;

  constructor(readonly tree: Tree, readonly words: CellWords = FRAMES) {
    const { parent, samples } = tree.cells;
    const count = parent.length;
    this.count = count;
    this.left = new Float64Array(count);
    this.width = new Float64Array(count);
    this.depth = new Int32Array(count);
    this.firstChild = new Int32Array(count).fill(-1);
    this.nextSibling = new Int32Array(count).fill(-1);
    this.rows = [];
    const lastChild = new Int32Array(count).fill(-1);
    // The left edge of each cell's next child.
    const free = new Float64Array(count);
    for (let cell = 0; cell < count; cell++) {
      const above = cell === 0 ? -1 : parent[cell]!;
      const width = samples[cell]!;
      this.width[cell] = width;
      if (above >= 0) {
        this.depth[cell] = this.depth[above]! + 1;
        this.left[cell] = free[above]!;
        free[above]! += width;
        const before = lastChild[above]!;
        if (before < 0) this.firstChild[above] = cell;
        else this.nextSibling[before] = cell;
        lastChild[above] = cell;
      }
      free[cell] = this.left[cell]!;
      (this.rows[this.depth[cell]!] ??= []).push(cell);
    }
  }

  get total(): number {
    return this.width[0] ?? 0;
  }

  parent(cell: number): number {
    return cell > 0 ? this.tree.cells.parent[cell]! : -1;
  }

  isJoined(cell: number): boolean {
    return this.tree.cells.site[cell]! < 0;
  }

  site(cell: number): Site {
    return this.tree.sites[this.tree.cells.site[cell]!] ?? JOINED;
  }

  /** What a person calls the cell. */
  name(cell: number): string {
    if (this.isJoined(cell)) return cell === 0 ? "all" : count(this.tree.cells.count[cell] ?? 0, `small ${this.words.one}`, `small ${this.words.many}`);
    const [name] = parts(this.site(cell));
    const repeats = this.tree.cells.repeats[cell] ?? 0;
    return repeats > 1 ? `${name} ×${repeats}` : name;
  }

  fullName(cell: number): string {
    return this.isJoined(cell) ? this.name(cell) : label(this.site(cell));
  }

  previousSibling(cell: number): number {
    const above = this.parent(cell);
    if (above < 0) return -1;
    let at = this.firstChild[above]!;
    if (at === cell) return -1;
    while (this.nextSibling[at] !== cell) at = this.nextSibling[at]!;
    return at;
  }

  children(cell: number): number[] {
    const all: number[] = [];
    for (let child = this.firstChild[cell]!; child >= 0; child = this.nextSibling[child]!) all.push(child);
    return all;
  }

  /** The first cell of a depth that ends beyond `x`. */
  firstEndingAfter(row: readonly number[], x: number, from = 0): number {
    let low = from;
    let high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const cell = row[middle]!;
      if (this.left[cell]! + this.width[cell]! > x) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The cell at a depth and a position in samples; -1 if there is none. */
  at(depth: number, x: number): number {
    const row = this.rows[depth];
    if (!row) return -1;
    const cell = row[this.firstEndingAfter(row, x)];
    return cell !== undefined && this.left[cell]! <= x ? cell : -1;
  }

  /** The cells from the root's child to this one, as sites. */
  path(cell: number): Site[] {
    const path: Site[] = [];
    for (let at = cell; at > 0; at = this.parent(at)) path.push(this.site(at));
    return path.reverse();
  }

  /** The cell at the end of a path, or the last one that is still there. */
  find(path: readonly Site[]): number {
    let cell = 0;
    for (const site of path) {
      const key = siteKey(site);
      const child = this.children(cell).find((at) => siteKey(this.site(at)) === key);
      if (child === undefined) break;
      cell = child;
    }
    return cell;
  }
}

/** The size of so many samples of a tree, with its standard error: `known`, if the trace has several rates. */
export function sizeOf(tree: Tree, samples: number, known?: number): { bytes: number; error: number | null } {
  const { a, b } = tree.error_of;
  const error = known ?? (a === null ? null : Math.sqrt(Math.max(0, a * samples + b * samples * samples)));
  return { bytes: samples * tree.scale, error };
}

/** The size of a cell, and of what is at it itself. */
export const cellText = (layout: Layout, cell: number): string => sizeText(layout, layout.width[cell]!, layout.tree.cells.errors?.[cell]);
export const selfText = (layout: Layout, cell: number): string => sizeText(layout, layout.tree.cells.self[cell]!, layout.tree.cells.self_errors?.[cell]);

export function sizeText(layout: Layout, samples: number, known?: number): string {
  const size = sizeOf(layout.tree, samples, known);
  const error = relative(size);
  return error === null ? `at most ${bytes(size.bytes)}` : `${bytes(size.bytes)} ± ${percent(error)}`;
}
