// The time line that every tab shares: live size stacked by module, with its band and the brush.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { Info, Timeline as Data } from "../query/types";
import { filterOf } from "../view/chips";
import { palette, seriesColour } from "../view/colour";
import { useQuery, type Asked } from "../view/ask";
import { addChip, change, common, endGesture, removeChips, view } from "../view/store";
import { drillBy, drillWithin } from "../view/drill";
import { dark } from "../view/theme";
import { Brush } from "./brush";
import { AXIS, makePlot, MARGIN, type PlotOptions } from "./plot";
import { stacked } from "./stack";

/** The point under the pointer, of which the legend shows the sizes. */
export const cursor = signal<number | null>(null);

/** The time line of the view. The brush moves over it, so it does not depend on the brush. */
export function useTimeline(): Asked<"timeline"> {
  const current = view.value;
  const chips = current.chips.filter(({ kind }) => kind !== "time");
  const within = drillWithin(current);
  return useQuery("timeline", "timeline", {
    ...common(current),
    filter: filterOf(chips),
    by: drillBy(current),
    top: 8,
    points: 200,
    ...(within ? { within } : {}),
  });
}

export function layerColours(data: Data): string[] {
  const by = drillBy(view.value);
  const colours = data.series.map(({ site }, rank) => seriesColour(site, by, rank));
  return [...colours, palette().others];
}

export function Timeline({ data, info, height }: { data: Data; info: Info; height: number }) {
  const parent = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [width, setWidth] = useState(0);
  const current = view.value;
  const colours = layerColours(data);
  const options: PlotOptions = {
    width,
    height,
    duration: info.duration_us,
    colours,
    timeline: data,
    at: current.metric === "at" ? current.at : null,
    onCursor: (index) => {
      // The first point is the start, which the data does not have.
      cursor.value = index === null || index === 0 ? null : index - 1;
    },
  };
  const latest = useRef(options);
  latest.current = options;

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(parent.current?.clientWidth ?? 0));
    observer.observe(parent.current!);
    setWidth(parent.current!.clientWidth);
    return () => observer.disconnect();
  }, []);

  const { times, edges } = stacked(data);
  const shape = `${dark.value} ${edges.length} ${colours.join()}`;
  useEffect(() => {
    if (width === 0) return;
    const made = makePlot(parent.current!, () => latest.current);
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [shape, width > 0]);
  useEffect(() => {
    if (width > 0) plot.current?.setSize({ width, height });
  }, [width, height]);
  useEffect(() => {
    plot.current?.setData([times, ...edges]);
  }, [data, options.at, info]);

  const time = current.chips.find((chip) => chip.kind === "time");
  return (
    <div class="timeline" style={{ height: `${height}px` }} onPointerLeave={() => { cursor.value = null; }}>
      <div class="timeline-plot" ref={parent} aria-hidden="true" />
      <div
        class="timeline-brush"
        style={{ left: `${AXIS}px`, right: `${MARGIN}px` }}
        onPointerMove={(event) => {
          const bounds = event.currentTarget.getBoundingClientRect();
          plot.current?.setCursor({ left: event.clientX - bounds.left, top: 10 });
        }}
      >
        <Brush
          duration={info.duration_us}
          range={time?.kind === "time" ? [time.from, time.to] : null}
          onRange={(range, done) => {
            if (range) addChip({ kind: "time", from: range[0], to: range[1] }, "brush");
            else removeChips("time", done ? "step" : "brush");
            if (done) endGesture();
          }}
          onTime={(at) => change({ metric: "at", at })}
        />
      </div>
    </div>
  );
}
