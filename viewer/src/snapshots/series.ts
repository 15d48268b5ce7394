// What is reachable over all snapshots, by the rows of a table: the eight biggest, and the rest.

import type { Snapshot } from "./types";

const MOST = 8;

export interface Series {
  name: string;
  /** The bytes that it reaches first in each snapshot. */
  bytes: number[];
}

/** What can be stacked. */
export function stacksOf(snapshots: readonly Snapshot[]): string[] {
  return snapshots[0]?.stacked_rows.map(({ by }) => by) ?? [];
}

export function seriesOf(snapshots: readonly Snapshot[], by: string): { series: Series[]; others: number[] } {
  const all = new Map<string, number[]>();
  snapshots.forEach(({ stacked_rows }, at) => {
    for (const [name, size] of stacked_rows.find((table) => table.by === by)?.rows ?? []) {
      const sizes = all.get(name) ?? snapshots.map(() => 0);
      sizes[at]! += size;
      all.set(name, sizes);
    }
  });
  const most = (sizes: readonly number[]) => Math.max(...sizes);
  const series = [...all].map(([name, bytes]) => ({ name, bytes })).sort((a, b) => most(b.bytes) - most(a.bytes)).slice(0, MOST);
  const others = snapshots.map(({ reachable }, at) => Math.max(0, reachable.bytes - series.reduce((sum, { bytes }) => sum + bytes[at]!, 0)));
  return { series, others };
}

/** Where each snapshot stands between 0 and 1: by its time, or evenly if not all times are known. */
export function positions(snapshots: readonly Snapshot[]): number[] {
  const times = snapshots.map(({ taken_us: taken }) => taken ?? NaN);
  const [first, last] = [times[0]!, times.at(-1)!];
  const known = last > first && times.every((time, at) => time >= (times[at - 1] ?? first));
  return times.map((time, at) => (known ? (time - first) / (last - first) : at / Math.max(1, times.length - 1)));
}
