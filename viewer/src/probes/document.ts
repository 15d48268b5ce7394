// What a program says of itself, in the file beside its trace: brought in with the trace, and again
// whenever that has grown.

import { computed, signal } from "@preact/signals";
import { embeddedSidecars, fetchSidecar } from "../query/page-data";
import type { Sidecar } from "../query/figures";
import { unpacked } from "../query/packed";
import { config, info, view } from "../view/store";

export type { Lane, LogLine, Sidecar, TreeLine, TreeProbe, Unit } from "../query/figures";

const sidecars = signal<readonly (Sidecar | null)[]>([]);

/** That of the trace in view; one of another trace, which had the same name, is none. */
export const sidecar = computed<Sidecar | null>(() => {
  const found = sidecars.value[view.value.trace] ?? null;
  const start = info.value?.start_us;
  return found && (found.start_us === null || start === undefined || found.start_us === start) ? found : null;
});

async function read(trace: number): Promise<Sidecar | null> {
  if (config.mode === "serve") return parsed(await fetchSidecar(trace)) as Promise<Sidecar | null>;
  const packed = embeddedSidecars();
  return packed === "" ? null : ((await parsed(packed)) as (Sidecar | null)[])[trace] ?? null;
}

async function parsed(packed: string | ArrayBuffer): Promise<unknown> {
  return JSON.parse(new TextDecoder().decode(await unpacked(packed)));
}

/** Without it, the page shows all else. */
export async function loadSidecar(trace: number): Promise<void> {
  const found = await read(trace).catch(() => null);
  const all = [...sidecars.value];
  while (all.length <= trace) all.push(null);
  all[trace] = found;
  sidecars.value = all;
}
