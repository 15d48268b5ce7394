// What has grown since the snapshot before: the tables of `heaptap heap-diff`.

import { visible } from "../text/sites";
import { bytes, grouped, signedBytes } from "../text/units";
import { changeHeap, view } from "../view/store";
import type { Growth, Snapshot } from "./types";

const ROWS: Record<string, string> = {
  variable: "Variables, by what only they hold",
  block: "Blocks that are alike, by what they take themselves",
  set: "Blocks that are alike and held alike, by what they retain",
};

export function GrowthTable({ growths, before, after }: { growths: readonly Growth[]; before: Snapshot | undefined; after: Snapshot }) {
  const growth = growths.find(({ by }) => by === view.value.heap.growth) ?? growths[0];
  if (!before || !growth) {
    return <section class="diff" aria-label="Difference"><p class="prose">This is the first snapshot: there is none before it to compare with.</p></section>;
  }
  const change = after.reachable.bytes - before.reachable.bytes;
  return (
    <section class="diff" aria-label="Difference">
      <div class="tools">
        <p class="sentence">reachable {bytes(before.reachable.bytes)} → {bytes(after.reachable.bytes)}: {change === 0 ? "no change" : `${change > 0 ? "▲" : "▼"} ${signedBytes(change)}`}</p>
        <span class="tools-right">
          <label>rows <select aria-label="What is compared" value={growth.by} onChange={(event) => changeHeap({ growth: event.currentTarget.value })}>
            {growths.map(({ by }) => <option value={by}>{by}</option>)}
          </select></label>
        </span>
      </div>
      <p class="faint">{ROWS[growth.by] ?? growth.by}; since {visible(before.name)}</p>
      {growth.rows.length === 0 ? <p class="prose">No {growth.by} has changed its size.</p> : <Changes growth={growth} />}
    </section>
  );
}

function Changes({ growth }: { growth: Growth }) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Changes">
      <table>
        <thead><tr><th class="num wide-only" scope="col">before</th><th class="num" scope="col">after</th><th class="num" scope="col">change</th><th class="num wide-only" scope="col">blocks</th><th scope="col">{growth.by}</th></tr></thead>
        <tbody>
          {growth.rows.map(({ name, change, before, after, growth_bytes: bytesMore }) => (
            <tr>
              <td class="num wide-only">{bytes(before.bytes)}</td>
              <td class="num">{bytes(after.bytes)}</td>
              <td class={`num ${bytesMore > 0 ? "grew" : bytesMore < 0 ? "shrank" : ""}`}>{bytesMore > 0 ? "▲ " : bytesMore < 0 ? "▼ " : ""}{signedBytes(bytesMore)}</td>
              <td class="num wide-only">{signedCount(after.blocks - before.blocks)}</td>
              <td class="name" title={visible(name)}>{visible(name)} {(change === "new" || change === "gone") && <span class="tag">{change}</span>}</td>
            </tr>
          ))}
        </tbody>
        {growth.other_rows > 0 && (
          <tfoot><tr><td class="wide-only" /><td /><td class="num">{signedBytes(growth.other_growth_bytes)}</td><td class="wide-only" /><td class="name">{grouped(growth.other_rows)} others</td></tr></tfoot>
        )}
      </table>
    </div>
  );
}

const signedCount = (number: number) => `${number < 0 ? "−" : number > 0 ? "+" : ""}${grouped(Math.abs(number))}`;
