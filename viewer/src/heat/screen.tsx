// Heat map: what was allocated over time, by function. A cell leads to its time, as the brush, and to its row.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Answer, Info, Site } from "../query/types";
import { NothingSelected, Problem } from "../parts/messages";
import { SitePanel } from "../parts/site-panel";
import { siteOf } from "../text/sites";
import { bytes } from "../text/units";
import { capital, rowTitle } from "../text/words";
import { Timeline, useTimeline } from "../timeline/timeline";
import { AXIS, MARGIN } from "../timeline/plot";
import { useQuery } from "../view/ask";
import { filterOf, withChip } from "../view/chips";
import { shownMetric } from "../view/metric";
import { common, hasBrush } from "../view/request";
import { change, view } from "../view/store";
import { BYS } from "../view/view";
import { shownRange } from "../view/zoom";
import { CellTable } from "./cell-table";
import { Cells } from "./cells";
import { bytesAt, heatColour, scaleOf, type HeatScale } from "./scale";

/** Rows at first, and all that are to be had. */
const ROWS = 30;
const MOST_ROWS = 128;
/** The width of a cell in pixels, about. */
const CELL = 6;

/** What the map measures: what was promoted if that is asked for, else what was allocated. */
const heatMetric = () => (shownMetric.value === "promoted" ? "promoted" : "allocated");

function useHeatMap(top: number, width: number) {
  const current = view.value;
  const { at: _, old_before: __, ...rest } = common(current);
  const points = Math.max(20, Math.round(width / CELL / 10) * 10);
  const request = width === 0 ? null : { ...rest, metric: heatMetric(), by: current.by, top, points, ...shownRange.value } as const;
  const found = useQuery("heat", "heat_map", request);
  const chips = current.chips.filter(({ kind }) => kind !== "time");
  // What is outside of the brush stays in view, as the time line shows it.
  const whole = useQuery("heat-whole", "heat_map", request && hasBrush(current) ? { ...request, filter: filterOf(chips), top: MOST_ROWS } : null);
  return { ...found, whole: whole.answer };
}

export function Heat({ info }: { info: Info }) {
  const current = view.value;
  const plot = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [top, setTop] = useState(ROWS);
  const timeline = useTimeline();
  const { answer, error, stale, whole } = useHeatMap(top, width);
  useLayoutEffect(() => {
    const look = () => setWidth(Math.max(0, (plot.current?.clientWidth ?? 0) - AXIS - MARGIN));
    const observer = new ResizeObserver(look);
    observer.observe(plot.current!);
    look();
    return () => observer.disconnect();
  }, []);
  useEffect(() => setTop(ROWS), [current.by, current.trace]);
  const scale = answer && scaleOf(answer);
  return (
    <div class={current.row ? "with-panel" : ""}>
      <section class={`heat${stale ? " stale" : ""}`} aria-label="Heat map">
        <div class="tools">
          <h2>{capital(heatMetric())} over time by {rowTitle(current.by, current.sites)}</h2>
          {scale && <Scale scale={scale} unseen={answer.unseen_bytes} />}
          <span class="tools-right">
            <label>rows <select value={current.by} aria-label="What a row of the map is" onChange={(event) => change({ by: event.currentTarget.value as typeof current.by, row: null })}>
              {BYS.map((by) => <option value={by}>{by}</option>)}
            </select></label>
          </span>
        </div>
        <Notes answer={answer} />
        {error && <Problem text={error} />}
        {timeline.error && <Problem text={timeline.error} />}
        <div class="heat-time"><div class="heat-plot" ref={plot}>{timeline.answer && <Timeline data={timeline.answer} info={info} height={104} />}</div><p class="heat-label faint">live size</p></div>
        {answer && !scale && <NothingSelected />}
        {answer && scale && (
          <>
            <Cells map={answer} whole={whole} scale={scale} onSelect={select} />
            {answer.other_rows > 0 && top < MOST_ROWS && <button type="button" class="plain link" onClick={() => setTop(MOST_ROWS)}>show more rows</button>}
            <CellTable map={answer} />
          </>
        )}
      </section>
      {current.row && <SitePanel key={current.by} site={current.row} by={current.by} sites={current.sites} onOpen={(site) => change({ row: siteOf(site) }, "within")} />}
    </div>
  );
}

/** The time becomes the brush, and the row the one that is open. What the panel says then is what the map does. */
function select(site: Site | null, range: [number, number] | null): void {
  const chips = range ? withChip(view.value.chips, { kind: "time", from: range[0], to: range[1] }) : view.value.chips;
  change({ chips, row: site ? siteOf(site) : view.value.row, metric: heatMetric() });
}

/** What a reader of the map should know. */
function Notes({ answer }: { answer: Answer<"heat_map"> | null }) {
  const notes = [];
  if (!["allocated", "promoted"].includes(shownMetric.value)) notes.push("A cell has what was allocated in its time, whatever became of it: the metric above does not apply.");
  if (answer && answer.blocks_one_in > 1) notes.push(`One in ${answer.blocks_one_in} small blocks is in the page: ${answer.exact ? "how a row spreads over the cells comes from those, its sum from all" : "the map comes from those, and its errors include that"}.`);
  return notes.length === 0 ? null : <p class="faint heat-notes">{notes.join(" ")}</p>;
}

/** The colours with their bytes. */
function Scale({ scale, unseen }: { scale: HeatScale; unseen: number }) {
  const stops = [0, 0.25, 0.5, 0.75, 1];
  const marks = scale.most > scale.least ? [0, 1 / 3, 2 / 3, 1] : [1];
  const none = unseen > 0 ? `no sample: less than ${bytes(unseen)}` : "nothing";
  return (
    <div class="heat-scale" role="img" aria-label={`Colours: from ${bytes(scale.least)} to ${bytes(scale.most)} in a cell, on a logarithmic scale; empty: ${none}`}>
      <span class="heat-none" title={none} />
      <span>
        <span class="heat-ramp" style={{ background: `linear-gradient(to right, ${stops.map(heatColour).join(", ")})` }} />
        <span class="heat-values">{marks.map((mark) => <span>{bytes(bytesAt(mark, scale))}</span>)}</span>
      </span>
      <span class="faint">in a cell, log scale</span>
    </div>
  );
}
