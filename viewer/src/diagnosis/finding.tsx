// One finding: how sure, who holds it, how it grew, where it is allocated, and the ways from there into the other views.

import { momentText } from "../snapshots/facts";
import { holderView } from "../snapshots/held-by";
import { headline, label, literally, visible } from "../text/sites";
import { bytes, count, percent, shortDuration } from "../text/units";
import { withChip } from "../view/chips";
import { change, config, info, view } from "../view/store";
import type { DiagnosisFinding, Examined, GainedSite, HolderGrowth } from "./document";

/** How many of a list are shown: the first of them, and the last. */
const FIRST = 3;
const LAST = 3;

const PACES: Record<HolderGrowth["pace"], string> = {
  even: "evenly",
  steps: "in steps, each larger than the one before",
  uneven: "unevenly",
  slows: "less and less",
  stopped: "it has stopped",
  turns_over: "it turns over",
  steady: "it is steady",
  unknown: "between two snapshots",
};

export function HowSure({ finding }: { finding: DiagnosisFinding }) {
  return <span class="tag how-sure">{finding.is_problem ? finding.certainty : "note"}</span>;
}

/** `isSaid`: the verdict has its sentence. */
export function Finding({ finding, limit, isSaid }: { finding: DiagnosisFinding; limit: Examined["limit"]; isSaid: boolean }) {
  const { holder, sites, advice, since_us: since, full_in_us: full } = finding;
  const rate = rateText(finding);
  return (
    <article class="finding">
      {!isSaid && <h3 class="break"><HowSure finding={finding} />{visible(finding.sentence)}</h3>}
      <dl class="finding-facts">
        {holder && <HeldBy holder={holder} />}
        {rate && <div><dt>grows by</dt><dd>{rate}</dd></div>}
        {since !== null && <div><dt>since</dt><dd>{sinceText(since)}</dd></div>}
        {full !== null && <div><dt>memory</dt><dd>full in about {shortDuration(full)}{limit && `: the ${visible(limit.whose)} has ${bytes(limit.bytes)}`}</dd></div>}
        {sites.length > 0 && <div><dt>allocated at</dt><dd><ul>{sites.map((site) => <GainedAt site={site} />)}</ul></dd></div>}
        {advice && <div><dt>advice</dt><dd class="break">{visible(advice)}</dd></div>}
      </dl>
      {finding.kind === "leak" && holder === null && sites.length === 0 && config.traces.length > 0 && (
        <button type="button" onClick={() => change({ tab: "leaks" })}>the site in Leaks</button>
      )}
    </article>
  );
}

function rateText({ bytes_per_second: rate, growth_error: error }: DiagnosisFinding): string | null {
  if (rate === null) return null;
  return `${bytes(rate)} a second${error === null ? "" : ` ± ${percent(error / Math.max(1, rate))}`}`;
}

/** Into the trace in view, if it has begun by then. */
function sinceText(since: number): string {
  const start = info.value?.start_us;
  if (start === undefined || since < start) return momentText(since);
  return since - start < 1000 ? "the start of the trace" : `${shortDuration(since - start)} after the start of the trace`;
}

function HeldBy({ holder }: { holder: HolderGrowth }) {
  const { name, path, elements, pace, sizes, after_outside_bytes: outside, share_of_growth: share } = holder;
  const lead = holderView(name, path);
  const steps = path[0] === name ? path.slice(1) : path;
  return (
    <>
      <div>
        <dt>held by</dt>
        <dd class="break">
          {lead ? <button type="button" class="plain link" title="What it holds, in Snapshots" onClick={() => change({ tab: "snapshots", heap: lead })}>{visible(name)}</button> : <b>{visible(name)}</b>}
          {steps.map((step) => <> <span class="faint">›</span> {visible(step)}</>)}
          {elements !== null && <span class="faint">, {count(elements, "block", "blocks")}</span>}
        </dd>
      </div>
      <div>
        <dt>in the snapshots</dt>
        <dd>{sizesText(sizes)}, {PACES[pace] ?? visible(pace)}; {percent(share)} of all growth{outside > 0 && `; ${bytes(outside)} of it outside the heap`}</dd>
      </div>
    </>
  );
}

function sizesText(sizes: readonly number[]): string {
  const texts = sizes.map(bytes);
  const shown = texts.length > FIRST + LAST + 1 ? [...texts.slice(0, FIRST), "…", ...texts.slice(-LAST)] : texts;
  return shown.join(" → ");
}

/** A line, which leads to its source, and the calls that lead to it. */
function GainedAt({ site: { site, via, called_from: callers, share, oldest_us: oldest, source } }: { site: GainedSite }) {
  const hasTrace = config.traces.length > 0;
  const only = withChip(view.value.chips, { kind: "function", text: literally(site.name) });
  return (
    <li>
      <p class="break">
        {site.file && hasTrace
          ? <button type="button" class="plain link" title="The line in Source" onClick={() => change({ tab: "source", metric: "live", file: site.file!, line: site.line ?? 0 })}>{visible(site.file)}{site.line ? `:${site.line}` : ""}</button>
          : <b>{site.file ? `${visible(site.file)}${site.line ? `:${site.line}` : ""}` : headline(site)}</b>}
        {site.file && ` ${visible(site.name)}`}{via && ` via ${visible(via.name)}`}
        <span class="faint">, {percent(share)} of the growth, the oldest {shortDuration(oldest)} old</span>
        {hasTrace && <> <button type="button" class="plain link" onClick={() => change({ tab: "flame", metric: "live", invert: false, focus: [], selected: [], chips: only })}>call paths</button></>}
      </p>
      {callers.length > 0 && <p class="faint break">called from {callers.map(label).join(" ← ")}</p>}
      {source && <pre>{source.lines.map((line, at) => `${source.first + at}`.padStart(6) + `  ${visible(line)}`).join("\n")}</pre>}
    </li>
  );
}
