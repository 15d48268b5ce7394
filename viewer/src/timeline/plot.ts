// Paints the time line: a stack of areas, the 95 % band of their sum, axes, and marks for the peak
// and the chosen time. Below a brush, all that was alive is a dashed line. A chart library was tried: of its 23 KB only the axes were of use here.

import type { Timeline } from "../query/types";
import { shortDuration } from "../text/units";
import { palette } from "../view/colour";
import { place, type Span } from "../view/zoom";
import { stacked, type Stacked } from "./stack";
import { axisBytes, BYTE_STEPS, step, timeTicks } from "./ticks";

/** Room around the plot, which the brush needs to know. */
export const AXIS = 66;
export const MARGIN = 14;
export const TOP = 10;
export const BOTTOM = 26;
const FONT = "11px system-ui, sans-serif";
/** Left of this, below the plot, are the buttons that zoom. */
const BUTTONS = 56;
/** Labels of the time stand this far below the axis: the diamonds of snapshots come between. */
const BELOW = 10;

export interface PlotOptions {
  width: number;
  height: number;
  span: Span;
  colours: string[];
  timeline: Timeline;
  /** All that was alive, if the time line is only of what was allocated in the brush. */
  whole: Timeline | null;
  /** The chosen time of the metric `at`. */
  at: number | null;
}

interface Scales {
  x(time: number): number;
  y(bytes: number): number;
  mostBytes: number;
  span: Span;
  right: number;
  bottom: number;
}

function scales({ width, height, span, whole }: PlotOptions, { high, edges }: Stacked): Scales {
  const [right, bottom] = [width - MARGIN, height - BOTTOM];
  const largest = [...high, ...edges.at(-1)!, ...(whole?.total.high ?? [])].reduce((most, value) => Math.max(most, value), 1024);
  // The words of the marks have a line of their own above the curve.
  const mostBytes = (largest * (bottom - TOP)) / Math.max(1, bottom - TOP - 16);
  return {
    x: (time) => AXIS + place(time, span) * (right - AXIS),
    y: (bytes) => bottom - (bytes / mostBytes) * (bottom - TOP),
    mostBytes, span, right, bottom,
  };
}

export function paintPlot(canvas: HTMLCanvasElement, options: PlotOptions): void {
  const context = canvas.getContext("2d");
  const { width, height } = options;
  if (!context || width === 0) return;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = FONT;
  const data = stacked(options.timeline);
  const scale = scales(options, data);
  paintAxes(context, scale);
  context.save();
  context.beginPath();
  // Lines begin before what is shown, and end after it.
  context.rect(AXIS, 0, scale.right - AXIS, height);
  context.clip();
  if (options.whole) paintWhole(context, options.whole, scale);
  paintAreas(context, data, options.colours, scale);
  context.restore();
  paintMarks(context, options, scale);
}

function paintAxes(context: CanvasRenderingContext2D, scale: Scales): void {
  const { y, mostBytes, right, bottom } = scale;
  const look = palette();
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.lineWidth = 1;
  const bytes = step(mostBytes, (bottom - TOP) / 30, BYTE_STEPS);
  for (let value = 0; value <= mostBytes; value += bytes) {
    const line = Math.round(y(value)) + 0.5;
    context.strokeStyle = look.line;
    context.beginPath();
    context.moveTo(AXIS, line);
    context.lineTo(right, line);
    context.stroke();
    context.fillStyle = look.faint;
    context.fillText(axisBytes(value), AXIS - 6, line);
  }
  paintTimes(context, scale);
}

/** The labels of the time, each within the picture. */
function paintTimes(context: CanvasRenderingContext2D, { x, span, right, bottom }: Scales): void {
  context.textAlign = "center";
  context.textBaseline = "top";
  const widthOf = (text: string) => context.measureText(text).width;
  let free = BUTTONS;
  for (const { time, text } of timeTicks(span.from, span.to, right - AXIS, widthOf)) {
    const half = widthOf(text) / 2;
    const middle = Math.min(Math.max(x(time), BUTTONS + half), right + MARGIN - half - 1);
    if (middle - half < free) continue;
    free = middle + half + 6;
    context.fillText(text, middle, bottom + BELOW);
  }
}

function paintWhole(context: CanvasRenderingContext2D, { times, total, from_us: from }: Timeline, { x, y }: Scales): void {
  const look = palette();
  context.beginPath();
  if (from === 0) context.moveTo(x(0), y(0));
  times.forEach((time, at) => context.lineTo(x(time), y(total.live[at] ?? 0)));
  context.strokeStyle = look.faint;
  context.lineWidth = 1;
  context.setLineDash([2, 3]);
  context.stroke();
  context.setLineDash([]);
}

function paintAreas(context: CanvasRenderingContext2D, { times, edges, low, high }: Stacked, colours: string[], { x, y }: Scales): void {
  const look = palette();
  const between = (upper: readonly number[], lower: readonly number[] | null, fill: string) => {
    context.beginPath();
    times.forEach((time, at) => context.lineTo(x(time), y(upper[at]!)));
    for (let at = times.length - 1; at >= 0; at--) context.lineTo(x(times[at]!), y(lower?.[at] ?? 0));
    context.fillStyle = fill;
    context.fill();
  };
  edges.forEach((edge, layer) => between(edge, edges[layer - 1] ?? null, colours[layer] ?? look.others));
  between(high, low, look.band);
  context.beginPath();
  times.forEach((time, at) => context.lineTo(x(time), y(edges.at(-1)![at]!)));
  context.strokeStyle = look.text;
  context.lineWidth = 1.25;
  context.stroke();
}

function paintMarks(context: CanvasRenderingContext2D, { timeline, at, span }: PlotOptions, { x, bottom }: Scales): void {
  const look = palette();
  const mark = (time: number, text: string, colour: string) => {
    if (time < span.from || time > span.to) return;
    const left = Math.round(x(time)) + 0.5;
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(left, TOP);
    context.lineTo(left, bottom);
    context.stroke();
    context.setLineDash([]);
    context.textBaseline = "top";
    const fits = left - AXIS > 150;
    context.textAlign = fits ? "right" : "left";
    context.fillText(text, left + (fits ? -5 : 5), TOP);
  };
  // Two texts in one place could not be read.
  const chosen = at !== null;
  if (timeline.peak.bytes > 0) mark(timeline.peak_us, chosen && Math.abs(x(timeline.peak_us) - x(at)) < 140 ? "▲" : `▲ peak at ${shortDuration(timeline.peak_us)}`, look.faint);
  if (chosen) mark(at, `live at ${shortDuration(at)}`, look.select);
}
