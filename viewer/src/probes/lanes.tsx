// Below the time line, on the same axis: the collector, the process, and the probes that were chosen.

import { LineChart } from "../parts/spark";
import { meaning } from "../text/glossary";
import { visible } from "../text/sites";
import { bytes, percent, roundBytes, shortDuration } from "../text/units";
import { AXIS, MARGIN } from "../timeline/plot";
import { cursor, pointAt } from "../timeline/timeline";
import { view } from "../view/store";
import { percentAt, place, span, type Span } from "../view/zoom";
import { sidecar, type Lane, type LogLine, type Sidecar, type Unit } from "./document";

/** A limit further above than this is not in the picture. */
const NEAR_LIMIT = 4;

/** The names of the probes that have a lane. A link may name others, of another program: they are ignored. */
export function chosenNames({ tree }: Sidecar): readonly string[] {
  const drawn = tree.flatMap(({ probe }) => (probe?.values ? [probe.name] : []));
  const chosen = view.value.lanes;
  const known = drawn.filter((name) => chosen?.includes(name));
  return known.length > 0 || chosen?.length === 0 ? known : drawn.slice(0, 2);
}

const amount = (value: number) => (Math.abs(value) >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(3));
const TEXTS: Record<Unit, (value: number) => string> = {
  bytes,
  // Of timers that run at once there may be more than one.
  share: (value) => (value > 1 ? `${amount(value)} at once` : percent(value)),
  ns: (value) => (value < 1000 ? `${Math.round(value)} ns` : shortDuration(value / 1000)),
  rate: (value) => `${amount(value)}/s`,
  number: amount,
};

export function Lanes({ times }: { times: readonly number[] }) {
  const found = sidecar.value;
  if (!found) return null;
  const names = chosenNames(found);
  const probes: Lane[] = found.tree.flatMap(({ probe }) => (probe?.values && names.includes(probe.name) ? [{ name: probe.name, unit: probe.unit, values: probe.values }] : []));
  const under = cursor.value === null ? null : times[cursor.value] ?? null;
  const part = { width: found.width_us, shown: span.value, under };
  return (
    <div
      class="lanes"
      role="group"
      aria-label="The collector, the process and probes over time"
      onPointerMove={(event) => {
        const plot = event.currentTarget.querySelector(".lane-plot")?.getBoundingClientRect();
        if (!plot) return;
        const pointer = (event.clientX - plot.left) / Math.max(1, plot.width);
        cursor.value = pointer < 0 || pointer > 1 ? null : pointAt(times, part.shown.from + pointer * (part.shown.to - part.shown.from));
      }}
      onPointerLeave={() => { cursor.value = null; }}
    >
      {found.lanes.map((lane) => <LaneRow lane={lane} limit={lane.name === "cgroup" ? found.limit_bytes : null} {...part} />)}
      {probes.map((lane) => <LaneRow lane={lane} limit={null} probe {...part} />)}
      {found.log.length > 0 && <LogMarks lines={found.log} shown={part.shown} />}
    </div>
  );
}

interface RowProps {
  lane: Lane;
  limit: number | null;
  probe?: boolean;
  width: number;
  shown: Span;
  /** The time under the pointer. */
  under: number | null;
}

function LaneRow({ lane, limit, probe, width, shown, under }: RowProps) {
  const { values } = lane;
  const largest = values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  const most = limit !== null && limit <= NEAR_LIMIT * largest ? limit : largest;
  const text = TEXTS[lane.unit];
  const at = under === null ? null : values[Math.max(0, Math.ceil(under / width) - 1)] ?? null;
  // What is shown besides the name is narrow.
  const value = under === null ? `≤ ${lane.unit === "bytes" ? roundBytes(largest) : text(largest)}` : at === null ? "not known" : text(at);
  const name = visible(lane.name);
  // A picture of numbers below 1 would be flat: the chart begins at 1.
  const scaled = values.map((value) => (value === null ? null : most > 0 ? (100 * Math.max(0, value)) / most : 0));
  const title = limit === null ? name : `${name}, limit ${bytes(limit)}`;
  const help = !probe && (name === "heap" || name === "in use") ? `${name}: ${meaning("heap")}` : title;
  return (
    <div class={`lane${probe ? " probe" : ""}`} title={help}>
      <span class="lane-name" style={{ width: `${AXIS - 6}px` }}><b>{probe ? name.split("/").at(-1) : name}</b>{value}</span>
      <div class="lane-plot" style={{ marginRight: `${MARGIN}px` }}>
        <LineChart values={scaled} at={(index) => place((index + 1) * width, shown)} most={100} fill="var(--bar)" height={30} label={`${title}: at most ${text(largest)}`} />
        {limit !== null && <span class="lane-limit">limit {bytes(limit)}</span>}
        {under !== null && <i class="timeline-cursor" style={{ left: percentAt(under, shown) }} />}
      </div>
    </div>
  );
}

/** The lines of the log as marks; those at which the program asked to stop stand out. */
function LogMarks({ lines, shown }: { lines: readonly LogLine[]; shown: Span }) {
  return (
    <div class="lane log">
      <span class="lane-name" style={{ width: `${AXIS - 6}px` }}><b>log</b></span>
      <div class="lane-plot" style={{ marginRight: `${MARGIN}px` }}>
        {lines.filter(({ time_us: at }) => at >= shown.from).map(({ time_us, text, stop }) => (
          <i class={stop ? "log-mark stop" : "log-mark"} style={{ left: percentAt(time_us, shown) }} title={`${shortDuration(time_us)}: ${visible(text)}`} />
        ))}
      </div>
    </div>
  );
}
