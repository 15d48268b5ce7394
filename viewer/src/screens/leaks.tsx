// Leaks: a card for each site that keeps growing.

import type { Answer, CallerSite, Info, Leak, Site, Size } from "../query/types";
import { Problem } from "../parts/messages";
import { HeldBy } from "../snapshots/held-by";
import { Sized } from "../parts/numbers";
import { VerdictText } from "../parts/verdict-text";
import { Bars, LineChart } from "../parts/spark";
import { headline, label, literally, parts, siteKey } from "../text/sites";
import { bytes, count, percent, shortDuration, sized } from "../text/units";
import { useQuery } from "../view/ask";
import { withChip } from "../view/chips";
import { siteColour } from "../view/colour";
import { hasBrush, ofWholeRun } from "../view/request";
import { change, view } from "../view/store";

export function Leaks({ info }: { info: Info }) {
  const current = view.value;
  const { answer, error, stale } = useQuery("leaks", "leaks", ofWholeRun(current));
  const isFiltered = current.chips.some(({ kind }) => kind !== "time");
  return (
    <section class={`leaks${stale ? " stale" : ""}`} aria-label="Leaks">
      {error && <Problem text={error} />}
      {answer && (
        <>
          <h2 class="sentence"><VerdictText leaks={answer} /> <span class="faint">({shortDuration(answer.duration_us)} traced{hasBrush(current) && "; the brush does not apply"})</span></h2>
          {answer.leaks.length === 0 && (
            <p class="prose faint">
              {answer.incomplete !== null
                ? "A leak may be in what was not read, and what was read may have lost the ends of blocks: trace the program again, to its end."
                : answer.conclusive
                ? "A site leaks if about the same share of its blocks is still alive, whenever they were allocated, and if its live size grows by more than sampling explains. None does."
                : isFiltered ? "Only blocks that pass the filters above are searched. The whole trace may say more."
                : "A leak shows in what survives several collections."}
              {isFiltered && !answer.conclusive && <> <button type="button" class="plain link" onClick={() => change({ chips: current.chips.filter(({ kind }) => kind === "time") })}>search all blocks</button></>}
            </p>
          )}
          <Suspects suspects={answer.suspects} />
          <div class="cards">{answer.leaks.map((leak) => <Card key={siteKey(leak.site)} leak={leak} info={info} />)}</div>
        </>
      )}
    </section>
  );
}

function Card({ leak, info }: { leak: Leak; info: Info }) {
  const { site, growth_per_second: growth, growth: over } = leak;
  const [place] = parts(site);
  const kept = leak.allocated.bytes > 0 ? leak.live.bytes / leak.allocated.bytes : 0;
  const from = over ? over.times[0] ?? 0 : 0;
  const to = Math.min(over?.times.at(-1) ?? info.duration_us, info.duration_us);
  const span = (leak.survivors_to_us - leak.survivors_from_us) / Math.max(1, leak.survivors.length);
  return (
    <article class="card">
      <h3><i class="swatch" style={{ background: siteColour(site) }} />{headline(site)}</h3>
      {site.line && <p class="faint break">{place}</p>}
      <dl class="panel-facts">
        <div><dt>grows by</dt><dd>{sized(perMinute(growth))} a minute</dd></div>
        <div><dt>alive</dt><dd><Sized size={leak.live} /></dd></div>
        <div><dt>of all that it allocated</dt><dd>{percent(kept)}</dd></div>
      </dl>
      {over && (
        <figure>
          <LineChart values={over.live} low={over.low} high={over.high} tell={(at) => `${shortDuration(over.times[at] ?? 0)}: ${bytes(over.live[at] ?? 0)} (${bytes(over.low[at] ?? 0)} – ${bytes(over.high[at] ?? 0)})`} label={`Live size over time, up to ${bytes(Math.max(...over.live))}`} />
          <p class="scale"><span>{shortDuration(from)}</span><span>live size up to {bytes(Math.max(...over.live))}, 95 % band</span><span>{shortDuration(to)}</span></p>
        </figure>
      )}
      <figure>
        <Bars values={leak.survivors} titles={leak.survivors.map((size, at) => `allocated ${shortDuration(leak.survivors_from_us + at * span)} – ${shortDuration(leak.survivors_from_us + (at + 1) * span)}: ${bytes(size)} still alive`)} label="Still alive, by time of allocation" />
        <p class="scale"><span>{shortDuration(leak.survivors_from_us)}</span><span>still alive, up to {bytes(Math.max(...leak.survivors))}, by time of allocation</span><span>{shortDuration(leak.survivors_to_us)}</span></p>
      </figure>
      {leak.via && leak.via.length > 0 && <p class="faint break">through {leak.via.map(label).join(", ")}</p>}
      {leak.called_from.length > 0 && <CallPath sites={leak.called_from} />}
      <p class="advice">{advice(leak, kept)}</p>
      <HeldBy site={site} />
      <SiteTools site={site} />
    </article>
  );
}

