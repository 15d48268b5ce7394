// Colours of modules: one hue each, all at the same lightness, so that none shouts. The eight
// largest modules of the trace have hues far apart; the others one by the hash of their name, paler.
// Text on them has a contrast of more than 7 : 1 in both themes.

import { signal } from "@preact/signals";
import type { Site } from "../query/types";
import { moduleOf } from "../text/sites";
import { dark } from "./theme";

/** Neighbours in this order differ most. */
const HUES = [250, 60, 160, 310, 95, 215, 25, 280];
/** The place of each of the largest modules; what paints reads it. */
export const ranks = signal<ReadonlyMap<string, number>>(new Map());

/** `keep`: a trace that has grown keeps the hues of the modules that are still among the largest. */
export function rankModules(names: readonly string[], keep = false): void {
  const largest = names.slice(0, HUES.length);
  const next = new Map([...ranks.value].filter(([name]) => keep && largest.includes(name)));
  const taken = new Set(next.values());
  const free = HUES.map((_, rank) => rank).filter((rank) => !taken.has(rank));
  for (const name of largest) if (!next.has(name)) next.set(name, free.shift()!);
  ranks.value = next;
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}

/** A hue at the lightness of the theme. */
function tone(hue: number, chroma: number): string {
  return `oklch(${dark.value ? 0.43 : 0.83} ${chroma} ${hue})`;
}

const cache = new Map<string, string>();

export function moduleColour(module: string): string {
  const rank = ranks.value.get(module);
  const key = `${dark.value}${rank ?? ""}\0${module}`;
  let colour = cache.get(key);
  if (colour === undefined) {
    const hue = rank === undefined ? hash(module) % 360 : HUES[rank]!;
    colour = tone(hue, rank === undefined ? 0.055 : 0.085);
    cache.set(key, colour);
  }
  return colour;
}

export function siteColour(site: Site): string {
  return moduleColour(moduleOf(site));
}

/** The colour of a series: that of its module, or one by its place where there is no module. */
export function seriesColour(site: Site, by: string, rank: number): string {
  if (by === "module") return moduleColour(site.name);
  return rankColour(rank);
}

/** One of the hues that are far apart. */
export function rankColour(rank: number): string {
  return tone(HUES[rank % HUES.length]!, 0.085);
}

/** A holder of blocks, or blocks, in the tree of a snapshot: blues and ochres that differ a little by name. */
export function heldColour(name: string, isHolder: boolean): string {
  return tone((isHolder ? 235 : 55) + (hash(name) % 5) * 9, isHolder ? 0.085 : 0.075);
}

export interface Palette {
  text: string;
  faint: string;
  line: string;
  paper: string;
  joined: string;
  others: string;
  select: string;
  hatch: string;
  more: string;
  less: string;
  same: string;
  band: string;
}

const LIGHT: Palette = {
  text: "#16191d", faint: "#5a626d", line: "#d8dce2", paper: "#ffffff", joined: "#d5d9de", others: "#d5d9de",
  select: "#0b57d0", hatch: "rgb(20 24 30 / 0.22)", more: "#f4b27a", less: "#8fbbee", same: "#dfe3e8", band: "rgb(22 25 29 / 0.13)",
};
const DARK: Palette = {
  text: "#e8eaed", faint: "#a2abb6", line: "#343a43", paper: "#14171b", joined: "#3a4049", others: "#3a4049",
  select: "#8ab4f8", hatch: "rgb(255 255 255 / 0.2)", more: "#8f4a0c", less: "#1c4f8c", same: "#2c323a", band: "rgb(232 234 237 / 0.18)",
};

export function palette(): Palette {
  return dark.value ? DARK : LIGHT;
}
