// Brings the traces in: from the page itself, or from the server once it has read them or a part of them. Those
// that are still being written or read are fetched again whenever they have grown; the view stays as it is.

import { embeddedTrace, fetchStatus, fetchTrace, type LiveStatus, type TraceStatus } from "../query/page-data";
import { loadSidecar } from "../probes/document";
import type { Packed } from "../query/protocol";
import { followed, lost, paused } from "./live";
import { change, client, config, notice, revision, traces, view, type TraceState } from "./store";

/** Milliseconds between two looks at the server: while it reads, and while a program runs. */
const READING = 150;
const LIVE = 1000;

/** A trace that was read to its end, which the page has yet to fetch. */
const WHOLE: LiveStatus = { version: "", state: "partial", percent: 100 };

function put(trace: number, state: TraceState): void {
  traces.value = traces.value.map((old, at) => (at === trace ? state : old));
}

/** Opens a trace, or what it has become. What cannot be opened leaves what is shown as it is. */
async function open(trace: number, archive: () => Packed): Promise<void> {
  const known = traces.value[trace];
  const isShown = known !== undefined && "info" in known;
  const refuse = (error: string) => (isShown ? notice(error) : put(trace, { error }));
  const error = await client.open(trace, archive);
  if (error !== undefined) {
    refuse(error);
    return;
  }
  await new Promise<void>((done) => client.ask(`info-${trace}`, "info", { trace }, (outcome) => {
    if ("error" in outcome) refuse(outcome.error);
    else {
      put(trace, { info: outcome });
      void loadSidecar(trace);
    }
    if (isShown) revision.value += 1;
    done();
  }));
}

const message = (reason: unknown) => (reason instanceof Error ? reason.message : String(reason));
const pause = (milliseconds: number) => new Promise((resume) => setTimeout(resume, milliseconds));

async function fetchAndOpen(trace: number): Promise<void> {
  const archive = (await fetchTrace(trace)) as ArrayBuffer;
  await open(trace, () => archive.slice(0));
}

/** Another trace took the place of one: times of the old one mean nothing in it. */
function noteReplacement(trace: number): void {
  notice(`Another trace has taken the name of ${config.traces[trace]!.name}: this is the new one.`);
  if (view.value.trace !== trace) return;
  const chips = view.value.chips.filter(({ kind }) => kind !== "time");
  change({ chips, zoom: null, ...(view.value.metric === "at" ? { metric: "live", at: null } : {}) }, "within");
}

/** Tells the trace of one run from that of another. */
function run(trace: number): string | null {
  const state = traces.value[trace];
  return state && "info" in state ? JSON.stringify([state.info.start_us, state.info.pid, state.info.host]) : null;
}

/** Brings a followed trace up to date, unless the page is to stay as it is. `shown` has the version of each trace. */
async function update(trace: number, { version }: LiveStatus, shown: Map<number, string>): Promise<void> {
  const isShown = shown.has(trace);
  if (shown.get(trace) === version || (isShown && (paused.value || document.hidden || client.inGesture))) return;
  const before = run(trace);
  await fetchAndOpen(trace);
  shown.set(trace, version);
  if (before !== null && before !== run(trace)) noteReplacement(trace);
}

function isThisPage(all: TraceStatus[]): boolean {
  return all.length === config.traces.length && all.every(({ name }, at) => name === config.traces[at]!.name);
}

/** What the server knows of each trace, until all are read and none can grow any more. */
async function follow(): Promise<void> {
  const begun = new Set<number>();
  const shown = new Map<number, string>();
  for (;;) {
    const begin = performance.now();
    try {
      const all = await fetchStatus();
      if (!isThisPage(all)) throw new Error("the server shows other traces now; open the address that it printed");
      // What is shown in part stays so until the whole of it is there.
      followed.value = all.map(({ live }, trace) => live ?? (shown.has(trace) ? WHOLE : null));
      for (const [trace, status] of all.entries()) {
        if (begun.has(trace) && !status.live && !shown.has(trace)) continue;
        if (status.state === "failed") put(trace, { error: status.error ?? "the trace cannot be read" });
        else if (!begun.has(trace)) put(trace, { status });
        if (status.state === "reading") continue;
        const isFirst = !begun.has(trace);
        begun.add(trace);
        if (status.state === "failed") continue;
        if (status.live) await update(trace, status.live, shown);
        else if (shown.has(trace)) {
          await fetchAndOpen(trace);
          shown.delete(trace);
        }
        else if (isFirst) fetchAndOpen(trace).catch((reason: unknown) => put(trace, { error: message(reason) }));
      }
      followed.value = all.map(({ live }) => live ?? null);
      lost.value = null;
      if (all.every(({ state, live }) => state !== "reading" && !live)) return;
    } catch (reason) {
      if (followed.value.every((live) => live === null)) {
        traces.value = traces.value.map((state) => ("status" in state ? { error: message(reason) } : state));
        return;
      }
      lost.value = message(reason);
    }
    // As long again as it took, so that a large trace leaves the browser time for the user.
    const took = performance.now() - begin;
    const runs = followed.value.some((live) => live !== null && live.state !== "reading" && live.state !== "partial");
    await pause(Math.max(runs ? LIVE : READING, followed.value.some((live) => live !== null) ? took : 0));
    while (client.busy.value && !client.asksServer.value) await pause(READING);
  }
}

export function load(): void {
  if (config.traces.length === 0) return;
  client.prepare();
  if (config.mode === "serve") void follow();
  else config.traces.forEach((_, trace) => void open(trace, () => embeddedTrace(trace)));
}
