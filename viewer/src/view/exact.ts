// Exact figures of a trace that the page does not have as a whole, which the server reads again with
// the filter: when they are to be had, and how far the reading is.

import { computed, effect, signal } from "@preact/signals";
import { fetchStatus } from "../query/page-data";
import type { Filter, Metric } from "../query/types";
import type { ChipKind } from "./chips";
import { followed } from "./live";
import { comparedTraces, majorBegan } from "./request";
import { client, config, traces, view } from "./store";

const PAUSE = 250;

/** Whether the figures of a request can depend on thinning: without a filter only those of a time. */
export function isThinned(request: object): boolean {
  const { filter, metric } = request as { filter?: Filter; metric?: Metric };
  return metric === "at" || Object.keys(filter ?? {}).length > 0;
}

/** Chips that select by the frames of a call path. */
const OF_FRAMES = new Set<ChipKind>(["function", "file", "without", "label"]);

/** Whether the view has figures that a full reading would make more exact, or lacks some that it would give. */
export const canBeExact = computed(() => {
  const { trace, tab, chips, metric } = view.value;
  const needsCallers = chips.some(({ kind }) => OF_FRAMES.has(kind));
  const thinned = (at: number) => {
    const state = traces.value[at];
    // One that is followed is not read again.
    if (followed.value[at] || state === undefined || !("info" in state)) return false;
    const { blocks_one_in, table_lacks_callers } = state.info;
    return blocks_one_in > 1 || (needsCallers && table_lacks_callers);
  };
  // A reading does not look at the file beside the trace.
  if (metric === "major" && majorBegan.value !== null) return false;
  return config.exact && (chips.length > 0 || metric === "at") && (tab === "diff" ? Object.values(comparedTraces(view.value)).some(thinned) : thinned(trace));
});

/** The part of the trace that the full reading has read; null while there is none. */
export const fullReading = signal<number | null>(null);

async function follow(): Promise<void> {
  while (client.asksServer.value) {
    try {
      const reading = (await fetchStatus()).find(({ exact }) => exact)?.exact;
      fullReading.value = reading && reading.size > 0 ? Math.min(1, reading.read / reading.size) : 0;
    } catch {
      // The request itself says what is wrong with the server.
    }
    await new Promise((resume) => setTimeout(resume, PAUSE));
  }
  fullReading.value = null;
}

export function followReadings(): void {
  let following = false;
  effect(() => {
    if (!client.asksServer.value || following) return;
    following = true;
    void follow().finally(() => { following = false; });
  });
}
