// Traces that are still being written or read, in a page that `heaptap serve` shows: the state of each, and
// whether the page keeps up with it.

import { computed, signal } from "@preact/signals";
import type { LiveStatus } from "../query/page-data";
import { config, view } from "./store";

/** What the server last said of each trace; null of those that are complete. */
export const followed = signal<readonly (LiveStatus | null)[]>(config.traces.map(() => null));

/** Whether the page keeps what it shows while the program runs on. */
export const paused = signal(false);

/** Why the server cannot be asked, while that is so. */
export const lost = signal<string | null>(null);

/** The trace in view, if it is followed. */
export const current = computed(() => followed.value[view.value.trace] ?? null);

/** Whether the trace in view still grows: then its end is now. */
export const grows = computed(() => current.value !== null && (current.value.state === "live" || current.value.state === "reading"));

export function togglePause(): void {
  if (current.value) paused.value = !paused.value;
}

const STATES: Record<LiveStatus["state"], string> = {
  reading: "reading",
  partial: "figures so far",
  live: "live",
  ended: "the program ended",
  killed: "the program was killed",
  cut: "the trace could not be written any further",
  failed: "the trace cannot be read",
};

/** What the head says about the trace in view. */
export const liveText = computed(() => {
  const state = current.value;
  if (!state) return "";
  if (lost.value !== null) return "connection lost: trying again";
  const text = state.state === "partial" ? `${state.percent ?? 0} % read: ${STATES.partial}` : STATES[state.state];
  if (!paused.value) return text;
  return state.state === "live" || state.state === "reading" ? "paused" : `paused; ${text}`;
});
