// The flame as a picture, as a table and as one call path.

import type { Site, Tree } from "../query/types";
import { cellText, FRAMES, Layout } from "../icicle/layout";
import { paint, ROW } from "../icicle/paint";
import { search } from "../icicle/search";
import { label } from "../text/sites";
import { percent } from "../text/units";
import { palette } from "../view/colour";
import { treeCsv } from "./csv";
import { copyText, fileName, saveText } from "./file";
import { MOST_PIXELS, sizedContext, type Picture } from "./picture";

const WIDTH = 1600;

export interface Flame {
  tree: Tree;
  /** The path above the tree's root, and the one from there to the selected cell. */
  focus: readonly Site[];
  selected: readonly Site[];
  searched: string;
  title: string;
  colour(layout: Layout, cell: number): string;
  sign?(layout: Layout, cell: number): string;
}

/** All rows, with what a search finds. */
export function flamePicture({ tree, searched, title, colour, sign, focus }: Flame): Picture {
  const layout = new Layout(tree, FRAMES);
  const height = Math.min(layout.rows.length * ROW, MOST_PIXELS - 100);
  const above = focus.length > 0 ? `, under ${focus.map(label).at(-1)}` : "";
  return {
    name: "flame",
    title: title + above,
    width: WIDTH,
    height,
    parts: [{
      x: 0, y: 0, width: WIDTH, height,
      paint(canvas) {
        const context = sizedContext(canvas, WIDTH, height);
        const screen = { width: WIDTH, height, from: 0, to: layout.total || 1, top: 0, above: 0 };
        const colours = { palette: palette(), cell: (cell: number) => colour(layout, cell), sign: (cell: number) => sign?.(layout, cell) ?? "" };
        if (context) paint(context, layout, screen, colours, search(layout, searched)?.matches ?? null);
      },
    }],
  };
}

/** The subtree of the selected cell; without one, all. */
export function saveFlameCsv({ tree, selected }: Flame): void {
  const layout = new Layout(tree, FRAMES);
  saveText(fileName("calls", "csv"), "text/csv", treeCsv(layout, layout.find(selected)));
}

/** The path to the selected cell, a line for each call, the outermost first. */
export function stackText({ tree, focus, selected, title }: Flame): string {
  const layout = new Layout(tree, FRAMES);
  const cells: number[] = [];
  for (let cell = layout.find(selected); cell > 0; cell = layout.parent(cell)) cells.push(cell);
  const sized = cells.reverse().map((cell) => {
    const samples = layout.width[cell]!;
    return `${label(layout.site(cell))}  ${cellText(layout, cell)}, ${percent(samples / (tree.total.samples || 1))}`;
  });
  return [title, ...focus.map(label), ...sized, ""].join("\n");
}

export function copyStack(flame: Flame): Promise<void> {
  return copyText(stackText(flame));
}
