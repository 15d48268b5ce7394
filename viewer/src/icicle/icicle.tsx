// The icicle: callers above what they call, width by size, on a canvas of our own. One canvas holds
// the cells, a second above it the outlines, so that a moving pointer paints two rectangles.
// A hidden tree gives the path to the selected cell, its siblings and its children to assistive
// technology; the canvas itself is decoration.

import { useComputed, useSignal, useSignalEffect, type ReadonlySignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Site, Tree } from "../query/types";
import { parts } from "../text/sites";
import { count } from "../text/units";
import { layers, palette, ranks } from "../view/colour";
import { setActive } from "../view/commands";
import { dark } from "../view/theme";
import { AriaTree } from "./aria-tree";
import { FRAMES, Layout, type CellWords } from "./layout";
import { acrossOf, glide, isAlike, motionOf, WholeWidth, zoom, type Across, type Motion } from "./motion";
import { outline, paint, ROW, toSamples, whisker, fit, type Screen } from "./paint";
import { search } from "./search";
import { detail, foundSize, Tip } from "./tip";

export interface IcicleProps {
  tree: Tree;
  /** The path above the tree's root. */
  focus: readonly Site[];
  selected: readonly Site[];
  searched: string;
  /** The fill of a cell. */
  colour(layout: Layout, cell: number): string;
  /** What stands before its name. */
  sign?(layout: Layout, cell: number): string;
  /** The lines of the tooltip. */
  more?(layout: Layout, cell: number): string[];
  /** The size of what a search finds; without it and with `more`, none is shown. */
  measure?(size: number): string;
  words?: CellWords;
  onSelect(path: Site[]): void;
  onFocus(path: readonly Site[]): void;
  /** What a link says of the zoom, if links do. */
  across?: Across | null;
  /** The zoom has changed; smaller cells may be seen now. */
  onZoom?(across: Across | null): void;
  /** A tree with smaller cells may be awaited, so that a search is not over. */
  searching?: boolean;
  /** At most this many rows high; the rest scrolls. */
  rows?: number;
}

