// Which snapshot is shown, and the facts that `heaptap heap` prints first.

import { visible } from "../text/sites";
import { bytes, count, shortDuration } from "../text/units";
import { change, changeHeap, config, traces } from "../view/store";
import { snapshots } from "./document";
import type { Snapshot } from "./types";

/** `2026-11-17 07:15:36.617 UTC`. */
export function momentText(micros: number): string {
  const date = new Date(micros / 1000);
  return Number.isNaN(date.getTime()) ? "at an unknown time" : `${date.toISOString().slice(0, 23).replace("T", " ")} UTC`;
}

/** When that is in a trace, or how long after its last event. */
function whenIn(trace: number, at: number): string {
  const name = baseName(config.traces[trace]?.name ?? "the trace");
  const state = traces.value[trace];
  const after = state && "info" in state ? at - state.info.duration_us : 0;
  return after > 0 ? `${shortDuration(after)} after the last event of ${name}` : `${shortDuration(at)} into ${name}`;
}

/** The file of a path. */
export const baseName = (path: string) => visible(path.slice(path.lastIndexOf("/") + 1));

export function SnapshotFacts({ snapshot, number }: { snapshot: Snapshot; number: number }) {
  const all = snapshots.value;
  const { reachable, all: total, outside_bytes: outside, dangling, trace, at_us: at } = snapshot;
  const garbage = Math.max(0, total.bytes - reachable.bytes);
  return (
    <section class="snapshot-facts" aria-label="Facts">
      <div class="tools">
        {all.length > 1 ? (
          <h2><select aria-label="Snapshot" value={String(number)} onChange={(event) => changeHeap({ snapshot: Number(event.currentTarget.value), row: null })}>
            {all.map(({ name, reachable }, at) => <option value={String(at)}>{`${at + 1}. ${baseName(name)} (${bytes(reachable.bytes)})`}</option>)}
          </select></h2>
        ) : <h2 title={visible(snapshot.name)}>{baseName(snapshot.name)}</h2>}
        <span class="facts">
          {snapshot.program && <span title={visible(snapshot.program)}>{baseName(snapshot.program)}</span>}
          {snapshot.runtime && <span>{visible(snapshot.runtime)}</span>}
          {snapshot.pid !== null && <span>process {snapshot.pid}</span>}
          {snapshot.taken_us !== null && <span>taken {momentText(snapshot.taken_us)}</span>}
          {snapshot.reason && <span>{visible(snapshot.reason)}</span>}
          {trace !== null && at !== null && (
            <span><button type="button" class="plain link" title="What was alive then, by the trace" onClick={() => change({ tab: "overview", trace, metric: "at", at })}>{whenIn(trace, at)}</button></span>
          )}
        </span>
      </div>
      <dl class="totals">
        <div><dt>reachable</dt><dd>{bytes(reachable.bytes)} <span class="faint">in {count(reachable.blocks, "block", "blocks")}</span></dd></div>
        <div><dt>garbage not yet freed</dt><dd>{bytes(garbage)}</dd></div>
        {outside > 0 && <div><dt>outside the heap</dt><dd>{bytes(outside)}</dd></div>}
        {dangling > 0 && <div><dt>pointers to no block</dt><dd>{count(dangling, "pointer", "pointers")}</dd></div>}
      </dl>
    </section>
  );
}
