// Paints the cells that can be seen. Rows and columns outside the screen are skipped by binary
// search, and neighbours narrower than half a pixel are painted as one grey cell, so the work is
// bounded by the pixels and not by the cells.

import type { Layout } from "./layout";
import { sizeOf } from "./layout";
import type { Palette } from "../view/colour";

export const ROW = 20;
const PAD = 5;
const SMALL = 0.5;
/** Beyond this relative error a cell is hatched. */
const NOISY = 0.25;

export interface Screen {
  width: number;
  height: number;
  /** The part of the layout between the edges, in samples. */
  from: number;
  to: number;
  /** Pixels scrolled down. */
  top: number;
  /** Rows of ancestors above the layout's root. */
  above: number;
}

export interface Colours {
  palette: Palette;
  cell(cell: number): string;
  /** Comes before the name. */
  sign(cell: number): string;
}

export function toPixels(screen: Screen, x: number): number {
  return ((x - screen.from) / (screen.to - screen.from)) * screen.width;
}

export function toSamples(screen: Screen, pixel: number): number {
  return screen.from + (pixel / screen.width) * (screen.to - screen.from);
}

const widths = new Map<number, number>();

/** The width of a text, from widths of its characters that are measured once. */
function measure(context: CanvasRenderingContext2D, text: string): number {
  let total = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    let width = widths.get(code);
    if (width === undefined) {
      width = context.measureText(text[at]!).width;
      widths.set(code, width);
    }
    total += width;
  }
  return total;
}

/** The most telling form of a name that fits: whole, without its modules, or its beginning. */
export function fit(context: CanvasRenderingContext2D, name: string, room: number): string {
  if (room < 12) return "";
  if (measure(context, name) <= room) return name;
  const short = /^(?:[A-Z][\w']*\.)+(.+)$/.exec(name)?.[1] ?? name;
  if (short !== name && measure(context, short) <= room) return short;
  let low = 0;
  let high = Math.min(short.length, Math.ceil(room / 3));
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(context, `${short.slice(0, middle)}…`) <= room) low = middle;
    else high = middle - 1;
  }
  return low >= 2 ? `${short.slice(0, low)}…` : "";
}

let hatching: { of: CanvasRenderingContext2D; colour: string; pattern: CanvasPattern | null } | undefined;

function hatch(context: CanvasRenderingContext2D, colour: string): CanvasPattern | string {
  if (hatching?.of !== context || hatching.colour !== colour) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const brush = tile.getContext("2d")!;
    brush.strokeStyle = colour;
    brush.lineWidth = 1;
    brush.beginPath();
    for (const shift of [-6, 0, 6]) {
      brush.moveTo(shift - 1, 7);
      brush.lineTo(shift + 7, -1);
    }
    brush.stroke();
    hatching = { of: context, colour, pattern: context.createPattern(tile, "repeat") };
  }
  return hatching.pattern ?? "transparent";
}

/** Samples below which the relative error is over the limit. */
function noisyBelow(layout: Layout): number {
  const { a, b } = layout.tree.error_of;
  const scale = layout.tree.scale;
  const rest = NOISY * NOISY * scale * scale - b;
  return rest > 0 && a !== null ? a / rest : Infinity;
}

function isNoisy(layout: Layout, cell: number, below: number): boolean {
  const samples = layout.width[cell]!;
  const error = layout.tree.cells.errors?.[cell];
  return error === undefined ? samples < below : error > NOISY * samples * layout.tree.scale;
}

export function paint(context: CanvasRenderingContext2D, layout: Layout, screen: Screen, colours: Colours, matches: Uint8Array | null): void {
  const { palette } = colours;
  const noisy = noisyBelow(layout);
  context.textBaseline = "middle";
  const firstRow = Math.max(0, Math.floor(screen.top / ROW) - screen.above);
  const lastRow = Math.min(layout.rows.length - 1, Math.ceil((screen.top + screen.height) / ROW) - screen.above);
  const perPixel = (screen.to - screen.from) / screen.width;
  for (let depth = firstRow; depth <= lastRow; depth++) {
    const row = layout.rows[depth]!;
    const y = (depth + screen.above) * ROW - screen.top;
    let at = layout.firstEndingAfter(row, screen.from);
    let run: Run | null = null;
    while (at < row.length) {
      const cell = row[at]!;
      const left = layout.left[cell]!;
      if (left >= screen.to) break;
      const x = toPixels(screen, left);
      const width = layout.width[cell]! / perPixel;
      if (width < SMALL) {
        // All that end in this half pixel.
        const next = layout.firstEndingAfter(row, left + SMALL * perPixel, at + 1);
        const found = matches !== null && someMatch(row, at, next, matches);
        const right = x + Math.max(SMALL, width);
        if (run && run.found === found && x - run.right < 1) run.right = right;
        else {
          paintRun(context, run, y, palette, matches !== null);
          run = { x, right, found };
        }
        at = next;
        continue;
      }
      cellAt(context, layout, cell, { x: Math.max(x, -1), y, right: Math.min(x + width, screen.width + 1), noisy }, colours, matches);
      at += 1;
    }
    paintRun(context, run, y, palette, matches !== null);
  }
}

