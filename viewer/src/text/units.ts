// Sizes, shares and times as the command line writes them (crates/cli/src/text/units.rs).

import type { Part, Size } from "../query/types";

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] as const;

/** Rounds half to even, as Rust's formatting does for values that are exact halves. */
function fixed(value: number, digits: number): string {
  return value.toFixed(digits).replace("-", "−");
}

export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit += 1;
  }
  return `${fixed(value, unit === 0 ? 0 : 1)} ${UNITS[unit]}`;
}

/** The same in three digits or so, rounded up. */
export function roundBytes(count: number): string {
  const [value = "", unit = ""] = bytes(count).split(" ");
  return Number(value) < 100 ? `${value} ${unit}` : `${Math.ceil(Number(value))} ${unit}`;
}

/** The same with a sign. */
export function signedBytes(count: number): string {
  return `${count < 0 ? "−" : "+"}${bytes(Math.abs(count))}`;
}

/** A share as a percentage, with as many digits as its size needs. */
export function percent(share: number): string {
  const value = 100 * share;
  const size = Math.abs(value);
  if (size === 0) return "0 %";
  return `${fixed(value, size < 0.995 ? 2 : 1)} %`;
}

/** The standard error as a share of the size; null if it is not known. */
export function relative(size: { bytes: number; error: number | null }): number | null {
  if (size.error === null) return null;
  return size.bytes > 0 ? size.error / size.bytes : 0;
}

/** Whether there is no sample, though not every word was sampled. */
function isUnseen(size: Size): boolean {
  return size.bytes === 0 && size.high > 0;
}

/** A size with its relative error, or what else is known of it. */
export function sized(size: Size): string {
  const error = relative(size);
  if (error !== null) return `${bytes(size.bytes)} ± ${percent(error)}`;
  if (isUnseen(size)) return `less than ${bytes(size.high)} (no sample)`;
  return size.low === 0 ? `at most ${bytes(size.high)}` : `between ${bytes(size.low)} and ${bytes(size.high)}`;
}

/** The size and its relative error for two columns of a table. */
export function sizeColumns(size: Size): [string, string] {
  const error = relative(size);
  if (error !== null) return [bytes(size.bytes), `± ${percent(error)}`];
  return isUnseen(size) ? [`<${bytes(size.high)}`, "-"] : [bytes(size.bytes), "?"];
}

/** A share with its standard error, if that is known. */
export function shared(part: Part): string {
  if (part.error === null) return percent(part.share);
  // No estimate is without an error.
  return `${percent(part.share)} ± ${part.error > 0 && part.error < 5e-5 ? "<0.01 %" : percent(part.error)}`;
}

/** A duration to three digits or so. */
export function shortDuration(micros: number): string {
  const [value, unit] =
    micros < 1e3 ? [micros, "µs"]
    : micros < 1e6 ? [micros / 1e3, "ms"]
    : micros < 6e7 ? [micros / 1e6, "s"]
    : micros < 3.6e9 ? [micros / 6e7, "min"]
    : [micros / 3.6e9, "h"];
  return `${fixed(value, value >= 99.95 || unit === "µs" ? 0 : 1)} ${unit}`;
}

/** A time since the start, with as many digits as tell it from one that is `apart` from it. */
export function timeText(micros: number, apart: number): string {
  if (micros === 0) return "0";
  const [unit, name] = micros < 1e3 ? [1, "µs"] : micros < 1e6 ? [1e3, "ms"] : micros < 6e7 ? [1e6, "s"] : [6e7, "min"];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / Math.max(1, apart))) + 1);
  return `${fixed(micros / unit, unit === 1 ? 0 : Math.min(8, digits))} ${name}`;
}

export function count(number: number, one: string, many: string): string {
  return `${grouped(number)} ${number === 1 ? one : many}`;
}

/** A count in at most six digits: `12,345`, `1.23 million`. */
export function number(count: number): string {
  if (count < 1e6) return grouped(count);
  return count < 1e9 ? `${fixed(count / 1e6, 2)} million` : `${fixed(count / 1e9, 2)} billion`;
}

/** A count with its thousands apart. */
export function grouped(number: number): string {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");
}

const DURATIONS: Record<string, number> = { us: 1, "µs": 1, ms: 1e3, s: 1e6, min: 6e7, h: 3.6e9 };
const SIZES: Record<string, number> = { b: 1, k: 1024, kb: 1024, kib: 1024, m: 2 ** 20, mb: 2 ** 20, mib: 2 ** 20, g: 2 ** 30, gb: 2 ** 30, gib: 2 ** 30 };

function parsed(text: string, units: Record<string, number>, bare: number): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)\s*$/i.exec(text);
  if (!match) return null;
  const unit = match[2] ?? "";
  const factor = unit === "" ? bare : units[unit.toLowerCase()];
  return factor === undefined ? null : Math.round(Number(match[1]) * factor);
}

/** Microseconds of `1.5min`, `90s`, `250us`; a bare number is seconds, as on the command line. */
export function parseDuration(text: string): number | null {
  return parsed(text, DURATIONS, 1e6);
}

/** Bytes of `4096`, `64KiB`, `1MiB`. */
export function parseBytes(text: string): number | null {
  return parsed(text, SIZES, 1);
}
