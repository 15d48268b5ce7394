// The time of the cells: each has what happened from its begin up to the begin of the next.

import type { HeatMap } from "../query/types";
import { timeText } from "../text/units";
import type { Span } from "../view/zoom";

/** When the cells of a column begin and end, within what is shown. */
export function timesOf({ from_us: from, width_us: width }: HeatMap, column: number, shown: Span): [number, number] {
  const begin = from + column * width;
  return [Math.max(begin, shown.from), Math.min(begin + width, shown.to)];
}

/** The column of a time. */
export function stepOf({ from_us: from, width_us: width, times }: HeatMap, time: number): number {
  return Math.min(times.length - 1, Math.max(0, Math.floor((time - from) / width)));
}

export function intervalText({ from_us: from, width_us: width }: HeatMap, column: number): string {
  const begin = from + column * width;
  return `${timeText(begin, width)} – ${timeText(begin + width, width)}`;
}
