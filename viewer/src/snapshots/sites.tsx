// Where what is alive in a snapshot was allocated, by the trace that was being written: estimates,
// with their errors.

import { EndOf } from "../parts/end-of";
import { Sized, SizeCells } from "../parts/numbers";
import { label, parts, siteOf, visible } from "../text/sites";
import { bytes, count, grouped, percent, shortDuration } from "../text/units";
import { change } from "../view/store";
import type { SiteRow, Snapshot } from "./types";

export function AllocationSites({ snapshot }: { snapshot: Snapshot }) {
  const { sites, trace } = snapshot;
  if (!sites) {
    return <section class="rows-plain" aria-label="Allocation sites"><p class="prose">Where its blocks were allocated is not known: the page does not have the trace that was being written then. Name it before the snapshots: <code>heaptap serve TRACE.ctf SNAPSHOT.heap</code>.</p></section>;
  }
  return (
    <section class="rows-plain" aria-label="Allocation sites">
      <h2>Where what is alive was allocated</h2>
      <p class="faint prose">{bytes(sites.exact_bytes)} are reachable. {visible(sites.trace)} has samples of {count(sites.sampled_blocks, "block", "blocks")} of that, which stand for <Sized size={sites.estimated} />.</p>
      <div class="table-box" tabIndex={0} role="region" aria-label="Rows">
        <table>
          <thead><tr><th class="num" scope="col">size</th><th class="num" scope="col">error</th><th class="num wide-only" scope="col">share</th><th class="num wide-only" scope="col">median age</th><th scope="col">site</th><th class="wide" scope="col">held by</th></tr></thead>
          <tbody>{sites.rows.map((row) => <SiteLine row={row} trace={trace} at={snapshot.at_us} />)}</tbody>
          {sites.other_rows > 0 && <tfoot><tr><td /><td /><td class="num wide-only">{percent(sites.other_share)}</td><td class="wide-only" /><td class="name">{grouped(sites.other_rows)} others</td><td class="wide" /></tr></tfoot>}
        </table>
      </div>
    </section>
  );
}

function SiteLine({ row, trace, at }: { row: SiteRow; trace: number | null; at: number | null }) {
  const [name, more] = parts(row.site);
  const text = `${name}${more ? ` ${more}` : ""}`;
  const held = visible(row.holder);
  return (
    <tr>
      <SizeCells size={row.size} />
      <td class="num wide-only">{percent(row.share)}</td>
      <td class="num wide-only" title={`the oldest is ${shortDuration(row.oldest_us)} old`}>{shortDuration(row.median_age_us)}</td>
      <td class="name" title={label(row.site)}>
        {trace === null || at === null ? text
          : <button type="button" class="plain" title={`${label(row.site)}: its callers, in the trace`} onClick={() => change({ tab: "table", trace, by: "location", row: siteOf(row.site), metric: "at", at, hot: false })}><EndOf text={text} /></button>}
      </td>
      <td class="wide" title={`${held}, ${percent(row.holder_share)}`}>{held} <span class="faint">{percent(row.holder_share)}</span></td>
    </tr>
  );
}
