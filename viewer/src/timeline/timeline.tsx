// The time line that every tab shares: live size stacked by module, with its band and the brush.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Info, Timeline as Data } from "../query/types";
import { filterOf } from "../view/chips";
import { palette, ranks, seriesColour, setLayers } from "../view/colour";
import { useQuery, type Asked } from "../view/ask";
import { common } from "../view/request";
import { addChip, change, client, endGesture, removeChips, view } from "../view/store";
import { drillBy, drillWithin } from "../view/drill";
import { SnapshotMarks } from "../snapshots/marks";
import { dark } from "../view/theme";
import { isZoomed, panBy, percentAt, place, shownRange, span, zoomAbout } from "../view/zoom";
import type { View } from "../view/view";
import { Brush } from "./brush";
import { AXIS, BOTTOM, MARGIN, paintPlot, TOP } from "./plot";
import { ZoomButtons, ZoomStrip } from "./zoom-tools";

/** How many rows have a layer of their own. */
export const LAYERS = 8;

/** The point under the pointer, of which the legend shows the sizes. */
export const cursor = signal<number | null>(null);

/** What is drawn behind the brush, for those who save the picture. */
export const behindBrush = signal<Data | null>(null);

function ask(current: View) {
  const within = drillWithin(current);
  return { ...common(current), by: drillBy(current), top: LAYERS, skip: current.layer, points: 200, ...shownRange.value, ...(within ? { within } : {}) };
}

/** The time line of the view: of the blocks that its filters select, the brush too. */
export function useTimeline(): Asked<"timeline"> {
  const asked = useQuery("timeline", "timeline", ask(view.value));
  const { answer } = asked;
  useLayoutEffect(() => {
    if (answer && drillBy(view.value) === "module") setLayers(answer.series.map(({ site }) => site.name));
  }, [answer, ranks.value, dark.value]);
  return asked;
}

/** The same without the brush, which is drawn behind it; nothing while there is no brush. */
function useWholeTime(): Data | null {
  const current = view.value;
  const chips = current.chips.filter(({ kind }) => kind !== "time");
  const whole = chips.length < current.chips.length ? { ...ask(current), filter: filterOf(chips), top: 1, skip: 0 } : null;
  return useQuery("whole-time", "timeline", whole).answer;
}

export function layerColours(data: Data): string[] {
  const by = drillBy(view.value);
  const colours = data.series.map(({ site }, rank) => seriesColour(site, by, rank));
  return [...colours, palette().others];
}

export function Timeline({ data, info, height }: { data: Data; info: Info; height: number }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const current = view.value;
  const duration = info.duration_us;
  const colours = layerColours(data);
  const at = current.metric === "at" ? current.at : null;
  const whole = useWholeTime();
  const shown = span.value;
  const wheel = useZoomByWheel();

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0));
    observer.observe(box.current!);
    setWidth(box.current!.clientWidth);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    behindBrush.value = whole;
    paintPlot(canvas.current!, { width, height, span: shown, colours, timeline: data, whole, at });
  }, [width, height, shown, colours.join(), data, whole, at, dark.value]);

  const time = current.chips.find((chip) => chip.kind === "time");
  const under = cursor.value === null ? null : data.times[cursor.value] ?? 0;
  return (
    <div class="timeline-frame">
      <div class="timeline" ref={box} style={{ height: `${height}px` }} onPointerLeave={() => { cursor.value = null; }}>
        <canvas ref={canvas} aria-hidden="true" />
        <div
          class="timeline-brush"
          ref={wheel}
          style={{ left: `${AXIS}px`, right: `${MARGIN}px`, top: `${TOP}px`, bottom: `${BOTTOM}px` }}
          onPointerMove={(event) => {
            const bounds = event.currentTarget.getBoundingClientRect();
            cursor.value = pointAt(data.times, shown.from + ((event.clientX - bounds.left) / Math.max(1, bounds.width)) * (shown.to - shown.from));
          }}
        >
          {under !== null && place(under, shown) <= 1 && <div class="timeline-cursor" style={{ left: percentAt(under, shown) }} />}
          <Brush
            duration={duration}
            shown={shown}
            range={time?.kind === "time" ? [time.from, time.to] : null}
            onRange={(range, done) => {
              if (range) addChip({ kind: "time", from: range[0], to: range[1] }, "brush");
              else removeChips("time", done ? "step" : "brush");
              if (done) endGesture();
            }}
            onTime={(at) => change({ metric: "at", at })}
            onDrag={(dragging) => client.hold(dragging)}
          />
          <SnapshotMarks trace={current.trace} duration={duration} shown={shown} />
        </div>
        <ZoomButtons />
      </div>
      <ZoomStrip duration={duration} />
    </div>
  );
}

/** `plot`: what has the time axis, if that is not all of the element. Control and the wheel zoom about the pointer; Shift and the wheel, or a wheel to the side, move what is shown. */
export function useZoomByWheel(plot?: string) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current!;
    const turn = (event: WheelEvent) => {
      const { from, to } = span.value;
      const bounds = ((plot && element.querySelector(plot)) || element).getBoundingClientRect();
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey || event.metaKey) zoomAbout(Math.exp(Math.sign(event.deltaY) * 0.22), from + ((event.clientX - bounds.left) / Math.max(1, bounds.width)) * (to - from));
      else if (isZoomed.value && sideways !== 0 && Math.abs(sideways) >= Math.abs(event.shiftKey ? 0 : event.deltaY)) panBy(sideways / 1000);
      else return;
      event.preventDefault();
    };
    // Preact's listeners are passive where browsers make them so: the page would zoom.
    element.addEventListener("wheel", turn, { passive: false });
    return () => element.removeEventListener("wheel", turn);
  }, []);
  return box;
}

/** The point nearest to a time. */
export function pointAt(times: readonly number[], time: number): number | null {
  if (times.length === 0) return null;
  const after = times.findIndex((each) => each >= time);
  if (after <= 0) return after < 0 ? times.length - 1 : 0;
  return times[after]! - time < time - times[after - 1]! ? after : after - 1;
}
