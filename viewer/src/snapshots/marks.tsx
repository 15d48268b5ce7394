// Marks on the time line of a trace, where snapshots were taken while it was being written.

import { bytes, shortDuration } from "../text/units";
import { visible } from "../text/sites";
import { percentAt, type Span } from "../view/zoom";
import { change, view } from "../view/store";
import { snapshots } from "./document";

/** Marks that are nearer than this share of the time line are one. */
const NEAR = 1 / 50;

interface Mark {
  at: number;
  /** The last snapshot of the mark, which it opens. */
  last: number;
  count: number;
}

function marksOf(trace: number, duration: number, { from, to }: Span): Mark[] {
  const marks: Mark[] = [];
  snapshots.value.forEach((snapshot, last) => {
    if (snapshot.trace !== trace || snapshot.at_us === null) return;
    // One that is taken at exit comes after the last event.
    const at = Math.min(snapshot.at_us, duration);
    if (at < from || at > to) return;
    const before = marks.at(-1);
    if (before && at - before.at < NEAR * (to - from)) {
      before.last = last;
      before.count += 1;
    } else marks.push({ at, last, count: 1 });
  });
  return marks;
}

export function SnapshotMarks({ trace, duration, shown }: { trace: number; duration: number; shown: Span }) {
  return (
    <>
      {marksOf(trace, duration, shown).map(({ at, last, count }) => {
        const snapshot = snapshots.value[last]!;
        const title = `${count > 1 ? `${count} snapshots; the last: ` : "Snapshot "}${visible(snapshot.name)} at ${shortDuration(snapshot.at_us ?? at)}, ${bytes(snapshot.reachable.bytes)} reachable`;
        return (
          <button
            type="button"
            class="snapshot-mark"
            style={{ left: percentAt(at, shown) }}
            title={title}
            aria-label={title}
            onClick={() => change({ tab: "snapshots", heap: { ...view.value.heap, snapshot: last, within: [], cell: [], row: null } })}
          />
        );
      })}
    </>
  );
}
