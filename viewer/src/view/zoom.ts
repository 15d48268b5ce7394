// Which part of the run is shown: by every time line, the lanes, the heat map and the marks of snapshots. It is in the
// link; a run that grows leaves it where it is.

import { computed } from "@preact/signals";
import { change, endGesture, info, view } from "./store";

/** Microseconds since the start of the trace. */
export interface Span {
  from: number;
  to: number;
}

/** Microseconds: nothing is to be seen in less. */
const LEAST = 16;
/** Changes that come this soon after one another are one step of the history. */
const PAUSE = 600;

const end = computed(() => Math.max(1, info.value?.duration_us ?? 1));

/** The part that is shown. A link may name one after the end: then it is all. */
export const span = computed<Span>(() => {
  const [from, to] = view.value.zoom ?? [0, end.value];
  return from < end.value ? { from, to: Math.max(from + 1, Math.min(to, end.value)) } : { from: 0, to: end.value };
});

export const isZoomed = computed(() => span.value.from > 0 || span.value.to < end.value);

/** What a request about it says. */
export const shownRange = computed<{ range?: readonly [number, number] }>(() => (isZoomed.value ? { range: [span.value.from, span.value.to] } : {}));

let pending: number | undefined;

function show(from: number, width: number): void {
  const wide = Math.max(LEAST, Math.round(width));
  const begin = Math.round(Math.min(Math.max(0, from), end.value - wide));
  change({ zoom: wide >= end.value ? null : [begin, begin + wide] }, "zoom");
  clearTimeout(pending);
  pending = setTimeout(endGesture, PAUSE) as unknown as number;
}

/** Shows `factor` times as much, with `time` where it is; in the middle, if none is given. */
export function zoomAbout(factor: number, time?: number): void {
  const { from, to } = span.value;
  const about = time ?? (from + to) / 2;
  const width = Math.max(LEAST, (to - from) * factor);
  show(about - ((about - from) * width) / (to - from), width);
}

/** Moves what is shown by so much time. */
export function panTo(from: number): void {
  if (isZoomed.value) show(from, span.value.to - span.value.from);
}

/** Moves it by a part of what is shown. */
export function panBy(part: number): void {
  const { from, to } = span.value;
  panTo(from + part * (to - from));
}

export function showWholeRun(): void {
  change({ zoom: null });
}

/** What the keys and buttons zoom about: the middle of the brush, if that is in view. */
export function middleOfBrush(): number | undefined {
  const brush = view.value.chips.find(({ kind }) => kind === "time");
  if (brush?.kind !== "time") return undefined;
  const { from, to } = span.value;
  const middle = (brush.from + brush.to) / 2;
  return middle > from && middle < to ? middle : undefined;
}

/** Where a time stands: 0 at the left edge of what is shown, 1 at the right one. */
export function place(time: number, { from, to }: Span): number {
  return (time - from) / (to - from);
}

export const percentAt = (time: number, shown: Span) => `${100 * place(time, shown)}%`;
