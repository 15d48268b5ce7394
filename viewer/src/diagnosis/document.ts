// The diagnosis of each trace, or of the snapshots if the page has no trace: what `heaptap doctor` says of the same
// files. The server makes it after all else, and again while a program runs and the page asks.

import { computed, signal } from "@preact/signals";
import { embeddedDiagnoses, fetchDiagnosis } from "../query/page-data";
import type { PageDiagnosis } from "../query/figures";
import { unpacked } from "../query/packed";
import { followed, paused } from "../view/live";
import { config, view } from "../view/store";

export type { Diagnosis, DiagnosisFinding, Examined, GainedSite, HolderGrowth, PageDiagnosis } from "../query/figures";

/** Milliseconds between two questions: until there is one, and whether there is a newer one. */
const SOON = 400;
const LATER = 2000;

/** null: the page was written without. */
const diagnoses = signal<readonly (PageDiagnosis | null)[]>(Array.from({ length: Math.max(1, config.traces.length) }, () => ({ state: "waiting" })));

/** That of the trace in view. */
export const diagnosis = computed<PageDiagnosis | null>(() => diagnoses.value[config.traces.length === 0 ? 0 : view.value.trace] ?? null);

function put(number: number, state: PageDiagnosis): void {
  diagnoses.value = diagnoses.value.map((old, at) => (at === number ? state : old));
}

const message = (reason: unknown) => (reason instanceof Error ? reason.message : String(reason));
const pause = (milliseconds: number) => new Promise((resume) => setTimeout(resume, milliseconds));

/** Asks until there is a diagnosis to which nothing is added. */
async function follow(number: number): Promise<void> {
  for (;;) {
    let wait = LATER;
    try {
      const found = await fetchDiagnosis(number);
      const isWaiting = found.state === "waiting";
      // The server may have been started again: what is known stays.
      if (!isWaiting || diagnoses.value[number]?.state !== "ready") put(number, found);
      if (isWaiting) wait = SOON;
      else if (followed.value[number] == null && !(found.state === "ready" && found.so_far)) return;
    } catch (reason) {
      if (diagnoses.value[number]?.state === "waiting") put(number, { state: "failed", error: message(reason) });
    }
    await pause(wait);
    while (document.hidden || paused.value) await pause(SOON);
  }
}

async function embedded(): Promise<void> {
  const packed = embeddedDiagnoses();
  const all = packed === "" ? [] : (JSON.parse(new TextDecoder().decode(await unpacked(packed))) as PageDiagnosis[]);
  diagnoses.value = diagnoses.value.map((_, number) => all[number] ?? null);
}

export function loadDiagnoses(): void {
  if (config.mode === "serve") diagnoses.value.forEach((_, number) => void follow(number));
  else void embedded().catch((reason: unknown) => diagnoses.value.forEach((_, number) => put(number, { state: "failed", error: message(reason) })));
}
