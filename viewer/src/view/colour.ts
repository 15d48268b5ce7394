// Colours of modules. The eight largest modules of the trace have eight colours of which any two differ clearly; others
// have a pale one by the hash of their name, unless they are layers of the time line: then they have one that differs from
// those of all layers. Text on them has a contrast of more than 5 : 1 in both themes.

import { signal } from "@preact/signals";
import type { Site } from "../query/types";
import { moduleOf } from "../text/sites";
import { dark } from "./theme";

/** Hues, and whether they are the darker ones of the theme: those that are near each other differ in that. Neighbours in this order differ most. */
const CLEAR: readonly (readonly [hue: number, deep: boolean])[] = [
  [250, true], [60, true], [160, true], [310, true], [95, false], [215, false], [25, false], [280, false],
];
const CHROMA = 0.09;
/** How far apart, in OKLab, two layers are at least. */
export const APART = 0.07;

/** The place of each of the largest modules; what paints reads it. */
export const ranks = signal<ReadonlyMap<string, number>>(new Map());
/** The tones of other modules that are layers of the time line; what paints reads it too. */
export const layers = signal<ReadonlyMap<string, Tone>>(new Map());

/** A colour of the theme. */
interface Tone {
  hue: number;
  deep: boolean;
}

const tones: readonly Tone[] = CLEAR.map(([hue, deep]) => ({ hue, deep }));
/** The same hues in the other lightness, for modules that are not among the largest. */
const others: readonly Tone[] = tones.map(({ hue, deep }) => ({ hue, deep: !deep }));

/** `keep`: a trace that has grown keeps the hues of the modules that are still among the largest. */
export function rankModules(names: readonly string[], keep = false): void {
  const largest = names.slice(0, tones.length);
  const next = new Map([...ranks.value].filter(([name]) => keep && largest.includes(name)));
  const taken = new Set(next.values());
  const free = tones.map((_, rank) => rank).filter((rank) => !taken.has(rank));
  for (const name of largest) if (!next.has(name)) next.set(name, free.shift()!);
  ranks.value = next;
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}

const lightness = (deep: boolean) => (dark.value ? (deep ? 0.36 : 0.47) : deep ? 0.74 : 0.85);

function tone({ hue, deep }: Tone, chroma = CHROMA): string {
  return `oklch(${lightness(deep)} ${chroma} ${hue})`;
}

/** The distance of two tones in OKLab: some 0.02 can just be told apart. */
function distance(one: Tone, other: Tone): number {
  const [apart, turn] = [lightness(one.deep) - lightness(other.deep), ((one.hue - other.hue) * Math.PI) / 180];
  return Math.hypot(apart, 2 * CHROMA * Math.sin(turn / 2));
}

function rankedTone(name: string): Tone | undefined {
  const rank = ranks.value.get(name);
  return rank === undefined ? undefined : tones[rank];
}

/** Gives modules that are stacked on each other tones that differ: the largest keep theirs, others have one by their name if it is free. */
export function setLayers(names: readonly string[]): void {
  const used = names.flatMap((name) => rankedTone(name) ?? []);
  const next = new Map<string, Tone>();
  for (const name of names) {
    if (rankedTone(name)) continue;
    const first = hash(name) % others.length;
    const candidates = [...others.slice(first), ...others.slice(0, first), ...tones];
    const room = (candidate: Tone) => used.reduce((least, each) => Math.min(least, distance(candidate, each)), Infinity);
    const found = candidates.find((candidate) => room(candidate) >= APART) ?? candidates.toSorted((one, other) => room(other) - room(one))[0]!;
    used.push(found);
    next.set(name, found);
  }
  const same = next.size === layers.value.size && [...next].every(([name, { hue, deep }]) => layers.value.get(name)?.hue === hue && layers.value.get(name)?.deep === deep);
  if (!same) layers.value = next;
}

export function moduleColour(module: string): string {
  const clear = rankedTone(module) ?? layers.value.get(module);
  return clear ? tone(clear) : tone({ hue: hash(module) % 360, deep: false }, 0.05);
}

export function siteColour(site: Site): string {
  return moduleColour(moduleOf(site));
}

/** The colour of a series: that of its module, or one by its place where there is no module. */
export function seriesColour(site: Site, by: string, rank: number): string {
  if (by === "module") return moduleColour(site.name);
  return rankColour(rank);
}

/** One of the colours that differ clearly. */
export function rankColour(rank: number): string {
  return tone(tones[rank % tones.length]!);
}

/** A holder of blocks, or blocks, in the tree of a snapshot: blues and ochres that differ a little by name. */
export function heldColour(name: string, isHolder: boolean): string {
  return tone({ hue: (isHolder ? 235 : 55) + (hash(name) % 5) * 9, deep: false }, isHolder ? CHROMA : 0.075);
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
