// What the view asks of the query.

import { computed } from "@preact/signals";
import { sidecar } from "../probes/document";
import type { Common, Filter, Metric, SiteFrame } from "../query/types";
import { filterOf } from "./chips";
import { current as followed } from "./live";
import { view } from "./store";
import type { View } from "./view";

/**
 * When the last whole major collection began, in microseconds since the start: what was old by then has survived it.
 * null where the file beside the trace does not count them; where two traces are compared, so that both mean the same;
 * and while a trace is read, which has not come as far as that file. Then the metric `major` cannot be had.
 */
export const majorBegan = computed<number | null>(() => {
  if (view.value.tab === "diff" || followed.value?.state === "partial") return null;
  return sidecar.value?.old_before_us ?? null;
});

/** The metric as the query takes it: `at` needs a time. */
function metricOf({ metric, at }: View): { metric: Metric; at?: number; old_before?: number } {
  if (metric === "major") return { metric: "survived", ...(majorBegan.value === null ? {} : { old_before: majorBegan.value }) };
  if (metric !== "at") return { metric };
  return at === null ? { metric: "peak" } : { metric, at };
}

/** What every request about one trace says. */
export function common(current: View): Common {
  return { trace: current.trace, filter: filterOf(current.chips), sites: current.sites, ...metricOf(current) };
}

/** Whether only blocks of some time are selected. */
export function hasBrush({ chips }: View): boolean {
  return chips.some(({ kind }) => kind === "time");
}

/** What keeps growing shows in the whole run: the brush does not apply. */
export function ofWholeRun({ trace, chips, sites }: View): { trace: number; sites: SiteFrame; filter: Filter } {
  return { trace, sites, filter: filterOf(chips.filter(({ kind }) => kind !== "time")) };
}

/** The two traces of Diff. They were named with the older one first: that is compared with the others. */
export function comparedTraces({ before, trace }: View): { before: number; after: number } {
  if (before !== trace) return { before, after: trace };
  return { before: 0, after: trace === 0 ? 1 : trace };
}

export function compared(current: View) {
  const { trace: _, ...rest } = common(current);
  return { ...comparedTraces(current), ...rest };
}
