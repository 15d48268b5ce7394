// What shows that a part of the run is enlarged, and how to change it without a wheel: buttons beside the time
// axis, and below it a strip that stands for the whole run.

import { useRef } from "preact/hooks";
import { shortDuration, timeText } from "../text/units";
import { isZoomed, middleOfBrush, panBy, panTo, showWholeRun, span, zoomAbout } from "../view/zoom";
import { AXIS, MARGIN } from "./plot";

export function ZoomButtons() {
  return (
    <span class="zoom-buttons">
      <button type="button" class="plain" aria-label="Zoom out of the time" title="Zoom out (−)" disabled={!isZoomed.value} onClick={() => zoomAbout(2, middleOfBrush())}>−</button>
      <button type="button" class="plain" aria-label="Zoom into the time" title="Zoom in (+, or Control and the wheel)" onClick={() => zoomAbout(1 / 2, middleOfBrush())}>+</button>
    </span>
  );
}

/** Only while a part is shown: which one. Drag it, or move it with the arrows. */
export function ZoomStrip({ duration }: { duration: number }) {
  const track = useRef<HTMLDivElement>(null);
  const drag = useRef<{ pixel: number; from: number } | null>(null);
  if (!isZoomed.value) return null;
  const { from, to } = span.value;
  const share = (time: number) => (100 * time) / Math.max(1, duration);
  const end = () => { drag.current = null; };
  return (
    <div class="zoom-strip">
      <div class="zoom-track" ref={track} style={{ marginLeft: `${AXIS}px`, marginRight: `${MARGIN}px` }}>
        <div
          class="zoom-part"
          role="slider"
          tabIndex={0}
          aria-label="Part of the run that is shown"
          aria-valuemin={0}
          aria-valuemax={Math.round(duration - (to - from))}
          aria-valuenow={Math.round(from)}
          aria-valuetext={`${shortDuration(from)} to ${shortDuration(to)} of ${shortDuration(duration)}`}
          style={{ left: `${share(from)}%`, width: `${share(to - from)}%` }}
          onPointerDown={(event) => {
            drag.current = { pixel: event.clientX, from };
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={(event) => {
            const begun = drag.current;
            if (begun) panTo(begun.from + ((event.clientX - begun.pixel) / Math.max(1, track.current!.clientWidth)) * duration);
          }}
          onPointerUp={end}
          onPointerCancel={end}
          onKeyDown={(event) => {
            const moves: Record<string, () => void> = {
              ArrowLeft: () => panBy(-0.1), ArrowRight: () => panBy(0.1), PageUp: () => panBy(-1), PageDown: () => panBy(1),
              Home: () => panTo(0), End: () => panTo(duration), Escape: showWholeRun,
            };
            const move = moves[event.key];
            if (!move) return;
            move();
            event.preventDefault();
            event.stopPropagation();
          }}
        />
      </div>
      <p class="zoom-text faint">
        <span>{timeText(from, (to - from) / 10)} – {timeText(to, (to - from) / 10)} of {shortDuration(duration)}</span>
        <button type="button" class="plain link" title="Show the whole run (0)" onClick={showWholeRun}>whole run</button>
      </p>
    </div>
  );
}
