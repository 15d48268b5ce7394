// Which metrics there are, which one is shown, and what it is called.

import { computed } from "@preact/signals";
import { metricWord } from "../text/words";
import { grows } from "./live";
import { majorBegan } from "./request";
import { view } from "./store";
import { METRICS, type PageMetric } from "./view";

/** Survivors of a major collection are known only where the file beside the trace counts those. */
export const offeredMetrics = computed<readonly PageMetric[]>(() => METRICS.filter((metric) => metric !== "major" || majorBegan.value !== null));

/** What is measured: in place of survivors of a major collection, if they are not known, those of any. */
export const shownMetric = computed<PageMetric>(() => (offeredMetrics.value.includes(view.value.metric) ? view.value.metric : "survived"));

/** The same in words. */
export const metricPhrase = computed(() => metricWord(shownMetric.value, view.value.at, grows.value));

/** The heading of a table: its own words, unless the page knows better. */
export function metricTitle(ofTable: string): string {
  const knows = (shownMetric.value === "live" && grows.value) || shownMetric.value === "major";
  return knows ? metricPhrase.value : ofTable;
}
