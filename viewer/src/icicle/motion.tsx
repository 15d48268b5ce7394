// Which part of its width an icicle shows: a zoom, how it moves there, and what a link says of it.

import type { Signal } from "@preact/signals";

/** What is between the edges, in samples. */
export interface Motion {
  from: number;
  to: number;
}

/** The same in parts of the whole, of which a link has these many. */
export type Across = readonly [from: number, to: number];
const PARTS = 1e8;

export function wholeWidth(total: number): Motion {
  return { from: 0, to: total || 1 };
}

/** Of a link that is not of this tree, what there is. */
export function motionOf(across: Across | null, total: number): Motion {
  if (!across || across[0] >= across[1] || across[1] > PARTS || total === 0) return wholeWidth(total);
  return { from: (across[0] / PARTS) * total, to: (across[1] / PARTS) * total };
}

/** Null if that is all. */
export function acrossOf({ from, to }: Motion, total: number): Across | null {
  if (to - from > 0.999 * total) return null;
  const left = Math.floor((from / total) * PARTS);
  return [left, Math.min(PARTS, Math.max(left + 1, Math.ceil((to / total) * PARTS)))];
}

/** Whether these are the same to the eye. */
export function isAlike(one: Motion, other: Motion): boolean {
  const apart = Math.abs(one.from - other.from) + Math.abs(one.to - other.to);
  return apart < (one.to - one.from) / 1000;
}

/** Takes a zoom back. */
export function WholeWidth({ motion, total, onWhole }: { motion: Signal<Motion>; total: number; onWhole(): void }) {
  const { from, to } = motion.value;
  if (to - from > 0.999 * total) return null;
  return <button type="button" class="icicle-whole" title="Back to the whole width, which Control and the wheel enlarged" onClick={() => { motion.value = wholeWidth(total); onWhole(); }}>whole width</button>;
}

/** Moves the edges there within a tenth of a second or so. */
export function glide(motion: { value: Motion }, to: Motion): void {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const [from, begun] = [motion.value, performance.now()];
  let last = motion.value;
  const step = (now: number) => {
    // A new tree has taken the place of this one.
    if (motion.value !== last) return;
    const part = Math.min(1, (now - begun) / 140);
    const eased = part * (2 - part);
    last = { from: from.from + (to.from - from.from) * eased, to: from.to + (to.to - from.to) * eased };
    motion.value = last;
    if (part < 1) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

/** Control and the wheel zoom around the pointer; the wheel sideways moves. */
export function zoom(event: WheelEvent, box: HTMLElement, motion: { value: Motion }, total: number): void {
  const { from, to } = motion.value;
  const width = to - from;
  if (event.ctrlKey) {
    event.preventDefault();
    const at = from + ((event.clientX - box.getBoundingClientRect().left) / box.clientWidth) * width;
    const next = Math.min(total, Math.max(width * Math.exp(event.deltaY / 200), total / 1e6));
    const left = Math.min(Math.max(0, at - ((at - from) / width) * next), total - next);
    motion.value = { from: left, to: left + next };
  } else if (event.deltaX !== 0 && width < total) {
    event.preventDefault();
    const left = Math.min(Math.max(0, from + (event.deltaX / box.clientWidth) * width), total - width);
    motion.value = { from: left, to: left + width };
  }
}
