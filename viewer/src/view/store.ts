// The state of the page: the view, which mirrors the address, and what has been read.

import { batch, computed, signal } from "@preact/signals";
import { Client } from "../query/client";
import { readConfig, type TraceStatus } from "../query/page-data";
import type { Info } from "../query/types";
import { withChip, type Chip, type ChipKind } from "./chips";
import type { HeapView } from "./heap-view";
import { decodeView, encodeView, TABS, type Tab, type View } from "./view";

export const config = readConfig();

/** The tabs of this page: those of its traces, and one for its snapshots. */
export const tabs: readonly Tab[] = TABS.filter((tab) => (tab === "snapshots" ? config.snapshots > 0 : config.traces.length > 0 || config.snapshots === 0));

/** A link may name a tab that this page does not have. */
function opened(fragment: string): View {
  const found = decodeView(fragment);
  return tabs.includes(found.tab) ? found : { ...found, tab: tabs[0]! };
}

export const view = signal<View>(opened(location.hash));

/** A trace is ready when its figures are known; before, it is read, opened, or failed. */
export type TraceState = { status: TraceStatus } | { info: Info } | { error: string };
export const traces = signal<TraceState[]>(config.traces.map(({ name }) => ({ status: { name, state: "reading", read: 0, size: 0 } })));

/** Grows whenever a trace that is shown has grown: every answer is then asked for again. */
export const revision = signal(0);

/** Messages that the page shows until they are dismissed. */
export const notices = signal<string[]>([]);

export function notice(message: string): void {
  if (!notices.value.includes(message)) notices.value = [...notices.value, message];
}

export const client = new Client((message) => notice(`${message}. It has been started again.`));

/** Whether figures come from the full reading of the server. It ends with the next filter. */
export const exact = signal(false);

/** Whether the last full reading failed: what is shown are the figures from before. */
export const exactFailed = signal(false);

/** The trace that is shown, if it is ready. */
export const info = computed<Info | null>(() => {
  const state = traces.value[view.value.trace] ?? traces.value[0];
  return state && "info" in state ? state.info : null;
});

/**
 * How a change enters the history: as a step, to which Back returns; within the entry that stands,
 * like a selection; or as part of a gesture that goes on, whose first change is a step and whose
 * others are within it.
 */
export type How = "step" | "within" | "brush" | "search" | "zoom";

let gesture: How = "step";
let pending: number | undefined;

/** What follows is a step again. */
export function endGesture(): void {
  gesture = "step";
  client.hold(false);
}

/** A full reading answers for one selection: another one is shown as fast as possible. */
function show(next: View): void {
  const selection = ({ trace, chips, metric, at }: View) => JSON.stringify([trace, chips, metric, at]);
  if (selection(next) !== selection(view.value)) exact.value = false;
  view.value = next;
}

/** What the cells of the flame depend on: another flame is shown whole. */
const FLAME: readonly (keyof View)[] = ["trace", "metric", "at", "sites", "chips", "focus", "invert", "treeBy"];

/** Changes the view. */
export function change(changes: Partial<View>, how: How = "step"): void {
  const last = encodeView(view.value);
  const isOther = FLAME.some((key) => key in changes);
  const next = { ...view.value, ...(isOther ? { across: null } : {}), ...changes };
  const fragment = encodeView(next);
  const within = how === "within" || (how !== "step" && how === gesture);
  if (how !== "within") gesture = how;
  if (fragment === last) return;
  batch(() => {
    show(next);
  });
  clearTimeout(pending);
  if (within) {
    // Browsers allow some 200 changes of the address in 30 s.
    pending = setTimeout(() => history.replaceState(null, "", fragment), 200) as unknown as number;
  } else {
    if (location.hash !== last) history.replaceState(null, "", last);
    history.pushState(null, "", fragment);
  }
}

/** The address says what is shown, without the pause after a change within an entry. */
export function settleAddress(): void {
  clearTimeout(pending);
  history.replaceState(null, "", encodeView(view.value));
}

/** Changes what is shown of the snapshots. */
export function changeHeap(changes: Partial<HeapView>, how: How = "step"): void {
  change({ heap: { ...view.value.heap, ...changes } }, how);
}

export function followAddress(): void {
  const follow = () => {
    clearTimeout(pending);
    gesture = "step";
    const next = opened(location.hash);
    if (encodeView(next) !== encodeView(view.value)) batch(() => show(next));
  };
  addEventListener("popstate", follow);
  addEventListener("hashchange", follow);
}

export function addChip(chip: Chip, how: How = "step"): void {
  change({ chips: withChip(view.value.chips, chip) }, how);
}

export function removeChip(index: number): void {
  change({ chips: view.value.chips.filter((_, at) => at !== index) });
}

export function removeChips(kind: ChipKind, how: How = "step"): void {
  change({ chips: view.value.chips.filter((chip) => chip.kind !== kind) }, how);
}
