// The keys, and what marks and words mean.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { GLOSSARY, HEAP_GLOSSARY } from "../text/glossary";
import { config } from "../view/store";

export const helpOpen = signal(false);

const KEYS: [string, string][] = [
  [`1 – ${config.snapshots > 0 ? 7 : 6}`, `the views, from Overview to ${config.snapshots > 0 ? "Snapshots" : "Source"}`],
  ["8", "the heat map: what was allocated over time"],
  ["← ↓ ↑ →  h j k l", "move the selection"],
  ["Enter", "focus the selected frame, open the selected row"],
  ["Backspace", "one level out"],
  ["/", "search, and in Table only the rows with a text; n and N step through what is found, Escape ends it"],
  ["i", "invert: allocation sites at the top"],
  ["m", "next metric"],
  ["p", "live at the peak"],
  ["[  ]", "start and end of the time; then ← → move it"],
  ["+  −", "zoom the time line in and out; with Control and the wheel, about the pointer"],
  [",  .", "move what is shown of the run; so does dragging with Shift"],
  ["0", "the whole run"],
  ["f", "add a filter"],
  ["o", "own code: rows, cards and calls are named after your code, or after library code if that allocates"],
  ["t", "trace facts: rate, host, process, date, size of the file"],
  ["c", "copy a link to this view"],
  ["d", "light or dark"],
  ...(config.mode === "serve" ? [["Space", "while the program runs: pause, and go on"] as [string, string]] : []),
  ["?", "this help; Escape closes it"],
];

const MARKS: [string, string][] = [
  ["x ± y %", "an estimate and its standard error; 95 in 100 times the true value is within two of them"],
  ["▨", "hatched: a relative error over 25 %, so the width is not to be trusted"],
  ["grey", "frames too small to show, joined into one; none is left out"],
  ...(config.snapshots > 0 ? [["◆", "on the time line: a snapshot of the heap was taken; a click opens it"] as [string, string]] : []),
  ["⊢⊣", "on the selected frame: its 95 % interval"],
  ["▲ ▼", "in Diff: grew or shrank by more than chance; what has no colour may be chance"],
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helpOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [helpOpen.value]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={() => { helpOpen.value = false; }} onClick={(event) => { if (event.target === dialog.current) helpOpen.value = false; }}>
      <div class="help-body" tabIndex={0} role="region" aria-labelledby="help-title">
        <div class="help-head">
          <h2 id="help-title">Keys, marks and words</h2>
          <button type="button" onClick={() => { helpOpen.value = false; }}>close</button>
        </div>
        <dl>{KEYS.map(([key, text]) => <div><dt>{key}</dt><dd>{text}</dd></div>)}</dl>
        <h3>What the marks mean</h3>
        <dl>{MARKS.map(([mark, text]) => <div><dt>{mark}</dt><dd>{text}</dd></div>)}</dl>
        <h3 id="words">What the words mean</h3>
        <dl class="words">{[...Object.values(GLOSSARY), ...(config.snapshots > 0 ? HEAP_GLOSSARY : [])].map(([word, text]) => <div><dt>{word}</dt><dd>{text}</dd></div>)}</dl>
        <p class="faint">On the time line, drag to choose when blocks were allocated, and click for what was alive then. In the flame view a double click focuses; Control and the wheel zoom.</p>
      </div>
    </dialog>
  );
}
