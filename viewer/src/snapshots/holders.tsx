// The icicle of the dominator tree: each holder and each set of like blocks above what would be
// freed without it.

import { useMemo } from "preact/hooks";
import { Icicle } from "../icicle/icicle";
import type { CellWords, Layout } from "../icicle/layout";
import type { Site } from "../query/types";
import { visible } from "../text/sites";
import { bytes, count, percent } from "../text/units";
import { heldColour, palette } from "../view/colour";
import { change, changeHeap, view } from "../view/store";
import { dominatorsOf } from "./dominators";
import type { Snapshot } from "./types";

const WORDS: CellWords = { one: "cell", many: "cells", tree: "What holds what" };

export function Holders({ snapshot }: { snapshot: Snapshot }) {
  const { within, cell } = view.value.heap;
  const dominators = dominatorsOf(snapshot.tree);
  const { cell: root, steps } = dominators.find(within);
  const tree = useMemo(() => dominators.below(root), [dominators, root]);
  const focus = useMemo(() => sitesOf(within.slice(0, steps)), [within, steps]);
  const selected = useMemo(() => sitesOf(cell), [cell]);
  const isHolder = (at: number) => snapshot.tree.holder[root + at] === 1;
  const total = snapshot.reachable.bytes;
  const lines = (layout: Layout, at: number): string[] => {
    const { own, blocks, outside } = snapshot.tree;
    const number = root + at;
    return [
      `retains ${bytes(layout.width[at]!)} · ${percent(layout.width[at]! / Math.max(1, total))} of what is reachable`,
      isHolder(at) || layout.isJoined(at) ? "" : `${count(blocks[number]!, "block", "blocks")} with ${bytes(own[number]!)} themselves`,
      outside[number]! > 0 ? `${bytes(outside[number]!)} outside the heap` : "",
    ].filter(Boolean);
  };
  return (
    <section class="flame holders" aria-label="What holds what">
      <div class="tools">
        <h2>What would be freed without it<span class="total"> {bytes(snapshot.tree.retained[root] ?? 0)}</span></h2>
        <span class="tools-right">
          <CellTools snapshot={snapshot} names={[...within.slice(0, steps), ...cell]} />
          {steps > 0 && <button type="button" title="Back to the whole (Backspace steps out)" onClick={() => changeHeap({ within: [], cell: [] })}>whole</button>}
          <input id="search" type="search" placeholder="search  /" aria-label="Search holders and blocks" spellcheck={false} value={view.value.search} onInput={(event) => change({ search: event.currentTarget.value }, "search")} />
        </span>
      </div>
      <Icicle
        tree={tree}
        words={WORDS}
        focus={focus}
        selected={selected}
        searched={view.value.search}
        colour={(layout, at) => (at === 0 && root === 0 ? palette().same : heldColour(layout.site(at).name, isHolder(at)))}
        more={lines}
        measure={bytes}
        onSelect={(path: Site[]) => changeHeap({ cell: namesOf(path) }, "within")}
        onFocus={(path) => changeHeap({ within: namesOf(path), cell: [] })}
      />
      <p class="key faint">
        <span><i class="swatch" style={{ background: heldColour("", true) }} /> holders, such as variables and stack frames</span>
        <span><i class="swatch" style={{ background: heldColour("", false) }} /> blocks that are alike and held alike</span>
        <span><i class="swatch joined" /> small ones joined</span>
        <span>double click or Enter focuses, / searches</span>
      </p>
    </section>
  );
}

const sitesOf = (names: readonly string[]): Site[] => names.map((name) => ({ name }));
const namesOf = (path: readonly Site[]): string[] => path.map(({ name }) => name);

/** From the selected cell to the row of its name. */
function CellTools({ snapshot, names }: { snapshot: Snapshot; names: readonly string[] }) {
  const name = names.at(-1);
  const table = name === undefined ? undefined : snapshot.tables.find(({ by, rows }) => by !== "custom block" && rows.some((row) => row.name === name));
  if (name === undefined || !table) return null;
  return <button type="button" class="cell-row" title={`The row of ${visible(name)}`} onClick={() => changeHeap({ part: "table", table: table.by, row: name })}>its row</button>;
}
