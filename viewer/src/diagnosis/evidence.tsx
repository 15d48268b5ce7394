// What was looked at for the diagnosis.

import { baseName } from "../snapshots/facts";
import { visible } from "../text/sites";
import { bytes, count, percent, shortDuration } from "../text/units";
import type { Diagnosis, Examined } from "./document";

export function Evidence({ diagnosis: { examined, remarks } }: { diagnosis: Diagnosis }) {
  const { trace, snapshots, timeline, from_us: from, to_us: to } = examined;
  return (
    <article class="finding">
      <h3>Looked at: {shortDuration(to - from)} of {baseName(examined.program) || "a program"}{examined.pid !== null && `, process ${examined.pid}`}</h3>
      <dl class="finding-facts">
        {trace && <div><dt>trace</dt><dd class="break">{baseName(trace.file)}, {shortDuration(trace.duration_us)} at rate {trace.rate}; alone it says: {visible(trace.verdict)}</dd></div>}
        {timeline.points.length > 0 && <div><dt>time line</dt><dd>{timelineText(timeline)}</dd></div>}
        {snapshots.length > 0 && (
          <div>
            <dt>{count(snapshots.length, "snapshot", "snapshots")}</dt>
            <dd><ul>{snapshots.map((snapshot) => <li class="break">{snapshotText(snapshot, from)}</li>)}</ul></dd>
          </div>
        )}
        {remarks.length > 0 && <div><dt>remarks</dt><dd><ul>{remarks.map((remark) => <li class="break">{visible(remark)}</li>)}</ul></dd></div>}
      </dl>
    </article>
  );
}

function timelineText({ points, collector }: Examined["timeline"]): string {
  const last = points.findLast(({ rss_bytes: rss }) => rss !== null);
  const parts = [
    last?.heap_bytes ? `heap ${bytes(last.heap_bytes)} at last` : "",
    last?.rss_bytes ? `RSS ${bytes(last.rss_bytes)}` : "",
    collector ? `the collector took ${percent(collector.minor + collector.major + collector.finalisers)} of the time` : "",
  ];
  return parts.filter(Boolean).join(", ") || count(points.length, "moment", "moments");
}

function snapshotText(snapshot: Examined["snapshots"][number], from: number): string {
  const { file, taken_us: taken, reachable_bytes: reachable, garbage_bytes: garbage, outside_bytes: outside } = snapshot;
  const at = taken >= from ? ` after ${shortDuration(taken - from)}` : "";
  return `${baseName(file)}${at}: ${bytes(reachable)} reachable, ${bytes(garbage)} garbage${outside > 0 ? `, ${bytes(outside)} outside the heap` : ""}`;
}
