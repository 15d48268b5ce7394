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
  return withPeak({ times, edges, low: [...before, ...total.low], high: [...before, ...total.high] }, timeline);
}

/**
 * Adds a point at the peak. The others are what was live at the ends of steps, which the peak may be
 * far above; its layers are as large parts of it as of the points beside it.
 */
function withPeak(data: Stacked, { peak, peak_us: at }: Timeline): Stacked {
  const { times, edges, low, high } = data;
  const after = times.findIndex((time) => time >= at);
  if (after < 1 || times[after] === at) return data;
  const part = (at - times[after - 1]!) / (times[after]! - times[after - 1]!);
  const between = (values: readonly number[]) => values[after - 1]! + part * (values[after]! - values[after - 1]!);
  const top = between(edges.at(-1)!);
  if (top <= 0 || peak.bytes <= top) return data;
  const added = (values: readonly number[], value: number) => [...values.slice(0, after), value, ...values.slice(after)];
  return {
    times: added(times, at),
    edges: edges.map((edge) => added(edge, (between(edge) * peak.bytes) / top)),
    low: added(low, peak.error === null ? peak.bytes : Math.min(peak.low, peak.bytes)),
    high: added(high, peak.error === null ? peak.bytes : Math.max(peak.high, peak.bytes)),
  };
}
