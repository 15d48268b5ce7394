// The series of a time line, one on top of the other.

import type { Timeline } from "../query/types";

export interface Stacked {
  /** Microseconds. That of a whole run begins at 0, where nothing is alive. */
  times: number[];
  /** The upper edge of each layer, the lowest layer first; the last is everything. */
  edges: number[][];
  low: number[];
  high: number[];
}

export function stacked(timeline: Timeline): Stacked {
  const { total, from_us: from } = timeline;
  const before = from === 0 ? [0] : [];
  const times = [...before, ...timeline.times];
  const edges: number[][] = [];
  let below = new Array<number>(times.length).fill(0);
  const layers = timeline.series.map(({ live }) => live);
  if (timeline.others.rows > 0) layers.push(timeline.others.live);
  for (const live of layers) {
    const sizes = [...before, ...live];
    below = below.map((edge, at) => edge + (sizes[at] ?? 0));
    edges.push(below);
  }
  if (edges.length === 0) edges.push([...before, ...total.live]);
  return { times, edges, low: [...before, ...total.low], high: [...before, ...total.high] };
}
