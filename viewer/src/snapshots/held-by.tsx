// What holds the blocks of a site, by the latest snapshot of the trace that has some: what `heaptap leaks --heap` says.

import type { Site } from "../query/types";
import { sameSite, visible } from "../text/sites";
import { shortDuration } from "../text/units";
import { change, view } from "../view/store";
import { HEAP_DEFAULTS, type HeapView } from "../view/heap-view";
import { dominatorsOf } from "./dominators";
import { snapshots } from "./document";
import type { HeldSite, Snapshot } from "./types";

interface Found {
  number: number;
  snapshot: Snapshot;
  held: HeldSite;
}

function found(site: Site): Found | null {
  const { trace, sites } = view.value;
  for (let number = snapshots.value.length - 1; number >= 0; number--) {
    const snapshot = snapshots.value[number]!;
    const held = snapshot.trace === trace && snapshot.held_sites.find((each) => each.sites === sites && sameSite(each.site, site));
    if (held) return { number, snapshot, held };
  }
  return null;
}

export function HeldBy({ site }: { site: Site }) {
  const of = found(site);
  if (!of) return null;
  const { number, snapshot, held } = of;
  const when = snapshot.at_us === null ? "" : `, taken at ${shortDuration(snapshot.at_us)}`;
  return (
    <div class="held-by">
      <h4>Held by</h4>
      <p class="break">{visible(held.text)} <span class="faint">in {visible(snapshot.name)}{when}</span></p>
      <div class="panel-tools"><button type="button" onClick={() => change({ tab: "snapshots", heap: holderView(number, snapshot, held) })}>the holder in Snapshots</button></div>
    </div>
  );
}

/** The holder as a row of a table, as a cell of the tree, or, if the page has neither, the list of sites. */
function holderView(number: number, { tables, tree }: Snapshot, { holder }: HeldSite): HeapView {
  const heap = { ...HEAP_DEFAULTS, snapshot: number };
  if (holder === null) return { ...heap, part: "sites" };
  const table = tables.find(({ rows }) => rows.some(({ name }) => name === holder));
  if (table) return { ...heap, part: "table", table: table.by, row: holder };
  const cells = dominatorsOf(tree);
  const cell = cells.endOf([holder]);
  return cell === null ? { ...heap, part: "sites" } : { ...heap, part: "tree", within: cells.path(cell) };
}
