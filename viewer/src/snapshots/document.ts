// Brings the document about the snapshots in, and knows which snapshot is shown.

import { computed, signal } from "@preact/signals";
import { embeddedSnapshots, fetchSnapshots } from "../query/page-data";
import { unpacked } from "../query/packed";
import type { Packed } from "../query/protocol";
import { config, view } from "../view/store";
import type { Snapshot, SnapshotDocument } from "./types";

/** Milliseconds between two questions whether the server has read them. */
const PAUSE = 200;

type State = { reading: true } | { error: string } | { document: SnapshotDocument };
export const state = signal<State>({ reading: true });

const NONE: readonly Snapshot[] = [];
export const snapshots = computed<readonly Snapshot[]>(() => ("document" in state.value ? state.value.document.snapshots : NONE));

/** The number of the snapshot that is shown; a link may name one that is not there. */
export const shown = computed(() => {
  const last = snapshots.value.length - 1;
  return Math.min(view.value.heap.snapshot ?? last, last);
});

/** Whether the page is not yet complete. */
export const stillReading = () => config.snapshots > 0 && "reading" in state.value;

async function packed(): Promise<Packed> {
  if (config.mode === "file") return embeddedSnapshots();
  for (;;) {
    const answer = await fetchSnapshots();
    if (answer !== null) return answer;
    await new Promise((resume) => setTimeout(resume, PAUSE));
  }
}

export async function loadSnapshots(): Promise<void> {
  if (config.snapshots === 0) return;
  try {
    const text = new TextDecoder().decode(await unpacked(await packed()));
    state.value = { document: JSON.parse(text) as SnapshotDocument };
  } catch (reason) {
    state.value = { error: reason instanceof Error ? reason.message : String(reason) };
  }
}
