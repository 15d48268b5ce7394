// The time line on uPlot: a stack of areas, the 95 % band of their sum, and marks for the peak and
// the chosen time.

import uPlot from "uplot";
import type { Timeline } from "../query/types";
import { shortDuration } from "../text/units";
import { palette } from "../view/colour";
import { axisBytes, axisTime, BYTE_STEPS, stacked, TIME_STEPS } from "./stack";

/** Room beside the plot, which the brush needs to know. */
export const AXIS = 66;
export const MARGIN = 14;

export interface PlotOptions {
  width: number;
  height: number;
  duration: number;
  colours: string[];
  timeline: Timeline;
  /** The chosen time of the metric `at`. */
  at: number | null;
  onCursor(index: number | null): void;
}

export function makePlot(parent: HTMLElement, options: () => PlotOptions): uPlot {
  const { width, height, colours, timeline } = options();
  const look = palette();
  const { times, edges } = stacked(timeline);
  const font = "11px system-ui, sans-serif";
  const axis = { stroke: look.faint, font, ticks: { show: false }, grid: { stroke: look.line, width: 1 } };
  const layers = edges.map((_, at): uPlot.Series => ({
    stroke: "transparent",
    width: 0,
    points: { show: false },
    ...(at === 0 ? { fill: colours[0] ?? look.others } : {}),
  }));
  return new uPlot(
    {
      width,
      height,
      padding: [10, MARGIN, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
      scales: {
        x: { time: false, range: () => [0, Math.max(1, options().duration)] },
        y: { range: (_, __, most) => [0, Math.max(1024, most, ...stacked(options().timeline).high) * 1.06] },
      },
      axes: [
        { ...axis, size: 26, gap: 4, grid: { show: false }, incrs: TIME_STEPS, space: 70, values: (_, all) => all.map(axisTime) },
        { ...axis, size: AXIS, gap: 6, incrs: BYTE_STEPS, space: 30, values: (_, all) => all.map(axisBytes) },
      ],
      series: [{}, ...layers],
      bands: edges.slice(1).map((_, at) => ({ series: [at + 2, at + 1] as [number, number], fill: colours[at + 1] ?? look.others })),
      hooks: {
        draw: [(plot) => drawMarks(plot, options())],
        setCursor: [(plot) => options().onCursor(plot.cursor.left === undefined || plot.cursor.left < 0 ? null : (plot.cursor.idx ?? null))],
      },
    },
    [times, ...edges],
    parent,
  );
}

function drawMarks(plot: uPlot, { timeline, at }: PlotOptions): void {
  const { ctx: context, bbox } = plot;
  const look = palette();
  const { times, edges, low, high } = stacked(timeline);
  const top = edges.at(-1)!;
  const x = (time: number) => plot.valToPos(time, "x", true);
  const y = (value: number) => plot.valToPos(value, "y", true);
  const ratio = devicePixelRatio || 1;
  context.save();
  context.beginPath();
  context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  context.clip();

  context.beginPath();
  times.forEach((time, at) => context.lineTo(x(time), y(high[at]!)));
  for (let at = times.length - 1; at >= 0; at--) context.lineTo(x(times[at]!), y(low[at]!));
  context.fillStyle = look.band;
  context.fill();

  context.beginPath();
  times.forEach((time, at) => context.lineTo(x(time), y(top[at]!)));
  context.strokeStyle = look.text;
  context.lineWidth = 1.25 * ratio;
  context.stroke();
  context.restore();

  const mark = (time: number, text: string, colour: string, row: number) => {
    const left = Math.round(x(time)) + 0.5;
    context.save();
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = ratio;
    context.setLineDash([3 * ratio, 3 * ratio]);
    context.beginPath();
    context.moveTo(left, bbox.top);
    context.lineTo(left, bbox.top + bbox.height);
    context.stroke();
    context.font = `${11 * ratio}px system-ui, sans-serif`;
    context.textBaseline = "top";
    const fits = left - bbox.left > 150 * ratio;
    context.textAlign = fits ? "right" : "left";
    context.fillText(text, left + (fits ? -5 : 5) * ratio, bbox.top + (2 + 14 * row) * ratio);
    context.restore();
  };
  if (timeline.peak.bytes > 0) mark(timeline.peak_us, `▲ peak at ${shortDuration(timeline.peak_us)}`, look.faint, 0);
  if (at !== null) mark(at, `live at ${shortDuration(at)}`, look.select, 1);
}
