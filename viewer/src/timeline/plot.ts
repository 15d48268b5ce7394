// Paints the time line: a stack of areas, the 95 % band of their sum, axes, and marks for the peak
// and the chosen time. Below a brush, all that was alive is a dashed line. A chart library was tried: of its 23 KB only the axes were of use here.

import type { Timeline } from "../query/types";
import { shortDuration } from "../text/units";
import { palette } from "../view/colour";
import { axisBytes, axisTime, BYTE_STEPS, stacked, TIME_STEPS, type Stacked } from "./stack";

/** Room around the plot, which the brush needs to know. */
export const AXIS = 66;
export const MARGIN = 14;
export const TOP = 10;
export const BOTTOM = 26;
const FONT = "11px system-ui, sans-serif";

export interface PlotOptions {
  width: number;
  height: number;
  duration: number;
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
  duration: number;
  right: number;
  bottom: number;
}

function scales({ width, height, duration, whole }: PlotOptions, { high, edges }: Stacked): Scales {
  const [right, bottom] = [width - MARGIN, height - BOTTOM];
  const largest = [...high, ...edges.at(-1)!, ...(whole?.total.high ?? [])].reduce((most, value) => Math.max(most, value), 1024);
  // The words of the marks have a line of their own above the curve.
  const mostBytes = (largest * (bottom - TOP)) / Math.max(1, bottom - TOP - 16);
  const lasts = Math.max(1, duration);
  return {
    // The last step may end behind the trace.
    x: (time) => AXIS + Math.min(1, time / lasts) * (right - AXIS),
    y: (bytes) => bottom - (bytes / mostBytes) * (bottom - TOP),
    mostBytes, duration: lasts, right, bottom,
  };
}

/** The smallest step of which no more than this many fit, but one at least. */
export function step(range: number, most: number, steps: readonly number[]): number {
  const found = steps.find((each) => range / each <= Math.max(1, most)) ?? steps.at(-1)!;
  return found <= range ? found : steps.findLast((each) => each <= range) ?? found;
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
  if (options.whole) paintWhole(context, options.whole, scale);
  paintAreas(context, data, options.colours, scale);
  paintMarks(context, options, scale);
}

function paintAxes(context: CanvasRenderingContext2D, { x, y, mostBytes, duration, right, bottom }: Scales): void {
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
  context.textAlign = "center";
  context.textBaseline = "top";
  const time = step(duration, (right - AXIS) / 80, TIME_STEPS);
  for (let value = 0; value <= duration; value += time) context.fillText(axisTime(value), Math.min(x(value), right - 8), bottom + 5);
}

function paintWhole(context: CanvasRenderingContext2D, { times, total }: Timeline, { x, y }: Scales): void {
  const look = palette();
  context.beginPath();
  context.moveTo(x(0), y(0));
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

function paintMarks(context: CanvasRenderingContext2D, { timeline, at }: PlotOptions, { x, bottom }: Scales): void {
  const look = palette();
  const mark = (time: number, text: string, colour: string) => {
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
