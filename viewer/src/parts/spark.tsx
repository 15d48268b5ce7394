// Small pictures of one series: a line with its band, or bars. Under the pointer they say what they show.

import { useState } from "preact/hooks";

interface LineProps {
  /** Where it is not known, there is a gap. */
  values: readonly (number | null)[];
  low?: readonly number[] | undefined;
  high?: readonly number[] | undefined;
  /** The top of the picture, if it is shared with others. */
  most?: number;
  fill?: string;
  width?: number;
  height?: number;
  /** Where a value stands, from 0 at the left edge to 1; evenly, if that is not given. */
  at?: (index: number) => number;
  /** What a value says below the pointer. */
  tell?: (index: number) => string;
  label: string;
}

export function LineChart({ values, low, high, most, fill, width = 320, height = 64, at, tell, label }: LineProps) {
  const known = values.filter((value) => value !== null);
  const top = Math.max(most ?? 0, ...known, ...(high ?? []), 1) * 1.04;
  const share = (index: number) => at?.(index) ?? index / Math.max(1, values.length - 1);
  const x = (index: number) => (share(index) * width).toFixed(1);
  const y = (value: number) => (height - (Math.max(0, value) / top) * height).toFixed(1);
  const points = (all: readonly number[], from = 0) => all.map((value, at) => `${x(from + at)},${y(value)}`);
  const runs = knownRuns(values);
  const band = low && high ? [...points(high), ...points(low).reverse()].join(" ") : "";
  const chart = (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {fill && runs.map(({ from, run }) => <polygon points={`${x(from)},${height} ${points(run, from).join(" ")} ${x(from + run.length - 1)},${height}`} fill={fill} />)}
      {band && <polygon points={band} class="chart-band" />}
      {runs.map(({ from, run }) => <polyline points={points(run, from).join(" ")} class="chart-line" vector-effect="non-scaling-stroke" />)}
    </svg>
  );
  return tell ? <Told count={values.length} share={share} tell={tell}>{chart}</Told> : chart;
}

/** A picture with a line at the value nearest to the pointer, and what that says. */
export function Told({ count, share, tell, children }: { count: number; share(index: number): number; tell(index: number): string; children: preact.ComponentChildren }) {
  const [index, setIndex] = useState<number | null>(null);
  const left = index === null ? 0 : Math.min(1, Math.max(0, share(index)));
  return (
    <div
      class="told"
      onPointerMove={(event) => {
        const bounds = event.currentTarget.getBoundingClientRect();
        const pointer = (event.clientX - bounds.left) / Math.max(1, bounds.width);
        let nearest = 0;
        for (let each = 1; each < count; each++) if (Math.abs(share(each) - pointer) < Math.abs(share(nearest) - pointer)) nearest = each;
        setIndex(count > 0 ? nearest : null);
      }}
      onPointerLeave={() => setIndex(null)}
    >
      {children}
      {index !== null && index < count && (
        <>
          <i class="told-line" style={{ left: `${100 * left}%` }} />
          <span class="told-text" style={left > 0.5 ? { right: `${100 * (1 - left)}%` } : { left: `${100 * left}%` }}>{tell(index)}</span>
        </>
      )}
    </div>
  );
}

/** The runs of known values. One that stands alone is drawn as long as a step, so that it can be seen. */
function knownRuns(values: readonly (number | null)[]): { from: number; run: number[] }[] {
  const runs: { from: number; run: number[] }[] = [];
  values.forEach((value, at) => {
    const last = runs.at(-1);
    if (value === null) return;
    if (last && last.from + last.run.length === at) last.run.push(value);
    else runs.push({ from: at, run: [value] });
  });
  return runs.map(({ from, run }) => (run.length > 1 || values.length < 2 ? { from, run } : { from: Math.max(0, from - 0.5), run: [run[0]!, run[0]!] }));
}

export function Bars({ values, titles, label, height = 40 }: { values: readonly number[]; titles: readonly string[]; label: string; height?: number }) {
  const most = Math.max(...values, 1);
  const width = 100 / Math.max(1, values.length);
  return (
    <Told count={values.length} share={(index) => ((index + 0.5) * width) / 100} tell={(index) => titles[index] ?? ""}>
      <svg class="chart" viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {values.map((value, at) => (
          <rect x={at * width + width * 0.06} width={width * 0.88} y={height - (height * value) / most} height={Math.max((height * value) / most, value > 0 ? 1 : 0)} class="chart-bar" />
        ))}
      </svg>
    </Told>
  );
}
