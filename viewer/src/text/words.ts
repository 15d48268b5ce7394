// Words that several screens use.

import type { By, SiteFrame } from "../query/types";
import { shortDuration } from "./units";

const METRICS: Record<string, string> = {
  allocated: "allocated",
  promoted: "promoted",
  peak: "live at the peak",
  live: "live at the end",
  survived: "survived any collection",
  major: "survived a major collection",
};

/** What the metric measures. Of a trace that still grows, the end is now. */
export function metricWord(metric: string, at: number | null, grows: boolean): string {
  if (metric === "live" && grows) return "live now";
  return metric === "at" && at !== null ? `live at ${shortDuration(at)}` : (METRICS[metric] ?? metric);
}

/** What rows are, as the command line says it: `function`, or `function (own code)`. */
export function rowTitle(by: By, sites: SiteFrame): string {
  return sites === "own" && by !== "label" && by !== "domain" && by !== "kind" && by !== "source" ? `${by} (own code)` : by;
}

export function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
