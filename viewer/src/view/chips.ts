// Chips: the filters a person has set, as they stand in the address and in the bar, and the filter
// of the query that they make together.

import type { Filter, Source } from "../query/types";
import { visible } from "../text/sites";
import { bytes, shortDuration } from "../text/units";

export type Chip =
  /** Regular expressions. A function and a file differ in what is completed only. */
  | { kind: "function" | "file" | "without" | "label"; text: string }
  | { kind: "size" | "lifetime"; from: number; to: number | null }
  | { kind: "time"; from: number; to: number }
  | { kind: "domain"; number: number }
  | { kind: "source"; source: Source };

export type ChipKind = Chip["kind"];

export const CHIP_KINDS: { kind: ChipKind; title: string; hint: string }[] = [
  { kind: "function", title: "function", hint: "blocks with a frame whose function matches" },
  { kind: "file", title: "file", hint: "blocks with a frame whose file matches" },
  { kind: "without", title: "without", hint: "no blocks with a frame whose function or file matches" },
  { kind: "size", title: "size", hint: "blocks of this size: 64KiB, 16-4096" },
  { kind: "lifetime", title: "lifetime", hint: "blocks that live this long: 1ms, 10us-5s" },
  { kind: "label", title: "label", hint: "blocks allocated under a label that matches" },
  { kind: "domain", title: "domain", hint: "blocks allocated in this domain" },
  { kind: "source", title: "source", hint: "minor heap, major heap or outside the heap" },
  { kind: "time", title: "time", hint: "blocks allocated in this time: 10ms-2s" },
];

export const SOURCES: Source[] = ["minor", "major", "external"];

function range(from: number, to: number | null, unit: (value: number) => string): string {
  if (to === null) return `≥ ${unit(from)}`;
  return from === 0 ? `≤ ${unit(to)}` : `${unit(from)} – ${unit(to)}`;
}

/** What the chip says: its name and its value. */
export function chipText(chip: Chip): [string, string] {
  switch (chip.kind) {
    case "function":
    case "file":
    case "label":
      return [chip.kind, `~ ${visible(chip.text)}`];
    case "without":
      return ["without", visible(chip.text)];
    case "size":
      return ["size", range(chip.from, chip.to, bytes)];
    case "lifetime":
      return ["lifetime", range(chip.from, chip.to, shortDuration)];
    case "time":
      return ["allocated", `${shortDuration(chip.from)} – ${shortDuration(chip.to)}`];
    case "domain":
      return ["domain", String(chip.number)];
    case "source":
      return ["source", chip.source];
  }
}

/** Chips of one kind that are alternatives or replace each other stand side by side or once. */
export function withChip(chips: readonly Chip[], chip: Chip): Chip[] {
  const once = chip.kind === "size" || chip.kind === "lifetime" || chip.kind === "time";
  const kept = chips.filter((other) => (once ? other.kind !== chip.kind : !sameChip(other, chip)));
  return [...kept, chip];
}

export function sameChip(a: Chip, b: Chip): boolean {
  return encodeChip(a) === encodeChip(b);
}

export function filterOf(chips: readonly Chip[]): Filter {
  const filter: Filter = {};
  for (const chip of chips) {
    switch (chip.kind) {
      case "function":
      case "file":
        (filter.include ??= []).push(chip.text);
        break;
      case "without":
        (filter.exclude ??= []).push(chip.text);
        break;
      case "label":
        (filter.labels ??= []).push(chip.text);
        break;
      case "size":
        filter.size = [chip.from, chip.to];
        break;
      case "lifetime":
        filter.lifetime = [chip.from, chip.to];
        break;
      case "time":
        filter.time = [chip.from, chip.to];
        break;
      case "domain":
        (filter.domains ??= []).push(chip.number);
        break;
      case "source":
        (filter.sources ??= []).push(chip.source);
        break;
    }
  }
  return filter;
}

/** `function=login`, as in the address. */
export function encodeChip(chip: Chip): string {
  const value = () => {
    switch (chip.kind) {
      case "size":
      case "lifetime":
      case "time":
        return `${chip.from}-${chip.to ?? ""}`;
      case "domain":
        return String(chip.number);
      case "source":
        return chip.source;
      default:
        return encodeURIComponent(chip.text);
    }
  };
  return `${chip.kind}=${value()}`;
}

export function decodeChip(kind: string, value: string): Chip | null {
  switch (kind) {
    case "function":
    case "file":
    case "without":
    case "label":
      return value === "" ? null : { kind, text: value };
    case "size":
    case "lifetime":
    case "time": {
      const match = /^(\d+)-(\d*)$/.exec(value);
      if (!match) return null;
      const from = Number(match[1]);
      const to = match[2] ? Number(match[2]) : null;
      if (to !== null && to < from) return null;
      if (kind !== "time") return { kind, from, to };
      return to === null ? null : { kind, from, to };
    }
    case "domain":
      return /^\d+$/.test(value) ? { kind, number: Number(value) } : null;
    case "source":
      return SOURCES.includes(value as Source) ? { kind, source: value as Source } : null;
    default:
      return null;
  }
}
