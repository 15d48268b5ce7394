// The cells of the heat map: a line of them for each row, beside its name and its sum. The pointer, or the arrows,
// show what a cell has; a click, or Enter, selects it, and a drag several.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { HeatCells, HeatMap, Site } from "../query/types";
import { EndOf } from "../parts/end-of";
import { Sized } from "../parts/numbers";
import { label, parts, sameSite, siteKey, siteOf } from "../text/sites";
import { bytes, count, percent } from "../text/units";
import { setActive, type Direction } from "../view/commands";
import { view } from "../view/store";
import { dark } from "../view/theme";
import { place, span, type Span } from "../view/zoom";
import { useZoomByWheel } from "../timeline/timeline";
import { degree, heatColours, type HeatScale } from "./scale";
import { intervalText, stepOf, timesOf } from "./times";

/** The height of a row of cells. */
const HEIGHT = 18;

interface Cell {
  row: number;
  column: number;
}

interface Props {
  map: HeatMap;
  /** The same without the brush, behind it. */
  whole: HeatMap | null;
  scale: HeatScale;
  onSelect(site: Site | null, range: [number, number] | null): void;
}

interface Line {
  key: string;
  site: Site | null;
  cells: HeatCells;
  behind: HeatCells | null;
}

function linesOf({ rows, others, other_rows: more }: HeatMap, whole: HeatMap | null): Line[] {
  const behind = new Map(whole?.rows.map(({ site, ...cells }) => [siteKey(site), cells]));
  const lines: Line[] = rows.map(({ site, ...cells }) => ({ key: siteKey(site), site, cells, behind: behind.get(siteKey(site)) ?? null }));
  if (more > 0) lines.push({ key: "", site: null, cells: others, behind: null });
  return lines;
}

