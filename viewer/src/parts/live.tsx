// The state of a trace that is followed, and the button that stops the page at what it shows.

import { current, grows, liveText, lost, paused, togglePause } from "../view/live";

export function Live() {
  if (!current.value) return null;
  const kind = lost.value !== null ? "lost" : paused.value ? "paused" : grows.value ? "now" : "over";
  return (
    <span class={`live ${kind}`}>
      <span role="status" title={lost.value ?? undefined}>{liveText.value}</span>
      {(grows.value || paused.value) && (
        <button type="button" id="pause" aria-pressed={paused.value} title={paused.value ? "Show what was written since (Space)" : "Keep this in view while the program runs on (Space)"} onClick={togglePause}>
          {paused.value ? "resume" : "pause"}
        </button>
      )}
    </span>
  );
}
