// Which cells a search finds, and how much they hold together: what is below a cell that was found
// is counted with it and not again.

import type { Layout } from "./layout";
import { label } from "../text/sites";

export interface Found {
  /** 1 for each cell that matches. */
  matches: Uint8Array;
  /** The cells in preorder, from the top down and left to right. */
  cells: number[];
  samples: number;
}

/** Upper case in the search makes it count. */
export function search(layout: Layout, text: string): Found | null {
  if (text === "") return null;
  const exact = /[A-Z]/.test(text);
  const wanted = exact ? text : text.toLowerCase();
  const hit = layout.tree.sites.map((site) => {
    const name = label(site);
    return (exact ? name : name.toLowerCase()).includes(wanted);
  });
  const matches = new Uint8Array(layout.count);
  const inside = new Uint8Array(layout.count);
  const cells: number[] = [];
  let samples = 0;
  for (let cell = 0; cell < layout.count; cell++) {
    const above = layout.parent(cell);
    const covered = above >= 0 && inside[above] === 1;
    const site = layout.tree.cells.site[cell]!;
    if (site >= 0 && hit[site]) {
      matches[cell] = 1;
      cells.push(cell);
      if (!covered) samples += layout.width[cell]!;
    }
    if (covered || matches[cell] === 1) inside[cell] = 1;
  }
  return { matches, cells, samples };
}
