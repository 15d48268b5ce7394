// The panel about a row of a table: its figures, and of blocks the paths to the one that retains most.

import { visible } from "../text/sites";
import { bytes, count, grouped, percent } from "../text/units";
import { changeHeap } from "../view/store";
import { dominatorsOf } from "./dominators";
import { HeldPath } from "./held-path";
import type { HeapRow, HeldBlock, Snapshot } from "./types";

export function RowPanel({ row, by, snapshot }: { row: HeapRow; by: string; snapshot: Snapshot }) {
  const isBlocks = row.roots === undefined;
  const held = isBlocks ? snapshot.paths.find((path) => path.row === row.name) : undefined;
  const tree = dominatorsOf(snapshot.tree);
  const cell = tree.endOf([row.name]);
  const name = visible(row.name);
  const share = (part: number) => percent(part / Math.max(1, snapshot.reachable.bytes));
  return (
    <aside class="panel" aria-label={`About ${name}`}>
      <h2 class="panel-name">{name}</h2>
      <dl class="panel-facts">
        <div><dt>reachable</dt><dd>{bytes(row.reachable_bytes)}, {share(row.reachable_bytes)}</dd></div>
        <div><dt>would be freed without it</dt><dd>{bytes(row.exclusive_bytes)}, {share(row.exclusive_bytes)}</dd></div>
        <div><dt>{isBlocks ? "themselves" : "first reached"}</dt><dd>{bytes(row.first_reached.bytes)}, {share(row.first_reached.bytes)}</dd></div>
        <div><dt>{isBlocks ? "blocks" : "blocks first reached"}</dt><dd>{grouped(row.first_reached.blocks)}</dd></div>
        {row.outside_bytes > 0 && <div><dt>outside the heap</dt><dd>{bytes(row.outside_bytes)}</dd></div>}
        {row.roots !== undefined && <div><dt>roots</dt><dd>{grouped(row.roots)}</dd></div>}
      </dl>
      {held && <Paths held={held} />}
      {isBlocks && !held && <p class="faint">The page has no path to these blocks: <code>heaptap heap FILE --path …</code> shows one.</p>}
      <div class="panel-tools">
        {cell !== null && <button type="button" onClick={() => changeHeap({ part: "tree", within: tree.path(cell), cell: [] })}>show in the tree</button>}
        <button type="button" title={`Close the panel about this ${by}`} onClick={() => changeHeap({ row: null })}>close</button>
      </div>
    </aside>
  );
}

function Paths({ held }: { held: HeldBlock }) {
  return (
    <>
      <p class="break">The one that retains most is {visible(held.block)}, with {bytes(held.retained_bytes)}.</p>
      <HeldPath title="Shortest path to it" heading="h3" steps={held.shortest} />
      <HeldPath title="Without any of these it would go" heading="h3" steps={held.dominators} />
      {held.holders.length > 0 && (
        <div class="held-path holders-list">
          <h3>Holders that reach it</h3>
          <ul>{held.holders.map((holder) => <li class="break">{visible(holder)}</li>)}</ul>
          {held.other_holders > 0 && <p class="faint">and {count(held.other_holders, "other", "others")}</p>}
        </div>
      )}
    </>
  );
}
