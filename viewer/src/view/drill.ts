// The drill-down of the time line: module, then its functions, then the lines of one.

import type { By, Site } from "../query/types";
import { change, changeHeap, view } from "./store";
import type { View } from "./view";

const LEVELS: By[] = ["module", "function", "location"];

/** What the series of the time line are. */
export function drillBy({ over, drill }: View): By {
  return drill.length === 0 ? over : (LEVELS[Math.min(LEVELS.indexOf(over) + drill.length, 2)] ?? over);
}

/** What it has been narrowed to. */
export function drillWithin({ over, drill }: View): (Site & { by: By }) | null {
  const last = drill.at(-1);
  if (!last) return null;
  return { ...last, by: LEVELS[Math.min(LEVELS.indexOf(over) + drill.length - 1, 1)] ?? over };
}

/** Whether a series has a level below it. */
export function canDrill(current: View): boolean {
  return LEVELS.slice(0, 2).includes(drillBy(current));
}

/** What Backspace takes back first, if both are narrowed. */
let last: "drill" | "focus" = "focus";

export function drillInto(site: Site): void {
  last = "drill";
  change({ drill: [...view.value.drill, site], layer: 0 });
}

export function focusOn(focus: readonly Site[]): void {
  last = "focus";
  change({ focus, selected: [] });
}

/** One level out. */
export function stepOut(): void {
  const { drill, focus, selected, tab, row } = view.value;
  if (tab === "snapshots") {
    stepOutOfHeap();
    return;
  }
  const drilled = drill.length > 0;
  const focused = focus.length > 0;
  if ((tab === "table" || tab === "heat") && row) change({ row: null });
  else if (drilled && (last === "drill" || !focused)) change({ drill: drill.slice(0, -1), layer: 0 });
  else if (focused) change({ focus: focus.slice(0, -1), selected: [focus.at(-1)!] });
  else if (selected.length > 0) change({ selected: selected.slice(0, -1) }, "within");
}

function stepOutOfHeap(): void {
  const { part, row, within, cell } = view.value.heap;
  if (part === "table" && row !== null) changeHeap({ row: null });
  else if (part !== "tree") return;
  else if (within.length > 0) changeHeap({ within: within.slice(0, -1), cell: within.slice(-1) });
  else if (cell.length > 0) changeHeap({ cell: cell.slice(0, -1) }, "within");
}
