// What the page says when something is missing or wrong: what, where, and what to do.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Info } from "../query/types";
import { bytes, percent } from "../text/units";
import { basisNote } from "../view/basis";
import { dismiss, isDismissed } from "../view/dismissed";
import { grows } from "../view/live";
import { notices, traces, type TraceState } from "../view/store";

export function Problem({ text }: { text: string }) {
  return <p class="problem" role="alert">{text}</p>;
}

export function Notices({ info }: { info: Info | null }) {
  const problems = notices.value;
  const notes = info ? notesOf(info) : [];
  return (
    <>
      {problems.length > 0 && <OneLine texts={problems} look="bad" role="alert" onDismiss={() => { notices.value = []; }} />}
      {info && notes.length > 0 && <OneLine key={info.name} texts={notes} look="" role="status" onDismiss={() => dismiss(info.name, notes)} />}
    </>
  );
}

/** What a reader of the figures should know. */
function notesOf(info: Info): string[] {
  const cut = info.cut_short ? [`The end of this trace is missing: ${info.cut_short}.`] : [];
  const basis = basisNote.value === null ? [] : [basisNote.value];
  return [...cut, ...info.notes, ...basis].filter((note) => !isDismissed(info.name, note));
}

/** Messages on one line until it is opened. */
function OneLine({ texts, look, role, onDismiss }: { texts: readonly string[]; look: string; role: "alert" | "status"; onDismiss(): void }) {
  const [open, setOpen] = useState(false);
  const [isCut, setCut] = useState(false);
  const line = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    const look = () => setCut(line.current !== null && line.current.scrollWidth > line.current.clientWidth);
    look();
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  }, [texts.join("\0")]);
  return (
    <div class={`notice notes ${look}${open ? " open" : ""}`} role={role}>
      <ul ref={line}>{texts.map((text) => <li>{text}</li>)}</ul>
      {(isCut || open) && <button type="button" class="plain link" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "less" : "more"}</button>}
      <button type="button" class="plain" aria-label="Dismiss" onClick={onDismiss}>×</button>
    </div>
  );
}

/** In place of a picture, while there is none. */
export function TraceMessage({ state, name }: { state: TraceState | undefined; name: string }) {
  if (!state) return <Message title="This page holds no trace"><p>Write one with <code>heaptap export TRACE --to html -o page.html</code>, or look at a trace with <code>heaptap serve TRACE</code>.</p></Message>;
  if ("error" in state) {
    return (
      <Message title={`${name} cannot be shown`}>
        <p class="problem">{state.error}</p>
        {!/file is empty/.test(state.error) && <p>Try <code>heaptap check</code> on the trace, which names the defect and its place; <code>heaptap recode damaged.ctf repaired.ctf</code> keeps what is left of it.</p>}
      </Message>
    );
  }
  if ("info" in state) return null;
  const { read, size, state: at, live } = state.status;
  if (live && read === 0) return <Message title={`Waiting for the first data of ${name}`} />;
  const part = size > 0 ? Math.min(1, read / size) : 0;
  return (
    <Message title={at === "ready" ? "Opening" : `Reading ${name}`}>
      <progress max={1} value={at === "ready" ? 1 : part} aria-label="Read so far" />
      <p class="faint">{size > 0 ? `${bytes(read)} of ${bytes(size)}, ${percent(part)}` : " "}</p>
    </Message>
  );
}

export function Message({ title, children }: { title: string; children?: preact.ComponentChildren }) {
  return <section class="message"><h2>{title}</h2>{children}</section>;
}

/** A trace without a sample has nothing to show. */
export function EmptyTrace({ info }: { info: Info }) {
  if (grows.value) return <Message title="Nothing was sampled yet"><p>The program runs, and the page shows its first sampled allocation as soon as it is written.</p></Message>;
  return (
    <Message title="No allocation was sampled">
      <p>The trace has no sampled allocation. The program allocated little for a sampling rate of {info.sample_rate}.</p>
      <p>Trace a longer run, or raise the rate: <code>heaptap run --rate {Math.min(1, 10 * info.sample_rate)} -- PROGRAM</code>.</p>
    </Message>
  );
}

/** Filters may leave nothing. */
export function NothingSelected() {
  return <Message title="No block passes the filters"><p>Remove one of them above.</p></Message>;
}

export function anyReading(): boolean {
  return traces.value.some((state) => "status" in state);
}
