// What deserves a look: a card for each finding, with what holds it.

import { useMemo, useState } from "preact/hooks";
import { visible } from "../text/sites";
import { bytes, grouped, percent, signedBytes } from "../text/units";
import { changeHeap } from "../view/store";
import { dominatorsOf, type Dominators } from "./dominators";
import { HeldPath } from "./held-path";
import type { Finding, Snapshot } from "./types";

/** Cards before "show more". */
const FIRST = 3;

const TITLES: Record<Finding["kind"], string> = {
  accumulation: "Many blocks that are alike",
  "finaliser cycle": "Finaliser that never runs",
  "ephemeron chain": "Chain of ephemerons",
  "outside memory": "Memory outside the heap",
};

export function Findings({ snapshot }: { snapshot: Snapshot }) {
  const [all, setAll] = useState(false);
  const { findings } = snapshot;
  const tree = dominatorsOf(snapshot.tree);
  if (findings.length === 0) {
    return <section class="panel" aria-label="Findings"><h2 class="sentence">Nothing deserves a look</h2><p class="faint">No accumulation of like blocks, no finaliser cycle, no chain of ephemerons, and no block that holds much memory outside the heap.</p></section>;
  }
  const cards = all ? findings : findings.slice(0, FIRST);
  return (
    <section class="panel findings" aria-label="Findings">
      <h2 class="sentence">{findings.length === 1 ? "One thing deserves a look" : `${findings.length} things deserve a look`}</h2>
      {cards.map((finding) => <Card finding={finding} tree={tree} total={snapshot.reachable.bytes} />)}
      {findings.length > FIRST && <button type="button" class="plain link" aria-expanded={all} onClick={() => setAll(!all)}>{all ? "show fewer" : `show ${findings.length - FIRST} more`}</button>}
    </section>
  );
}

function Card({ finding, tree, total }: { finding: Finding; tree: Dominators; total: number }) {
  const { kind, text, path, elements, retained_bytes: retained, outside_bytes: outside, growth } = finding;
  const cell = useMemo(() => tree.endOf(path), [tree, path]);
  return (
    <article class="card">
      <h3>{TITLES[kind] ?? visible(kind)}</h3>
      <p class="break">{visible(text)}.</p>
      <dl class="panel-facts">
        <div><dt>retains</dt><dd>{bytes(retained)}, {percent(retained / Math.max(1, total))}</dd></div>
        {outside > 0 && <div><dt>outside the heap</dt><dd>{bytes(outside)}</dd></div>}
        <div><dt>blocks</dt><dd>{grouped(elements)}</dd></div>
        {growth && <div><dt>growth</dt><dd class={growth.retained_bytes > 0 ? "grew" : growth.retained_bytes < 0 ? "shrank" : ""}>{changeText(growth)}</dd></div>}
      </dl>
      <HeldPath title="Held by" heading="h4" steps={path} />
      {cell !== null && (
        <div class="panel-tools">
          <button type="button" onClick={() => {
            changeHeap({ within: tree.path(cell), cell: [] });
            document.querySelector(".holders")?.scrollIntoView({ block: "nearest" });
          }}>show in the tree</button>
        </div>
      )}
    </article>
  );
}

function changeText({ elements, retained_bytes: retained }: NonNullable<Finding["growth"]>): string {
  if (retained === 0 && elements === 0) return "no change";
  return `${retained > 0 ? "▲ " : retained < 0 ? "▼ " : ""}${signedBytes(retained)}, ${elements < 0 ? "−" : "+"}${grouped(Math.abs(elements))} blocks`;
}
