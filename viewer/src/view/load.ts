// Brings the traces in: from the page itself, or from the server once it has read them.

import { embeddedTrace, fetchStatus, fetchTrace, type TraceStatus } from "../query/page-data";
import type { Packed } from "../query/protocol";
import { client, config, traces, type TraceState } from "./store";

function put(trace: number, state: TraceState): void {
  traces.value = traces.value.map((old, at) => (at === trace ? state : old));
}

async function open(trace: number, archive: () => Packed): Promise<void> {
  const error = await client.open(trace, archive);
  if (error !== undefined) {
    put(trace, { error });
    return;
  }
  client.ask(`info-${trace}`, "info", { trace }, (outcome) => {
    put(trace, "error" in outcome ? { error: outcome.error } : { info: outcome });
  });
}

const message = (reason: unknown) => (reason instanceof Error ? reason.message : String(reason));

/** What the server knows of each trace, until all are read. */
async function follow(): Promise<void> {
  const begun = new Set<number>();
  for (;;) {
    let all: TraceStatus[];
    try {
      all = await fetchStatus();
    } catch (reason) {
      traces.value = traces.value.map((state) => ("status" in state ? { error: message(reason) } : state));
      return;
    }
    all.forEach((status, trace) => {
      if (begun.has(trace) || trace >= traces.value.length) return;
      if (status.state === "failed") put(trace, { error: status.error ?? "the trace cannot be read" });
      else put(trace, { status });
      if (status.state === "reading") return;
      begun.add(trace);
      if (status.state === "ready") {
        fetchTrace(trace).then(
          (archive) => open(trace, () => (archive as ArrayBuffer).slice(0)),
          (reason: unknown) => put(trace, { error: message(reason) }),
        );
      }
    });
    if (all.every(({ state }) => state !== "reading")) return;
    await new Promise((resume) => setTimeout(resume, 150));
  }
}

export function load(): void {
  if (config.traces.length === 0) return;
  client.prepare();
  if (config.mode === "serve") void follow();
  else config.traces.forEach((_, trace) => void open(trace, () => embeddedTrace(trace)));
}