export function Icicle(props: IcicleProps) {
  const { tree, focus } = props;
  const words = props.words ?? FRAMES;
  const layout = useMemo(() => new Layout(tree, words), [tree, words]);
  const found = useMemo(() => search(layout, props.searched), [layout, props.searched]);
  const selected = useMemo(() => layout.find(props.selected), [layout, props.selected]);
  const box = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const marks = useRef<HTMLCanvasElement>(null);
  const tip = useSignal<{ cell: number; x: number; y: number } | null>(null);
  const size = useSignal({ width: 0, height: 0 });
  const scrolled = useSignal(0);
  /** What is between the edges, in samples. */
  const motion = useSignal<Motion>(motionOf(props.across ?? null, layout.total));

  // A new tree is shown whole or as the link says, unless it is the same one with smaller cells.
  const shown = useRef({ total: -1, focus });
  useLayoutEffect(() => {
    const { total, focus: above } = shown.current;
    const same = total === layout.total && JSON.stringify(above) === JSON.stringify(focus);
    if (!same) motion.value = motionOf(props.across ?? null, layout.total);
    tip.value = null;
    shown.current = { total: layout.total, focus };
  }, [layout]);

  // Back, or a link, has another zoom.
  const { across } = props;
  useLayoutEffect(() => {
    const wanted = motionOf(across ?? null, layout.total);
    // Of another focus there will be another tree.
    const isSame = JSON.stringify(shown.current.focus) === JSON.stringify(focus);
    if (across !== undefined && isSame && !isAlike(motion.value, wanted)) motion.value = wanted;
  }, [across?.[0], across?.[1]]);

  useLayoutEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => {
      size.value = { width: element.clientWidth, height: element.clientHeight };
    });
    observer.observe(element);
    size.value = { width: element.clientWidth, height: element.clientHeight };
    return () => observer.disconnect();
  }, []);

  const screen = useComputed<Screen>(() => ({ ...size.value, ...motion.value, top: scrolled.value, above: 0 }));
  const current = { ...props, layout, found, selected };
  const latest = useRef(current);
  latest.current = current;

  const draw = useRef(0);
  const redraw = () => {
    cancelAnimationFrame(draw.current);
    draw.current = requestAnimationFrame(() => {
      const { layout, found, colour, sign, focus, selected } = latest.current;
      const seen = { ...screen.value, above: focus.length };
      drawCells(cells.current, seen, (context) => {
        ancestors(context, seen, focus);
        const colours = { palette: palette(), cell: (cell: number) => colour(layout, cell), sign: (cell: number) => sign?.(layout, cell) ?? "" };
        paint(context, layout, seen, colours, found?.matches ?? null);
      });
      drawMarks(marks.current, layout, seen, selected, tip.value?.cell ?? -1);
    });
  };
  useSignalEffect(() => {
    void [screen.value, dark.value, ranks.value, layers.value];
    redraw();
  });
  useSignalEffect(() => {
    const hovered = tip.value?.cell ?? -1;
    const { layout, focus, selected } = latest.current;
    drawMarks(marks.current, layout, { ...screen.peek(), above: focus.length }, selected, hovered);
  });
  useEffect(redraw);
  useEffect(() => () => cancelAnimationFrame(draw.current), []);

  const select = (cell: number) => {
    const { layout, onSelect } = latest.current;
    onSelect(layout.path(cell));
    reveal(box.current, (layout.depth[cell]! + latest.current.focus.length) * ROW);
  };
  const focusOn = (cell: number) => {
    const { layout, onFocus, focus } = latest.current;
    if (cell <= 0 || layout.isJoined(cell)) return;
    glide(motion, { from: layout.left[cell]!, to: layout.left[cell]! + layout.width[cell]! });
    onFocus([...focus, ...layout.path(cell)]);
  };

  useEffect(() => setActive({
    move(direction) {
      const { layout, selected } = latest.current;
      const next = {
        left: () => layout.previousSibling(selected),
        right: () => layout.nextSibling[selected]!,
        up: () => layout.parent(selected),
        down: () => layout.firstChild[selected]!,
      }[direction]();
      if (next >= 0) select(next);
      else if (direction === "up") latest.current.onFocus(latest.current.focus.slice(0, -1));
    },
    enter: () => focusOn(latest.current.selected),
    next(step) {
      const { found, selected } = latest.current;
      if (!found || found.cells.length === 0) return;
      const at = step > 0 ? found.cells.find((cell) => cell > selected) : found.cells.findLast((cell) => cell < selected);
      select(at ?? found.cells.at(step > 0 ? 0 : -1)!);
    },
  }), []);

  const cellUnder = (event: MouseEvent): { cell: number; ancestor: number } => {
    const bounds = box.current!.getBoundingClientRect();
    const row = Math.floor((event.clientY - bounds.top + box.current!.scrollTop) / ROW);
    const x = toSamples(screen.value, event.clientX - bounds.left);
    const { layout, focus } = latest.current;
    return row < focus.length ? { cell: -1, ancestor: row } : { cell: layout.at(row - focus.length, x), ancestor: -1 };
  };

  const height = (layout.rows.length + focus.length) * ROW;
  const tall = Math.min(height, (props.rows ?? 1e6) * ROW);
  return (
    <div class="icicle">
      <div
        class="icicle-box"
        ref={box}
        style={{ height: `${tall}px` }}
        onScroll={(event) => {
          scrolled.value = event.currentTarget.scrollTop;
          // Another cell is under the pointer now.
          tip.value = null;
        }}
        onPointerMove={(event) => {
          const { cell } = cellUnder(event);
          const bounds = box.current!.getBoundingClientRect();
          tip.value = cell < 0 || event.pointerType === "touch" ? null : { cell, x: event.clientX - bounds.left, y: event.clientY - bounds.top };
        }}
        onPointerLeave={() => { tip.value = null; }}
        onClick={(event) => {
          const { cell, ancestor } = cellUnder(event);
          if (ancestor >= 0) props.onFocus(focus.slice(0, ancestor));
          else if (cell >= 0) select(cell);
        }}
        onDblClick={(event) => focusOn(cellUnder(event).cell)}
        onWheel={(event) => {
          const before = motion.value;
          zoom(event, box.current!, motion, layout.total);
          // Another cell may be under the pointer now.
          if (motion.value !== before && tip.value) {
            const { cell } = cellUnder(event);
            tip.value = cell < 0 ? null : { ...tip.value, cell };
          }
          if (motion.value !== before) props.onZoom?.(acrossOf(motion.value, layout.total));
        }}
      >
        <div class="icicle-room" style={{ height: `${height}px` }}>
          <div class="icicle-stick" style={{ height: `${tall}px` }}>
            <canvas ref={cells} aria-hidden="true" />
            <canvas ref={marks} aria-hidden="true" />
          </div>
        </div>
      </div>
      <RowsBelow rows={layout.rows.length + focus.length} scrolled={scrolled} size={size} />
      <WholeWidth motion={motion} total={layout.total} onWhole={() => props.onZoom?.(null)} />
      <AriaTree layout={layout} detail={(cell) => detail(layout, cell, props.more).join(", ")} focus={focus} selected={selected} onSelect={select} onFocus={focusOn} />
      <p class="selected-cell" role="status">
        {selected > 0 ? `${layout.name(selected)}: ${detail(layout, selected, props.more).join(" · ")}` : " "}
      </p>
      <Tip tip={tip.value} layout={layout} width={size.value.width} more={props.more} />
      {found && (
        <p class="found" role="status">
          {props.searching ? "Searching…"
            : found.cells.length === 0
            ? `No ${words.one} matches “${props.searched}”.`
            : `${count(found.cells.length, words.one, words.many)}${foundSize(layout, found.samples, props)} · n and N step through them`}
        </p>
      )}
    </div>
  );
}