export function Cells({ map, whole, scale, onSelect }: Props) {
  const lines = linesOf(map, whole);
  const [cell, setCell] = useState<Cell | null>(null);
  const [tip, setTip] = useState<{ x: number; y: number } | null>(null);
  const box = useZoomByWheel(".heat-cells");
  const drag = useRef<{ from: Cell; to: Cell } | null>(null);
  const [dragged, setDragged] = useState<[number, number] | null>(null);
  const shown = span.value;
  const current = cell && lines[cell.row] && cell.column < map.times.length ? cell : null;
  const anchor = useRef<number | null>(null);

  const cellAt = (event: PointerEvent, row?: number): Cell | null => {
    const line = (event.target as Element).closest<HTMLElement>(".heat-cells");
    const bounds = (line ?? box.current!.querySelector(".heat-cells")!).getBoundingClientRect();
    if (!line && row === undefined) return null;
    const part = Math.min(1, Math.max(0, (event.clientX - bounds.left) / Math.max(1, bounds.width)));
    return { row: row ?? Number(line!.dataset["row"]), column: stepOf(map, shown.from + part * (shown.to - shown.from)) };
  };
  const select = (row: number, from: number, to: number) => {
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    const [begin, end] = [timesOf(map, first, shown)[0], timesOf(map, last, shown)[1]];
    // Both ends of a brush are in it.
    onSelect(lines[row]!.site, [begin, Math.max(begin, end - 1)]);
  };
  /** The time and the size of a cell: outside of the brush, where the map has nothing, those without it. */
  const about = ({ cells, behind }: Line, column: number): [string, string] => {
    const brush = view.value.chips.find(({ kind }) => kind === "time");
    const [from, to] = timesOf(map, column, shown);
    const isOut = brush?.kind === "time" && (to <= brush.from || from > brush.to);
    if (!isOut || !whole || !behind) return [intervalText(map, column), sizeText(cells, map, column)];
    const there = stepOf(whole, (from + to) / 2);
    return [intervalText(whole, there), `${sizeText(behind, whole, there)}, outside of the brush`];
  };
  const keys = useRef({ move: (_: Direction) => {}, enter: () => {} });
  keys.current = {
    move(direction) {
      const { row, column } = current ?? { row: 0, column: -1 };
      const by = { left: [0, -1], right: [0, 1], up: [-1, 0], down: [1, 0] }[direction] as [number, number];
      anchor.current = null;
      setTip(null);
      setCell({ row: Math.min(lines.length - 1, Math.max(0, row + (current ? by[0] : 0))), column: Math.min(map.times.length - 1, Math.max(0, column + by[1])) });
    },
    enter: () => current && select(current.row, current.column, current.column),
  };
  useEffect(() => setActive({ move: (direction) => keys.current.move(direction), enter: () => keys.current.enter() }), []);

  return (
    <div class="heat-map">
      <div
        class="heat-rows"
        ref={box}
        tabIndex={0}
        role="group"
        aria-label="Cells: arrows move, Enter selects the time and the row, Shift with the arrows selects more time"
        onPointerMove={(event) => {
          const found = cellAt(event, drag.current?.from.row);
          setCell(found);
          const bounds = box.current!.getBoundingClientRect();
          setTip(found && event.pointerType !== "touch" ? { x: event.clientX - bounds.left, y: event.clientY - bounds.top } : null);
          if (!drag.current || !found) return;
          drag.current.to = found;
          setDragged([Math.min(drag.current.from.column, found.column), Math.max(drag.current.from.column, found.column)]);
        }}
        onPointerDown={(event) => {
          const found = event.button === 0 ? cellAt(event) : null;
          if (!found) return;
          drag.current = { from: found, to: found };
          setDragged([found.column, found.column]);
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerUp={() => {
          const found = drag.current;
          drag.current = null;
          setDragged(null);
          if (found) select(found.from.row, found.from.column, found.to.column);
        }}
        onPointerCancel={() => { drag.current = null; setDragged(null); }}
        onPointerLeave={() => { setTip(null); }}
        onKeyDown={(event) => {
          if (!event.shiftKey || !current || (event.key !== "ArrowLeft" && event.key !== "ArrowRight")) return;
          anchor.current ??= current.column;
          const column = Math.min(map.times.length - 1, Math.max(0, current.column + (event.key === "ArrowRight" ? 1 : -1)));
          setCell({ ...current, column });
          select(current.row, anchor.current, column);
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        <ol>
          {lines.map((line, row) => (
            <HeatLine key={line.key} line={line} row={row} map={map} whole={whole} scale={scale} shown={shown} column={current?.row === row ? current.column : null} dragged={dragged} others={map.other_rows} onOpen={() => onSelect(line.site, null)} />
          ))}
        </ol>
        {tip && current && <CellTip tip={tip} name={nameOf(lines[current.row]!, map)} about={about(lines[current.row]!, current.column)} width={box.current!.clientWidth} />}
      </div>
      <p class="heat-cell" role="status">{current ? [nameOf(lines[current.row]!, map), about(lines[current.row]!, current.column).join(": ")].join(", ") : " "}</p>
    </div>
  );
}

const nameOf = ({ site }: Line, map: HeatMap) => (site ? label(site) : count(map.other_rows, "other row", "other rows"));

/** What a cell has. */
function sizeText(cells: HeatCells, { unseen_bytes: unseen }: HeatMap, column: number): string {
  const [size, error] = [cells.bytes[column] ?? 0, cells.errors[column] ?? 0];
  if (size === 0) return unseen > 0 ? `less than ${bytes(unseen)} (no sample)` : "nothing";
  return `${bytes(size)} ± ${percent(error / size)}`;
}

function CellTip({ tip, name, about, width }: { tip: { x: number; y: number }; name: string; about: string[]; width: number }) {
  const side = tip.x > width / 2 ? { right: `${width - tip.x + 14}px` } : { left: `${tip.x + 14}px` };
  return (
    <div class="tip" aria-hidden="true" style={{ ...side, top: `${tip.y + 16}px` }}>
      <b>{name}</b>
      {about.map((text) => <span>{text}</span>)}
    </div>
  );
}

interface LineProps {
  line: Line;
  row: number;
  map: HeatMap;
  whole: HeatMap | null;
  scale: HeatScale;
  shown: Span;
  column: number | null;
  dragged: [number, number] | null;
  others: number;
  onOpen(): void;
}

function HeatLine({ line, row, map, whole, scale, shown, column, dragged, others, onOpen }: LineProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const { site, cells, behind } = line;
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(canvas.current?.parentElement?.clientWidth ?? 0));
    observer.observe(canvas.current!.parentElement!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    paint(canvas.current!, width, (context) => {
      if (behind && whole) paintCells(context, behind, { map: whole, scale, shown, width }, 0.3);
      paintCells(context, cells, { map, scale, shown, width }, 1);
    });
  }, [map, behind, width, shown, scale.least, scale.most, dark.value]);
  const isOpen = site !== null && view.value.row !== null && sameSite(view.value.row, siteOf(site));
  const name = site ? parts(site)[0] : count(others, "other", "others");
  const marked = dragged ?? (column === null ? null : [column, column]);
  return (
    <li class={`heat-row${isOpen ? " open" : ""}`}>
      <div class="heat-cells" data-row={row}>
        <canvas ref={canvas} aria-hidden="true" />
        {marked && <i class={`heat-mark${dragged ? " range" : ""}`} style={markStyle(map, marked as [number, number], shown)} />}
      </div>
      <div class="heat-name">
        {site ? <button type="button" class="plain" title={label(site)} aria-pressed={isOpen} onClick={onOpen}><EndOf text={name} /></button> : <span>{name}</span>}
        <Sized size={cells.size} />
      </div>
    </li>
  );
}

function markStyle(map: HeatMap, [from, to]: [number, number], shown: Span) {
  const left = place(timesOf(map, from, shown)[0], shown);
  const right = place(timesOf(map, to, shown)[1], shown);
  return { left: `${100 * left}%`, width: `${100 * (right - left)}%` };
}

function paint(canvas: HTMLCanvasElement, width: number, draw: (context: CanvasRenderingContext2D) => void): void {
  const context = canvas.getContext("2d");
  if (!context || width === 0) return;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(HEIGHT * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw(context);
}

function paintCells(context: CanvasRenderingContext2D, { bytes: sizes }: HeatCells, { map, scale, shown, width }: { map: HeatMap; scale: HeatScale; shown: Span; width: number }, opacity: number): void {
  const colour = heatColours();
  context.globalAlpha = opacity;
  sizes.forEach((size, column) => {
    if (size <= 0) return;
    const [from, to] = timesOf(map, column, shown).map((time) => Math.round(place(time, shown) * width)) as [number, number];
    context.clearRect(from, 0, to - from, HEIGHT);
    context.fillStyle = colour(degree(size, scale));
    context.fillRect(from, 0, Math.max(1, to - from), HEIGHT);
  });
}
