// The dominator tree of a snapshot as the icicle takes it: the part below the focused cell, as wide
// as what each cell retains. Siblings may have one name, such as two frames of a recursion; from the
// second on they have a number, so that a path of names leads to one cell.

import type { Site, Tree } from "../query/types";
import type { DominatorTree } from "./types";

const known = new WeakMap<DominatorTree, Dominators>();

/** The same for the same tree: several parts of the page ask it. */
export function dominatorsOf(tree: DominatorTree): Dominators {
  const found = known.get(tree) ?? new Dominators(tree);
  known.set(tree, found);
  return found;
}

export class Dominators {
  /** The end of each cell's descendants, which come right after it. */
  private readonly end: Int32Array;
  /** The name of each cell among its siblings; null if it joins small ones. */
  private readonly label: (string | null)[];

  constructor(readonly tree: DominatorTree) {
    const { parent, name, names } = tree;
    const count = parent.length;
    this.end = new Int32Array(count);
    for (let cell = count - 1; cell >= 0; cell--) {
      this.end[cell] = Math.max(this.end[cell]!, cell + 1);
      const above = parent[cell]!;
      if (above >= 0) this.end[above] = Math.max(this.end[above]!, this.end[cell]!);
    }
    const alike = new Map<string, number>();
    this.label = name.map((index, cell) => {
      if (index < 0) return null;
      const key = `${parent[cell]}:${index}`;
      const before = alike.get(key) ?? 0;
      alike.set(key, before + 1);
      return before === 0 ? names[index]! : `${names[index]} #${before + 1}`;
    });
  }

  private *children(cell: number): Generator<number> {
    for (let child = cell + 1; child < this.end[cell]!; child = this.end[child]!) yield child;
  }

  /** The cell at the end of a path, or the last one that is there, and how much of the path led to it. */
  find(path: readonly string[]): { cell: number; steps: number } {
    let cell = 0;
    let steps = 0;
    for (const name of path) {
      const next = [...this.children(cell)].find((child) => this.label[child] === name);
      if (next === undefined) break;
      cell = next;
      steps += 1;
    }
    return { cell, steps };
  }

  /** The names from the program's child to a cell. */
  path(cell: number): string[] {
    const path: string[] = [];
    for (let at = cell; at > 0; at = this.tree.parent[at]!) path.push(this.label[at] ?? "");
    return path.reverse();
  }

  /** The biggest cell at the end of these names, wherever they begin; without it, that of all names but the last, and so on. */
  endOf(names: readonly string[]): number | null {
    for (let length = names.length; length > 0; length--) {
      const found = this.matches(names.slice(0, length));
      if (found !== null) return found;
    }
    return null;
  }

  private matches(names: readonly string[]): number | null {
    const { parent, name, names: all, retained } = this.tree;
    const wanted = names.map((each) => all.indexOf(each)).reverse();
    if (wanted.length === 0 || wanted.includes(-1)) return null;
    let best: number | null = null;
    for (let cell = 1; cell < parent.length; cell++) {
      if (name[cell] !== wanted[0] || (best !== null && retained[cell]! <= retained[best]!)) continue;
      let at = cell;
      if (wanted.every((index, step) => (step === 0 ? true : (at = parent[at] ?? -1) > 0 && name[at] === index))) best = cell;
    }
    return best;
  }

  /** The icicle's tree from a cell down. */
  below(root: number): Tree {
    const { parent, retained, own, joined } = this.tree;
    const end = this.end[root]!;
    const part = <T>(values: readonly T[]) => values.slice(root, end);
    const sites: Site[] = [];
    const numbers = new Map<string, number>();
    const site = part(this.label).map((label, at) => {
      if (label === null || (root === 0 && at === 0)) return -1;
      const number = numbers.get(label) ?? sites.push({ name: label }) - 1;
      numbers.set(label, number);
      return number;
    });
    const exactly = (bytes: number) => ({ samples: bytes, bytes, error: 0, low: bytes, high: bytes });
    return {
      total: exactly(retained[0] ?? 0),
      focus_total: exactly(retained[root] ?? 0),
      sites,
      cells: {
        parent: part(parent).map((above, at) => (at === 0 ? -1 : above - root)),
        site,
        samples: part(retained),
        self: part(own),
        count: part(joined),
        repeats: site.map(() => 1),
      },
      depth: 0,
      // Widths are bytes, and exact.
      error_of: { a: 0, b: 0 },
      scale: 1,
      omitted: 0,
    };
  }
}
