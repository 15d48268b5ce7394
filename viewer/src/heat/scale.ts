// From bytes to colours: logarithmic, since one cell has a thousand times as much as another. Darker is more, on paper;
// in the dark, brighter. Lightness alone tells them apart.

import type { HeatMap } from "../query/types";
import { dark } from "../view/theme";

/** No more than so many powers of ten: what is further below the most has the faintest colour. */
const DECADES = 4;

export interface HeatScale {
  least: number;
  most: number;
}

export function scaleOf({ rows, others }: HeatMap): HeatScale | null {
  let [least, most] = [Infinity, 0];
  for (const { bytes } of [...rows, others]) {
    for (const size of bytes) {
      if (size > 0 && size < least) least = size;
      if (size > most) most = size;
    }
  }
  return most > 0 ? { least: Math.max(least, most / 10 ** DECADES), most } : null;
}

/** From 0 for the least to 1 for the most. */
export function degree(bytes: number, { least, most }: HeatScale): number {
  if (most <= least) return 1;
  return Math.min(1, Math.max(0, Math.log(bytes / least) / Math.log(most / least)));
}

/** The bytes of a degree. */
export function bytesAt(degree: number, { least, most }: HeatScale): number {
  return least * (most / least) ** degree;
}

export function heatColour(degree: number): string {
  const [lightness, chroma, hue] = dark.value
    ? [0.3 + 0.58 * degree, 0.06 + 0.09 * degree, 25 + 65 * degree]
    : [0.94 - 0.56 * degree, 0.05 + 0.1 * degree, 95 - 70 * degree];
  return `oklch(${lightness.toFixed(3)} ${chroma.toFixed(3)} ${hue.toFixed(0)})`;
}

const STEPS = 64;
const known = new Map<boolean, string[]>();

/** The colours in steps: a map has thousands of cells. */
export function heatColours(): (degree: number) => string {
  const colours = known.get(dark.value) ?? Array.from({ length: STEPS + 1 }, (_, step) => heatColour(step / STEPS));
  known.set(dark.value, colours);
  return (degree) => colours[Math.round(degree * STEPS)]!;
}
