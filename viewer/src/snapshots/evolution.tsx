// Several snapshots over time: what is reachable, stacked by the rows of a table. Each snapshot has
// a button above the plot, which opens it.

import { useMemo, useState } from "preact/hooks";
import { visible } from "../text/sites";
import { bytes, shortDuration, signedBytes } from "../text/units";
import { palette, rankColour } from "../view/colour";
import { changeHeap, view } from "../view/store";
import { axisBytes, BYTE_STEPS, step } from "../timeline/ticks";
import { snapshots } from "./document";
import { momentText } from "./facts";
import { positions, seriesOf, stacksOf, type Series } from "./series";
import type { Snapshot } from "./types";

const WIDTH = 1000;
const HEIGHT = 130;
/** Buttons that are nearer than this have no number. */
const NEAR = 0.025;

export function Evolution({ number }: { number: number }) {
  const all = snapshots.value;
  const kinds = stacksOf(all);
  const by = kinds.includes(view.value.heap.stack) ? view.value.heap.stack : kinds[0] ?? "module";
  const { series, others } = useMemo(() => seriesOf(all, by), [all, by]);
  const layers: Series[] = others.some((size) => size > 0) ? [...series, { name: "others", bytes: others }] : series;
  const [hovered, setHovered] = useState<number | null>(null);
  const told = hovered !== null && hovered < all.length ? hovered : number;
  const colours = layers.map((_, rank) => (rank < series.length ? rankColour(rank) : palette().others));
  return (
    <section class="over-time" aria-label="Snapshots over time">
      <div class="over-head">
        <h2>Reachable, over {all.length} snapshots</h2>
        <span class="over-tools">
          <label>by <select aria-label="Stack the snapshots by" value={by} onChange={(event) => changeHeap({ stack: event.currentTarget.value })}>
            {kinds.map((kind) => <option value={kind}>{kind}</option>)}
          </select></label>
        </span>
      </div>
      <div class="over-body">
        <Plot all={all} layers={layers} colours={colours} number={number} onHover={setHovered} />
        <Legend layers={layers} colours={colours} number={told} by={by} />
      </div>
    </section>
  );
}

interface PlotProps {
  all: readonly Snapshot[];
  layers: readonly Series[];
  colours: readonly string[];
  number: number;
  /** The snapshot nearest to the pointer. */
  onHover(number: number | null): void;
}

function Plot({ all, layers, colours, number, onHover }: PlotProps) {
  const places = positions(all);
  const most = Math.max(1, ...all.map(({ reachable }) => reachable.bytes)) * 1.05;
  const y = (size: number) => HEIGHT - (size / most) * HEIGHT;
  const point = (at: number, size: number) => `${(places[at]! * WIDTH).toFixed(1)},${y(size).toFixed(2)}`;
  const lines: number[] = [];
  for (let size = 0; size <= most; size += step(most, 5, BYTE_STEPS)) lines.push(size);
  let below = all.map(() => 0);
  const areas = layers.map(({ name, bytes: sizes }, layer) => {
    const upper = below.map((edge, at) => edge + sizes[at]!);
    const edge = [...upper.map((size, at) => point(at, size)), ...below.map((size, at) => point(at, size)).reverse()];
    below = upper;
    return <polygon points={edge.join(" ")} fill={colours[layer]}><title>{visible(name)}</title></polygon>;
  });
  const [first, last] = [all[0]!.taken_us, all.at(-1)!.taken_us];
  return (
    <div class="evolution">
      <div class="evolution-marks">{all.map((snapshot, at) => <Mark snapshot={snapshot} at={at} places={places} current={at === number} />)}</div>
      <div
        class="evolution-plot"
        onPointerMove={(event) => {
          const bounds = event.currentTarget.getBoundingClientRect();
          const pointer = (event.clientX - bounds.left) / Math.max(1, bounds.width);
          onHover(places.reduce((best, place, at) => (Math.abs(place - pointer) < Math.abs(places[best]! - pointer) ? at : best), 0));
        }}
        onPointerLeave={() => onHover(null)}
      >
        {lines.map((size) => <span class="evolution-axis faint" style={{ top: `${(100 * y(size)) / HEIGHT}%` }} aria-hidden="true">{axisBytes(size)}</span>)}
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`Reachable bytes of ${all.length} snapshots: ${all.map(({ reachable }) => bytes(reachable.bytes)).join(", ")}`}>
          {lines.map((size) => <line x1="0" x2={WIDTH} y1={y(size)} y2={y(size)} class="axis-line" vector-effect="non-scaling-stroke" />)}
          {areas}
          <polyline points={below.map((size, at) => point(at, size)).join(" ")} class="chart-line" vector-effect="non-scaling-stroke" />
          {places.map((place, at) => <line x1={place * WIDTH} x2={place * WIDTH} y1="0" y2={HEIGHT} class={at === number ? "at-line chosen" : "at-line"} vector-effect="non-scaling-stroke" />)}
        </svg>
      </div>
      <p class="scale evolution-scale">
        <span>{first === null ? "first" : momentText(first)}</span>
        {first !== null && last !== null && last > first && <span>{shortDuration(last - first)}</span>}
        <span class="wide-only">{last === null ? "last" : momentText(last)}</span>
      </p>
    </div>
  );
}

function Mark({ snapshot, at, places, current }: { snapshot: Snapshot; at: number; places: readonly number[]; current: boolean }) {
  const title = `Snapshot ${at + 1}: ${visible(snapshot.name)}, ${bytes(snapshot.reachable.bytes)} reachable`;
  const crowded = at > 0 && places[at]! - places[at - 1]! < NEAR;
  return (
    <button type="button" class="evolution-mark" aria-pressed={current} title={title} aria-label={title} style={{ left: `${100 * places[at]!}%` }} onClick={() => changeHeap({ snapshot: at, row: null })}>
      {crowded && !current ? "·" : at + 1}
    </button>
  );
}

/** The layers with their sizes in the snapshot that is shown, and their change since the one before. */
function Legend({ layers, colours, number, by }: { layers: readonly Series[]; colours: readonly string[]; number: number; by: string }) {
  return (
    <div class="legend">
      <p class="legend-head faint"><span class="legend-name">{by}</span><span class="sized">in snapshot {number + 1}</span>{number > 0 && <span class="legend-change">since {number}</span>}</p>
      <ul>
        {layers.map(({ name, bytes: sizes }, layer) => {
          const change = number > 0 ? sizes[number]! - sizes[number - 1]! : 0;
          return (
            <li>
              <i class="swatch" style={{ background: colours[layer] ?? "" }} />
              <span class="legend-name" title={visible(name)}>{visible(name)}</span>
              <span class="sized">{bytes(sizes[number] ?? 0)}</span>
              {number > 0 && <span class="sized legend-change faint">{change === 0 ? "=" : signedBytes(change)}</span>}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
