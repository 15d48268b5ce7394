// The time line as a picture, with its legend.

import type { Timeline } from "../query/types";
import { paintPlot, type PlotOptions } from "../timeline/plot";
import { textPart, type Picture } from "./picture";

const [WIDTH, HEIGHT, LEGEND] = [1200, 320, 380];

/** A row of the legend. */
export interface LegendRow {
  name: string;
  size: string;
  colour: string;
}

type Painted = Pick<PlotOptions, "span" | "colours" | "whole" | "at">;

export function timelinePicture(title: string, timeline: Timeline, legend: readonly LegendRow[], painted: Painted): Picture {
  const lines = legend.map(({ name, size, colour }) => ({ text: `${size}  ${name.length > 40 ? `${name.slice(0, 39)}…` : name}`, swatch: colour }));
  const height = Math.max(HEIGHT, lines.length * 20 + 4);
  return {
    name: "over-time",
    title,
    width: WIDTH + LEGEND,
    height,
    parts: [
      {
        x: 0, y: 0, width: WIDTH, height: HEIGHT,
        paint: (canvas) => paintPlot(canvas, { ...painted, timeline, width: WIDTH, height: HEIGHT }),
      },
      textPart(lines, { x: WIDTH, y: 0, width: LEGEND, height }),
    ],
  };
}
