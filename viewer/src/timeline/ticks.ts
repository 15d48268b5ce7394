// The labels of axes: round values, no more than fit, and two at least.

const UNIT_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** Steps for an axis of bytes: 1, 2, 5, 10, … 500 of each binary unit. */
export const BYTE_STEPS: number[] = [1, 2 ** 10, 2 ** 20, 2 ** 30, 2 ** 40].flatMap((unit) => UNIT_STEPS.map((step) => step * unit));

/** Steps for an axis of microseconds: round on a clock from a second on. */
export const TIME_STEPS: number[] = [
  ...[1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6].flatMap((unit) => [1, 2, 5].map((step) => step * unit)),
  ...[10, 15, 30].map((seconds) => seconds * 1e6),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * 6e7),
  ...UNIT_STEPS.map((days) => days * 8.64e10),
];

/** The smallest step of which no more than this many fit, but one at least. */
export function step(range: number, most: number, steps: readonly number[]): number {
  const found = steps.find((each) => range / each <= Math.max(1, most)) ?? steps.at(-1)!;
  return found <= range ? found : steps.findLast((each) => each <= range) ?? found;
}

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

/** As many digits after the point as tell steps apart. */
function exactTo(value: number, unit: number, step: number): string {
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  return String(Number((value / unit).toFixed(digits)));
}

/** From a minute on as on a clock, where the step is not whole minutes or hours: `1:30 min`, `2:15 h`, `1:30.25 min`. */
export function axisTime(value: number, step: number): string {
  if (value === 0) return "0";
  if (value >= 3.6e9 && step >= 6e7) return onClock(value, 3.6e9, 6e7, step, "h");
  if (value >= 3.6e9) return `${Math.floor(value / 3.6e9)}:${onClock(value % 3.6e9, 6e7, 1e6, Math.min(step, 3e7), "h", 2)}`;
  if (value >= 6e7) return onClock(value, 6e7, 1e6, step, "min");
  const [unit, name] = value < 1e3 ? [1, "µs"] : value < 1e6 ? [1e3, "ms"] : [1e6, "s"];
  return `${exactTo(value, unit, step)} ${name}`;
}

/** A value in units and parts of them; without parts if the step is whole units. */
function onClock(value: number, unit: number, part: number, step: number, name: string, width = 1): string {
  const whole = Math.floor(value / unit);
  if (step >= unit) return `${Math.round(value / unit)} ${name}`;
  const rest = exactTo(value - whole * unit, part, step);
  const isWhole = rest === "0" && width === 1;
  const padded = rest.replace(/^\d(?=\.|$)/, "0$&");
  return `${String(whole).padStart(width, "0")}${isWhole ? "" : `:${padded}`} ${name}`;
}

export interface Tick {
  time: number;
  text: string;
}

/** Labels for a part of the time on so many pixels; `widthOf` is how wide a text is. */
export function timeTicks(from: number, to: number, pixels: number, widthOf: (text: string) => number): Tick[] {
  let found: Tick[] = [];
  for (let at = TIME_STEPS.length - 1; at >= 0; at--) {
    const ticks = ticksOf(from, to, TIME_STEPS[at]!);
    const widest = ticks.reduce((most, { text }) => Math.max(most, widthOf(text)), 0);
    const fits = ((widest + 24) * (to - from)) / TIME_STEPS[at]! <= pixels;
    if (!fits && found.length > 1) break;
    found = ticks;
  }
  return found;
}

function ticksOf(from: number, to: number, step: number): Tick[] {
  const ticks: Tick[] = [];
  if ((to - from) / step > 200) return ticks;
  for (let number = Math.ceil(from / step); number * step <= to; number++) ticks.push({ time: number * step, text: axisTime(number * step, step) });
  return ticks;
}
