// First sight: the diagnosis, one sentence on leaks of what is selected, the figures of `heaptap report`, the time line with
// its drill-down, and the icicle.

import type { Info, Leaks, Site, Timeline as Data, Totals } from "../query/types";
import { headline, parts, siteKey } from "../text/sites";
import { bytes, count, grouped, shared, shortDuration, sized, timeText } from "../text/units";
import { useQuery } from "../view/ask";
import { meaning, type Term } from "../text/glossary";
import { canDrill, drillBy, drillInto, stepOut } from "../view/drill";
import { rowTitle } from "../text/words";
import { grows } from "../view/live";
import { metricPhrase, shownMetric } from "../view/metric";
import { common, ofWholeRun } from "../view/request";
import { change, view } from "../view/store";
import { BYS } from "../view/view";
import { place, span } from "../view/zoom";
import { DiagnosisPanel } from "../diagnosis/panel";
import { Problem } from "../parts/messages";
import { VerdictText } from "../parts/verdict-text";
import { SaveMenu } from "../parts/save-menu";
import { savePng, saveSvg } from "../saving/picture";
import { timelinePicture } from "../saving/timeline";
import { LineChart } from "../parts/spark";
import { behindBrush, cursor, layerColours, LAYERS, Timeline, useTimeline } from "../timeline/timeline";
import { Lanes } from "../probes/lanes";
import { Program } from "../probes/program";
import { Flame } from "./flame";

export function Overview({ info }: { info: Info }) {
  const current = view.value;
  const timeline = useTimeline();
  const report = useQuery("figures", "report", { ...common(current), by: "module", top: 1 });
  const leaks = useQuery("verdict", "leaks", ofWholeRun(current));
  return (
    <div class="overview">
      <DiagnosisPanel />
      <Verdict leaks={leaks.answer} error={leaks.error} totals={report.answer?.totals ?? info.totals} />
      {timeline.error && <Problem text={timeline.error} />}
      {timeline.answer && (
        <section class="over-time" aria-label="Live size over time">
          <div class="over-head">
            <Crumbs />
            <span class="over-tools">
              <label>by <select value={current.over} aria-label="Group the time line by" onChange={(event) => change({ over: event.currentTarget.value as typeof current.over, drill: [], layer: 0 })}>
                {BYS.map((by) => <option value={by}>{by}</option>)}
              </select></label>
              <SaveTimeline data={timeline.answer} info={info} />
              <button type="button" aria-pressed={current.multiples} onClick={() => change({ multiples: !current.multiples })}>side by side</button>
            </span>
          </div>
          <div class="over-body">
            <div class="over-plot">
              {current.multiples ? <Multiples data={timeline.answer} /> : <Timeline data={timeline.answer} info={info} height={208} />}
              {!current.multiples && <Lanes times={timeline.answer.times} />}
            </div>
            <Legend data={timeline.answer} />
          </div>
        </section>
      )}
      <Program />
      <Flame rows={16} panel={false} />
    </div>
  );
}

function SaveTimeline({ data, info }: { data: Data; info: Info }) {
  const current = view.value;
  const picture = () => {
    const colours = layerColours(data);
    const legend = legendRows(data).map(({ name, size }, row) => ({ name, size, colour: colours[row] ?? "" }));
    const title = `${info.name}: live size by ${rowTitle(drillBy(current), current.sites)}; on the right ${metricPhrase.value}`;
    return timelinePicture(title, data, legend, { span: span.value, colours, whole: behindBrush.value, at: current.metric === "at" ? current.at : null });
  };
  return <SaveMenu label="Save the time line" items={[
    { name: "SVG", help: "picture, to be enlarged or edited", save: () => saveSvg(picture()) },
    { name: "PNG", help: "picture", save: () => savePng(picture()) },
  ]} />;
}

function Verdict({ leaks, error, totals }: { leaks: Leaks | null; error: string | null; totals: Totals }) {
  const growing = leaks !== null && leaks.conclusive && leaks.leaks.length > 0;
  return (
    <section class="verdict" aria-label="In short">
      <p class="sentence">
        {totals.samples === 0 ? <span>No block passes the filters</span>
        : error ? <span class="problem">{error}</span>
        : leaks === null ? <span class="faint">Looking for leaks…</span>
        : <a class={growing ? "warn" : ""} href="#leaks" onClick={(event) => { event.preventDefault(); change({ tab: "leaks" }); }}><VerdictText leaks={leaks} /></a>}
        {leaks !== null && leaks.suspects.rows.length > 0 && <span class="faint sites">grew most: {leaks.suspects.rows.slice(0, 3).map(({ site }) => headline(site)).join(", ")}</span>}
        {growing && <span class="faint sites">{leaks.leaks.slice(0, 3).map(({ site }) => headline(site)).join(", ")}</span>}
      </p>
      <dl class="totals">
        <Total name="allocated" term="allocated" value={sized(totals.allocated)} />
        <Total name="peak live" term="peak" value={sized(totals.peak)} more={`at ${shortDuration(totals.peak_us)}`} />
        <Total name={grows.value ? "live now" : "live at end"} term="live" value={sized(totals.live)} />
        <Total name="promoted" term="promoted" value={shared(totals.promotion)} more="of young" />
        {totals.median_lifetime && <Total name="half freed within" term="live" value={`${shortDuration(totals.median_lifetime.us)} ± ${shortDuration(totals.median_lifetime.error)}`} />}
      </dl>
      {shownMetric.value === "peak" && <PeakNote totals={totals} />}
    </section>
  );
}

