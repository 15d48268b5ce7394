// The head: which trace, how long, how much, how sure; and what holds for the whole page.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Info } from "../query/types";
import { count, percent, shortDuration, sized } from "../text/units";
import { meaning, type Term } from "../text/glossary";
import { basis } from "../view/basis";
import { canBeExact, fullReading } from "../view/exact";
import { change, client, config, exact, settleAddress, tabs, traces, view } from "../view/store";
import { copyText } from "../saving/file";
import { offeredMetrics, shownMetric } from "../view/metric";
import { TABS, type PageMetric, type Tab } from "../view/view";
import { dark, toggleTheme } from "../view/theme";
import { grows } from "../view/live";
import { helpOpen } from "./help";
import { Live } from "./live";
import { factsOpen } from "./trace-facts";

export const TAB_NAMES: Record<Tab, string> = { overview: "Overview", flame: "Flame", table: "Table", leaks: "Leaks", diff: "Diff", source: "Source", snapshots: "Snapshots", heat: "Heat map" };
const METRIC_NAMES = { allocated: "Allocated", promoted: "Promoted", peak: "Live at the peak", at: "Live at a time", live: "Live at the end", survived: "Survived any collection", major: "Survived a major collection" } as const;
const TITLES: Partial<Record<PageMetric, string>> = {
  survived: "Live at the end and seen by a collection, minor or major, as heaptap report --metric survived shows it",
  major: "Live at the end, and old already when the last whole major collection began, as key o of heaptap top shows it",
};

const WORDS: Partial<Record<PageMetric, Term>> = { allocated: "allocated", promoted: "promoted", peak: "peak" };

export function Head({ info }: { info: Info | null }) {
  const current = view.value;
  const names = traces.value.map((_, at) => config.traces[at]?.name ?? `trace ${at}`);
  return (
    <div class="head">
      <span class="brand">heaptap</span>
      {names.length > 1 ? (
        <h1><select class="trace-name" aria-label="Trace" value={String(current.trace)} onChange={(event) => change({ trace: Number(event.currentTarget.value), focus: [], selected: [], drill: [], row: null, zoom: null })}>
          {names.map((name, at) => <option value={String(at)}>{name}</option>)}
        </select></h1>
      ) : (
        <h1 class="trace-name" title={info?.executable}>{names[0] ?? (config.snapshots > 0 ? count(config.snapshots, "heap snapshot", "heap snapshots") : "no trace")}</h1>
      )}
      <Live />
      {info && (
        <span class="facts">
          <span>{shortDuration(info.duration_us)}</span>
          <span title="All that was allocated">{sized(info.totals.allocated)}</span>
          <span title={`${count(info.totals.samples, "sample", "samples")}. ${meaning("sample")}`}>{basis.value}</span>
        </span>
      )}
      <span class="head-tools">
        <Exact />
        {info && <button type="button" id="trace-facts" title="What the trace says of itself (t)" onClick={() => { factsOpen.value = true; }}>facts</button>}
        <CopyLink />
        <button type="button" title="Light or dark" aria-label={dark.value ? "Light theme" : "Dark theme"} onClick={toggleTheme}>{dark.value ? "☀" : "☾"}</button>
        <button type="button" title="Keys and help (?)" aria-label="Help" onClick={() => { helpOpen.value = true; }}>?</button>
      </span>
    </div>
  );
}

/** Asks the server to read the trace again, with the filter. */
function Exact() {
  if (!canBeExact.value) return null;
  const part = client.asksServer.value ? fullReading.value : null;
  return (
    <>
      {part !== null && (
        <span class="reading" role="status">reading the trace <progress max={1} value={part} aria-label="Read so far" /> {percent(part)}</span>
      )}
      <button type="button" id="exact" aria-pressed={exact.value} title="Read the whole trace with these filters: slower, without the error of thinning" onClick={() => { exact.value = !exact.value; }}>exact</button>
    </>
  );
}

function CopyLink() {
  const copied = useSignal(false);
  return (
    <button
      type="button"
      id="copy-link"
      title="Copy a link to this view (c)"
      onClick={async () => {
        settleAddress();
        await copyText(location.href);
        copied.value = true;
        setTimeout(() => { copied.value = false; }, 1500);
      }}
    >
      {copied.value ? "copied" : "copy link"}
    </button>
  );
}

export function Tabs() {
  const current = view.value;
  const strip = useRef<HTMLElement>(null);
  // On a narrow screen the strip scrolls.
  useEffect(() => strip.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current.tab]);
  return (
    <div class="bar">
      <nav class="tabs" ref={strip} aria-label="Views">
        {tabs.map((tab) => (
          <a href={`#${tab}`} aria-current={tab === current.tab ? "page" : undefined} title={`Key ${TABS.indexOf(tab) + 1}`} onClick={(event) => { event.preventDefault(); change({ tab }); }}>
            {TAB_NAMES[tab]}
          </a>
        ))}
      </nav>
      {current.tab !== "snapshots" && <button type="button" id="own-code" aria-pressed={current.sites === "own"} title={OWN_CODE} onClick={toggleSites}>own code</button>}
      {current.tab !== "snapshots" && <label class="metric">
        <span>metric</span>
        <select id="metric" value={shownMetric.value} title={TITLES[shownMetric.value] ?? meaning(WORDS[shownMetric.value] ?? "live")} onChange={(event) => setMetric(event.currentTarget.value as PageMetric)}>
          {offeredMetrics.value.map((metric) => (
            <option value={metric}>{metricName(metric)}</option>
          ))}
        </select>
      </label>}
    </div>
  );
}

function metricName(metric: PageMetric): string {
  const { at } = view.value;
  if (metric === "at" && at !== null) return `Live at ${shortDuration(at)}`;
  if (metric === "live" && grows.value) return "Live now";
  return METRIC_NAMES[metric];
}

const OWN_CODE = "Rows, cards and the time line name your own code: what a standard library, a runtime or a vendored package allocates counts where your code calls it, and is one cell of the call tree (o)";

/** Own code or whatever allocates. Rows of the one are not rows of the other. */
export function toggleSites(): void {
  change({ sites: view.value.sites === "own" ? "innermost" : "own", row: null, drill: [], focus: [], selected: [] });
}

/** A time is needed for `at`: the middle of the run until another is chosen on the time line. */
export function setMetric(metric: PageMetric): void {
  const state = traces.value[view.value.trace];
  const duration = state && "info" in state ? state.info.duration_us : 0;
  change(metric === "at" && view.value.at === null ? { metric, at: Math.round(duration / 2) } : { metric });
}

/** The next metric in the list. */
export function nextMetric(): void {
  const offered = offeredMetrics.value;
  setMetric(offered[(offered.indexOf(shownMetric.value) + 1) % offered.length]!);
}
