// What a program says of itself, in the file beside its trace: brought in with the trace, and again
// whenever that has grown.

import { computed, signal } from "@preact/signals";
import { embeddedSidecars, fetchSidecar } from "../query/page-data";
import { unpacked } from "../query/packed";
import { config, info, view } from "../view/store";

export type Unit = "bytes" | "share" | "ns" | "rate" | "number";

/** A line over time; null where nothing is known. */
export interface Lane {
  name: string;
  unit: Unit;
  values: (number | null)[];
}

export interface TreeProbe extends Partial<Pick<Lane, "values">> {
  name: string;
  kind: string;
  state: string;
  unit: Unit;
}

export interface TreeLine {
  level: number;
  label: string;
  /** Missing of a line above others. */
  probe?: TreeProbe;
}

export interface LogLine {
  time_us: number;
  text: string;
  /** Whether the program asked the view to stop there. */
  stop: boolean;
}

export interface Sidecar {
  start_us: number | null;
  problem: string | null;
  /** Microseconds between two points of a line. */
  width_us: number;
  lanes: Lane[];
  limit_bytes: number | null;
  /** What was old by then has lived through a whole major collection; null if they are not counted. */
  old_before_us: number | null;
  tree: TreeLine[];
  log: LogLine[];
  more_log: number;
}

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
