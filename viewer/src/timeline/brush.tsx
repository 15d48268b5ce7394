// The brush over the time line: drag to choose the time in which blocks were allocated, click for
// what was alive then, drag with Shift to move what is shown of the run. Its ends are sliders for the keyboard.

import { useRef } from "preact/hooks";
import { shortDuration } from "../text/units";
import { panTo, percentAt, type Span } from "../view/zoom";

interface Props {
  duration: number;
  /** What is shown of the run. */
  shown: Span;
  range: [number, number] | null;
  onRange(range: [number, number] | null, done: boolean): void;
  onTime(time: number): void;
  /** The pointer begins or ends to drag. */
  onDrag(dragging: boolean): void;
}

export function Brush({ duration, shown, range, onRange, onTime, onDrag }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const drag = useRef<{ from: number; pixel: number; moved: boolean; pans: Span | null } | null>(null);
  const [from, to] = range ?? [0, duration];
  const timeAt = (event: PointerEvent) => {
    const bounds = box.current!.getBoundingClientRect();
    const part = (event.clientX - bounds.left) / Math.max(1, bounds.width);
    return Math.round(shown.from + Math.min(1, Math.max(0, part)) * (shown.to - shown.from));
  };
  const share = (time: number) => percentAt(Math.min(Math.max(time, shown.from), shown.to), shown);

  const finish = (event: PointerEvent, cancelled: boolean) => {
    const begun = drag.current;
    drag.current = null;
    onDrag(false);
    if (!begun || cancelled || begun.pans) return;
    if (begun.moved) onRange(ordered(begun.from, timeAt(event)), true);
    else onTime(timeAt(event));
  };

  const step = (shown.to - shown.from) / 100;
  const slider = (end: "start" | "end") => {
    const value = end === "start" ? from : to;
    const isOut = value < shown.from || value > shown.to;
    const set = (time: number) => {
      const inside = Math.round(Math.min(duration, Math.max(0, time)));
      const next: [number, number] = end === "start" ? [Math.min(inside, to), to] : [from, Math.max(inside, from)];
      onRange(next[0] === 0 && next[1] >= duration ? null : next, false);
    };
    return (
      <div
        class={`brush-end ${end}${range && !isOut ? " set" : ""}`}
        id={`brush-${end}`}
        role="slider"
        tabIndex={0}
        aria-label={end === "start" ? "Allocated from" : "Allocated until"}
        aria-valuemin={0}
        aria-valuemax={duration}
        aria-valuenow={value}
        aria-valuetext={shortDuration(value)}
        style={{ left: share(value) }}
        onKeyDown={(event) => {
          const by: Record<string, number> = { ArrowLeft: -step, ArrowRight: step, ArrowDown: -step, ArrowUp: step, PageDown: -10 * step, PageUp: 10 * step };
          const change = by[event.key];
          if (change !== undefined) set(value + change * (event.shiftKey ? 0.1 : 1));
          else if (event.key === "Home") set(0);
          else if (event.key === "End") set(duration);
          else if (event.key === "Escape") onRange(null, true);
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
    );
  };

  return (
    <div
      class="brush"
      ref={box}
      // With Shift the browser would select text, and drag that the next time.
      onMouseDown={(event) => { if (event.shiftKey) event.preventDefault(); }}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        const end = (event.target as HTMLElement).id;
        // Dragging an end leaves the other where it is.
        const anchor = range && end === "brush-start" ? to : range && end === "brush-end" ? from : timeAt(event);
        drag.current = { from: anchor, pixel: event.clientX, moved: false, pans: event.shiftKey ? shown : null };
        box.current!.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const begun = drag.current;
        if (!begun) return;
        if (Math.abs(event.clientX - begun.pixel) > 3) begun.moved = true;
        if (!begun.moved) return;
        if (begun.pans) {
          const { from, to } = begun.pans;
          panTo(from - ((event.clientX - begun.pixel) / Math.max(1, box.current!.clientWidth)) * (to - from));
          return;
        }
        onDrag(true);
        onRange(ordered(begun.from, timeAt(event)), false);
      }}
      onPointerUp={(event) => finish(event, false)}
      onPointerCancel={(event) => finish(event, true)}
    >
      {range && <div class="brush-shade" style={{ left: "0", right: `calc(100% - ${share(from)})` }} />}
      {range && <div class="brush-shade" style={{ left: share(to), right: "0" }} />}
      {slider("start")}
      {slider("end")}
    </div>
  );
}

function ordered(a: number, b: number): [number, number] {
  return a < b ? [a, b] : [b, a];
}
