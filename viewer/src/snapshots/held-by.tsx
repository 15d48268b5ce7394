// What holds the blocks of a site, by the latest snapshot of the trace that has some: what `heaptap leaks --heap` says.

import type { Site } from "../query/types";
import { sameSite, visible } from "../text/sites";
import { shortDuration } from "../text/units";
import { change, config, view } from "../view/store";
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
      <div class="panel-tools"><button type="button" onClick={() => change({ tab: "snapshots", heap: viewOf(number, snapshot, held.holder) ?? { ...HEAP_DEFAULTS, snapshot: number, part: "sites" } })}>the holder in Snapshots</button></div>
    </div>
  );
}

/** The holder as a row of a table or as a cell of the tree; null if the page has neither. */
function viewOf(number: number, snapshot: Snapshot, holder: string | null): HeapView | null {
  if (holder === null) return null;
  const table = snapshot.tables.find(({ rows }) => rows.some(({ name }) => name === holder));
  if (table) return { ...HEAP_DEFAULTS, snapshot: number, part: "table", table: table.by, row: holder };
  return cellView(number, snapshot, [holder]);
}

function cellView(number: number, { tree }: Snapshot, path: readonly string[]): HeapView | null {
  const cells = dominatorsOf(tree);
  const cell = path.length === 0 ? null : cells.endOf(path);
  return cell === null ? null : { ...HEAP_DEFAULTS, snapshot: number, part: "tree", within: cells.path(cell) };
}

/** What a holder holds in the last snapshot that has it, at the end of the path if that is there; null if none has. */
export function holderView(holder: string, path: readonly string[]): HeapView | null {
  for (let number = snapshots.value.length - 1; number >= 0; number--) {
    const snapshot = snapshots.value[number]!;
    const isIts = config.traces.length < 2 || snapshot.trace === view.value.trace;
    const heap = isIts ? cellView(number, snapshot, path) ?? viewOf(number, snapshot, holder) : null;
    if (heap) return heap;
  }
  return null;
}
