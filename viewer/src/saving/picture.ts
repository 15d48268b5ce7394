// Pictures of what the page shows, as SVG and as PNG: a title, and parts below each other or side by side, each of which
// is painted by what paints it on the screen.

import { palette } from "../view/colour";
import { fileName, save, saveText } from "./file";
import { rgb } from "./rgb";
import { SvgCanvas } from "./svg-canvas";

/** Browsers have no larger canvas. */
export const MOST_PIXELS = 16_000;

export interface Part {
  x: number;
  y: number;
  width: number;
  height: number;
  /** Sizes the canvas and paints. */
  paint(canvas: HTMLCanvasElement): void;
}

export interface Picture {
  /** In the name of the file. */
  name: string;
  title: string;
  width: number;
  height: number;
  parts: Part[];
}

const HEAD = 30;
const MARGIN = 10;
const FONT = "system-ui, sans-serif";

/** Text at a place, in a part of its own. */
export function textPart(lines: readonly { text: string; colour?: string; swatch?: string }[], part: Omit<Part, "paint">): Part {
  return {
    ...part,
    paint(canvas) {
      const context = sizedContext(canvas, part.width, part.height);
      if (!context) return;
      context.textBaseline = "middle";
      lines.forEach(({ text, colour, swatch }, row) => {
        const y = 10 + row * 20;
        if (swatch) {
          context.fillStyle = swatch;
          context.fillRect(0, y - 6, 12, 12);
        }
        context.fillStyle = colour ?? palette().text;
        context.fillText(text, swatch ? 18 : 0, y);
      });
    },
  };
}

/** The context of a canvas of this size, with two pixels for each where that fits. */
export function sizedContext(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = ratioOf(width, height);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (context) context.font = `12px ${FONT}`;
  return context;
}

function ratioOf(width: number, height: number): number {
  return Math.min(2, MOST_PIXELS / Math.max(width, height, 1));
}

/** With its title and a margin around. */
function framed({ title, width, height, parts }: Picture): { width: number; height: number; parts: Part[] } {
  const head = textPart([{ text: title }], { x: MARGIN, y: 6, width, height: HEAD - 8 });
  return {
    width: width + 2 * MARGIN,
    height: height + HEAD + MARGIN,
    parts: [head, ...parts.map((part) => ({ ...part, x: part.x + MARGIN, y: part.y + HEAD }))],
  };
}

export function saveSvg(picture: Picture): void {
  const { width, height, parts } = framed(picture);
  const painted = parts.map((part, number) => {
    const svg = new SvgCanvas(`p${number}`);
    part.paint(svg.canvas);
    return `<svg x="${part.x}" y="${part.y}" width="${part.width}" height="${part.height}">\n${svg.content}\n</svg>`;
  });
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<rect width="${width}" height="${height}" fill="${rgb(palette().paper)}"/>
${painted.join("\n")}
</svg>
`;
  saveText(fileName(picture.name, "svg"), "image/svg+xml", text);
}

export function savePng(picture: Picture): void {
  const { width, height, parts } = framed(picture);
  const canvas = document.createElement("canvas");
  const context = sizedContext(canvas, width, height);
  if (!context) return;
  context.fillStyle = palette().paper;
  context.fillRect(0, 0, width, height);
  for (const part of parts) {
    const painted = document.createElement("canvas");
    part.paint(painted);
    context.drawImage(painted, part.x, part.y, part.width, part.height);
  }
  canvas.toBlob((blob) => { if (blob) save(fileName(picture.name, "png"), blob); }, "image/png");
}
