// The tab about heap snapshots: which one, how it compares over time, and the parts about it.

import { DiagnosisPanel } from "../diagnosis/panel";
import { Message, Problem } from "../parts/messages";
import { visible } from "../text/sites";
import { count } from "../text/units";
import { changeHeap, config, view } from "../view/store";
import type { Part } from "../view/heap-view";
import { shown, snapshots, state } from "./document";
import { Evolution } from "./evolution";
import { SnapshotFacts } from "./facts";
import { Findings } from "./findings";
import { GrowthTable } from "./growth";
import { Holders } from "./holders";
import { AllocationSites } from "./sites";
import { HeapTables } from "./tables";
import type { PairGrowth, Snapshot } from "./types";

export function Snapshots() {
  if ("error" in state.value) return <Message title="The snapshots cannot be shown"><Problem text={state.value.error} /><p>Try <code>heaptap snapshot --check FILE</code>, which names the defect.</p></Message>;
  if ("reading" in state.value) return <Message title={`Reading ${count(config.snapshots, "snapshot", "snapshots")}`}><progress aria-label="Reading" /></Message>;
  const { failed, growths } = state.value.document;
  const number = shown.value;
  const snapshot = snapshots.value[number];
  return (
    <div class="snapshots">
      {config.traces.length === 0 && <DiagnosisPanel />}
      {failed.map(({ name, error }) => <Problem text={error.includes(name) ? visible(error) : `${visible(name)}: ${visible(error)}`} />)}
      {snapshot ? (
        <>
          <SnapshotFacts snapshot={snapshot} number={number} />
          {snapshots.value.length > 1 && <Evolution number={number} />}
          <Parts snapshot={snapshot} />
          <Body snapshot={snapshot} number={number} growths={growths} />
        </>
      ) : failed.length === 0 && <Message title="This page holds no snapshot" />}
    </div>
  );
}

/** The parts that there are for a snapshot, with their names. */
function partsOf(snapshot: Snapshot): [Part, string][] {
  const parts: [Part, string, boolean][] = [
    ["tree", "What holds it", true],
    ["table", "Tables", true],
    ["growth", "What changed", snapshots.value.length > 1],
    ["sites", "Where it was allocated", snapshot.sites !== null],
  ];
  return parts.filter(([, , there]) => there).map(([part, name]) => [part, name]);
}

function Parts({ snapshot }: { snapshot: Snapshot }) {
  const current = view.value.heap.part;
  return (
    <div class="parts" role="group" aria-label="About this snapshot">
      {partsOf(snapshot).map(([part, name]) => (
        <button type="button" aria-pressed={part === current} onClick={() => changeHeap({ part })}>{name}</button>
      ))}
    </div>
  );
}

function Body({ snapshot, number, growths }: { snapshot: Snapshot; number: number; growths: readonly PairGrowth[] }) {
  switch (view.value.heap.part) {
    case "tree":
      return <div class="with-panel"><Holders snapshot={snapshot} /><Findings snapshot={snapshot} /></div>;
    case "table":
      return <HeapTables snapshot={snapshot} />;
    case "growth":
      return <GrowthTable growths={growths} number={number} />;
    case "sites":
      return <AllocationSites snapshot={snapshot} />;
  }
}
