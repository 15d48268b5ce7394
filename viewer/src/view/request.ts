// What the view asks of the query.

import { computed } from "@preact/signals";
import { sidecar } from "../probes/document";
import type { Common, Metric } from "../query/types";
import { filterOf } from "./chips";
import { current as followed } from "./live";
import { view } from "./store";
import type { View } from "./view";

/**
 * When the last whole major collection began, in microseconds since the start: what was old by then has survived it.
 * null where the file beside the trace does not count them; where two traces are compared, so that both mean the same;
 * and while a trace is read, which has not come as far as that file. Then any collection counts.
 */
export const majorBegan = computed<number | null>(() => {
  if (view.value.tab === "diff" || followed.value?.state === "partial") return null;
  return sidecar.value?.old_before_us ?? null;
});

/** The metric as the query takes it: `at` needs a time. */
function metricOf({ metric, at }: View): { metric: Metric; at?: number; old_before?: number } {
  if (metric === "survived" && majorBegan.value !== null) return { metric, old_before: majorBegan.value };
  if (metric !== "at") return { metric };
  return at === null ? { metric: "peak" } : { metric, at };
}

/** What every request about one trace says. */
export function common(current: View): Common {
  return { trace: current.trace, filter: filterOf(current.chips), ...metricOf(current) };
}

export function compared(current: View) {
  const { trace, ...rest } = common(current);
  return { before: current.before === trace ? 0 : current.before, after: trace, ...rest };
}