/** Why the peak is less than what the views of the peak add up to. */
function PeakNote({ totals }: { totals: Totals }) {
  const { peak, live_at_peak: seen } = totals;
  if (peak.error === null || seen.error === null || sized(peak) === sized(seen)) return null;
  return <p class="faint peak-note">The views of the peak add up to {sized(seen)}: what was seen alive at the moment when most was. The largest of many noisy sizes is too large by chance, and <b>peak live</b> is corrected for that.</p>;
}

function Total({ name, term, value, more }: { name: string; term: Term; value: string; more?: string }) {
  return <div><dt title={meaning(term)}>{name}</dt><dd>{value}{more && <span class="faint"> {more}</span>}</dd></div>;
}

function Crumbs() {
  const current = view.value;
  const root = current.over === "module" ? "All modules" : `All by ${rowTitle(current.over, current.sites)}`;
  return (
    <nav class="crumbs" aria-label="Narrowed to">
      {current.drill.length === 0 ? <h2>{root}</h2> : <button type="button" class="plain link" onClick={() => change({ drill: [], layer: 0 })}>{root}</button>}
      {current.drill.map((site, at) => {
        const [name] = parts(site);
        const last = at === current.drill.length - 1;
        return <>
          <span class="faint" aria-hidden="true">›</span>
          {last ? <h2>{name}</h2> : <button type="button" class="plain link" onClick={() => change({ drill: current.drill.slice(0, at + 1), layer: 0 })}>{name}</button>}
        </>;
      })}
      {current.drill.length > 0 && <button type="button" class="plain" title="One level out (Backspace)" onClick={stepOut}>back</button>}
    </nav>
  );
}

function legendRows(data: Data): { site: Site | null; name: string; size: string; live: number[] }[] {
  const size = (sum: Data["others"]["sum"], live: number[]) => (sum ? sized(sum) : bytes(live.at(-1) ?? 0));
  const rows: { site: Site | null; name: string; size: string; live: number[] }[] = data.series.map(({ site, sum, live }) => ({ site, name: parts(site)[0], size: size(sum, live), live }));
  if (data.others.rows > 0) rows.push({ site: null, name: count(data.others.rows, "other", "others"), size: size(data.others.sum, data.others.live), live: data.others.live });
  return rows;
}

/** The series with their sizes, or with those under the pointer. */
function Legend({ data }: { data: Data }) {
  const colours = layerColours(data);
  const at = cursor.value;
  const current = view.value;
  const deeper = canDrill(current);
  const [total, low, high] = at === null ? [0, 0, 0] : [data.total.live[at] ?? 0, data.total.low[at] ?? 0, data.total.high[at] ?? 0];
  return (
    <div class="legend">
      <p class="legend-head faint">
        {at === null ? <><span>{rowTitle(drillBy(current), current.sites)}</span><span>{metricPhrase.value}</span></> : <><span>at {shortDuration(data.times[at] ?? 0)}</span><span>{bytes(total)} ({bytes(low)} – {bytes(high)})</span></>}
      </p>
      <ul>
        {legendRows(data).map(({ site, name, size, live }, row) => (
          <li key={site ? siteKey(site) : ""}>
            <i class="swatch" style={{ background: colours[row] ?? "" }} />
            {site && deeper
              ? <button type="button" class="plain legend-name" title={`Open ${name}`} onClick={() => drillInto(site)}>{name}</button>
              : !site && data.others.rows > data.others.larger
              ? <button type="button" class="plain legend-name" title="Show the next of them" onClick={() => change({ layer: data.others.larger + LAYERS })}>{name}</button>
              : <span class="legend-name" title={name}>{name}</span>}
            <span class="sized">{at === null ? size : bytes(live[at] ?? 0)}</span>
          </li>
        ))}
      </ul>
      <LayerPages data={data} />
    </div>
  );
}

/** Leads to the rows that are in the layer of the others, and back. */
function LayerPages({ data }: { data: Data }) {
  const { rows, larger } = data.others;
  const smaller = rows - larger;
  if (rows === 0) return null;
  const first = larger + 1;
  return (
    <p class="layer-pages faint">
      <span>{grouped(first)} – {grouped(larger + data.series.length)} of {grouped(rows + data.series.length)}</span>
      {larger > 0 && <button type="button" class="plain link" onClick={() => change({ layer: Math.max(0, larger - LAYERS) })}>larger</button>}
      {smaller > 0 && <button type="button" class="plain link" onClick={() => change({ layer: larger + LAYERS })}>next {grouped(Math.min(LAYERS, smaller))}</button>}
    </p>
  );
}

/** One small picture for each series, all on the same scale. */
function Multiples({ data }: { data: Data }) {
  const colours = layerColours(data);
  const rows = legendRows(data);
  const most = Math.max(1, ...rows.flatMap(({ live }) => live));
  const shown = span.value;
  return (
    <>
      <p class="faint multiples-scale">each from 0 to {bytes(most)}, and from {timeText(shown.from, (shown.to - shown.from) / 100)} to {timeText(shown.to, (shown.to - shown.from) / 100)}</p>
      <div class="multiples">
        {rows.map(({ name, live }, at) => (
          <figure>
            <LineChart values={live} at={(index) => place(data.times[index] ?? 0, shown)} most={most} fill={colours[at] ?? ""} tell={(index) => `${timeText(data.times[index] ?? 0, data.width_us)}: ${bytes(live[index] ?? 0)}`} label={`Live size of ${name} over time, at most ${bytes(Math.max(0, ...live))}`} />
            <figcaption><span title={name}>{name}</span><span class="faint">≤ {bytes(Math.max(0, ...live))}</span></figcaption>
          </figure>
        ))}
      </div>
    </>
  );
}