/** Says that there is more to scroll to. */
function RowsBelow({ rows, scrolled, size }: { rows: number; scrolled: ReadonlySignal<number>; size: ReadonlySignal<{ height: number }> }) {
  const { height } = size.value;
  const hidden = height === 0 ? 0 : Math.floor(rows - (scrolled.value + height) / ROW + 0.1);
  if (hidden <= 0) return null;
  return <p class="rows-below faint" style={{ top: `${height - 22}px` }}>▾ {count(hidden, "more row", "more rows")}</p>;
}

/** Sizes a canvas for the screen's pixels and paints into it. */
function drawCells(canvas: HTMLCanvasElement | null, screen: Screen, body: (context: CanvasRenderingContext2D) => void): void {
  const context = canvas?.getContext("2d");
  if (!canvas || !context || screen.width === 0) return;
  const ratio = devicePixelRatio || 1;
  const [width, height] = [Math.round(screen.width * ratio), Math.round(screen.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
    canvas.style.width = `${screen.width}px`;
    canvas.style.height = `${screen.height}px`;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, screen.width, screen.height);
  context.font = "12px system-ui, sans-serif";
  body(context);
}

function drawMarks(canvas: HTMLCanvasElement | null, layout: Layout, screen: Screen, selected: number, hovered: number): void {
  const colours = palette();
  drawCells(canvas, screen, (context) => {
    if (hovered >= 0 && hovered < layout.count) outline(context, layout, hovered, screen, colours.text, 1);
    if (selected > 0) {
      outline(context, layout, selected, screen, colours.select, 2);
      whisker(context, layout, selected, screen, colours.select);
    }
  });
}

/** The path above the root, each across the whole width. */
function ancestors(context: CanvasRenderingContext2D, screen: Screen, focus: readonly Site[]): void {
  const colours = palette();
  context.textBaseline = "middle";
  focus.forEach((_, row) => {
    const y = row * ROW - screen.top;
    if (y < -ROW || y > screen.height) return;
    context.fillStyle = colours.line;
    context.fillRect(0, y, screen.width, ROW - 1);
    context.fillStyle = colours.faint;
    const site = row === 0 ? null : focus[row - 1]!;
    context.fillText(fit(context, site ? parts(site)[0] : "all", screen.width - 10), 5, y + ROW / 2);
  });
}

function reveal(box: HTMLElement | null, y: number): void {
  if (!box) return;
  if (y < box.scrollTop) box.scrollTop = Math.max(0, y - ROW);
  else if (y + 2 * ROW > box.scrollTop + box.clientHeight) box.scrollTop = y + 2 * ROW - box.clientHeight;
}
