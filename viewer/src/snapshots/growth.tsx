// What has changed between two snapshots: the tables of `heaptap heap-diff`.

import { visible } from "../text/sites";
import { bytes, grouped, signedBytes } from "../text/units";
import { changeHeap, view } from "../view/store";
import { snapshots } from "./document";
import { baseName } from "./facts";
import type { Growth, PairGrowth } from "./types";

const ROWS: Record<string, string> = {
  variable: "Variables, stack frames and other holders, by what only they hold",
  block: "Blocks that are alike, by what they take themselves",
  set: "Blocks that are alike and held alike, by what they retain",
};

/** The two that are compared, the earlier one first. */
function pairOf(number: number): [number, number] {
  const { since } = view.value.heap;
  const last = snapshots.value.length - 1;
  const other = since === null || since > last || since === number ? (number > 0 ? number - 1 : 1) : since;
  return [Math.min(number, other), Math.max(number, other)];
}

export function GrowthTable({ growths, number }: { growths: readonly PairGrowth[]; number: number }) {
  const [from, to] = pairOf(number);
  const [before, after] = [snapshots.value[from], snapshots.value[to]];
  if (!before || !after) {
    return <section class="diff" aria-label="Difference"><p class="prose">There is one snapshot: there is none to compare it with.</p></section>;
  }
  const tables = growths.find((pair) => pair.before === from && pair.after === to)?.tables ?? [];
  const growth = tables.find(({ by }) => by === view.value.heap.growth) ?? tables[0];
  const change = after.reachable.bytes - before.reachable.bytes;
  return (
    <section class="diff" aria-label="Difference">
      <div class="tools">
        <p class="sentence">Reachable: {bytes(before.reachable.bytes)} → {bytes(after.reachable.bytes)}, {change === 0 ? "no change" : `${change > 0 ? "▲" : "▼"} ${signedBytes(change)}`}</p>
        <span class="tools-right">
          <label>compared with <select aria-label="Compared with" value={String(from === number ? to : from)} onChange={(event) => changeHeap({ since: Number(event.currentTarget.value) })}>
            {snapshots.value.map(({ name }, at) => (at === number ? null : <option value={String(at)}>{`${at + 1}. ${baseName(name)}${at === number - 1 ? ", the one before" : ""}`}</option>))}
          </select></label>
          {growth && <label>rows <select aria-label="What is compared" value={growth.by} onChange={(event) => changeHeap({ growth: event.currentTarget.value })}>
            {tables.map(({ by }) => <option value={by}>{by}</option>)}
          </select></label>}
        </span>
      </div>
      {growth ? (
        <>
          <p class="faint break">{ROWS[growth.by] ?? growth.by}; from {visible(before.name)} to {visible(after.name)}</p>
          {growth.rows.length === 0 ? <p class="prose">No {growth.by} has changed its size.</p> : <Changes growth={growth} />}
        </>
      ) : (
        <p class="prose break">This page does not compare these two: of so many snapshots it has those that are next to each other, and each with the first and the last. <code>heaptap heap-diff {visible(before.name)} {visible(after.name)}</code> compares them.</p>
      )}
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