/** Where to look further. */
function SiteTools({ site }: { site: Site }) {
  const only = withChip(view.value.chips, { kind: "function", text: literally(site.name) });
  return (
    <div class="panel-tools">
      <button type="button" onClick={() => change({ tab: "flame", metric: "live", invert: false, focus: [], selected: [], chips: only })}>call paths</button>
      <button type="button" onClick={() => change({ tab: "overview", metric: "live", drill: [], over: "location", chips: only })}>over time</button>
      {site.file && <button type="button" onClick={() => change({ tab: "source", metric: "live", file: site.file!, line: site.line ?? 0 })}>source</button>}
    </div>
  );
}

/** The sites that grew most, where the trace cannot show leaks: each with why it is undecided. */
function Suspects({ suspects: { since_us: since, rows, other_rows: others } }: { suspects: Answer<"leaks">["suspects"] }) {
  if (rows.length === 0) return null;
  return (
    <>
      <h3>Grew since {shortDuration(since)}, and may leak or not</h3>
      <div class="cards">
        {rows.map(({ site, growth, live, undecided }) => (
          <article class="card suspect" key={siteKey(site)}>
            <h4><i class="swatch" style={{ background: siteColour(site) }} />{headline(site)}</h4>
            {site.line && <p class="faint break">{parts(site)[0]}</p>}
            <dl class="panel-facts">
              <div><dt>grew by</dt><dd><Sized size={growth} /></dd></div>
              <div><dt>alive</dt><dd><Sized size={live} /></dd></div>
            </dl>
            <p class="advice">Undecided: {undecided}.</p>
            <HeldBy site={site} />
            <SiteTools site={site} />
          </article>
        ))}
      </div>
      {others > 0 && <p class="faint prose">{count(others, "other site grew", "other sites grew")}</p>}
    </>
  );
}

/** The callers. What library code stands between two frames of own code is one faint step. */
function CallPath({ sites }: { sites: readonly CallerSite[] }) {
  return (
    <div class="call-path">
      <h4>Called from</h4>
      <ol>{sites.map((site) => <li class={site.library ? "break faint" : "break"}>{site.library ? `via ${label(site)}` : label(site)}</li>)}</ol>
    </div>
  );
}

/** What the command line concludes, and what to do about it. */
function advice(leak: Leak, kept: number): string {
  if (leak.slowing) return "It grows less and less: perhaps a cache that fills. Look again after a longer run, or give the cache a bound.";
  const share = kept > 0.9 ? "What it allocates" : `Some ${percent(kept)} of what it allocates`;
  return `${share} is kept, whenever it was allocated. Find what holds it: a table or list reachable from the callers above that is added to and never emptied.`;
}

function perMinute({ bytes, error, low, high }: Size): Size {
  return { bytes: 60 * bytes, error: error === null ? null : 60 * error, low: 60 * low, high: 60 * high };
}
