// Small pictures of one series: a line with its band, or bars.

interface LineProps {
  values: readonly number[];
  low?: readonly number[] | undefined;
  high?: readonly number[] | undefined;
  /** The top of the picture, if it is shared with others. */
  most?: number;
  fill?: string;
  width?: number;
  height?: number;
  label: string;
}

export function LineChart({ values, low, high, most, fill, width = 320, height = 64, label }: LineProps) {
  const top = Math.max(most ?? 0, ...values, ...(high ?? []), 1) * 1.04;
  const x = (at: number) => ((at / Math.max(1, values.length - 1)) * width).toFixed(1);
  const y = (value: number) => (height - (Math.max(0, value) / top) * height).toFixed(1);
  const points = (all: readonly number[]) => all.map((value, at) => `${x(at)},${y(value)}`);
  const band = low && high ? [...points(high), ...points(low).reverse()].join(" ") : "";
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {fill && <polygon points={`0,${height} ${points(values).join(" ")} ${width},${height}`} fill={fill} />}
      {band && <polygon points={band} class="chart-band" />}
      <polyline points={points(values).join(" ")} class="chart-line" vector-effect="non-scaling-stroke" />
    </svg>
  );
}

export function Bars({ values, titles, label, height = 40 }: { values: readonly number[]; titles: readonly string[]; label: string; height?: number }) {
  const most = Math.max(...values, 1);
  const width = 100 / Math.max(1, values.length);
  return (
    <svg class="chart" viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {values.map((value, at) => (
        <rect x={at * width + width * 0.06} width={width * 0.88} y={height - (height * value) / most} height={Math.max((height * value) / most, value > 0 ? 1 : 0)} class="chart-bar">
          <title>{titles[at]}</title>
        </rect>
      ))}
    </svg>
  );
}
