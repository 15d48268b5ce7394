// The series of a time line, one on top of the other.

import type { Timeline } from "../query/types";

export interface Stacked {
  /** Microseconds; begins at 0, where nothing is alive. */
  times: number[];
  /** The upper edge of each layer, the lowest layer first; the last is everything. */
  edges: number[][];
  low: number[];
  high: number[];
}

export function stacked(timeline: Timeline): Stacked {
  const times = [0, ...timeline.times];
  const edges: number[][] = [];
  let below = new Array<number>(times.length).fill(0);
  const layers = timeline.series.map(({ live }) => live);
  if (timeline.others.rows > 0) layers.push(timeline.others.live);
  for (const live of layers) {
    below = below.map((edge, at) => (at === 0 ? 0 : edge + (live[at - 1] ?? 0)));
    edges.push(below);
  }
  if (edges.length === 0) edges.push([0, ...timeline.total.live]);
  return { times, edges, low: [0, ...timeline.total.low], high: [0, ...timeline.total.high] };
}

/** Steps for an axis of bytes: 1, 2, 5, 10, … 500 of each binary unit. */
export const BYTE_STEPS: number[] = [1, 2 ** 10, 2 ** 20, 2 ** 30, 2 ** 40].flatMap((unit) =>
  [1, 2, 5, 10, 20, 50, 100, 200, 500].map((step) => step * unit),
);

/** Steps for an axis of microseconds. */
export const TIME_STEPS: number[] = [
  ...[1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6].flatMap((unit) => [1, 2, 5].map((step) => step * unit)),
  ...[10, 15, 30].map((seconds) => seconds * 1e6),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * 6e7),
];

/** A label of an axis: no more digits than its step needs. */
export function axisBytes(value: number): string {
  if (value === 0) return "0";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let size = value;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${Number(size.toFixed(1))} ${units[unit]}`;
}

/** From a minute on as on a clock, where the step is not whole minutes or hours: `1:30 min`, `2:15 h`. */
export function axisTime(value: number): string {
  if (value === 0) return "0";
  if (value >= 6e7) {
    const [unit, part, name] = value < 3.6e9 ? [6e7, 1e6, "min"] : [3.6e9, 6e7, "h"];
    const rest = Math.round((value % unit) / part);
    return `${Math.floor(value / unit)}${rest === 0 ? "" : `:${String(rest).padStart(2, "0")}`} ${name}`;
  }
  const [size, unit] = value < 1e3 ? [value, "µs"] : value < 1e6 ? [value / 1e3, "ms"] : [value / 1e6, "s"];
  return `${Number(size.toFixed(2))} ${unit}`;
}
