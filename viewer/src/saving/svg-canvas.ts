// Stands in for a canvas, so that what paints pictures on the screen writes them as SVG too. It has what
// those painters use of a canvas and its context, and no more.

import { rgb } from "./rgb";

const MEASURE = document.createElement("canvas").getContext("2d")!;

const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
const at = (value: number) => String(Math.round(value * 100) / 100);

/** A pattern that repeats a picture. */
interface Tile {
  id: string;
}

export class SvgCanvas {
  width = 0;
  height = 0;
  readonly style: Record<string, string> = {};
  fillStyle: string | Tile = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "11px sans-serif";
  textAlign: CanvasTextAlign = "start";
  textBaseline: CanvasTextBaseline = "alphabetic";
  private dashes: number[] = [];
  private path = "";
  private readonly parts: string[] = [];
  private ids = 0;
  /** For each state that was saved, how many clips were made since. */
  private readonly clips: number[] = [];

  /** `prefix`: of ids, which are unique in a file. */
  constructor(private readonly prefix: string) {}

  /** What the painters take. */
  get canvas(): HTMLCanvasElement {
    return this as unknown as HTMLCanvasElement;
  }

  getContext(): CanvasRenderingContext2D {
    return this as unknown as CanvasRenderingContext2D;
  }

  /** What was painted. */
  get content(): string {
    return this.parts.join("\n");
  }

  // Sizes are in pixels of the style, whatever the screen has.
  setTransform(): void {}
  clearRect(): void {}

  setLineDash(dashes: number[]): void {
    this.dashes = dashes;
  }

  measureText(text: string): TextMetrics {
    MEASURE.font = this.font;
    return MEASURE.measureText(text);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(`<rect x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${at(height)}" ${this.fillLook()}/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(`<rect x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${at(height)}" ${this.strokeLook()}/>`);
  }

  beginPath(): void {
    this.path = "";
  }

  moveTo(x: number, y: number): void {
    this.path += `M${at(x)} ${at(y)}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path += `M${at(x)} ${at(y)}h${at(width)}v${at(height)}h${at(-width)}Z`;
  }

  /** Only clips are restored: painters set the rest anew. */
  save(): void {
    this.clips.push(0);
  }

  clip(): void {
    const id = `${this.prefix}-${this.ids++}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath><g clip-path="url(#${id})">`);
    this.clips.push((this.clips.pop() ?? 0) + 1);
  }

  restore(): void {
    this.parts.push("</g>".repeat(this.clips.pop() ?? 0));
  }

  lineTo(x: number, y: number): void {
    this.path += `${this.path === "" ? "M" : "L"}${at(x)} ${at(y)}`;
  }

  stroke(): void {
    this.parts.push(`<path d="${this.path}" ${this.strokeLook()}/>`);
  }

  fill(): void {
    this.parts.push(`<path d="${this.path}" ${this.fillLook()}/>`);
  }

  fillText(text: string, x: number, y: number): void {
    const anchor = { center: "middle", right: "end", end: "end", left: "start", start: "start" }[this.textAlign];
    const baseline = { middle: "central", top: "text-before-edge", bottom: "text-after-edge", hanging: "hanging", ideographic: "auto", alphabetic: "auto" }[this.textBaseline];
    const [size = "11px", family = "sans-serif"] = this.font.split(/ (.*)/s);
    this.parts.push(`<text x="${at(x)}" y="${at(y)}" font-size="${size}" font-family="${escaped(family)}" text-anchor="${anchor}" dominant-baseline="${baseline}" ${this.fillLook()}>${escaped(text)}</text>`);
  }

  createPattern(image: HTMLCanvasElement): Tile {
    const id = `${this.prefix}-${this.ids++}`;
    this.parts.push(`<pattern id="${id}" width="${image.width}" height="${image.height}" patternUnits="userSpaceOnUse"><image href="${image.toDataURL()}" width="${image.width}" height="${image.height}"/></pattern>`);
    return { id };
  }

  private fillLook(): string {
    const fill = typeof this.fillStyle === "string" ? rgb(this.fillStyle) : `url(#${this.fillStyle.id})`;
    return `fill="${fill}"${this.alpha()}`;
  }

  private strokeLook(): string {
    const dashes = this.dashes.length > 0 ? ` stroke-dasharray="${this.dashes.join(" ")}"` : "";
    return `fill="none" stroke="${rgb(this.strokeStyle)}" stroke-width="${this.lineWidth}"${dashes}${this.alpha()}`;
  }

  private alpha(): string {
    return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
  }
}
