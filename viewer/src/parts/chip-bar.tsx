// The chips and the menu that adds one.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Info, Source } from "../query/types";
import { literally, visible } from "../text/sites";
import { parseBytes, parseDuration } from "../text/units";
import { chipText, CHIP_KINDS, SOURCES, type Chip, type ChipKind } from "../view/chips";
import { useQuery } from "../view/ask";
import { addChip, change, removeChip, view } from "../view/store";

export const addOpen = signal(false);

export function ChipBar({ info }: { info: Info }) {
  const { chips } = view.value;
  return (
    <div class="chips" role="group" aria-label="Filters">
      {chips.map((chip, at) => {
        const [name, value] = chipText(chip);
        return (
          <span class="chip" key={`${name}${value}`}>
            <span class="chip-name">{name}</span> <span class="chip-value">{value}</span>
            <button type="button" aria-label={`Remove ${name} ${value}`} onClick={() => removeChip(at)}>×</button>
          </span>
        );
      })}
      <AddMenu info={info} />
      {chips.length > 1 && <button type="button" class="plain" onClick={() => change({ chips: [] })}>clear all</button>}
    </div>
  );
}

function AddMenu({ info }: { info: Info }) {
  const [kind, setKind] = useState<ChipKind | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const open = addOpen.value;
  const close = () => {
    addOpen.value = false;
    setKind(null);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) {
        addOpen.value = false;
        setKind(null);
      }
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [open]);
  useLayoutEffect(() => {
    if (open && kind === null) box.current?.querySelector<HTMLElement>(".menu button")?.focus();
  }, [open, kind]);
  const possible = CHIP_KINDS.filter(({ kind }) => (kind !== "label" || info.labels.length > 0) && (kind !== "domain" || info.domains.length > 1));
  return (
    <div class="add" ref={box} onKeyDown={(event) => {
      if (event.key === "Escape") close();
      else if (kind === null && open && (event.key === "ArrowDown" || event.key === "ArrowUp")) stepFocus(box.current!, event.key === "ArrowDown" ? 1 : -1);
      else return;
      event.preventDefault();
      event.stopPropagation();
    }}>
      <button ref={button} type="button" class="plain" id="add-filter" aria-expanded={open} onClick={() => { if (open) close(); else addOpen.value = true; }}>+ add filter</button>
      {open && kind === null && (
        <div class="menu" role="group" aria-label="Kind of filter">
          {possible.map(({ kind, title, hint }) => (
            <button type="button" key={kind} onClick={() => setKind(kind)}><b>{title}</b> <span class="faint">{hint}</span></button>
          ))}
        </div>
      )}
      {open && kind !== null && <ChipForm kind={kind} info={info} onDone={(chip) => { if (chip) addChip(chip); close(); }} />}
    </div>
  );
}

function stepFocus(box: HTMLElement, by: number): void {
  const all = [...box.querySelectorAll<HTMLElement>(".menu button")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  all[(at + by + all.length) % all.length]?.focus();
}

function ChipForm({ kind, info, onDone }: { kind: ChipKind; info: Info; onDone(chip: Chip | null): void }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const completes = kind === "function" || kind === "file" || kind === "label" || kind === "without";
  const { answer } = useQuery("names", "names", completes ? { trace: view.value.trace, text, most: 50 } : null);
  const offered =
    kind === "domain" ? info.domains.map(String)
    : kind === "source" ? SOURCES.filter((source) => info.sources.length === 0 || info.sources.includes(source))
    : kind === "label" ? (answer?.labels ?? info.labels)
    : kind === "file" ? (answer?.files ?? [])
    : completes ? (answer?.functions ?? []) : [];
  const { hint, title } = CHIP_KINDS.find((known) => known.kind === kind)!;
  const submit = (value: string) => {
    const chip = parseChip(kind, value);
    if (typeof chip === "string") setProblem(chip);
    else onDone(chip);
  };
  return (
    <form class="menu form" onSubmit={(event) => { event.preventDefault(); submit(text); }} onKeyDown={(event) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      event.stopPropagation();
      const all = [field.current!, ...event.currentTarget.querySelectorAll<HTMLElement>(".offered button")];
      const at = all.indexOf(document.activeElement as HTMLInputElement);
      all[Math.min(all.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)))]?.focus();
    }}>
      <label><b>{title}</b> <span class="faint">{hint}</span>
        <input ref={field} value={text} spellcheck={false} autocomplete="off" onInput={(event) => { setText(event.currentTarget.value); setProblem(""); }} />
      </label>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {offered.length > 0 && (
        <div class="offered" role="group" aria-label="Names in the trace">
          {offered.map((name) => (
            <button type="button" key={name} onClick={() => submit(completes ? literally(name) : name)}>{visible(name)}</button>
          ))}
        </div>
      )}
      <div class="form-end"><button type="submit">add</button></div>
    </form>
  );
}

/** The chip, or what is wrong with the text. */
function parseChip(kind: ChipKind, text: string): Chip | string {
  const value = text.trim();
  if (value === "") return "Nothing is entered yet.";
  switch (kind) {
    case "function":
    case "file":
    case "without":
    case "label":
      return { kind, text: value };
    case "domain":
      return /^\d+$/.test(value) ? { kind, number: Number(value) } : "A domain is a number.";
    case "source":
      return SOURCES.includes(value as Source) ? { kind, source: value as Source } : `A source is ${SOURCES.join(", ")}.`;
    case "size": {
      const range = parseRange(value, parseBytes);
      return range ? { kind, from: range[0], to: range[1] } : "A size is like 4096, 64KiB, 16-4096, or -1MiB for at most.";
    }
    case "lifetime": {
      const range = parseRange(value, parseDuration);
      return range ? { kind, from: range[0], to: range[1] } : "A lifetime is like 1ms, 10us-5s, or -1s for at most.";
    }
    case "time": {
      const range = parseRange(value, parseDuration);
      return range && range[1] !== null ? { kind, from: range[0], to: range[1] } : "A time is like 10ms-2s, counted from the start.";
    }
  }
}

/** `a`, `a-`, `a-b` or `-b`. */
function parseRange(text: string, parse: (text: string) => number | null): [number, number | null] | null {
  const match = /^([^-–]*)(?:[-–](.*))?$/.exec(text.replace(/^≥/, ""));
  if (!match) return null;
  const from = match[1]!.trim() === "" ? 0 : parse(match[1]!);
  const to = (match[2] ?? "").trim() === "" ? null : parse(match[2]!);
  if (from === null || ((match[2] ?? "").trim() !== "" && to === null) || (to !== null && to < from)) return null;
  return from === 0 && to === null ? null : [from, to];
}