/** Neighbours too narrow to tell apart, which are painted in one go. */
interface Run {
  x: number;
  right: number;
  found: boolean;
}

function paintRun(context: CanvasRenderingContext2D, run: Run | null, y: number, palette: Palette, searched: boolean): void {
  if (!run) return;
  context.fillStyle = run.found ? palette.select : palette.joined;
  if (searched && !run.found) context.globalAlpha = 0.35;
  context.fillRect(run.x, y, run.right - run.x, ROW - 1);
  context.globalAlpha = 1;
}

/** Whether a cell that is joined with others on the screen matches; of many, the first ones decide. */
function someMatch(row: readonly number[], from: number, to: number, matches: Uint8Array): boolean {
  for (let at = from; at < Math.min(to, from + 32); at++) if (matches[row[at]!] === 1) return true;
  return false;
}

interface Box {
  x: number;
  y: number;
  right: number;
  noisy: number;
}

function cellAt(context: CanvasRenderingContext2D, layout: Layout, cell: number, box: Box, colours: Colours, matches: Uint8Array | null): void {
  const { palette } = colours;
  const gap = box.right - box.x > 3 ? 1 : box.right - box.x > 1.5 ? 0.5 : 0;
  const width = box.right - box.x - gap;
  const dim = matches !== null && matches[cell] === 0;
  context.fillStyle = layout.isJoined(cell) && cell > 0 ? palette.joined : colours.cell(cell);
  if (dim) context.globalAlpha = 0.35;
  context.fillRect(box.x, box.y, width, ROW - 1);
  if (isNoisy(layout, cell, box.noisy) && width > 2 && !layout.isJoined(cell)) {
    context.fillStyle = hatch(context, palette.hatch);
    context.fillRect(box.x, box.y, width, ROW - 1);
  }
  context.globalAlpha = 1;
  const text = fit(context, colours.sign(cell) + layout.name(cell), width - 2 * PAD);
  if (text !== "") {
    context.fillStyle = dim ? palette.faint : palette.text;
    context.fillText(text, box.x + PAD, box.y + ROW / 2);
  }
}

/** The outline of a cell. */
export function outline(context: CanvasRenderingContext2D, layout: Layout, cell: number, screen: Screen, colour: string, thick: number): void {
  const x = Math.max(toPixels(screen, layout.left[cell]!), thick / 2);
  const right = Math.min(toPixels(screen, layout.left[cell]! + layout.width[cell]!), screen.width - thick / 2);
  const y = (layout.depth[cell]! + screen.above) * ROW - screen.top;
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.strokeRect(x, y + thick / 2, Math.max(right - x - 1, 1), ROW - 1 - thick);
}

/** The 95 % interval of the selected cell, around its right edge. */
export function whisker(context: CanvasRenderingContext2D, layout: Layout, cell: number, screen: Screen, colour: string): void {
  const samples = layout.width[cell]!;
  const { bytes, error } = sizeOf(layout.tree, samples);
  if (bytes <= 0 || error === null || error <= 0) return;
  const half = (1.96 * error * samples) / bytes;
  const left = layout.left[cell]!;
  const low = Math.max(toPixels(screen, left + Math.max(0, samples - half)), 0);
  const high = Math.min(toPixels(screen, left + samples + half), screen.width - 1);
  if (high - low < 3) return;
  const y = (layout.depth[cell]! + screen.above) * ROW - screen.top + ROW - 4.5;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(low, y);
  context.lineTo(high, y);
  for (const end of [low, high]) {
    context.moveTo(end, y - 3);
    context.lineTo(end, y + 3);
  }
  context.stroke();
}
